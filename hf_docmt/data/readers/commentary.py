"""Tab-separated sentence pairs with blank lines between documents, as in News Commentary from version 14 on."""

import re
from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.pairs import numbered_id
from hf_docmt.files import DataError, read_lines, shown

PAIR = re.compile(r"\.([a-z]{2,3})-([a-z]{2,3})\.")


def read_commentary(languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
    """Rows; the columns are in the languages that the file's name tells, as `news-commentary-v14.de-en.tsv.gz`.

    Without that the first column is the source. Lines without text, one or more, end a document, so the format cannot
    hold a pair of empty sentences; a sentence that is empty on one side stays. Cells are kept as they are.
    """
    columns = _columns(path, languages)
    documents, start, sides = 0, 0, ([], [])
    for number, line in read_lines(path):
        if not line.strip():
            if sides[0]:
                yield _row(path, start, documents, sides, languages)
            sides = ([], [])
            continue
        cells = line.split("\t")
        if len(cells) != 2:
            raise DataError(
                f"{shown(path)}, line {number}: {len(cells)} columns, expected 2; one tab parts the two languages, "
                "take other tabs out"
            )
        if not sides[0]:
            documents, start = documents + 1, number
        for side, column in zip(sides, columns):
            side.append(cells[column])
    if not documents:
        raise DataError(f"{shown(path)}: blank lines only; add lines of two sentences parted by a tab")
    if sides[0]:
        yield _row(path, start, documents, sides, languages)


def _columns(path: str | Path, languages: list[str]) -> list[int]:
    told = PAIR.search(Path(path).name)
    if told is None:
        return list(range(len(languages)))
    for lang in languages:
        if lang not in told.groups():
            raise DataError(
                f"{shown(path)}: the columns are {told[1]!r} and {told[2]!r} by the file's name, {lang!r} is not "
                "there; correct the language or the name"
            )
    return [told.groups().index(lang) for lang in languages]


def _row(path: str | Path, start: int, number: int, sides: tuple[list, list], languages: list[str]) -> tuple[str, dict]:
    place = f"{shown(path)}, line {start}"
    return place, make_row(place, numbered_id(path, number), sides[0], sides[1], languages)
