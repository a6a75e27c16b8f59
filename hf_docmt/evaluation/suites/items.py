"""One item of a contrastive suite, and how its fields are read from JSON."""

import html
import unicodedata
from dataclasses import dataclass, field

from hf_docmt.files import DataError

ALL_CONTEXT = 10**6  # `past_context` of systems that take all the sentences there are


def context_name(sentences: int) -> str | int:
    """A number of context sentences as reports have it."""
    return "all" if sentences >= ALL_CONTEXT else sentences


@dataclass(frozen=True)
class SuiteItem:
    """One choice between translations of the last sentence of `source`; the same context stands before each of them.

    All published suites are so made: in those of pairs with a target context of their own (Bawden et al. 2018), right
    and wrong translation of a pair have the same one, which the reader checks.
    """

    item_id: str
    source: tuple[str, ...]  # context, oldest first, then the current sentence
    target_context: tuple[str, ...]  # len(source) - 1 sentences
    candidates: tuple[str, ...]  # translations of the current sentence
    correct: int  # which candidate is right
    phenomenon: str
    distance: int | None  # sentences back to what decides; 0 = within the current one
    labels: dict = field(default_factory=dict)  # further properties that accuracy is broken down by
    index: int | None = None  # place of the current sentence in its document, from 0; None: `source` is all of it
    source_after: tuple[str, ...] = ()  # sentences after the current one, nearest first
    target_after: tuple[str, ...] = ()  # their reference translations, as many
    group: str | None = None  # its document, block or whole context, called by a name: resampled as one; None: itself
    group_size: int | None = None  # items of its group in the whole suite, where it counts as one; None: not told
    format: str | None = None  # published format that the item was read from, which has a rule for ties
    languages: tuple[str | None, str | None] = (None, None)  # of source and candidates, as far as the files tell
    place: str = ""  # file and line or item that it was read from

    @property
    def where(self) -> str:
        """What messages call the item."""
        return self.place or f"item {self.item_id}"


def field_of(entry: object, key: str, kind: type, place: str, optional: bool = False):
    """The value of a key, of the right type; None where it is absent or null and may be."""
    value = entry.get(key) if isinstance(entry, dict) else None
    if value is None and optional:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        got = "it is missing" if value is None else f"got {value!r}"
        raise DataError(f"{place}: {key!r} must be of type {kind.__name__}, {got}")
    return value


def labels_of(item: SuiteItem) -> dict[str, str]:
    """What accuracy is broken down by; distances above 3 are one class, as in ContraPro."""
    labels = {"phenomenon": item.phenomenon, **{name: str(value) for name, value in item.labels.items()}}
    if item.distance is not None:
        labels["distance"] = str(item.distance) if item.distance <= 3 else ">3"
    return labels


def same_text(one: str, other: str) -> bool:
    """Whether texts are equal but for case, spaces, punctuation, escapes such as `&apos;` and forms of characters."""
    return _letters(one) == _letters(other)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", html.unescape(text)).casefold()))
