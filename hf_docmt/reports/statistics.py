"""Sufficient statistics: rows of numbers from whose column sums the score of any set of documents follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hf_docmt.reports.resampling import Score

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

    Metrics register theirs, as those of `hf_docmt.evaluation.metrics` do when they are imported.
    Without one the number of columns decides: 2 are a ratio, `scale` times the first by the second (accuracy
    [right, n], mean [sum, n]); 3 are an F1 in percent, [match, hypothesis, reference]. What is 0/0 is 0. ValueError:
    any other number of columns.
    """
    if metric in _SCORES:
        return _SCORES[metric]
    if width in (2, 3):
        from hf_docmt.reports.resampling import ratio
    if width == 2:
        return lambda sums: scale * ratio(sums[:, 0], sums[:, 1])
    if width == 3:
        return lambda sums: 100.0 * ratio(2 * sums[:, 0], sums[:, 1] + sums[:, 2])
    raise ValueError(
        f"statistics of {metric!r} have {width} columns, expected 2 (a ratio: [right, n]) or 3 (an F1: [match, "
        f"hypothesis, reference]); other statistics are known for {', '.join(_SCORES) or 'no metric'} only: write the "
        "metric's score_from_sums, or import its module first, hf_docmt.evaluation.metrics or a plugin"
    )


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
    if samples:
        from hf_docmt.reports.resampling import bootstrap_interval
    interval = bootstrap_interval(rows, score_function(metric, len(rows[0])), samples, seed) if samples else None
    if interval:
        details |= {"interval": list(interval), "resampling": {"unit": unit, "samples": samples, "seed": seed}}
    return details
