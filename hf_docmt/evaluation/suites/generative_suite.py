"""The base class of test sets that are translated: an item is right if its translation has what it expects."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

GENERATIVE_SUITES: dict[str, type["GenerativeSuite"]] = {}  # every class by its format


@dataclass(frozen=True)
class GenerativeItem:
    """A source text of which the last sentence is current, and the word that its translation must have."""

    item_id: str
    source: tuple[str, ...]  # context, oldest first, then the current sentence
    expected: str
    rule: str  # by which the set chose the item: its phenomenon
    reference: str  # of the current sentence
    distance: int | None  # sentences back to what decides; None: the file does not say
    group: str  # id of the document that the item comes from
    languages: tuple[str | None, str | None] = (None, None)  # of source and translation, as far as known
    location: str = ""  # file and item that it was read from

    @property
    def suite(self) -> str:
        """Name of the set."""
        return self.item_id.rpartition(":")[0]


class GenerativeSuite(ABC):
    """One format of such sets: a subclass with a `format` is registered when it is defined.

    `rules` are the ways to decide what is right, by their names for `--rule`: arguments of `right` and
    `rule_signature`. An instance is one file of the format.
    """

    format: ClassVar[str]
    rules: ClassVar[Mapping[str, Mapping[str, str]]]

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        if "format" in vars(cls):
            GENERATIVE_SUITES[cls.format] = cls

    def __init__(self, path: str | Path, inputs: str | Path | None = None):
        self.path = Path(path)
        self.inputs = inputs if inputs is None else Path(inputs)

    @abstractmethod
    def read(self) -> list[GenerativeItem]:
        """The items in file order; DataError names file and item."""

    @classmethod
    @abstractmethod
    def read_translations(cls, path: str | Path, items: Sequence[GenerativeItem]) -> list[list[str]]:
        """Translated documents, one for each item, from a file of another system; DataError names file and line."""

    @classmethod
    @abstractmethod
    def right(
        cls,
        items: Sequence[GenerativeItem],
        outputs: Sequence[Sequence[str]],
        *,
        target_lang: str | None = None,
        **rule: str,
    ) -> list[bool]:
        """For every item whether its translated document is right."""

    @classmethod
    @abstractmethod
    def rule_signature(cls, *, target_lang: str | None = None, **rule: str) -> str:
        """The part of a result's signature that says how `right` decides."""
