"""Two line-parallel files in which a line `<d>` begins each document (Maruf et al. 2019)."""

from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.readers.parallel_files import ParallelFilesReader, SideDocument
from hf_docmt.data.readers.reader import Evidence, Sample
from hf_docmt.files import DataError, location_of, read_lines

MARK = "<d>"


class DtagReader(ParallelFilesReader):
    """`<d>` is no sentence, a blank line is an empty sentence, blanks inside and after a sentence stay."""

    name = "dtag"
    first_line_mark = repr(MARK)

    def recognize(self, sample: Sample) -> Evidence:
        words = sample.first_line.split()
        found = words == [MARK] or (sample.argument == "path" and MARK in words)
        return Evidence.FIRST_BYTES if found else Evidence.NONE

    def side_documents(self, path: str | Path) -> Iterator[SideDocument]:
        document: SideDocument | None = None
        for number, line in read_lines(path):
            if line.strip() == MARK:
                if document is not None:
                    yield document
                document = (number, [])
            elif document is None:
                raise DataError(
                    f"{location_of(path, number)}: text before the first {MARK}; begin every document with it"
                )
            else:
                document[1].append(line)
        if document is not None:
            yield document
