"""Tab-separated sentence pairs with blank lines between documents, as in News Commentary from version 14 on."""

import re
from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.language_codes import other_spellings
from hf_docmt.data.readers.parallel_files import numbered_id
from hf_docmt.data.readers.reader import Evidence, Reader, Sample
from hf_docmt.files import DataError, display_path, location_of, read_lines

PAIR = re.compile(r"\.([a-z]{2,3})-([a-z]{2,3})\.")


class CommentaryReader(Reader):
    """The columns are in the languages that the file's name gives, as `news-commentary-v14.de-en.tsv.gz`.

    Without that the first column is the source. Lines without text, one or more, end a document, so the format cannot
    hold a pair of empty sentences; a sentence that is empty on one side stays. Cells are kept as they are.
    """

    name = "commentary"

    def recognize(self, sample: Sample) -> Evidence:
        two_columns = sample.first_line.count("\t") == 1
        if sample.argument == "path" and sample.ending == ".tsv" and two_columns and PAIR.search(sample.file_name):
            return Evidence.NAME_AND_BYTES
        return Evidence.NONE

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
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
                    f"{location_of(path, number)}: {len(cells)} columns, expected 2; one tab separates the two "
                    "languages, take other tabs out"
                )
            if not sides[0]:
                documents, start = documents + 1, number
            for side, column in zip(sides, columns):
                side.append(cells[column])
        if not documents:
            raise DataError(f"{display_path(path)}: blank lines only; add lines of two sentences separated by a tab")
        if sides[0]:
            yield _row(path, start, documents, sides, languages)


def _columns(path: str | Path, languages: list[str]) -> list[int]:
    named = PAIR.search(Path(path).name)
    if named is None:
        return list(range(len(languages)))
    others = other_spellings(named.groups(), languages)
    columns = [others.get(lang, lang) for lang in named.groups()]
    for lang in languages:
        if lang not in columns:
            raise DataError(
                f"{display_path(path)}: the columns are {named[1]!r} and {named[2]!r} by the file's name, {lang!r} is "
                "not there; correct the language or the name"
            )
    return [columns.index(lang) for lang in languages]


def _row(path: str | Path, start: int, number: int, sides: tuple[list, list], languages: list[str]) -> tuple[str, dict]:
    location = location_of(path, start)
    return location, make_row(location, numbered_id(path, number), sides[0], sides[1], languages)
