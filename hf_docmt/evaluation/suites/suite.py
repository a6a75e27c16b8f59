"""The base class of contrastive test sets: one subclass, in one file, for each published format."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from hf_docmt.evaluation.suites.items import SuiteItem
from hf_docmt.files import DataError, file_stem, parse_json, read_lines
from hf_docmt.reports.result import Result

SUITES: dict[str, type["Suite"]] = {}  # every class by its format, in the order of registration


class Suite(ABC):
    """A contrastive test set: how one format is recognised and read, and the rules published for it.

    A subclass sets `format` and writes `items`; it is registered when it is defined. All else has defaults. An instance
    is one file (or folder) of the format and what is asked of it: `context` sentences before the current one,
    `future_context` after it, and the further files that the format has (see `options`). `content` is the parsed JSON
    of the file where it is in memory already. ValueError: a negative number of context sentences.
    """

    format: ClassVar[str]  # name for --format, items and reports
    title: ClassVar[str]  # name in messages; default: `format`
    ties: ClassVar[str] = "wrong"  # rule for equal scores, see `contrastive_accuracy`
    unit: ClassVar[str] = "document"  # what the group of an item is, which is resampled as one
    json_key: ClassVar[str | None] = None  # key of the first item by which JSON of this format is recognised
    options: ClassVar[Mapping[str, str]] = {}  # `documents`, `records` or `context_file` -> what it is for
    published: ClassVar[Mapping[str, Mapping[str, int]]] = {}  # name of the set -> counts, named as by `counts`

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        if "format" not in vars(cls):
            return
        cls.title = vars(cls).get("title", cls.format)
        other = SUITES.setdefault(cls.format, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"two suites have the format {cls.format!r}: {other} and {cls}; give one another name")
        SUITES[cls.format] = cls

    def __init__(
        self,
        path: str | Path,
        *,
        context: int = 3,
        future_context: int = 0,
        documents: str | Path | None = None,
        records: str | Path | None = None,
        context_file: int | None = None,
        content: object = None,
    ):
        if context < 0 or future_context < 0:
            raise ValueError(
                f"context is {context}, future_context {future_context}; expected the number of sentences before and "
                "after the current one, 0 or more"
            )
        self.path, self.name = Path(path), file_stem(path)
        self.context, self.future_context = context, future_context
        self.documents, self.records, self.context_file = documents, records, context_file
        if content is not None:
            self.content = content

    @classmethod
    def matches_name(cls, path: Path) -> bool:
        """Whether a file or folder of this name is text of this format."""
        return False

    @classmethod
    def matches_json(cls, content: object) -> bool:
        """Whether a JSON value is of this format; by default a list whose first item has `json_key`."""
        first = content[0] if isinstance(content, list) and content else None
        return cls.json_key is not None and isinstance(first, dict) and cls.json_key in first

    @abstractmethod
    def items(self) -> Iterator[SuiteItem]:
        """The items in file order; DataError names file and item."""

    def accepted_options(self) -> set[str]:
        """Which of `options` this file has a use for; all of them unless a subclass says otherwise."""
        return set(self.options)

    @classmethod
    def published_counts(cls, name: str, items: Sequence[SuiteItem]) -> Mapping[str, int] | None:
        """The counts published for a set of this name; None where none are known."""
        return cls.published.get(name)

    @classmethod
    def group_breakdown(
        cls, items: Sequence[SuiteItem], groups: Mapping[str, Sequence[bool]]
    ) -> dict[str, Sequence[bool]]:
        """Parts of the breakdown that count whole groups: {label: right or wrong by group}; `groups` by item."""
        return {}

    @classmethod
    def averages(cls, results: Sequence[Result]) -> list[Result]:
        """Results that join parts of this suite, or several sets of this format, as papers report them."""
        return []

    def read(self) -> list[SuiteItem]:
        """The checked items. ValueError: an option that this file has no use for. DataError: no item, a bad item."""
        for name in ("documents", "records", "context_file"):
            if getattr(self, name) is not None and name not in self.accepted_options():
                uses = [suite.options[name] for suite in SUITES.values() if name in suite.options]
                raise ValueError(
                    f"{name} is {getattr(self, name)}, but {self.path} has no use for it, it is for "
                    f"{', '.join(uses)}; leave it out"
                )
        items = list(self.items())
        if not items:
            raise DataError(f"{self.path}: no items of {self.title}; expected at least one")
        return items

    @cached_property
    def content(self) -> object:
        """The JSON value of the file."""
        return read_json(self.path)

    def item(self, number: int, **fields) -> SuiteItem:
        """Item `number` (from 1) with these fields, and with no more past context than is asked for.

        Without others its id is made of suite and number, the right candidate is the first, the distance unknown.
        """
        given = {"item_id": f"{self.name}:{number}", "format": self.format, "correct": 0, "distance": None, **fields}
        extra = len(given["source"]) - 1 - self.context
        if extra > 0:
            given.setdefault("index", len(given["source"]) - 1)
            given |= {"source": given["source"][extra:], "target_context": given["target_context"][extra:]}
        return SuiteItem(**given)


def read_json(path: str | Path) -> object:
    """The JSON value of a file; DataError names file, line and column."""
    return parse_json("\n".join(line for _, line in read_lines(path)), path)
