"""Tab-separated lines: document id, source sentence, target sentence."""

from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.reader import Evidence, Reader, Sample
from hf_docmt.files import DataError, display_path, location_of, read_lines
from hf_docmt.messages import closest_hint

COLUMNS = ("doc_id", "source", "target")


class TsvReader(Reader):
    """The lines of a document stand together. No quoting: a tab always ends a cell, cells are kept as they are.

    A first line that begins with `doc_id` (or `id`), or has all names or `source` and `target`, is a header; it names
    the columns, in any order, and others are left out. Without one the columns are doc_id, source, target; the target
    may be absent where only the source is asked for.
    """

    name = "tsv"

    def recognize(self, sample: Sample) -> Evidence:
        return Evidence.NAME if sample.argument == "path" and sample.ending == ".tsv" else Evidence.NONE

    def read(self, languages: list[str], path: str | Path) -> Iterator[tuple[str, dict]]:
        needed = COLUMNS[: 1 + len(languages)]
        indices, closed, columns = None, set(), None
        doc_id, start, sides = None, 0, ([], [])
        for number, line in read_lines(path):
            cells = line.split("\t")
            if indices is None:
                indices, columns, is_header = _column_indices(path, cells, needed)
                if is_header:
                    continue
            if len(cells) != columns:
                raise DataError(
                    f"{location_of(path, number)}: {len(cells)} columns, expected {columns}; separate "
                    f"{', '.join(needed)} by tabs and take tabs out of sentences"
                )
            current = cells[indices[0]].strip()
            if not current:
                raise DataError(f"{location_of(path, number)}: document id is missing; every line needs one")
            if current != doc_id:
                if current in closed:
                    raise DataError(
                        f"{location_of(path, number)}: document {current!r} begins again after {doc_id!r}; put its "
                        "lines together or give the second part its own id"
                    )
                if doc_id is not None:
                    yield _row(path, start, doc_id, sides, languages)
                closed.add(current)
                doc_id, start, sides = current, number, ([], [])
            for side, index in zip(sides, indices[1:]):
                side.append(cells[index])
        if doc_id is None:
            raise DataError(f"{display_path(path)}: a header and no sentences; add lines of {', '.join(needed)}")
        yield _row(path, start, doc_id, sides, languages)


def _column_indices(path: str | Path, cells: list[str], needed: tuple[str, ...]) -> tuple[list[int], int, bool]:
    """Where the needed columns are, how many columns a line has, and whether this first line is a header."""
    names = [cell.strip().lower() for cell in cells]
    names = ["doc_id" if name == "id" else name for name in names]
    if names[0] != "doc_id" and not set(needed) <= set(names) and not {"source", "target"} <= set(names):
        columns = min(max(len(cells), len(needed)), len(COLUMNS))
        return list(range(len(needed))), columns, False
    for name in needed:
        if name not in names:
            hint = closest_hint(name, names, " (is {!r} meant?)")
            raise DataError(
                f"{display_path(path)}, line 1: the header {names} has no column {name!r}{hint}; name it so"
            )
    return [names.index(name) for name in needed], len(cells), True


def _row(path: str | Path, start: int, doc_id: str, sides: tuple[list, list], languages: list[str]) -> tuple[str, dict]:
    location = location_of(path, start)
    return location, make_row(location, doc_id, sides[0], sides[1], languages)
