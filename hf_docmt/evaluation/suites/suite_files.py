"""Shared code of suites: fields of JSON, parallel text with contexts, checks for equal texts, items."""

import difflib
import html
import re
import unicodedata
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from hf_docmt.data.language_codes import are_other_languages
from hf_docmt.data.readers.reader import parallel_lines
from hf_docmt.files import DataError
from hf_docmt.reports.signature import content_digest
from hf_docmt.systems.items import SuiteItem

Sides = tuple[tuple[str, ...], tuple[str, ...]]  # source and target sentences, the same number
Files = Sequence[Path]  # of the source and the target side


def entries_of(content: object, path: str | Path) -> list[dict]:
    """A JSON value as a list of items, at least one, each an object."""
    if not isinstance(content, list) or not content:
        raise DataError(f"{path}: a suite is a JSON list of items, at least one, got {type(content).__name__}")
    for number, entry in enumerate(content, 1):
        if not isinstance(entry, dict):
            raise DataError(f"{path}, item {number}: expected an object, got {type(entry).__name__}")
    return content


def field_of(entry: object, key: str, kind: type, where: str, optional: bool = False):
    """The value of a key, of the right type; None where it is absent or null and may be."""
    value = entry.get(key) if isinstance(entry, dict) else None
    if value is None and optional:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        got = "it is missing" if value is None else f"got {value!r}"
        raise DataError(f"{where}: {key!r} must be of type {kind.__name__}, {got}")
    return value


def own_group(entry: dict, where: str, other: str) -> dict[str, str]:
    """The fields of the group of an item: the group that it names (built-in suites), otherwise the other one."""
    group = field_of(entry, "group", str, where, optional=True)
    return {"group": other} if group is None else {"group": group, "group_unit": "group"}


class Block(NamedTuple):
    """The lines of one item of text files: a source, the candidates, the sentences before, oldest first."""

    where: str  # file and line, for messages
    source: str
    candidates: tuple[str, ...]
    before: Sides
    index: int  # of the source in its document: a full context may be cut off there, so that one more goes before


def read_blocks(files: Files, sizes: int | Sequence[int], context_files: Files = (), size: int = 0) -> list[Block]:
    """The items of parallel text: `sizes` lines each, which repeat the source, in order of the candidates.

    With a `size` every line has that number of lines in the `context_files`. DataError where a line is empty, or lines
    are too many, too few, or not those of one item.
    """
    pairs, path = read_pairs(files), files[0]
    if isinstance(sizes, int):
        if len(pairs) % sizes:
            raise DataError(
                f"{path}: {len(pairs)} lines, expected a multiple of {sizes}, the lines of an item; the file is cut, "
                f"its last whole item ends in line {len(pairs) // sizes * sizes}"
            )
        sizes = [sizes] * (len(pairs) // sizes)
    elif sum(sizes) != len(pairs):
        raise DataError(
            f"{path}: {len(pairs)} lines, expected {sum(sizes)} for {len(sizes)} items, one for each candidate; the "
            "file is cut or belongs to another suite"
        )
    contexts = read_contexts(context_files, size, len(pairs), path) if size else [((), ())] * len(pairs)
    blocks, first = [], 0
    for count in sizes:
        where, source = f"{path}, line {first + 1}", pairs[first][0]
        for number in range(first, first + count):
            _check_line(files, pairs[number], number + 1, source, first + 1)
            if contexts[number] != contexts[first]:
                raise DataError(
                    f"{context_files[0]}: the context of line {number + 1} is not that of line {first + 1}, {where}; "
                    "the candidates of an item share it, so lines are lost or out of order"
                )
        candidates, before = tuple(target for _, target in pairs[first : first + count]), contexts[first]
        index = len(before[0]) + (len(before[0]) == size)
        blocks.append(Block(where, source, candidates, before, index))
        first += count
    return blocks


def read_contexts(files: Files, size: int, needed: int, path: Path) -> list[Sides]:
    """The sentences before each of the lines of `path` that need some, from files with `size` lines for each.

    Where fewer sentences were there, the files have empty lines in their line: those before the first line with text
    on either side are dropped.
    """
    pairs = read_pairs(files)
    if len(pairs) != size * needed:
        short = f"; line {len(pairs) // size + 1} has none" if len(pairs) < size * needed else ""
        raise DataError(
            f"{files[0]}: {len(pairs)} lines, expected {size * needed}, {size} for each of the {needed} lines of "
            f"{path}{short}; one of the files is cut or of another suite"
        )
    contexts = []
    for start in range(0, len(pairs), size):
        some = pairs[start : start + size]
        while some and not any(side.strip() for side in some[0]):
            some = some[1:]
        contexts.append((tuple(source for source, _ in some), tuple(target for _, target in some)))
    return contexts


def read_pairs(files: Files) -> list[tuple[str, str]]:
    """The lines of parallel files. DataError unless both are there and have equally many lines."""
    return [(source, target) for _, (source, target) in parallel_lines(files)]


def _check_line(files: Files, pair: tuple[str, str], number: int, source: str, first: int) -> None:
    for path, text in zip(files, pair):
        if not text.strip():
            raise DataError(f"{path}, line {number}: empty, expected a sentence; the file is cut or altered")
    if pair[0] != source:
        raise DataError(
            f"{files[0]}, line {number}: {pair[0]!r} is not line {first} again, which is {source!r}; the lines of an "
            "item have one source, so some are lost or out of order"
        )


def same_text(text: str, other: str) -> bool:
    """Whether texts are equal except for case, spaces, punctuation, escapes such as `&apos;` and character forms."""
    sides = (unicodedata.normalize("NFKC", html.unescape(side)).casefold() for side in (text, other))
    return len({"".join(filter(str.isalnum, side)) for side in sides}) == 1


def check_texts(where: str, texts: Sequence[str], expected: Sequence[str], location: str) -> None:
    """DataError where texts of text files at `where` are not those of the item at `location`."""
    for text, other in zip(texts, expected):
        if not same_text(text, other):
            raise DataError(f"{where}: {text!r} is not {other!r}, {location}; the files are not of one suite")


def check_record(block: Block, record: SuiteItem) -> None:
    """DataError where the item of the JSON that belongs to an item of text files has other texts.

    It may have any part of the context.
    """
    sides = (*block.before[0], block.source), block.before[1], block.candidates
    for texts, expected in zip(sides, (record.source, record.target_context, record.candidates)):
        check_texts(block.where, texts[-len(expected) :], expected, record.location)


def replaced_pronouns(block: Block, pronouns: Collection[str]) -> str:
    """The pronouns of the right translation that differ in the wrong translations, usually one.

    Words are runs of letters and digits, compared without case (`qu'elles`, `a-t-il`). Several pronouns are joined by
    `+`. DataError without any.
    """
    right, *wrong = block.candidates
    words, replaced = re.findall(r"\w+", right.casefold()), {}
    for text in wrong:
        matcher = difflib.SequenceMatcher(None, words, re.findall(r"\w+", text.casefold()), autojunk=False)
        for tag, start, end, *_ in matcher.get_opcodes():
            if tag != "equal":
                replaced |= dict.fromkeys(word for word in words[start:end] if word in pronouns)
    if not replaced:
        raise DataError(
            f"{block.where}: {right!r} and {wrong[0]!r} do not differ in {', '.join(pronouns)}; expected the right "
            "translation, then the wrong ones, so lines are lost, or it is another kind of suite"
        )
    return "+".join(replaced)


def items_digest(items: Sequence[SuiteItem]) -> str:
    """Digest of current sentences and candidates, without the context, of which each system reads its own share."""
    return content_digest([item.source[-1], *item.candidates, item.correct] for item in items)


def labels_of(item: SuiteItem) -> dict[str, str]:
    """The labels that accuracy is broken down by; distances above 3 are one class, as in ContraPro."""
    labels = {"phenomenon": item.phenomenon, **{name: str(value) for name, value in item.labels.items()}}
    if item.distance is not None:
        labels["distance"] = str(item.distance) if item.distance <= 3 else ">3"
    return labels


def check_language(items: Sequence[SuiteItem], source_lang: str | None, target_lang: str | None) -> None:
    """As `check_languages`, for the items of a suite."""
    for item in items[:1]:
        check_languages(item.where, item.languages, source_lang, target_lang)


def check_languages(
    where: str, languages: tuple[str | None, str | None], source_lang: str | None, target_lang: str | None
) -> None:
    """DataError where data, at `where`, is known to be of other languages than a model that translates between these.

    Codes such as `de_DE`, `deu_Latn` and `de` are the same language; see `are_other_languages`.
    """
    for side, own, other in zip(("source", "target"), languages, (source_lang, target_lang)):
        if are_other_languages(own, other):
            raise DataError(
                f"{where}: the {side} language is {own!r}, the model's {other!r}; use data from {source_lang} to "
                f"{target_lang}, or a model of these languages"
            )
