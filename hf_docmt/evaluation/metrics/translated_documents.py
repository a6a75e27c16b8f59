"""Translated documents as metrics take them: hypotheses, references, sources, and how they were made."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hf_docmt.messages import counted
from hf_docmt.reports.signature import Signature

Documents = Sequence[Sequence[str]]


@dataclass(frozen=True)
class TranslatedDocuments:
    """Documents as lists of sentences, the same number on every side, and what a report says of them.

    `doc_ids`: `1`, `2`, ... by default. `references` and `sources` may be missing, sources of a document, too (None); a
    metric that needs them says so. `dataset`, `split`, `strategy` and `beams` go into the results. `alignment`: the
    signature of an alignment that made the hypotheses. `other_references`: the documents of each further reference, for
    metrics that take several. `details`: what every corpus score is to have in its details.
    """

    hypotheses: Documents
    references: Documents | None = None
    sources: Sequence[Sequence[str] | None] | None = None
    doc_ids: Sequence[str] = ()
    dataset: str = "documents"
    split: str = "all"
    source_lang: str | None = None
    target_lang: str | None = None
    strategy: str | None = None
    beams: int | None = None
    alignment: Signature = Signature()
    details: dict[str, Any] = field(default_factory=dict)
    other_references: Sequence[Documents] = ()

    @property
    def ids(self) -> list[str]:
        """The id of every document."""
        return list(self.doc_ids) or [str(number) for number in range(1, len(self.hypotheses) + 1)]


def check_sides(
    hypotheses: Documents, references: Documents, sources: Documents | None = None, doc_ids: Sequence[str] | None = None
) -> list[str]:
    """The ids of the documents, `1`, `2`, … where none are given.

    ValueError: another number of documents, or of sentences in a document, on one side, or ids that are not one for
    each document.
    """
    ids = [str(number) for number in range(1, len(references) + 1)] if doc_ids is None else list(doc_ids)
    if len(ids) != len(references) or len(set(ids)) != len(ids):
        raise ValueError(f"{len(ids)} document ids, {len(set(ids))} of them different, for {len(references)} documents")
    check_aligned(hypotheses, references, ids)
    if sources is None:
        return ids
    if len(sources) != len(references):
        raise ValueError(
            f"{len(sources)} source documents for {len(references)} translated ones: give the documents that were "
            "translated, in the same order"
        )
    for name, source, reference in zip(ids, sources, references):
        if isinstance(source, str) or len(source) != len(reference):
            got = "a string" if isinstance(source, str) else f"{len(source)} source sentences"
            raise ValueError(
                f"document {name!r}: {got} for {len(reference)} translated sentences; every translation needs its "
                "source sentence, empty ones included"
            )
    return ids


def check_aligned(
    predictions: Sequence[Sequence[str]], references: Sequence[Sequence[str]], doc_ids: Sequence[str] | None = None
) -> None:
    """ValueError unless both sides have the same documents and every document as many sentences on both sides."""
    if len(predictions) != len(references):
        raise ValueError(
            f"{counted(len(predictions), 'translated document')} for {counted(len(references), 'reference')}: "
            "score the same documents in the same order"
        )
    if not any(len(document) for document in references):
        raise ValueError("nothing to score: the references have no sentence")
    for number, (prediction, reference) in enumerate(zip(predictions, references)):
        name = f"document {number + 1}" if doc_ids is None else f"document {doc_ids[number]!r}"
        if isinstance(prediction, str) or isinstance(reference, str):
            raise ValueError(f"{name}: got a string, expected a list of sentences")
        if len(prediction) != len(reference):
            raise ValueError(
                f"{name}: {counted(len(prediction), 'translated sentence')} for "
                f"{counted(len(reference), 'reference sentence')}; "
                "every source sentence needs exactly one translation, empty ones included"
            )
