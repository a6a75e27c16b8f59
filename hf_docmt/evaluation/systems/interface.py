"""The interface of all systems."""

from collections.abc import Sequence
from typing import Protocol

from hf_docmt.evaluation.suites import SuiteItem


class System(Protocol):
    """Whatever gives log-probabilities to translations and translates documents."""

    name: str
    past_context: int  # sentences of context that it reads
    future_context: int
    target_context: str  # "reference" where translations of the context are given to it in scoring, else "none"

    def token_log_probabilities(self, items: Sequence[SuiteItem]) -> list[list[list[float]]]:
        """[item][candidate][token of the current sentence, its end mark last], natural logarithm."""

    def token_texts(self, items: Sequence[SuiteItem]) -> list[list[list[str]]]:
        """The same tokens as text."""

    def translate(self, documents: list[list[str]]) -> list[list[str]]:
        """Translations of documents, for each as many sentences as it has."""

    def describe(self) -> dict:
        """The `model` section of a report: name, architecture, parameters, config."""


def system_languages(system: System) -> tuple[str | None, str | None]:
    """Source and target language of a system: the codes it was given, else those of its model's configuration."""
    given, config = getattr(system, "settings", {}), getattr(getattr(system, "model", None), "config", None)
    sides = (("src_lang", "source_lang"), ("tgt_lang", "target_lang"))
    return tuple(given.get(code) or getattr(config, field, None) for code, field in sides)
