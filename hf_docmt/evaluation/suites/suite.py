"""A contrastive test set: the base class, one subclass in one file for each published format, and reading by it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from hf_docmt.data.registration import register, registered
from hf_docmt.evaluation.suites.suite_files import (
    Block,
    check_record,
    entries_of,
    labels_of,
    read_blocks,
)
from hf_docmt.files import DataError, file_stem, read_json
from hf_docmt.messages import check_known, counted
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.systems.items import SuiteItem

SUITES: dict[str, type[Suite]] = {}  # every class by its format, in the order of registration


def read_suite(path: str | Path, format: str = "auto", **options) -> list[SuiteItem]:
    """Items of a suite in file order, each with at most `context` sentences (3) before the current one.

    `format` is the name of a registered suite, such as `contrapro`, `voita`, `lopes` or `bawden`, whose classes
    say which files they read; `auto` recognises it by file name and JSON keys, classes from plugins first.
    `documents` are the texts that ContraPro's JSON points into, `records` the JSON that belongs to text files (by
    default the one of their name next to them or a folder above).
    Only ContraPro's documents have sentences after the current one (`future_context`, 0).
    ValueError: an unknown format, an option that the file has no use for. DataError (a ValueError) names file and item.

    >>> items = read_suite("runs/corpus/pronoun.json", context=2)
    >>> len(items[0].source), items[0].candidates[items[0].correct] in items[0].candidates
    (3, True)
    """
    if format == "auto":
        suite, content = recognise(path)
        return suite(path, content=content, **options).read()
    check_known(format, suite_classes(), "suite format", "expected auto,")
    return suite_classes()[format](path, **options).read()


def recognise(path: str | Path) -> tuple[type[Suite], object]:
    """The class of a file by its name, otherwise by its JSON; and the JSON value, None where it was not read.

    DataError: JSON of no registered format. The class that was registered last is asked first.
    """
    classes = list(suite_classes().values())[::-1]
    for suite in classes:
        if suite.matches_name(Path(path)):
            return suite, None
    if Path(path).suffix in (".jsonl", ".txt", ".tsv"):
        raise DataError(f"{path}: not a contrastive suite; give JSON or a folder of one ({', '.join(suite_classes())})")
    content = read_json(path)
    for suite in classes:
        if suite.matches_json(content):
            return suite, content
    keys = sorted(entries_of(content, path)[0])
    formats = " nor ".join(f"{suite.title} ({suite.json_key!r})" for suite in classes[::-1] if suite.json_key)
    raise DataError(f"{path}: neither {formats} items, got keys {keys}; give the format, or a file of one of these")


def suite_classes() -> dict[str, type[Suite]]:
    """All registered classes by format: those of this folder, and those from outside that were imported."""
    return registered(SUITES, __package__)


def suite_rules(items: Sequence[SuiteItem]) -> type[Suite]:
    """The class of these items' format, which holds its rules; `Suite` itself, the defaults, for no known format."""
    return suite_classes().get(items[0].format, Suite)


class Suite:
    """A contrastive test set: how one format is recognised and read, and the rules published for it.

    A subclass sets `format`, and either writes `items`, or says what an item is: `json_fields` of an entry of a list in
    JSON, `text_files` and `text_fields` of lines in parallel text. It is registered when it is defined, and all else
    has defaults. An instance is one file (or folder) of the format and what is asked of it: `context` sentences before
    the current one, `future_context` after it, and further files (see `options`). `content` is the parsed JSON of the
    file where it is in memory already. ValueError: a negative number of context sentences.
    """

    format: ClassVar[str]  # name for --format, items and reports
    title: ClassVar[str]  # name in messages; default: `format`
    ties: ClassVar[str] = "wrong"  # rule for equal scores, see `contrastive_accuracy`
    unit: ClassVar[str] = "document"  # kind of an item's group, which is resampled as one
    json_key: ClassVar[str | None] = None  # key of the first item by which JSON of this format is recognised
    text_name: ClassVar[re.Pattern | None] = None  # names of text files of this format, (set) in them
    languages: tuple[str | None, str | None] = (None, None)  # of source and candidates, as far as known
    recorded_context: ClassVar[int] = 0  # sentences that the JSON of text files includes
    lines: ClassVar[int] = 2  # of an item in text files, where its JSON does not say it
    options: ClassVar[Mapping[str, str]] = {}  # a further file -> `text files of X` or `JSON of X` that have it
    published: ClassVar[Mapping[str, Mapping[str, int]]] = {}  # name of the set -> counts, named as in `counts_note`

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        if "format" in vars(cls):
            cls.title = vars(cls).get("title", cls.format)
            register(SUITES, cls.format, cls, "suite")

    def __init__(
        self,
        path: str | Path,
        *,
        context: int = 3,
        future_context: int = 0,
        documents: str | Path | None = None,
        records: str | Path | None = None,
        content: object = None,
    ):
        if context < 0 or future_context < 0:
            raise ValueError(
                f"context is {context}, future_context {future_context}; expected the number of sentences before and "
                "after the current one, 0 or more"
            )
        self.path, named = Path(path), self.text_name and self.text_name.fullmatch(Path(path).name)
        self.name = named[1] if named else file_stem(path)
        self.context, self.future_context = context, future_context
        self.documents, self.records = documents, records
        if content is not None:
            self.content = content

    @classmethod
    def matches_name(cls, path: Path) -> bool:
        """Whether a file or folder of this name is text of this format."""
        return cls.text_name is not None and cls.text_name.fullmatch(path.name) is not None

    @classmethod
    def matches_json(cls, content: object) -> bool:
        """Whether a JSON value is of this format; by default a list whose first item has `json_key`."""
        first = content[0] if isinstance(content, list) and content else None
        return cls.json_key is not None and isinstance(first, dict) and cls.json_key in first

    def items(self) -> Iterator[SuiteItem]:
        """The items in file order; DataError names file and item."""
        return self.text_items() if self.matches_name(self.path) else self.json_items()

    def json_items(self) -> Iterator[SuiteItem]:
        """The items of a JSON file."""
        for number, (where, row) in enumerate(self.json_rows(), 1):
            yield self.item(number, location=where, **self.json_fields(number, row, where))

    def json_rows(self) -> Iterator[tuple[str, Any]]:
        """The location of each item, for messages, and its fields in the JSON."""
        for number, entry in enumerate(entries_of(self.content, self.path), 1):
            yield f"{self.path}, item {number}", entry

    def json_fields(self, number: int, row: Any, where: str) -> dict:
        """The fields of the item of a row of `json_rows`, the first of them number 1."""
        raise NotImplementedError(f"{type(self).__name__} reads no JSON; write json_fields, or items")

    def text_items(self) -> Iterator[SuiteItem]:
        """The items of text files, whose texts are those of the JSON that belongs to them, if it is there."""
        records = self.recorded_items()
        sizes = self.lines if records is None else [len(record.candidates) for record in records]
        for number, block in enumerate(read_blocks(**self.text_files(), sizes=sizes), 1):
            record = records[number - 1] if records else None
            if record:
                check_record(block, record)
            fields = {"source": (*block.before[0], block.source), "target_context": block.before[1]}
            fields |= {"candidates": block.candidates, "location": block.where}
            yield self.item(number, **fields | self.text_fields(number, block, record))

    def text_files(self) -> dict[str, Any]:
        """The text files as arguments of `read_blocks`."""
        raise NotImplementedError(f"{type(self).__name__} reads no text files; write text_files, or items")

    def text_fields(self, number: int, block: Block, record: SuiteItem | None) -> dict:
        """The other fields of an item of text files, and of the item of the JSON that belongs to it."""
        raise NotImplementedError

    @classmethod
    def published_counts(cls, name: str, items: Sequence[SuiteItem]) -> Mapping[str, int] | None:
        """The counts published for a set of this name; None if unknown."""
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
        other = "JSON of " if self.matches_name(self.path) else "text files of "
        accepted = [name for name, use in self.options.items() if not use.startswith(other)]
        for name in ("documents", "records"):
            if getattr(self, name) is not None and name not in accepted:
                uses = [suite.options[name] for suite in SUITES.values() if name in suite.options]
                raise ValueError(
                    f"{name} is {getattr(self, name)}, but {self.path} has no use for it, it is for "
                    f"{', '.join(uses)}; omit it"
                )
        items = list(self.items())
        if not items:
            raise DataError(f"{self.path}: no items of {self.title}; expected at least one")
        for item in items:
            self._check(item)
        return items

    def _check(self, item: SuiteItem) -> None:
        """DataError, with this class, for an item whose fields do not fit each other."""
        before = len(item.source) - 1
        expected = {
            "source": (before >= 0, "a tuple of sentences, the current one last"),
            "target_context": (len(item.target_context) == before, f"a tuple of {counted(before, 'sentence')}"),
            "candidates": (item.correct in range(len(item.candidates)) and len(item.candidates) > 1,
                           f"a tuple of two translations or more, of which number {item.correct} is right"),
        }  # fmt: skip
        for name, (fits, what) in expected.items():
            texts = getattr(item, name)
            if not fits or not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
                raise DataError(f"{item.where}: {type(self).__name__} gives {name}={texts!r:.80}, expected {what}")

    @cached_property
    def content(self) -> object:
        """The JSON value of the file."""
        return read_json(self.path)

    def item(self, number: int, **fields) -> SuiteItem:
        """Item `number` (from 1) with these fields, and at most the requested past context.

        By default its id is made of suite and number, the right candidate is the first, the distance unknown.
        """
        defaults = {"item_id": f"{self.name}:{number}", "format": self.format, "languages": self.languages}
        fields = {**defaults, "correct": 0, "distance": None, **fields}
        extra = len(fields["source"]) - 1 - self.context
        if extra > 0:
            fields.setdefault("index", len(fields["source"]) - 1)
            fields |= {"source": fields["source"][extra:], "target_context": fields["target_context"][extra:]}
        return SuiteItem(**fields)

    def beside(self, *endings: str) -> list[Path]:
        """The text files of the set with these endings."""
        return [self.path.with_name(f"{self.name}.{ending}") for ending in endings]

    def records_path(self) -> Path | None:
        """The JSON that belongs to text files: `records`, otherwise the one next to them or a folder above.

        None if it is missing. Bawden's `lexical_choice` is called `lexical-choice.json`.
        """
        if self.records is not None:
            return Path(self.records)
        folder, names = self.path.parent, (self.name, self.name.replace("_", "-"))
        paths = [parent / f"{stem}.json" for parent in (folder, folder / "..") for stem in names]
        return next((path for path in paths if path.is_file()), None)

    def recorded_items(self) -> list[SuiteItem] | None:
        """The items of the JSON that belongs to text files; None if it is missing."""
        path = self.records_path()
        return None if path is None else list(type(self)(path, context=self.recorded_context).json_items())


def counts_note(items: Sequence[SuiteItem]) -> str | None:
    """Differences from the published counts of the suite; None without any, or for an unknown name.

    `items` are the whole suite; its name, such as `deixis_dev`, is that of the file without endings. Counted are items,
    candidates, groups, and the items with each label (`phenomenon=il`, `distance=>3`, …). Fields that no item has (such
    as distances of text files) are not compared.
    """
    name = items[0].suite
    counts = Counter(f"{label}={value}" for item in items for label, value in labels_of(item).items())
    counts["items"], counts["candidates"] = len(items), sum(len(item.candidates) for item in items)
    counts["groups"] = len({item.group for item in items if item.group is not None})
    counted = {key.partition("=")[0] for key in counts}
    published = suite_rules(items).published_counts(name, items) or {}
    parts = [
        f"{key} {counts[key]:,} (published {count:,})"
        for key, count in published.items()
        if key.partition("=")[0] in counted and counts[key] != count
    ]
    return f"{name}: other counts than published: {', '.join(parts)}" if parts else None


def average_results(results: Sequence[Result]) -> list[Result]:
    """The averages that the suites of these contrastive results define (see `Suite.averages`), as report results."""
    averages = []
    for format, suite in suite_classes().items():
        of_format = [result for result in results if result.details.get("format") == format]
        averages += suite.averages(of_format) if of_format else []
    return averages


def weighted_average(
    metric: str, dataset: str, result: Result, parts: Mapping[str, PartScore], weights: Mapping[str, int]
) -> Result:
    """A result with the settings of another one: the mean of the values of `parts` by these weights."""
    total = sum(weights[name] for name in parts)
    return replace(
        result,
        dataset=dataset,
        metric=metric,
        signature=result.signature.without("data"),  # which is of one part
        value=sum(weights[name] * part.value for name, part in parts.items()) / total,
        n=sum(part.n for part in parts.values()),
        breakdown={},
        details={
            "weights": {name: weights[name] for name in parts},
            "parts": {name: part.value for name, part in parts.items()},
        },
    )
