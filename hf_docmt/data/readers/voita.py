"""One example a line, its sentences joined by ` _eos ` (four of them in Voita et al. 2019)."""

import re
from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.readers.parallel_files import ParallelFilesReader, SideDocument
from hf_docmt.data.readers.reader import Evidence, Sample
from hf_docmt.files import DataError, location_of, read_lines

MARK = "_eos"
SEPARATOR = re.compile(rf"(?<!\S){MARK}(?!\S)")


class VoitaReader(ParallelFilesReader):
    """One document a line; the blanks around `_eos` and at the ends of the line are no part of a sentence."""

    name = "voita"
    first_line_mark = repr(MARK)

    def recognize(self, sample: Sample) -> Evidence:
        return Evidence.FIRST_BYTES if MARK in sample.first_line.split() else Evidence.NONE

    def side_documents(self, path: str | Path) -> Iterator[SideDocument]:
        for number, line in read_lines(path):
            if not line.strip():
                raise DataError(
                    f"{location_of(path, number)}: document {number} is empty; a line holds sentences joined "
                    f"by ' {MARK} '"
                )
            yield number, [sentence.strip() for sentence in SEPARATOR.split(line)]
