"""Sufficient statistics: rows of numbers from whose column sums the score of any set of documents follows.

Scores of random samples of documents, and the intervals that they give, are made from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

Score = Callable[[np.ndarray], np.ndarray]  # column sums, (samples, columns) -> scores, (samples,)

_SCORES: dict[str, Score] = {}  # by metric
_CELLS = 2**22  # samples x documents that are drawn at once


@dataclass(frozen=True)
class Statistics:
    """One row of numbers for each document, or other unit that is resampled as a whole, and the ids of these."""

    ids: Sequence[str]
    rows: Sequence[Sequence[float]]
    unit: str | None = "document"

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Statistics:
        """The entry `statistics` in the details of a result. ValueError: no ids or rows."""
        if missing := [key for key in ("ids", "rows") if key not in entry]:
            raise ValueError(f"statistics without {' and '.join(missing)}; evaluate again")
        return cls(entry["ids"], entry["rows"], entry.get("unit"))

    def to_dict(self) -> dict[str, Any]:
        return {"unit": self.unit, "ids": list(self.ids), "rows": [list(row) for row in self.rows]}


def column_sums(rows: Sequence[Sequence[float]], width: int = 0) -> list[float]:
    """The sum of rows of numbers; `width` zeros for no rows."""
    return [sum(column) for column in zip(*rows)] if rows else [0] * width


def register_score_function(metric: str, score: Score) -> None:
    """Say how the scores of a metric follow from summed statistics, where `score_function` does not know it."""
    _SCORES[metric] = score


def score_function(metric: str, width: int, scale: float = 100.0) -> Score:
    """Function from column sums, (samples, columns), to scores, (samples,).

    Metrics register theirs, as those of `hf_docmt.evaluation.metrics` do when they are imported.
    Without one the number of columns decides: 2 are a ratio, `scale` times the first by the second (accuracy
    [right, n], mean [sum, n]); 3 are an F1 in percent, [match, hypothesis, reference]. What is 0/0 is 0. ValueError:
    any other number of columns.
    """
    if metric in _SCORES:
        return _SCORES[metric]
    if width == 2:
        return lambda sums: scale * _ratio(sums[:, 0], sums[:, 1])
    if width == 3:
        return lambda sums: 100.0 * _ratio(2 * sums[:, 0], sums[:, 1] + sums[:, 2])
    raise ValueError(
        f"statistics of {metric!r} have {width} columns, expected 2 (a ratio: [right, n]) or 3 (an F1: [match, "
        f"hypothesis, reference]); other statistics are known for {', '.join(_SCORES) or 'no metric'} only: import the "
        "module of the metric first, hf_docmt.evaluation.metrics or a plugin"
    )


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.zeros(len(above)), where=below != 0)


def document_details(
    metric: str,
    ids: Sequence[str],
    rows: Sequence[Sequence[float]],
    samples: int = 1000,
    seed: int = 1,
    unit: str = "document",
) -> dict:
    """Details of a result for comparisons: its `statistics`, their 95 % `interval` and how that was drawn.

    `rows` has the sufficient statistics of every document, or other `unit`. No interval for 0 samples or fewer than 2
    of them.
    """
    details: dict[str, Any] = {"statistics": Statistics(ids, rows, unit).to_dict()}
    interval = bootstrap_interval(rows, score_function(metric, len(rows[0])), samples, seed) if samples else None
    if interval:
        details |= {"interval": list(interval), "resampling": {"unit": unit, "samples": samples, "seed": seed}}
    return details


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
