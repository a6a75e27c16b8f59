"""Words of a segment of joined sentences, the positions of their tokens, and the attention that they receive."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from transformers import PreTrainedTokenizerBase

from hf_docmt.analysis.scat import MarkedText, Span
from hf_docmt.evaluation.systems.model_system import UNBROKEN, WORD, piece_ids, piece_spans, word_spans


@dataclass(frozen=True)
class Word:
    """Positions of a word's tokens in a segment, and whether annotators marked it as context or as pronoun."""

    positions: tuple[int, ...]
    marked: bool
    pronoun: bool

    def shifted(self, steps: int) -> "Word":
        """The word that many positions later."""
        return replace(self, positions=tuple(position + steps for position in self.positions))


def segment_words(
    segment: Sequence[int], texts: Sequence[MarkedText], tokenizer: PreTrainedTokenizerBase, *, is_target: bool
) -> list[Word]:
    """The words of texts whose tokens follow each other in a segment; the last occurrence of each text counts.

    A token belongs to the word of its first character. Words are runs of letters and digits, or of punctuation; with a
    tokenizer that gives no character offsets, runs of characters other than blanks. A word is marked if a part of it
    is. ValueError: a text whose tokens are not in the segment.
    """
    words, end = [], len(segment)
    for text in reversed(texts):
        ids = piece_ids(tokenizer, text.text, is_target=is_target)
        start = next((s for s in range(end - len(ids), -1, -1) if list(segment[s : s + len(ids)]) == ids), None)
        if start is None:
            raise ValueError(f"the tokens of {text.text!r} are not in the segment {list(segment)}")
        pieces = piece_spans(tokenizer, text.text, is_target=is_target)
        words = _words(text, pieces, start, WORD if tokenizer.is_fast else UNBROKEN) + words
        end = start
    return words


def attention_on_marked_words(
    weights: np.ndarray, words: Sequence[Word], keys: int, at: Sequence[int]
) -> np.ndarray | None:
    """Attention of one query to marked words: weights (heads, at least `keys`) -> (heads + 1, 1 + len(at)).

    Columns: the share of the weight on the first `keys` tokens that falls on marked words, then for each k of `at` the
    precision at k: the share of marked words among the k words (all, if fewer) with the largest sums of weights; of
    equal ones the first counts. The last row is chance: equal weights (share), a random order (precision). None where
    no word is marked.
    """
    marked = np.array([word.marked for word in words], dtype=bool)
    if not marked.any():
        return None
    sums = np.stack([weights[:, list(word.positions)].sum(axis=1) for word in words], axis=1)  # (heads, words)
    columns = [sums[:, marked].sum(axis=1) / weights[:, :keys].sum(axis=1)]
    order = np.argsort(-sums, axis=1, kind="stable")
    columns += [marked[order[:, :k]].mean(axis=1) for k in at]
    tokens = sum(len(word.positions) for word in words if word.marked)
    chance = [tokens / keys] + [marked.mean()] * len(at)
    return np.vstack([np.stack(columns, axis=1), chance])


def _words(text: MarkedText, pieces: Sequence[Span], start: int, pattern) -> list[Word]:
    spans = word_spans(text.text, pattern)
    positions: list[list[int]] = [[] for _ in spans]
    for number, (begin, end) in enumerate(pieces):
        inside = text.text[begin:end]
        first = begin + len(inside) - len(inside.lstrip())
        for word, (left, right) in enumerate(spans):
            if left <= first < right:
                positions[word].append(start + number)
    return [
        Word(tuple(found), _overlaps(span, text.rationale), _overlaps(span, text.pronouns))
        for span, found in zip(spans, positions)
        if found
    ]


def _overlaps(span: Span, others: Sequence[Span]) -> bool:
    return any(start < span[1] and span[0] < end for start, end in others)
