"""Items of a contrastive suite: their digest, their labels, and whether their languages are those of a model."""

from collections.abc import Sequence

from hf_docmt.data.language_codes import are_other_languages
from hf_docmt.files import DataError
from hf_docmt.reports.signature import content_digest
from hf_docmt.systems.items import SuiteItem


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

    Codes such as `de_DE`, `deu_Latn` and `de` are the same language; see `are_other_languages`.
    """
    for side, own, other in zip(("source", "target"), languages, (source_lang, target_lang)):
        if are_other_languages(own, other):
            raise DataError(
                f"{where}: the {side} language is {own!r}, the model's {other!r}; take data from {source_lang} to "
                f"{target_lang}, or a model of these languages"
            )
