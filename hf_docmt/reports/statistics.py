"""Sufficient statistics: rows of numbers from whose column sums the score of any set of documents follows."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric

_SACREBLEU = {"s-BLEU": BLEU, "d-BLEU": BLEU, "chrF": CHRF, "TER": TER}


def segment_statistics(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> list[list[float]]:
    """sacrebleu's statistics of every segment.

    BLEU: [hypothesis length, reference length, 4 numbers of matching n-grams, 4 of n-grams]; chrF: [hypothesis n-grams,
    reference n-grams, matching] for each of 6 orders; TER: [edits, reference words]. sacrebleu has no public way to
    them: they come from the method that its own `PairedTest` uses.
    """
    return metric._extract_corpus_statistics(hypotheses, [references])


def column_sums(rows: Sequence[Sequence[float]], width: int = 0) -> list[float]:
    """The sum of rows of numbers; `width` zeros for no rows."""
    return [sum(column) for column in zip(*rows)] if rows else [0] * width


def document_statistics(ids: Sequence[str], rows: Sequence[Sequence[float]]) -> dict:
    """The entry `statistics` in the details of a result: one row of numbers for every document."""
    return {"unit": "document", "ids": list(ids), "rows": [list(row) for row in rows]}


def scorer(metric: str, width: int, scale: float = 100.0) -> Callable[[np.ndarray], np.ndarray]:
    """Function from column sums, (samples, columns), to scores, (samples,).

    The metrics of this package by their names, through sacrebleu. Others by the number of columns: 2 are a ratio,
    `scale` times the first by the second (accuracy [right, n], mean [sum, n]); 3 are an F1 in percent, [match,
    hypothesis, reference]. What is 0/0 is 0. ValueError: any other number of columns.
    """
    if metric in _SACREBLEU:
        score = _instance(metric)._compute_score_from_stats
        return lambda sums: np.array([float(score(row).score) for row in sums.tolist()])
    if width == 2:
        return lambda sums: scale * _ratio(sums[:, 0], sums[:, 1])
    if width == 3:
        return lambda sums: 100.0 * _ratio(2 * sums[:, 0], sums[:, 1] + sums[:, 2])
    raise ValueError(
        f"statistics of {metric!r} have {width} columns, expected 2 (a ratio: [right, n]) or 3 (an F1: [match, "
        f"hypothesis, reference]); other statistics are known for {', '.join(_SACREBLEU)} only"
    )


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.zeros(len(above)), where=below != 0)


@cache
def _instance(metric: str) -> Metric:
    """The options that change scores from given statistics are sacrebleu's defaults everywhere in this package."""
    return _SACREBLEU[metric]()
