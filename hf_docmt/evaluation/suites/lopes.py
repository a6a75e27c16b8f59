"""Lopes et al. (2020): French pronouns il, elle, ils and elles, as text files with their context, or as JSON."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from hf_docmt.evaluation.suites.contrapro import DocumentItems
from hf_docmt.evaluation.suites.suite_files import field_of, read_contexts, read_pairs, replaced_pronouns
from hf_docmt.files import DataError
from hf_docmt.systems.items import SuiteItem

PRONOUNS = ("il", "elle", "ils", "elles")
CURRENT = ".current.src"
COUNTS = {"items": 14000, "candidates": 28000} | {f"phenomenon={pronoun}": 3500 for pronoun in PRONOUNS}


class Lopes(DocumentItems):
    """French pronouns (Lopes et al. 2020): the folder, or its file `NAME.current.src`.

    `NAME.current.src` and `.trg` have two lines an item, the correct translation, then the contrastive one.
    `NAME.cN.context.src` and `.trg` have N lines of context for each line of `current`, all of them empty where fewer
    than N sentences go before: only such an item may begin its film (with all N, one more is taken to go before them).
    Items are fixed blocks of two lines, so that 14,000 are read: to join neighbours with the same source makes 13,971.

    The files of `context` sentences are read; if missing, the next larger ones, from which the nearest sentences are
    taken, or the largest, which have fewer. The group of an item are those with one context in the largest files,
    whichever are read; None without files. Distances and whether the antecedent is in the same sentence are in
    `records`, the JSON, whose items the text files hold document by document, in the order in which the documents come
    first.

    JSON is that of ContraPro with French pronouns, one error an item and `segment id` counted from 0; the context is
    taken from `documents` as there. The items of one current sentence are a group.

    The set from the UN corpus (`UN-corpus`, `UN-testset-enfr.json`) has the same formats, but no known distances, and
    not the counts of the set from subtitles.
    """

    format = "lopes"
    title = "Lopes"
    unit = "context"
    languages = ("en", "fr")
    first_segment = 0
    text_name = re.compile(r"(.+)\.(?:current|context)\.(?:src|trg)")
    options = {"records": "text files of Lopes", "documents": "JSON of Lopes"}

    def __init__(self, path, **options):
        super().__init__(path, **options)
        if self.matches_name(self.path):
            self.path = _current_file(self.path)
            self.name = self.path.name.removesuffix(CURRENT)

    @classmethod
    def matches_name(cls, path: Path) -> bool:
        return path.is_dir() or super().matches_name(path)

    @classmethod
    def matches_json(cls, content: object) -> bool:
        first = content[0] if isinstance(content, list) and content else None
        pronoun = first.get("ref pronoun") if isinstance(first, dict) and "src segment" in first else None
        return isinstance(pronoun, str) and pronoun.lower() in PRONOUNS

    @classmethod
    def published_counts(cls, name: str, items: Sequence[SuiteItem]) -> Mapping[str, int] | None:
        """The counts of the set from subtitles under any name; None for the set from the UN corpus."""
        return None if name.startswith("UN-") else COUNTS

    def json_fields(self, number, row, where):
        fields = super().json_fields(number, row, where)
        own = {"phenomenon": field_of(row, "ref pronoun", str, where).lower(), "document": fields["group"]}
        own |= {"group": f"{fields['group']}:{fields['index']}"}
        own |= {} if fields["languages"][0] else {"languages": self.languages}
        if (fields["distance"] or 0) < 0:  # where it is not known, whether it is in the sentence is not, either
            own |= {"distance": None, "labels": {}}
        return fields | own

    def recorded_items(self):
        """In the order of the text files."""
        documents: dict[str, list[SuiteItem]] = {}
        for item in super().recorded_items() or ():
            documents.setdefault(item.document, []).append(item)
        return [item for group in documents.values() for item in group] or None

    def text_files(self):
        size, largest = self._context_size() if self.context else 0, max(self._sizes, default=0)
        files, self.context_files = self.beside("current.src", "current.trg"), self._context_files(size)
        self.before, self.contexts = {}, None  # {context in the largest files: the first item with it}
        if largest != size:
            self.contexts = read_contexts(self._context_files(largest), largest, len(read_pairs(files)), self.path)[::2]
        return {"files": files, "context_files": self.context_files, "size": size}

    def text_fields(self, number, block, record):
        for side, other, path in zip(block.before, reversed(block.before), self.context_files):
            if any(other) and not any(sentence.strip() for sentence in side):  # it was lost there
                raise DataError(f"{block.where}: {path.name} has only empty lines as context, the other side has text")
        fields = {"phenomenon": replaced_pronouns(block, PRONOUNS), "index": block.index}
        recorded = {name: getattr(record, name) for name in ("distance", "labels", "document")} if record else {}
        own, context = f"{self.name}:{number}", (self.contexts[number - 1] if self.contexts else block.before)[0]
        group = self.before.setdefault(context, own) if context else own  # without context alone
        return fields | recorded | {"group": group if self._sizes else None}

    @cached_property
    def _sizes(self) -> list[int]:
        """N of the existing context files."""
        pattern = re.compile(re.escape(self.name) + r"\.c([1-9]\d*)\.context\.src")
        matches = [pattern.fullmatch(file.name) for file in self.path.parent.iterdir()]
        return sorted(int(match[1]) for match in matches if match)

    def _context_files(self, size: int) -> list[Path]:
        return self.beside(f"c{size}.context.src", f"c{size}.context.trg")

    def _context_size(self) -> int:
        sizes = self._sizes
        if not sizes:
            raise DataError(
                f"{self.path}: {self.name}.c{self.context}.context.src and .trg are needed next to it, found no "
                "context files; add them, or use context=0"
            )
        return next((size for size in sizes if size >= self.context), sizes[-1])


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
