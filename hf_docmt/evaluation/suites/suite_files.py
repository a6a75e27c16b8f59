"""What the files of suites have in common: fields of JSON, parallel text with contexts, texts that must be the same."""

import difflib
import html
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hf_docmt.files import DataError, read_lines

Sides = tuple[tuple[str, ...], tuple[str, ...]]  # source and target sentences, as many


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
    """The fields of the group of an item: the one that it names, as those of the built-in suites do, else the other."""
    group = field_of(entry, "group", str, where, optional=True)
    return {"group": other} if group is None else {"group": group, "group_unit": "group"}


class Block(NamedTuple):
    """The lines of one item."""

    where: str  # file and line, for messages
    line: int  # the first one, from 0
    source: str
    candidates: list[str]


@dataclass(frozen=True)
class Contexts:
    """The sentences before every line of a parallel text, oldest first, and their file on the source side."""

    path: Path
    lines: list[Sides]

    def of(self, block: Block) -> Sides:
        """The context that all lines of an item have; DataError where it differs."""
        context = self.lines[block.line]
        for number in range(block.line, block.line + len(block.candidates)):
            if self.lines[number] != context:
                raise DataError(
                    f"{self.path}: the context of line {number + 1} is not that of line {block.line + 1}, "
                    f"{block.where}; the candidates of an item share it, so lines are lost or out of order"
                )
        return context


@dataclass(frozen=True)
class ParallelText:
    """The lines of two parallel files."""

    source_path: Path
    target_path: Path
    source: list[str]
    target: list[str]

    def blocks(self, sizes: Sequence[int]) -> Iterator[Block]:
        """Items of so many lines each, which repeat the source; DataError where a line is empty or it is not so."""
        if sum(sizes) != len(self.source):
            raise DataError(
                f"{self.source_path}: {len(self.source)} lines, expected {sum(sizes)} for {len(sizes)} items, one for "
                "each candidate; the file is cut or belongs to another suite"
            )
        line = 0
        for size in sizes:
            for number in range(line, line + size):
                self._check(number, line)
            yield Block(f"{self.source_path}, line {line + 1}", line, self.source[line], self.target[line:][:size])
            line += size

    def equal_blocks(self, size: int) -> Iterator[Block]:
        """As `blocks`, of the same number of lines each."""
        if len(self.source) % size:
            raise DataError(
                f"{self.source_path}: {len(self.source)} lines, expected a multiple of {size}, the lines of an item; "
                f"the file is cut, its last whole item ends in line {len(self.source) // size * size}"
            )
        return self.blocks([size] * (len(self.source) // size))

    def context_size(self, path: Path) -> int:
        """How many lines a file of contexts has for each line."""
        return max(1, round(sum(1 for _ in read_lines(path)) / len(self.source)))

    def contexts(self, source_path: Path, target_path: Path, size: int) -> Contexts:
        """The sentences before every line, from files with `size` lines for each.

        Where fewer sentences were there, the files have empty lines in their line: those before the first line with
        text on either side are left out. For a `size` of 0 no file is read.
        """
        if size == 0:
            return Contexts(source_path, [((), ())] * len(self.source))
        texts = read_parallel_text(source_path, target_path)
        lines, needed = len(texts.source), len(self.source)
        if lines != size * needed:
            short = f"; there is none for line {lines // size + 1}" if lines < size * needed else ""
            raise DataError(
                f"{source_path}: {lines} lines, expected {size * needed}, {size} for each of the {needed} lines of "
                f"{self.source_path}{short}; one of the files is cut or of another suite"
            )
        contexts = []
        for start in range(0, lines, size):
            pairs = list(zip(texts.source[start : start + size], texts.target[start : start + size]))
            while pairs and not any(side.strip() for side in pairs[0]):
                pairs.pop(0)
            contexts.append((tuple(source for source, _ in pairs), tuple(target for _, target in pairs)))
        return Contexts(source_path, contexts)

    def _check(self, number: int, first: int) -> None:
        for path, line in ((self.source_path, self.source[number]), (self.target_path, self.target[number])):
            if not line.strip():
                raise DataError(f"{path}, line {number + 1}: empty, expected a sentence; the file is cut or altered")
        if self.source[number] != self.source[first]:
            raise DataError(
                f"{self.source_path}, line {number + 1}: {self.source[number]!r} is not line {first + 1} again, which "
                f"is {self.source[first]!r}; the lines of an item have one source, so some are lost or out of order"
            )


def read_parallel_text(source_path: Path, target_path: Path) -> ParallelText:
    """DataError unless both are there and have equally many lines."""
    source, target = ([line for _, line in read_lines(path)] for path in (source_path, target_path))
    if len(source) != len(target):
        cut, full = (source_path, target_path) if len(source) < len(target) else (target_path, source_path)
        raise DataError(
            f"{cut}: ends after line {min(len(source), len(target))}, {full} has {max(len(source), len(target))} "
            "lines; the two are parallel, so one is cut or of another suite"
        )
    return ParallelText(source_path, target_path, source, target)


def same_text(text: str, other: str) -> bool:
    """Whether texts are equal but for case, spaces, punctuation, escapes such as `&apos;` and forms of characters."""
    sides = (unicodedata.normalize("NFKC", html.unescape(side)).casefold() for side in (text, other))
    return len({"".join(filter(str.isalnum, side)) for side in sides}) == 1


def check_texts(where: str, texts: Sequence[str], expected: Sequence[str], location: str) -> None:
    """DataError where texts of text files at `where` are not those of the item at `location`."""
    for text, other in zip(texts, expected):
        if not same_text(text, other):
            raise DataError(f"{where}: {text!r} is not {other!r}, {location}; the files are not of one suite")


def recorded_fields(record: Any, block: Block, *names: str) -> dict:
    """These fields of the item of the JSON that belongs to an item of text files. DataError: they have other texts."""
    texts, expected = (block.source, *block.candidates), (record.source[-1], *record.candidates)
    check_texts(block.where, texts, expected, record.location)
    return {name: getattr(record, name) for name in names}


def replaced_pronouns(right: str, wrong: Sequence[str], pronouns: Collection[str], where: str) -> str:
    """The pronouns of the right translation that are others in the wrong translations, usually one.

    Words are runs of letters and digits, compared without case (`qu'elles`, `a-t-il`). Several pronouns are joined by
    `+`. DataError, beginning with `where`, if there is none.
    """
    words, replaced = re.findall(r"\w+", right.casefold()), {}
    for text in wrong:
        matcher = difflib.SequenceMatcher(None, words, re.findall(r"\w+", text.casefold()), autojunk=False)
        for tag, start, end, *_ in matcher.get_opcodes():
            if tag != "equal":
                replaced |= dict.fromkeys(word for word in words[start:end] if word in pronouns)
    if not replaced:
        raise DataError(
            f"{where}: {right!r} and {wrong[0]!r} do not differ in {', '.join(pronouns)}; expected the right "
            "translation, then the wrong ones, so lines are lost, or it is another kind of suite"
        )
    return "+".join(replaced)
