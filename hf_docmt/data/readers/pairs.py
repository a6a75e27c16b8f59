"""Two files, one a side: the documents of the source matched with those of the target."""

from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.files import DataError, shown, stem

Document = tuple[int, list[str]]  # line in the file where it begins, sentences


def paired_rows(
    languages: list[str], source: str | Path, ours: list[Document], target: str | Path | None, theirs: list[Document]
) -> Iterator[tuple[str, dict]]:
    """Rows of two files that have the same documents in the same order; ids are the source file's name and a number.

    DataError where the files have different numbers of documents or a document has sides of different length.
    """
    two_sided = check_target(languages, source, target)
    if two_sided and len(ours) != len(theirs):
        raise DataError(_different_files(source, ours, target, theirs))
    for number, (line, sentences) in enumerate(ours, 1):
        place = f"{shown(source)}, line {line}"
        other = None
        if two_sided:
            other_line, other = theirs[number - 1]
            place += f" and {shown(target)}, line {other_line}"
        yield place, make_row(place, numbered_id(source, number), sentences, other, languages)


def numbered_id(path: str | Path, number: int) -> str:
    """The id of the document with this number (from 1) in a format without ids."""
    return f"{stem(path)}-{number:05d}"


def check_target(languages: list[str], source: str | Path, target: str | Path | None) -> bool:
    """Whether there is a target side; DataError where language and file do not agree on it."""
    if target is None and len(languages) == 2:
        raise DataError(
            f"{shown(source)}: target language {languages[1]!r} is asked for without a target file; give target=, or "
            "leave out the target language to read the source side only"
        )
    if target is not None and len(languages) == 1:
        raise DataError(f"{shown(target)}: the target file's language is missing; give target_lang, or leave it out")
    return target is not None


def _different_files(source: str | Path, ours: list[Document], target: str | Path, theirs: list[Document]) -> str:
    counts = [(len(side), sum(len(sentences) for _, sentences in side)) for side in (ours, theirs)]
    message = (
        f"{shown(source)} has {counts[0][0]} documents ({counts[0][1]} sentences) but {shown(target)} has "
        f"{counts[1][0]} ({counts[1][1]} sentences); the files must have the same documents"
    )
    for number, ((line, left), (other_line, right)) in enumerate(zip(ours, theirs), 1):
        if len(left) != len(right):
            return message + (
                f"; they part at document {number}, with {len(left)} sentences from line {line} on and {len(right)} "
                f"from line {other_line} on"
            )
    return message + f"; the first {min(len(ours), len(theirs))} agree in length"
