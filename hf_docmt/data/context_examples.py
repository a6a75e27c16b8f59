"""Training examples for models that read each context sentence as an input of its own."""

import numpy as np
from datasets import Dataset

from hf_docmt.data.examples import Examples


class ContextExamples(Examples):
    """Windows (see `Examples`) for models that read each context sentence as an input of its own.

    As in translation, blank source sentences are left out of the documents: they are neither translated nor context.
    `side_lengths` (examples, 3) is what a row costs in a batch as `ContextCollator` pads it: tokens of the current
    sentence, of its translation, and the number of context sentences of the window times the longest of them.
    `context_sides` is `source`, `target` or `both`.
    """

    def __init__(self, documents: Dataset, tokenizer, *, source_lang: str, context_sides: str, **options):
        self._context_sides = {"source": (0,), "target": (1,), "both": (0, 1)}[context_sides]
        documents = drop_blank_sentences(documents, source_lang)
        super().__init__(documents, tokenizer, source_lang=source_lang, context_sides="both", **options)
        self._options["context_sides"] = context_sides

    def _token_counts(self) -> np.ndarray:
        current = self.start + self.current
        lengths = [np.diff(side.starts) + 1 for side in self.sides]  # of all sentences, their ends counted
        begins = (current == self.document_starts[self.document]) * self.use_bod
        longest, count = np.zeros(len(current), dtype=np.int64), 0
        for side in self._context_sides:
            reach = range(-self.past_context, 1 if side else self.future_context + 1)
            for offset in (offset for offset in reach if offset):
                count += 1
                sentence = current + offset  # its number in the corpus
                end = np.minimum(self.stop, self.document_starts[self.document + 1])
                exists = (sentence >= self.start) & (sentence < end)
                length = lengths[side][sentence.clip(0, len(lengths[side]) - 1)] + self.use_bod
                longest = np.maximum(longest, np.where(exists, length, 0))
        source, target = (side[current] + begins for side in lengths)
        return np.stack([source, target, count * longest], axis=1)


def drop_blank_sentences(documents: Dataset, lang: str) -> Dataset:
    """The documents without pairs whose sentence in this language is blank, and without those that then are empty."""
    if all(pair[lang].strip() for row in documents for pair in row["translation"]):
        return documents
    rows = ({"doc_id": row["doc_id"], "translation": _nonblank_pairs(row, lang)} for row in documents)
    columns = documents.select_columns(["doc_id", "translation"])
    return Dataset.from_list([row for row in rows if row["translation"]], features=columns.features)


def _nonblank_pairs(row: dict, lang: str) -> list[dict]:
    return [pair for pair in row["translation"] if pair[lang].strip()]
