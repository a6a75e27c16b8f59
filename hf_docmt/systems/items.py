"""The input of a system: the current sentence with its context, and translations to score."""

from dataclasses import dataclass, field

ALL_CONTEXT = 10**6  # `past_context` of systems that take all the sentences there are


def context_name(sentences: int) -> str | int:
    """A number of context sentences as reports have it."""
    return "all" if sentences >= ALL_CONTEXT else sentences


@dataclass(frozen=True)
class SuiteItem:
    """One choice between translations of the last sentence of `source`; each of them has the same context.

    All published suites have this structure: in those whose pairs have their own target context (Bawden et al. 2018),
    the right and the wrong translation of a pair have the same one, which the reader checks.
    """

    item_id: str
    source: tuple[str, ...]  # context, oldest first, then the current sentence
    target_context: tuple[str, ...]  # len(source) - 1 sentences
    candidates: tuple[str, ...]  # translations of the current sentence
    correct: int  # which candidate is right
    phenomenon: str
    distance: int | None  # sentences back to what decides; 0 = within the current one
    labels: dict = field(default_factory=dict)  # further properties that accuracy is broken down by
    index: int | None = None  # of the current sentence in its document, from 0; None: `source` is all of it
    source_after: tuple[str, ...] = ()  # sentences after the current one, nearest first
    target_after: tuple[str, ...] = ()  # their reference translations, the same number
    group: str | None = None  # id of its document, block or whole context, resampled as one; None: the item itself
    document: str | None = None  # id of its document where that is not the group; None: the group
    group_unit: str | None = None  # name of the group's kind; None: as in the suite's format
    group_size: int | None = None  # items of its group in the whole suite, if groups are counted; None: unknown
    format: str | None = None  # of the `Suite` that it was read from, which has the published rules
    languages: tuple[str | None, str | None] = (None, None)  # of source and candidates, as far as known
    location: str = ""  # file and line or item that it was read from

    @property
    def suite(self) -> str:
        """Name of the suite, such as `deixis_dev`."""
        return self.item_id.rpartition(":")[0]

    @property
    def where(self) -> str:
        """The item in messages: file and line or item number, otherwise its id."""
        return self.location or f"item {self.item_id}"
