"""Lopes et al. (2020): French pronouns il, elle, ils and elles, as text files with their context, or as JSON."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hf_docmt.evaluation.suites.contrapro import json_entries
from hf_docmt.evaluation.suites.suite import Suite, read_json
from hf_docmt.evaluation.suites.suite_files import (
    Contexts,
    ParallelText,
    Sides,
    field_of,
    read_parallel_text,
    recorded_fields,
    replaced_pronouns,
)
from hf_docmt.files import DataError
from hf_docmt.systems.items import SuiteItem

PRONOUNS = ("il", "elle", "ils", "elles")
LANGUAGES = ("en", "fr")
CURRENT = ".current.src"
COUNTS = {"items": 14000, "candidates": 28000} | {f"phenomenon={pronoun}": 3500 for pronoun in PRONOUNS}
ENDINGS = (CURRENT, ".current.trg", ".context.src", ".context.trg")


class Lopes(Suite):
    """French pronouns (Lopes et al. 2020): the folder, or its file `NAME.current.src`.

    `NAME.current.src` and `.trg` have two lines an item, the correct translation, then the contrastive one.
    `NAME.cN.context.src` and `.trg` have N lines of context for each line of `current`, all of them empty where fewer
    than N sentences go before: only such an item may begin its film (with all N, one more is taken to go before them).
    Items are fixed blocks of two lines, so that 14,000 are read: to join neighbours with the same source makes 13,971.

    `context_file` is N of the context files to read; by default `context`, else the next larger that is there, of which
    the nearest sentences are taken, or the largest, which has fewer than `context`. The group of an item are those with
    one context in the largest files, whichever are read; None without files. Distances and whether the antecedent is in
    the same sentence are in `records`, the JSON, whose items the text files hold document by document, in the order in
    which the documents come first.

    JSON is that of ContraPro with French pronouns, one error an item and `segment id` counted from 0; the context is
    taken from `documents` as there. The items of one current sentence are a group.

    The set from the UN corpus (`UN-corpus`, `UN-testset-enfr.json`) has the same formats, but no known distances, and
    not the counts of the set from subtitles.
    """

    format = "lopes"
    title = "Lopes"
    unit = "context"
    options = {
        "context_file": "text files of Lopes",
        "records": "text files of Lopes",
        "documents": "JSON of Lopes",
    }

    @classmethod
    def matches_name(cls, path: Path) -> bool:
        return path.is_dir() or path.name.endswith(ENDINGS)

    @classmethod
    def matches_json(cls, content: object) -> bool:
        first = content[0] if isinstance(content, list) and content else None
        pronoun = first.get("ref pronoun") if isinstance(first, dict) and "src segment" in first else None
        return isinstance(pronoun, str) and pronoun.lower() in PRONOUNS

    @classmethod
    def published_counts(cls, name: str, items: Sequence[SuiteItem]) -> Mapping[str, int] | None:
        """The same under any name, but for the set from the UN corpus."""
        return None if name.startswith("UN-") else COUNTS

    def json_items(self) -> Iterator[SuiteItem]:
        for number, (entry, fields) in enumerate(json_entries(self, first_segment=0), 1):
            pronoun = field_of(entry, "ref pronoun", str, fields["location"]).lower()
            document = fields["group"]
            group = f"{document}:{fields['index']}"
            languages = fields["languages"] if fields["languages"][0] else LANGUAGES
            if (fields["distance"] or 0) < 0:  # where it is not known, whether it is in the sentence is not, either
                fields |= {"distance": None, "labels": {}}
            own = {"phenomenon": pronoun, "group": group, "document": document, "languages": languages}
            yield self.item(number, **fields | own)

    def text_items(self) -> Iterator[SuiteItem]:
        path = _current_file(self.path)
        name = path.name.removesuffix(CURRENT)
        current = read_parallel_text(path, path.with_name(f"{name}.current.trg"))
        blocks = current.equal_blocks(2)
        size = self._context_size(path, name) if self.context else 0
        files = _context_files(path, name, size)
        contexts = current.contexts(*files, size)
        groups = _groups(path, name, current, size, contexts)
        records = self._recorded_items(path, name, len(current.source) // 2)
        for number, block in enumerate(blocks, 1):
            context = contexts.of(block)
            _check_sides(context, block.where, files)
            fields = {
                "phenomenon": replaced_pronouns(block.candidates[0], block.candidates[1:], PRONOUNS, block.where),
                "index": len(context[0]) + (len(context[0]) == size),
                "group": groups[number - 1],
                "languages": LANGUAGES,
            }
            if records is not None:
                fields |= recorded_fields(records[number - 1], block, "distance", "labels", "document")
            yield self.text_item(name, number, block, context, **fields)

    def _recorded_items(self, path: Path, name: str, items: int) -> list[SuiteItem] | None:
        """The items of the JSON in the order of the text files; None where there is no JSON."""
        records = self.records_path(name)
        if records is None:
            return None
        documents: dict[str, list[SuiteItem]] = {}
        for item in Lopes(records, context=0, content=read_json(records)).items():
            documents.setdefault(item.document, []).append(item)
        ordered = [item for group in documents.values() for item in group]
        if len(ordered) != items:
            raise DataError(f"{path}: {items} items, {len(ordered)} in {records}; the files are not of one set")
        return ordered

    def _context_size(self, path: Path, name: str) -> int:
        sizes, asked = _sizes(path, name), self.context_file
        if asked is not None and asked not in sizes or not sizes:
            wanted = f"{name}.c{asked or self.context}.context.src"
            there = ", ".join(f"c{size}" for size in sizes) or "no context files"
            raise DataError(
                f"{path}: {wanted} and .trg are needed beside it, found {there}; add them, or take context=0"
            )
        return asked or next((size for size in sizes if size >= self.context), sizes[-1])


def _current_file(path: Path) -> Path:
    """The file of the source lines, given it, its other side, or the folder."""
    if path.is_dir():
        files = sorted(path.glob(f"*{CURRENT}"))
        if len(files) != 1:
            names = ", ".join(file.name for file in files) or "none"
            raise DataError(f"{path}: expected one file *{CURRENT} in the folder, found {names}; give the file itself")
        return files[0]
    if path.name.endswith(".current.trg"):
        return path.with_name(path.name.removesuffix("trg") + "src")
    if not path.name.endswith(CURRENT):
        raise DataError(f"{path}: expected the folder of the suite or its file *{CURRENT}")
    return path


def _sizes(path: Path, name: str) -> list[int]:
    """N of the context files that are there."""
    pattern = re.compile(re.escape(name) + r"\.c([1-9]\d*)\.context\.src")
    matches = [pattern.fullmatch(file.name) for file in path.parent.iterdir()]
    return sorted(int(match[1]) for match in matches if match)


def _context_files(path: Path, name: str, size: int) -> list[Path]:
    return [path.with_name(f"{name}.c{size}.context.{side}") for side in ("src", "trg")]


def _groups(path: Path, name: str, current: ParallelText, size: int, contexts: Contexts) -> list[str | None]:
    """For every item the id of the first item with its context in the largest files; one without context is alone."""
    items = len(current.source) // 2
    largest = max(_sizes(path, name), default=0)
    if not largest:
        return [None] * items
    if largest != size:
        contexts = current.contexts(*_context_files(path, name, largest), largest)
    ids = [f"{name}:{number}" for number in range(1, items + 1)]
    first: dict[tuple[str, ...], str] = {}
    sources = [source for source, _ in contexts.lines[::2]]
    return [first.setdefault(source, own) if source else own for source, own in zip(sources, ids)]


def _check_sides(context: Sides, where: str, files: list[Path]) -> None:
    """A context that is empty on one side only was lost there."""
    for side, other, path in zip(context, reversed(context), files):
        if any(other) and not any(sentence.strip() for sentence in side):
            raise DataError(f"{where}: {path.name} has only empty lines as its context, the other side has text")
