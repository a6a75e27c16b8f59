"""One example a line, its sentences joined by ` _eos ` (four of them in Voita et al. 2019)."""

import re
from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.readers.pairs import Document, paired_rows
from hf_docmt.files import DataError, read_lines, shown

MARK = re.compile(r"(?<!\S)_eos(?!\S)")


def read_voita(
    languages: list[str], source: str | Path, target: str | Path | None = None
) -> Iterator[tuple[str, dict]]:
    """Rows, one document a line; the blanks around `_eos` and at the ends of the line are no part of a sentence."""
    theirs = _documents(target) if target is not None else []
    yield from paired_rows(languages, source, _documents(source), target, theirs)


def _documents(path: str | Path) -> list[Document]:
    documents: list[Document] = []
    for number, line in read_lines(path):
        if not line.strip():
            raise DataError(
                f"{shown(path)}, line {number}: document {number} is empty; a line holds sentences joined by ' _eos '"
            )
        documents.append((number, [sentence.strip() for sentence in MARK.split(line)]))
    return documents
