"""How well the words of a sentence and of its translation fit together."""

import numpy as np
import regex

POWER = 3  # of attention, so that words with much of it count more than those with a little
COPIED = 2.0  # times the attention to a source word that is the same as the target word
LEAST = 0.05  # of a fit that is kept
SCRIPTS = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"  # without blanks between words
UNSPACED = regex.compile(rf"(?V1){SCRIPTS}")
WORD = regex.compile(  # of such scripts each character is a word
    rf"(?V1){SCRIPTS}\p{{M}}*|"
    r"[\p{L}\p{N}\p{M}]+(?:['’][\p{L}\p{M}]+)*|[^\s]"
)
Fit = list[list[float]]  # [target word, source word, fit of 0 to 1], those that are not small


def words_of(text: str) -> list[tuple[int, int]]:
    """(start, end) characters of the words of a text; other signs are words of one character."""
    return [match.span() for match in WORD.finditer(text)]


def position_fit(source: str, target: str) -> Fit:
    """How well the words fit by relative positions alone, for models whose attention is not known."""
    rows, columns = len(words_of(target)), len(words_of(source))
    expected = (np.arange(rows)[:, None] + 0.5) / max(rows, 1) * columns - 0.5
    return fit_of_weights(1 / (1 + (expected - np.arange(columns)) ** 2), source, target, copied=1e3)


def fit_of_weights(weights: np.ndarray, source: str, target: str, copied: float = COPIED) -> Fit:
    """The fit by weights (T words, S words), where both words choose each other; see `attention_fit`."""
    texts = [[text[start:end] for start, end in words_of(text)] for text in (source, target)]
    same = np.array([[word == other for word in texts[0]] for other in texts[1]], dtype=bool)
    if not weights.any():
        return []
    weights = (weights * np.where(same, copied, 1)) ** POWER
    shares = [weights / np.maximum(weights.sum(axis=axis, keepdims=True), 1e-30) for axis in (0, 1)]
    fit = shares[0] * shares[1]
    fit = fit / np.maximum(fit.max(axis=0, keepdims=True), 1e-30)
    return [[int(row), int(column), round(float(fit[row, column]), 2)] for row, column in np.argwhere(fit >= LEAST)]
