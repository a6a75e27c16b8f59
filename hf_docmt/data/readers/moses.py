"""Two line-parallel files and one of document ids, as OPUS has OpenSubtitles 2018 (Lison et al. 2018)."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.parallel_files import check_target
from hf_docmt.data.readers.reader import Evidence, Reader, Sample
from hf_docmt.files import DataError, display_path, location_of, read_lines


class MosesReader(Reader):
    """A document is a run of lines with the same two document ids, which make its own.

    A line of `ids` has two document ids, each begun by its language (`en/1957/23590/3520211.xml.gz`), and the numbers
    of the sentences in them, separated by tabs. Blank lines of the texts are empty sentences; blanks stay.
    """

    name = "moses"

    def recognize(self, sample: Sample) -> Evidence:
        return Evidence.ARGUMENTS if "ids" in sample.arguments else Evidence.NONE

    def read(
        self, languages: list[str], source: str | Path, ids: str | Path, target: str | Path | None = None
    ) -> Iterator[tuple[str, dict]]:
        two_sided = check_target(languages, source, target)
        paths = [ids, source, *([target] if two_sided else [])]
        closed, pair, location, sides = set(), None, "", ([], [])
        for number, lines in enumerate(zip_longest(*(read_lines(path) for path in paths)), 1):
            _check_lengths(paths, lines, number)
            (_, line), *texts = lines
            current = _documents(location_of(ids, number), line)
            if current != pair:
                if pair is not None:
                    yield location, make_row(location, " ".join(pair), *sides, languages)
                location = location_of(ids, number)
                _check_documents(location, current, pair, closed, languages)
                closed.add(current)
                pair, sides = current, ([], [])
            for side, (_, text) in zip(sides, texts):
                side.append(text)
        yield location, make_row(location, " ".join(pair), *sides, languages)


def _documents(location: str, line: str) -> tuple[str, str]:
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) != 4:
        raise DataError(
            f"{location}: {len(cells)} columns, expected 4: two document ids and the sentences in them, separated by "
            "tabs"
        )
    if not cells[0] or not cells[1]:
        raise DataError(f"{location}: document id is missing, got {cells[:2]}; every line needs two")
    return cells[0], cells[1]


def _check_documents(location: str, current: tuple, before: tuple | None, closed: set, languages: list[str]) -> None:
    if current in closed:
        raise DataError(
            f"{location}: document {' '.join(current)!r} begins again after {' '.join(before)!r}; put its lines "
            "together"
        )
    found = [name.split("/")[0] for name in current]
    for lang in languages:
        if lang not in found:
            raise DataError(
                f"{location}: unknown document ids {current[0]!r} and {current[1]!r}: they begin with the languages "
                f"{found}, {lang!r} is not one of them; take the ids of these files, or correct the language"
            )


def _check_lengths(paths: list, lines: tuple, number: int) -> None:
    if None in lines:
        ended, goes_on = (paths[[line is None for line in lines].index(wanted)] for wanted in (True, False))
        raise DataError(
            f"{display_path(ended)} ends after line {number - 1}, but {display_path(goes_on)} goes on; the files must "
            "be parallel, line by line"
        )
