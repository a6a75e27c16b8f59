"""Sentences of documents as items of a suite whose one candidate is the reference."""

from datasets import Dataset

from hf_docmt.data.documents import sentences
from hf_docmt.evaluation.suites import SuiteItem


def document_items(
    documents: Dataset, *, source_lang: str, target_lang: str, past_context: int, future_context: int = 0
) -> list[SuiteItem]:
    """Every sentence as an item whose one candidate is its reference, with the context that it has in its document.

    Sentences that are blank on either side are no items, but stay as context.
    """
    items = []
    for row in documents:
        source, target = (sentences(row, lang) for lang in (source_lang, target_lang))
        for i, (current, reference) in enumerate(zip(source, target, strict=True)):
            if current.strip() and reference.strip():
                start, stop = max(0, i - past_context), i + 1 + future_context
                items.append(
                    SuiteItem(
                        item_id=f"{row['doc_id']}:{i + 1}",
                        source=tuple(source[start : i + 1]),
                        target_context=tuple(target[start:i]),
                        candidates=(reference,),
                        correct=0,
                        phenomenon="reference",
                        distance=None,
                        index=i,
                        source_after=tuple(source[i + 1 : stop]),
                        target_after=tuple(target[i + 1 : stop]),
                        group=row["doc_id"],
                        languages=(source_lang, target_lang),
                    )
                )
    return items
