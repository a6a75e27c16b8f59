"""Scores of random samples of documents, and the intervals that they give, from sufficient statistics."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np

Score = Callable[[np.ndarray], np.ndarray]  # column sums, (samples, columns) -> scores, (samples,)

_CELLS = 2**22  # samples x documents that are drawn at once


def ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Quotients of two columns; what is 0/0 is 0."""
    return np.divide(above, below, out=np.zeros(len(above)), where=below != 0)


def bootstrap_interval(
    rows: Sequence[Sequence[float]], score: Score, samples: int = 1000, seed: int = 1
) -> tuple[float, float] | None:
    """The 95 % percentile interval of the score of all documents, from one row of sufficient statistics for each.

    Rows of zeros, documents with nothing to score, are skipped; None if fewer than 2 others remain.
    """
    matrix = np.asarray(rows, float)
    counted = matrix[np.any(matrix != 0, axis=1)]
    return percentile_interval(bootstrap_scores(counted, score, samples, seed)) if len(counted) > 1 else None


def bootstrap_scores(rows: np.ndarray, score: Score, samples: int, seed: int) -> np.ndarray:
    """Scores of samples of the same size, drawn with replacement, (samples,)."""
    return _bootstrap_scores(np.ascontiguousarray(rows, float).tobytes(), rows.shape, score, samples, seed)


@lru_cache(maxsize=32)
def _bootstrap_scores(cells: bytes, shape: tuple[int, int], score: Score, samples: int, seed: int) -> np.ndarray:
    """A system is tested against several others, and has an interval, too."""
    rows = np.frombuffer(cells).reshape(shape)
    return np.concatenate([score(times @ rows) for times in _draws(samples, len(rows), seed)])


def _draws(samples: int, documents: int, seed: int) -> Iterator[np.ndarray]:
    """How often each document was drawn, (some samples, documents) at a time."""
    rng = np.random.default_rng(seed)
    for size in _blocks(samples, documents):
        drawn = rng.choice(documents, size=(size, documents), replace=True)
        cells = drawn + documents * np.arange(size)[:, None]
        yield np.bincount(cells.ravel(), minlength=cells.size).reshape(cells.shape)


def exchange_differences(base: np.ndarray, other: np.ndarray, score: Score, samples: int, seed: int) -> np.ndarray:
    """Differences of scores after exchanging the systems' outputs for random documents, (samples,)."""
    rng, differences, change, both = np.random.default_rng(seed), [], base - other, (base + other).sum(0)
    for size in _blocks(samples, len(base)):
        kept = rng.integers(2, size=(size, len(base)), dtype=bool)
        exchanged = kept @ change + other.sum(0)
        differences.append(score(exchanged) - score(both - exchanged))
    return np.concatenate(differences)


def percentile_interval(scores: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of the scores of samples."""
    low, high = np.quantile(scores, [0.025, 0.975])
    return float(low), float(high)


def _blocks(samples: int, documents: int) -> Iterator[int]:
    """Numbers of samples that are drawn at once, full ones multiples of 32 so that the draws are those of one call."""
    size = max(32, _CELLS // documents // 32 * 32)
    for first in range(0, samples, size):
        yield min(size, samples - first)
