"""COMET and document-level COMET: what is scored, and the result from the scores (`comet_files` has the way there)."""

from collections.abc import Sequence
from dataclasses import dataclass

from hf_docmt.evaluation.metrics.translated_documents import check_aligned
from hf_docmt.reports.signature import Signature

MT_CONTEXTS = ("reference", "hypothesis")


@dataclass(frozen=True)
class CometInput:
    """What COMET is to score, {"doc_id", "sentence", "src", "mt", "ref"} for every sentence, and how it was made."""

    items: tuple[dict, ...]  # each side is a list of sentences, the context in order and at last the current one
    ids: tuple[str, ...]
    lengths: tuple[int, ...]  # sentences of each document
    context: int
    signature: Signature


def comet_input(
    sources: Sequence[Sequence[str]],
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    doc_ids: Sequence[str] | None = None,
    context: int = 0,
    mt_context: str = "reference",
) -> CometInput:
    """The items of all documents, each side with up to `context` sentences before the current one.

    Document-level COMET is that of Vernikos et al. (2022): the same number of sentences on each side, all read and only
    the current one pooled; the context before a hypothesis is that of the `reference`, as there, or of the
    `hypothesis` itself. ValueError: sides that do not line up, an unknown choice.
    """
    if mt_context not in MT_CONTEXTS:
        raise ValueError(f"unknown mt_context {mt_context!r}: expected {' or '.join(MT_CONTEXTS)}")
    if context < 0:
        raise ValueError(f"context is {context}: expected 0 or more sentences")
    check_aligned(hypotheses, references, doc_ids)
    ids = [str(number) for number in range(1, len(references) + 1)] if doc_ids is None else list(doc_ids)
    _check_sources(sources, references, ids)
    items = []
    for doc_id, source, hypothesis, reference in zip(ids, sources, hypotheses, references):
        before = reference if mt_context == "reference" else hypothesis
        for index in range(len(source)):
            first = max(0, index - context)
            items.append(
                {
                    "doc_id": doc_id,
                    "sentence": index + 1,
                    "src": list(source[first : index + 1]),
                    "mt": [*before[first:index], hypothesis[index]],
                    "ref": list(reference[first : index + 1]),
                }
            )
    signature = {"context": context} | ({"mt-context": mt_context} if context else {})
    return CometInput(tuple(items), tuple(ids), tuple(map(len, references)), context, Signature.of(signature))


def _check_sources(sources: Sequence[Sequence[str]], references: Sequence[Sequence[str]], ids: Sequence[str]) -> None:
    if len(sources) != len(references):
        raise ValueError(f"{len(sources)} source documents for {len(references)} references; give the same documents")
    for doc_id, source, reference in zip(ids, sources, references):
        if len(source) != len(reference):
            raise ValueError(
                f"document {doc_id!r}: {len(source)} source sentences for {len(reference)} reference sentences; give "
                "one for each"
            )
