"""Tab-separated sentence pairs: with document ids, or with blank lines between documents (News Commentary)."""

import re
from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.language_codes import other_spellings
from hf_docmt.data.readers.reader import Evidence, Reader, Sample, numbered_id, rows_of_lines
from hf_docmt.files import DataError, display_path, location_of, read_lines
from hf_docmt.messages import closest_hint

COLUMNS = ("doc_id", "source", "target")
LANGUAGES_IN_NAME = re.compile(r"\.([a-z]{2,3})-([a-z]{2,3})\.")


class TsvReader(Reader):
    """The lines of a document stand together. No quoting: a tab always ends a cell, cells are kept as they are.

    A first line that begins with `doc_id` (or `id`), or has all names or `source` and `target`, is a header; it names
    the columns, in any order, and others are left out. Without one the columns are doc_id, source, target; the target
    may be absent where only the source is asked for.
    """

    name = "tsv"
    endings = (".tsv",)

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
        return rows_of_lines(_lines_with_ids(path, COLUMNS[: 1 + len(languages)]), languages)


class CommentaryReader(Reader):
    """The columns are in the languages that the file's name gives, as `news-commentary-v14.de-en.tsv.gz`.

    Without that the first column is the source. Lines without text, one or more, end a document, so the format cannot
    hold a pair of empty sentences; a sentence that is empty on one side stays. Cells are kept as they are.
    """

    name = "commentary"

    def recognize(self, sample: Sample) -> Evidence:
        is_tsv = sample.argument == "path" and sample.ending == ".tsv"
        is_named = is_tsv and LANGUAGES_IN_NAME.search(Path(sample.path).name)
        return Evidence.NAME_AND_BYTES if is_named and sample.first_line.count("\t") == 1 else Evidence.NONE

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
        return rows_of_lines(_lines_with_blanks(path, _columns_of_languages(path, languages)), languages)


def _lines_with_ids(path: str | Path, needed: tuple[str, ...]) -> Iterator[tuple[str, str, list[str]]]:
    indices, columns, doc_id = None, 0, ""
    for number, line in read_lines(path):
        location, cells = location_of(path, number), line.split("\t")
        if indices is None:
            indices, columns, is_header = _named_columns(location, cells, needed)
            if is_header:
                continue
        if len(cells) != columns:
            raise DataError(
                f"{location}: {len(cells)} columns, expected {columns}; separate {', '.join(needed)} by tabs and take "
                "tabs out of sentences"
            )
        doc_id, *sentences = [cells[index] for index in indices]
        doc_id = doc_id.strip()
        if not doc_id:
            raise DataError(f"{location}: document id is missing; every line needs one")
        yield location, doc_id, sentences
    if not doc_id:
        raise DataError(f"{display_path(path)}: a header and no sentences; add lines of {', '.join(needed)}")


def _named_columns(location: str, cells: list[str], needed: tuple[str, ...]) -> tuple[list[int], int, bool]:
    """Where the needed columns are, how many columns a line has, and whether this first line is a header."""
    names = [cell.strip().lower() for cell in cells]
    names = ["doc_id" if name == "id" else name for name in names]
    if names[0] != "doc_id" and not set(needed) <= set(names) and not {"source", "target"} <= set(names):
        columns = min(max(len(cells), len(needed)), len(COLUMNS))
        return list(range(len(needed))), columns, False
    for name in needed:
        if name not in names:
            hint = closest_hint(name, names, " (is {!r} meant?)")
            raise DataError(f"{location}: the header {names} has no column {name!r}{hint}; name it so")
    return [names.index(name) for name in needed], len(cells), True


def _lines_with_blanks(path: str | Path, columns: list[int]) -> Iterator[tuple[str, str, list[str]]]:
    documents, goes_on = 0, False
    for number, line in read_lines(path):
        cells = line.split("\t")
        if line.strip():
            if len(cells) != 2:
                raise DataError(
                    f"{location_of(path, number)}: {len(cells)} columns, expected 2; one tab separates the two "
                    "languages, take other tabs out"
                )
            documents += not goes_on
            yield location_of(path, number), numbered_id(path, documents), [cells[column] for column in columns]
        goes_on = bool(line.strip())
    if not documents:
        raise DataError(f"{display_path(path)}: blank lines only; add lines of two sentences separated by a tab")


def _columns_of_languages(path: str | Path, languages: list[str]) -> list[int]:
    named = LANGUAGES_IN_NAME.search(Path(path).name)
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
