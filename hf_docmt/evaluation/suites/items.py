"""One item of a contrastive suite, its labels, and whether its languages are those of a model."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hf_docmt.data.language_codes import primary_language
from hf_docmt.files import DataError
from hf_docmt.reports.signature import content_digest

ALL_CONTEXT = 10**6  # `past_context` of systems that take all the sentences there are


def context_name(sentences: int) -> str | int:
    """A number of context sentences as reports have it."""
    return "all" if sentences >= ALL_CONTEXT else sentences


@dataclass(frozen=True)
class SuiteItem:
    """One choice between translations of the last sentence of `source`; the same context stands before each of them.

    All published suites have this structure: in those whose pairs have a target context of their own (Bawden et al.
    2018), the right and the wrong translation of a pair have the same one, which the reader checks.
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
    target_after: tuple[str, ...] = ()  # their reference translations, as many
    group: str | None = None  # id of its document, block or whole context, resampled as one; None: the item itself
    document: str | None = None  # id of its document where that is not the group; None: the group
    group_unit: str | None = None  # what the group is; None: what the suite's format says
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
        """The item in messages: file and line or item number, else its id."""
        return self.location or f"item {self.item_id}"


def items_digest(items: Sequence[SuiteItem]) -> str:
    """Digest of current sentences and candidates, without the context, of which each system reads its own share."""
    return content_digest([item.source[-1], *item.candidates, item.correct] for item in items)


def labels_of(item: SuiteItem) -> dict[str, str]:
    """The labels that accuracy is broken down by; distances above 3 are one class, as in ContraPro."""
    labels = {"phenomenon": item.phenomenon, **{name: str(value) for name, value in item.labels.items()}}
    if item.distance is not None:
        labels["distance"] = str(item.distance) if item.distance <= 3 else ">3"
    return labels


def check_language(items: Sequence[SuiteItem], source_lang: str | None, target_lang: str | None) -> None:
    """As `check_languages`, for the items of a suite."""
    for item in items[:1]:
        check_languages(item.where, item.languages, source_lang, target_lang)


def check_languages(
    where: str, languages: tuple[str | None, str | None], source_lang: str | None, target_lang: str | None
) -> None:
    """DataError where data, at `where`, is known to be of other languages than a model that translates between these.

    Codes such as `de_DE`, `deu_Latn` and `de` are the same language. Unknown languages, and codes of different length
    of languages that are not in the table, are not compared.
    """
    for side, own, other in zip(("source", "target"), languages, (source_lang, target_lang)):
        codes = {primary_language(code) for code in (own, other) if code}
        if len(codes) == 2 and len(set(map(len, codes))) == 1:
            raise DataError(
                f"{where}: the {side} language is {own!r}, the model's {other!r}; take data from {source_lang} to "
                f"{target_lang}, or a model of these languages"
            )
