"""Translated documents as metrics take them: hypotheses, references, sources, and how they were made."""

from collections.abc import Collection, Sequence
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
    metrics that take several. `without_sentences`: ids of further documents, which count as nothing. `data`: digest of
    references and sources (see `content_digest`). `details`: what every corpus score is to have in its details.
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
    data: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    other_references: Sequence[Documents] = ()
    without_sentences: Collection[str] = ()

    @property
    def identity(self) -> Signature:
        """The end of the signatures of these documents: what they are."""
        return Signature.of({"data": self.data}) if self.data else Signature()

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
    check_aligned(hypotheses, references, doc_ids)
    if sources is not None:
        check_aligned(sources, references, doc_ids, ("source", "translated"))
    return ids


def check_aligned(
    documents: Documents,
    others: Documents,
    doc_ids: Sequence[str] | None = None,
    names: tuple[str, str] = ("translated", "reference"),
) -> None:
    """ValueError unless both sides have the same documents and every document as many sentences on both sides."""
    name, other = names
    if len(documents) != len(others):
        raise ValueError(
            f"{counted(len(documents), f'{name} document')} for {counted(len(others), f'{other} document')}: give the "
            "same documents on both sides, in the same order"
        )
    if not any(len(document) for document in others):
        raise ValueError(f"nothing to score: the {other} documents have no sentence")
    for number, (document, sentences) in enumerate(zip(documents, others)):
        where = f"document {number + 1}" if doc_ids is None else f"document {doc_ids[number]!r}"
        if isinstance(document, str) or isinstance(sentences, str):
            raise ValueError(f"{where}: got a string, expected a list of sentences")
        if len(document) != len(sentences):
            raise ValueError(
                f"{where}: {counted(len(document), f'{name} sentence')} for "
                f"{counted(len(sentences), f'{other} sentence')}; every translation needs exactly one source sentence "
                "and one reference, empty ones included"
            )
