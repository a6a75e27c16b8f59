"""Sufficient statistics: rows of numbers from whose column sums the score of any set of documents follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Score = Callable[[np.ndarray], np.ndarray]  # column sums, (samples, columns) -> scores, (samples,)

_SCORES: dict[str, Score] = {}  # by metric


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

    That of the metric where one is registered, as those of `hf_docmt.evaluation.metrics` are when they are imported.
    Others by the number of columns: 2 are a ratio, `scale` times the first by the second (accuracy [right, n], mean
    [sum, n]); 3 are an F1 in percent, [match, hypothesis, reference]. What is 0/0 is 0. ValueError: any other number of
    columns.
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
