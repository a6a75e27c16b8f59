"""Training examples for models that read each context sentence as an input of its own."""

import numpy as np
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from hf_docmt.data.examples import Examples
from hf_docmt.data.stored_documents import StoredDocuments


class ContextExamples(Examples):
    """Windows (see `Examples`) for models that read each context sentence as an input of its own.

    As in translation, blank source sentences are left out of the documents: they are neither translated nor context.
    `side_lengths` (examples, 3) is what a row costs in a batch as `ContextCollator` pads it: tokens of the current
    sentence, of its translation, and the number of context sentences of the window times the longest of them.
    `context_sides` is `source`, `target` or `both`.
    """

    drop_blank = True

    def __init__(
        self,
        documents: Dataset | StoredDocuments,
        tokenizer: PreTrainedTokenizerBase,
        *,
        source_lang: str,
        context_sides: str,
        **options,
    ):
        self._context_sides = {"source": (0,), "target": (1,), "both": (0, 1)}[context_sides]
        super().__init__(documents, tokenizer, source_lang=source_lang, context_sides="both", **options)
        self.context_sides = context_sides

    def _token_counts(self, begin: int, end: int) -> np.ndarray:
        document, start, stop, place = self.spans(begin, end)
        first, last = self.corpus.document_starts[document], self.corpus.document_starts[document + 1]
        current, last = start + place, np.minimum(stop, last)
        begins = (current == first) * self.use_bod
        longest, count = np.zeros(len(current), dtype=np.int64), 0
        for number in self._context_sides:
            reach = range(-self.past_context, 1 if number else self.future_context + 1)
            for offset in (offset for offset in reach if offset):
                count += 1
                sentence = current + offset  # its number in the corpus
                exists = (sentence >= start) & (sentence < last)
                length = self._sentence_lengths(number, np.where(exists, sentence, current)) + self.use_bod
                longest = np.maximum(longest, np.where(exists, length, 0))
        source, target = (self._sentence_lengths(number, current) + begins for number in (0, 1))
        return np.stack([source, target, count * longest], axis=1)

    def _sentence_lengths(self, side: int, sentences: np.ndarray) -> np.ndarray:
        """Tokens of sentences of the corpus, their ends counted."""
        starts = self.corpus.sides[side].starts
        return starts[sentences + 1] - starts[sentences] + 1
