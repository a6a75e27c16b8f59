"""Do systems differ by more than chance? Paired tests and confidence intervals over documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hf_docmt.messages import counted
from hf_docmt.reports.resampling import bootstrap_scores, exchange_differences, percentile_interval
from hf_docmt.reports.result import Result
from hf_docmt.reports.statistics import Score, score_function
from hf_docmt.reports.system_settings import measurement

METHODS = ("bootstrap", "randomisation", "sacrebleu-bootstrap")

_SAME = ("task", "dataset", "split", "metric")
_TOLERANCE = 1e-9  # score points; closer values are equal


@dataclass(frozen=True)
class Outcome:
    """System minus baseline in score points, its 95 % interval, p-value (two-sided), number of documents tested."""

    delta: float
    interval: tuple[float, float]
    p_value: float
    documents: int


def compare_systems(
    results: Mapping[str, Result],
    baseline: str,
    method: str = "bootstrap",
    samples: int = 1000,
    seed: int = 1,
    may_differ: Sequence[str] = (),
) -> dict[str, Outcome]:
    """How every other system differs from the baseline, from the statistics in {system: result}.

    Documents are resampled, not sentences, for the sentences of a document are not independent of each other; those
    with nothing to score in any system (rows of zeros) are left out. With B samples, differences d_b between the
    systems in sample b, and d on all documents, p = (c + 1) / (B + 1):

    - `bootstrap` (the paired samples of Koehn 2004): documents are drawn with replacement, the same ones for both
      systems; c counts |d_b - mean of d_b| >= |d|, both sides of the distribution moved to no difference.
    - `randomisation` (Riezler and Maxwell 2005): the outputs of the two systems are exchanged for every document with
      probability 1/2; c counts |d_b| >= |d|.
    - `sacrebleu-bootstrap` (Riezler and Maxwell 2005, sacrebleu): c counts |d_b| - mean of |d_b| >= |d|. Where |d| is
      large, that is one side of the distribution: p is about half of that of `bootstrap`, false alarms twice as many.

    With few documents the bootstrap raises more false alarms than it says; randomisation does not. sacrebleu counts >
    where here and in the papers it is >=: p is the same unless differences are equal, as between systems that do not
    differ, for which p is 1 here. Draws are those of sacrebleu with SACREBLEU_SEED=`seed`. The interval of the
    difference is the bootstrap percentile one for every method. Signatures must be the same but for what
    a system is (see `system_settings`) and the keys that `may_differ` names. ValueError: unknown baseline or method,
    systems measured on different data or in different ways, no statistics, statistics that do not give the value, fewer
    than 2 documents.
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: expected one of {', '.join(METHODS)}")
    if samples < 1:
        raise ValueError(f"samples is {samples}, expected a positive number such as 1000")
    if baseline not in results:
        raise ValueError(f"unknown baseline {baseline!r}: the systems are {', '.join(results)}")
    rows, score = _comparable(results, baseline, may_differ)
    base, outcomes = rows.pop(baseline), {}
    base_scores = bootstrap_scores(base, score, samples, seed)
    for system, other in rows.items():
        delta = results[system].value - results[baseline].value
        differences = bootstrap_scores(other, score, samples, seed) - base_scores
        if method == "randomisation":
            extremes = np.abs(exchange_differences(base, other, score, samples, seed))
        elif method == "bootstrap":
            extremes = np.abs(differences - differences.mean())
        else:
            extremes = np.abs(differences) - np.abs(differences).mean()
        count = int(np.sum(extremes >= abs(delta) - _TOLERANCE))
        outcomes[system] = Outcome(delta, percentile_interval(differences), (count + 1) / (samples + 1), len(base))
    return outcomes


def check_comparable(result: Result, base: Result, system: str, baseline: str, may_differ: Sequence[str] = ()) -> None:
    """ValueError, naming what differs, where two results are not of one score on one data set, measured in one way."""
    differing = [key for key in _SAME if getattr(result, key) != getattr(base, key)]
    found, expected = (dict(measurement(one, may_differ)) for one in (result, base))
    differing += [key for key in {**found, **expected} if found.get(key) != expected.get(key)]
    if differing:
        raise ValueError(f"{system} and {baseline} cannot be compared: different {', '.join(differing)}")


def _comparable(
    results: Mapping[str, Result], baseline: str, may_differ: Sequence[str]
) -> tuple[dict[str, np.ndarray], Score]:
    """{system: rows of the documents that count}, and the function from their sums to scores."""
    for system, result in results.items():
        check_comparable(result, results[baseline], system, baseline, may_differ)
    rows = {system: _rows(system, result) for system, result in results.items()}
    for system in results:
        ids = [results[name].statistics.ids for name in (system, baseline)]
        if ids[0] != ids[1]:
            number = next((n for n, pair in enumerate(zip(*ids)) if pair[0] != pair[1]), min(map(len, ids)))
            raise ValueError(
                f"{system} and {baseline} were scored on different documents, from document {number + 1} on "
                f"({len(ids[0])} and {len(ids[1])} documents); score the same ones in the same order"
            )
        if rows[system].shape != rows[baseline].shape:
            shapes = [rows[name].shape[1] for name in (system, baseline)]
            raise ValueError(
                f"{system} and {baseline}: {shapes[0]} and {shapes[1]} columns of statistics; evaluate again"
            )
    score = _score_function(results, rows)
    scored = np.any([np.any(found != 0, axis=1) for found in rows.values()], axis=0)
    if scored.sum() < 2:
        raise ValueError(
            f"{baseline}: {counted(scored.sum(), 'document')} with something to score; a test needs at least 2"
        )
    return {system: found[scored] for system, found in rows.items()}, score


def _rows(system: str, result: Result) -> np.ndarray:
    """The statistics of a result, (documents, columns)."""
    held = result.statistics
    if not held:
        raise ValueError(f"{system}: no statistics in its result for {result.metric}; evaluate it again to get them")
    rows = np.array(held.rows, float, ndmin=2) if len({len(row) for row in held.rows}) == 1 else None
    if rows is None or len(rows) != len(held.ids):
        raise ValueError(
            f"{system}: {len(held.rows)} rows of statistics for {len(held.ids)} documents; expected one row of "
            "equally many numbers for each"
        )
    return rows


def _score_function(results: Mapping[str, Result], rows: Mapping[str, np.ndarray]) -> Score:
    """The function that gives the value of every result from its statistics.

    A ratio is in percent, unless only the plain ratio gives the values.
    """
    faults = []
    for scale in (100.0, 1.0):
        scores = {name: score_function(result.metric, rows[name].shape[1], scale) for name, result in results.items()}
        values = {name: float(score(rows[name].sum(0, keepdims=True))[0]) for name, score in scores.items()}
        faults.append([name for name, value in values.items() if not np.isclose(value, results[name].value, atol=1e-6)])
        if not faults[-1]:
            return next(iter(scores.values()))
    wrong = min(faults, key=len)[0]
    raise ValueError(
        f"{wrong}: the value of {results[wrong].metric} is {results[wrong].value:.4f}, which its statistics do "
        "not give; evaluate it again"
    )
