"""Two line-parallel files and one of document ids, as OPUS has OpenSubtitles 2018 (Lison et al. 2018)."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.pairs import check_target
from hf_docmt.files import DataError, read_lines, shown


def read_moses(
    languages: list[str], source: str | Path, ids: str | Path, target: str | Path | None = None
) -> Iterator[tuple[str, dict]]:
    """Rows, read as they come; a document is a run of lines with the same two document ids, which make its own.

    A line of `ids` has two document ids, each begun by its language (`en/1957/23590/3520211.xml.gz`), and the numbers
    of the sentences in them, parted by tabs. Blank lines of the texts are empty sentences; blanks stay.
    """
    two_sided = check_target(languages, source, target)
    paths = [ids, source, *([target] if two_sided else [])]
    closed, pair, place, sides = set(), None, "", ([], [])
    for number, lines in enumerate(zip_longest(*(read_lines(path) for path in paths)), 1):
        _check_lengths(paths, lines, number)
        (_, line), *texts = lines
        current = _documents(f"{shown(ids)}, line {number}", line)
        if current != pair:
            if pair is not None:
                yield place, make_row(place, " ".join(pair), *sides, languages)
            place = f"{shown(ids)}, line {number}"
            _check_documents(place, current, pair, closed, languages)
            closed.add(current)
            pair, sides = current, ([], [])
        for side, (_, text) in zip(sides, texts):
            side.append(text)
    yield place, make_row(place, " ".join(pair), *sides, languages)


def _documents(place: str, line: str) -> tuple[str, str]:
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) != 4:
        raise DataError(
            f"{place}: {len(cells)} columns, expected 4: two document ids and the sentences in them, parted by tabs"
        )
    if not cells[0] or not cells[1]:
        raise DataError(f"{place}: document id is missing, got {cells[:2]}; every line needs two")
    return cells[0], cells[1]


def _check_documents(place: str, current: tuple, before: tuple | None, closed: set, languages: list[str]) -> None:
    if current in closed:
        raise DataError(
            f"{place}: document {' '.join(current)!r} begins again after {' '.join(before)!r}; put its lines together"
        )
    found = [name.split("/")[0] for name in current]
    for lang in languages:
        if lang not in found:
            raise DataError(
                f"{place}: unknown document ids {current[0]!r} and {current[1]!r}: they begin with the languages "
                f"{found}, {lang!r} is not one of them; take the ids of these files, or correct the language"
            )


def _check_lengths(paths: list, lines: tuple, number: int) -> None:
    if None in lines:
        ended, goes_on = (paths[[line is None for line in lines].index(wanted)] for wanted in (True, False))
        raise DataError(
            f"{shown(ended)} ends after line {number - 1}, but {shown(goes_on)} goes on; the files must be parallel, "
            "line by line"
        )
