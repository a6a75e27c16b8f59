"""The base class of systems: whatever scores and translates, one subclass, in one file, for each kind."""

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from hf_docmt.evaluation.suites import SuiteItem

SYSTEMS: dict[str, type["System"]] = {}  # every class by its kind, in the order of registration


@dataclass(frozen=True)
class ContextReach:
    """How many sentences of context a system reads, and whether it reads translations of them."""

    past: int = 0
    future: int = 0
    target: str = "reference"  # what it is given in scoring; "none" where it reads source context alone


class System(ABC):
    """Gives log-probabilities to translations and translates documents.

    A subclass with a `kind` is registered when it is defined: `load_system` finds it by `matches_config` and calls its
    `load`. The keyword-only parameters of its `__init__` are its options. Everything that evaluation needs of a system
    is here; it looks at nothing else.
    """

    kind: ClassVar[str]
    name: str
    reads_chunks: bool = False  # trained on chunks of documents: it reads as much context as it is given

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        if "kind" not in vars(cls):
            return
        other = SYSTEMS.setdefault(cls.kind, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"two systems have the kind {cls.kind!r}: {other} and {cls}; give one another name")
        SYSTEMS[cls.kind] = cls

    @classmethod
    def matches_config(cls, config: dict) -> bool:
        """Whether a model with this `config.json` is of the kind."""
        return False

    @classmethod
    def load(
        cls, name: str, *, dtype: torch.dtype, device: str, attn_implementation: str | None = None, **options
    ) -> "System":
        """The system of a folder or Hub name; `options` are those of the class. ValueError: it cannot be read."""
        raise ValueError(f"{name}: a system of kind {cls.kind!r} is made in Python, it cannot be loaded")

    @classmethod
    def options(cls) -> dict[str, type]:
        """The keyword-only parameters of the class with their annotations."""
        parameters = inspect.signature(cls).parameters.values()
        return {one.name: one.annotation for one in parameters if one.kind is one.KEYWORD_ONLY}

    @classmethod
    def takes_more_options(cls) -> bool:
        """Whether the class hands on what is none of its options, as models do to `generate`."""
        return any(one.kind is one.VAR_KEYWORD for one in inspect.signature(cls).parameters.values())

    @property
    def context(self) -> ContextReach:
        """The sentences of context that it reads; none by default."""
        return ContextReach()

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """Codes of source and target language, as far as known; data of other languages is refused."""
        return self.document_languages

    @property
    def document_languages(self) -> tuple[str | None, str | None]:
        """The languages that the model's configuration names, in which documents are read unless others are given."""
        return None, None

    @property
    def decoding(self) -> dict:
        """The search of `translate` as reported: `strategy` (of document models) and `beams`, None if unknown."""
        return {"strategy": None, "beams": None}

    @abstractmethod
    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        """[item][candidate][token of the current sentence, its end token last], natural logarithm."""

    def window_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        """The same of all tokens of the forced target window: context, separators, current sentence, end token."""
        raise ValueError(f"{self.name}: a system of kind {self.kind} has no target windows; take the sum or the mean")

    @abstractmethod
    def token_texts(self, items: Sequence[SuiteItem]) -> list[list[list[str]]]:
        """The same tokens as text."""

    @abstractmethod
    def translate(self, documents: list[list[str]]) -> list[list[str]]:
        """Translations of documents, for each as many sentences as it has."""

    @abstractmethod
    def describe(self) -> dict:
        """The `model` section of a report: name, architecture, parameters, config."""

    def fingerprint(self) -> str:
        """A short hash of the system, by which an interrupted evaluation knows it again."""
        return hashlib.sha256(repr(self.describe()).encode("utf-8")).hexdigest()[:12]
