"""Two line-parallel files in which a line `<d>` begins each document (Maruf et al. 2019)."""

from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.readers.pairs import Document, paired_rows
from hf_docmt.files import DataError, read_lines, shown

MARK = "<d>"


def read_dtag(languages: list[str], source: str | Path, target: str | Path | None = None) -> Iterator[tuple[str, dict]]:
    """Rows; `<d>` is no sentence, a blank line is an empty sentence, blanks inside and after a sentence stay."""
    theirs = _documents(target) if target is not None else []
    yield from paired_rows(languages, source, _documents(source), target, theirs)


def _documents(path: str | Path) -> list[Document]:
    documents: list[Document] = []
    for number, line in read_lines(path):
        if line.strip() == MARK:
            documents.append((number, []))
        elif not documents:
            raise DataError(f"{shown(path)}, line {number}: text before the first {MARK}; begin every document with it")
        else:
            documents[-1][1].append(line)
    return documents
