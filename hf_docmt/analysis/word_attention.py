"""Words of joined sentences, where their tokens stand, and how much attention they get."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from transformers import PreTrainedTokenizerBase

from hf_docmt.analysis.scat import MarkedText, Span
from hf_docmt.evaluation.systems.token_texts import UNBROKEN, WORD, piece_ids, piece_spans, word_spans


@dataclass(frozen=True)
class Word:
    """Places of a word's tokens in a segment, and how people marked it."""

    places: tuple[int, ...]
    marked: bool
    pronoun: bool

    def shifted(self, steps: int) -> "Word":
        return replace(self, places=tuple(place + steps for place in self.places))


def segment_words(
    segment: Sequence[int], texts: Sequence[MarkedText], tokenizer: PreTrainedTokenizerBase, *, is_target: bool
) -> list[Word]:
    """The words of texts whose tokens stand in a segment one after the other, the last ones nearest to its end.

    A token belongs to the word of its first character. Words are runs of letters and digits, or of punctuation; with a
    tokenizer that does not tell places, what stands between blanks. A word is marked if a part of it is.
    ValueError: a text whose tokens are not in the segment.
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


def attended(weights: np.ndarray, words: Sequence[Word], keys: int, at: Sequence[int]) -> np.ndarray | None:
    """How much of the attention of one query goes to marked words: (heads, keys or more) -> (heads + 1, 1 + len(at)).

    Columns: the share of the weights of the first `keys` tokens that marked words have, and for each k of `at` the
    share of marked ones among the k words (or all, if fewer) with the largest sums of weights, the first of equal ones.
    The last row is what equal weights (share) and a random order (precision) give. None where no word is marked.
    """
    marked = np.array([word.marked for word in words], dtype=bool)
    if not marked.any():
        return None
    sums = np.stack([weights[:, list(word.places)].sum(axis=1) for word in words], axis=1)  # (heads, words)
    columns = [sums[:, marked].sum(axis=1) / weights[:, :keys].sum(axis=1)]
    order = np.argsort(-sums, axis=1, kind="stable")
    columns += [marked[order[:, :k]].mean(axis=1) for k in at]
    tokens = sum(len(word.places) for word in words if word.marked)
    chance = [tokens / keys] + [marked.mean()] * len(at)
    return np.vstack([np.stack(columns, axis=1), chance])


def _words(text: MarkedText, pieces: Sequence[Span], start: int, pattern) -> list[Word]:
    spans = word_spans(text.text, pattern)
    places: list[list[int]] = [[] for _ in spans]
    for number, (begin, end) in enumerate(pieces):
        inside = text.text[begin:end]
        first = begin + len(inside) - len(inside.lstrip())
        for word, (left, right) in enumerate(spans):
            if left <= first < right:
                places[word].append(start + number)
    return [
        Word(tuple(found), _touches(span, text.rationale), _touches(span, text.pronouns))
        for span, found in zip(spans, places)
        if found
    ]


def _touches(span: Span, marks: Sequence[Span]) -> bool:
    return any(start < span[1] and span[0] < end for start, end in marks)
