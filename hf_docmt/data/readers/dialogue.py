"""Two line-parallel files and an index of which lines make a dialogue, as in MSCTD (Liang et al. 2022)."""

from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.parallel_files import check_target, numbered_id
from hf_docmt.data.readers.reader import Evidence, Reader, Sample
from hf_docmt.files import DataError, display_path, location_of, parse_json, read_lines


class DialogueReader(Reader):
    """Each line of the index is a JSON list of the numbers, from 0, of the lines of one dialogue.

    The lists must take every line once and in order. Blank lines are empty sentences; blanks stay.
    """

    name = "dialogue"

    def recognize(self, sample: Sample) -> Evidence:
        return Evidence.ARGUMENTS if "index" in sample.arguments else Evidence.NONE

    def read(
        self, languages: list[str], source: str | Path, index: str | Path, target: str | Path | None = None
    ) -> Iterator[tuple[str, dict]]:
        two_sided = check_target(languages, source, target)
        ours = [line for _, line in read_lines(source)]
        theirs = [line for _, line in read_lines(target)] if two_sided else ours
        if len(ours) != len(theirs):
            raise DataError(
                f"{display_path(source)} has {len(ours)} lines but {display_path(target)} has {len(theirs)}; the files "
                "must be parallel, line by line"
            )
        begin = 0
        for number, line in read_lines(index):
            location, doc_id = location_of(index, number), numbered_id(source, number)
            end = begin + _count(location, doc_id, parse_json(line, index, number), begin, len(ours))
            yield (
                location,
                make_row(location, doc_id, ours[begin:end], theirs[begin:end] if two_sided else None, languages),
            )
            begin = end
        if begin != len(ours):
            raise DataError(
                f"{display_path(index)} takes {begin} lines but {display_path(source)} has {len(ours)}; add the lines "
                f"from {begin} on"
            )


def _count(location: str, doc_id: str, numbers: list, begin: int, lines: int) -> int:
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
