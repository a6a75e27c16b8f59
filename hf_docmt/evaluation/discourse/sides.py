"""The sides of a set of documents: the same documents, and in each the same sentences."""

from collections.abc import Sequence

from hf_docmt.evaluation.metrics.segments import check_aligned

Documents = Sequence[Sequence[str]]


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
