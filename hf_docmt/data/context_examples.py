"""Training examples whose context sentences are inputs of their own."""

from collections.abc import Iterator

import numpy as np
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from hf_docmt.data.examples import Examples


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
        documents: Dataset,
        tokenizer: PreTrainedTokenizerBase,
        *,
        source_lang: str,
        context_sides: str,
        **options,
    ):
        self._context_sides = {"source": (0,), "target": (1,), "both": (0, 1)}[context_sides]
        super().__init__(documents, tokenizer, source_lang=source_lang, context_sides="both", **options)
        self.context_sides = context_sides

    @property
    def side_lengths_with_context(self) -> np.ndarray:
        return self._counted(self._side_totals)

    def _token_counts(self, begin: int, end: int) -> np.ndarray:
        sides, context, count = self._current(begin, end), self._context_lengths(begin, end), 0
        longest = np.zeros(end - begin, dtype=np.int64)
        for _, lengths in context:
            count, longest = count + 1, np.maximum(longest, lengths)
        return np.stack([*sides, count * longest], axis=1)

    def _side_totals(self, begin: int, end: int) -> np.ndarray:
        """Rows begin to end - 1 of `side_lengths_with_context`."""
        sides = self._current(begin, end)
        for number, lengths in self._context_lengths(begin, end):
            sides[number] = sides[number] + lengths
        return np.stack(sides, axis=1)

    def _current(self, begin: int, end: int) -> list[np.ndarray]:
        """Tokens of the current sentences, (examples,) each of source and target."""
        document, start, _, place = self.spans(begin, end)
        begins = (start + place == self.corpus.document_starts[document]) * self.use_bod
        return [self._sentence_lengths(number, start + place) + begins for number in (0, 1)]

    def _context_lengths(self, begin: int, end: int) -> Iterator[tuple[int, np.ndarray]]:
        """Side and tokens (examples,) of every context sentence of the window, 0 where there is none."""
        document, start, stop, place = self.spans(begin, end)
        current, last = start + place, np.minimum(stop, self.corpus.document_starts[document + 1])
        for number in self._context_sides:
            reach = range(-self.past_context, 1 if number else self.future_context + 1)
            for offset in (offset for offset in reach if offset):
                sentence = current + offset  # its number in the corpus
                exists = (sentence >= start) & (sentence < last)
                length = self._sentence_lengths(number, np.where(exists, sentence, current)) + self.use_bod
                yield number, np.where(exists, length, 0)

    def _sentence_lengths(self, side: int, sentences: np.ndarray) -> np.ndarray:
        """Tokens of sentences of the corpus, their ends counted."""
        starts = self.corpus.sides[side].starts
        return starts[sentences + 1] - starts[sentences] + 1
