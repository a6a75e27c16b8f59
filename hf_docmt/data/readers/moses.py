"""Two line-parallel files and a third that says which lines are a document: OPUS' Moses format, MSCTD's dialogues."""

from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.reader import Reader, check_target, numbered_id, parallel_lines, rows_of_lines
from hf_docmt.files import DataError, display_path, location_of, parse_json, read_lines


class MosesReader(Reader):
    """A document is a run of lines with the same two document ids, which make its own (Lison et al. 2018).

    A line of `ids` has two document ids, each begun by its language (`en/1957/23590/3520211.xml.gz`), and the numbers
    of the sentences in them, separated by tabs. Blank lines of the texts are empty sentences; blanks stay.
    """

    name = "moses"
    own_argument = "ids"

    def read(
        self, languages: list[str], source: str | Path, ids: str | Path, target: str | Path | None = None
    ) -> Iterator[tuple[str, dict]]:
        paths = [ids, source, target] if check_target(languages, source, target) else [ids, source]
        return rows_of_lines(_lines_with_ids(paths, languages), languages)


class DialogueReader(Reader):
    """Each line of `index` is a JSON list of the numbers, from 0, of the lines of one dialogue (Liang et al. 2022).

    The lists must take every line once and in order. Blank lines are empty sentences; blanks stay.
    """

    name = "dialogue"
    own_argument = "index"

    def read(
        self, languages: list[str], source: str | Path, index: str | Path, target: str | Path | None = None
    ) -> Iterator[tuple[str, dict]]:
        paths = [source, target] if check_target(languages, source, target) else [source]
        sides = list(zip(*(texts for _, texts in parallel_lines(paths))))
        begin = 0
        for number, line in read_lines(index):
            location, doc_id = location_of(index, number), numbered_id(source, number)
            end = begin + _dialogue_length(location, doc_id, parse_json(line, index, number), begin, len(sides[0]))
            yield location, make_row(location, doc_id, sides[0][begin:end], sides[-1][begin:end], languages)
            begin = end
        if begin != len(sides[0]):
            raise DataError(
                f"{display_path(index)} takes {begin} lines but {display_path(source)} has {len(sides[0])}; add the "
                f"lines from {begin} on"
            )


def _lines_with_ids(paths: list[str | Path], languages: list[str]) -> Iterator[tuple[str, str, list[str]]]:
    for number, (line, *texts) in parallel_lines(paths):
        location, cells = location_of(paths[0], number), [cell.strip() for cell in line.split("\t")]
        if len(cells) != 4:
            raise DataError(
                f"{location}: {len(cells)} columns, expected 4: two document ids and the sentences in them, separated "
                "by tabs"
            )
        ids = cells[:2]
        if not all(ids):
            raise DataError(f"{location}: document id is missing, got {ids}; every line needs two")
        id_languages = [name.split("/")[0] for name in ids]
        if missing := [lang for lang in languages if lang not in id_languages]:
            raise DataError(
                f"{location}: unknown document ids {ids[0]!r} and {ids[1]!r}: they begin with the languages "
                f"{id_languages}, {missing[0]!r} is not one of them; take the ids of these files, or correct the "
                "language"
            )
        yield location, " ".join(ids), texts


def _dialogue_length(location: str, doc_id: str, numbers: list, begin: int, lines: int) -> int:
    """How many lines the dialogue has; DataError unless they are the next ones."""
    if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
        raise DataError(f"{location}: document {doc_id!r} needs a JSON list of line numbers such as [0, 1, 2]")
    expected = list(range(begin, begin + len(numbers)))
    if numbers != expected:
        got, want = next(pair for pair in zip(numbers, expected) if pair[0] != pair[1])
        raise DataError(
            f"{location}: document {doc_id!r} has line number {got} where {want} is due; list every line once, in "
            "order, counted from 0"
        )
    if begin + len(numbers) > lines:
        raise DataError(
            f"{location}: document {doc_id!r} goes to line number {numbers[-1]}, but there are {lines} lines (0 to "
            f"{lines - 1}); take the index of these files"
        )
    return len(numbers)
