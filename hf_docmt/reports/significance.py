"""Do systems differ by more than chance? Paired tests over documents, and Welch's test over runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev

import numpy as np

from hf_docmt.messages import check_known, counted
from hf_docmt.reports.measurement import DATA, SCORE, first_names, measurement
from hf_docmt.reports.resampling import Score, bootstrap_scores, exchange_differences, percentile_interval
from hf_docmt.reports.result import Result
from hf_docmt.reports.statistics import score_function

METHODS = ("bootstrap", "randomisation", "sacrebleu-bootstrap")
_TOLERANCE = 1e-9  # score points; closer values are equal


@dataclass(frozen=True)
class Outcome:
    """System minus baseline in score points, or means of their runs, its 95 % interval, p-value (two-sided).

    `documents` is the number of those tested, or of another `unit` that was drawn; `runs` that of the baseline's and
    the system's in a test over runs. `holm` is the p-value with all tests of a table in mind, None for a single test
    (see `corrected`).
    """

    delta: float
    interval: tuple[float, float]
    p_value: float
    documents: int | None
    significant: bool
    holm: float | None = None
    runs: tuple[int, int] | None = None
    unit: str = "document"


@dataclass(frozen=True)
class Pair:
    """The test of a system against another one, in the rows of one group."""

    group: int
    other: str
    system: str
    test: Outcome


@dataclass(frozen=True)
class PairedTest:
    """How systems are tested; see `compare_systems`. ValueError: unknown method, impossible numbers."""

    method: str = "bootstrap"
    samples: int = 1000
    seed: int = 1
    level: float = 0.05  # p-value below which a difference is significant

    def __post_init__(self):
        check_known(self.method, METHODS, "method", "known are")
        if self.samples < 1:
            raise ValueError(f"samples is {self.samples}, expected a positive number such as 1000")
        if not 0 < self.level < 1:
            raise ValueError(f"level is {self.level}, expected a p-value below which differences are marked, as 0.05")


def compare_systems(
    results: Mapping[str, Result], baseline: str, test: PairedTest = PairedTest(), may_differ: Sequence[str] = ()
) -> dict[str, Outcome]:
    """How every other system differs from the baseline, from the statistics in {system: result}.

    Documents are resampled, not sentences, for the sentences of a document are not independent of each other; those
    with nothing to score in any system (rows of zeros) are skipped. With B samples, differences d_b between the
    systems in sample b, and d on all documents, p = (c + 1) / (B + 1):

    - `bootstrap` (the paired samples of Koehn 2004): documents are drawn with replacement, the same ones for both
      systems; c counts |d_b - mean of d_b| >= |d|, both sides of the distribution moved to no difference.
    - `randomisation` (Riezler and Maxwell 2005): the outputs of the two systems are exchanged for every document with
      probability 1/2; c counts |d_b| >= |d|.
    - `sacrebleu-bootstrap` (Riezler and Maxwell 2005, sacrebleu): c counts |d_b| - mean of |d_b| >= |d|. Where |d| is
      large, that is one side of the distribution: p is about half of that of `bootstrap`, and false alarms double.

    With few documents the bootstrap raises more false alarms than its level; randomisation does not. sacrebleu counts >
    where here and in the papers it is >=: p is the same unless differences are equal, as between systems that do not
    differ, for which p is 1 here. Draws are those of sacrebleu with SACREBLEU_SEED=`test.seed`. The interval of the
    difference is the bootstrap percentile one for every method. Signatures must be the same except properties of the
    system (see `system_settings`) and the keys of `may_differ`. ValueError: unknown baseline, systems measured on
    different data or in different ways, no statistics, statistics that do not give the value, fewer than 2 documents.
    """
    check_known(baseline, list(results), "baseline", "the systems are")
    rows, score = _comparable(results, baseline, may_differ)
    base, outcomes, draws = rows.pop(baseline), {}, (score, test.samples, test.seed)
    base_scores = bootstrap_scores(base, *draws)
    for system, other in rows.items():
        delta = results[system].value - results[baseline].value
        differences = bootstrap_scores(other, *draws) - base_scores
        if test.method == "randomisation":
            extremes = np.abs(exchange_differences(base, other, *draws))
        elif test.method == "bootstrap":
            extremes = np.abs(differences - differences.mean())
        else:
            extremes = np.abs(differences) - np.abs(differences).mean()
        p_value = (int(np.sum(extremes >= abs(delta) - _TOLERANCE)) + 1) / (test.samples + 1)
        interval = percentile_interval(differences)
        unit = results[system].statistics.unit or "document"
        outcomes[system] = Outcome(delta, interval, p_value, len(base), p_value < test.level, unit=unit)
    return outcomes


def welch_test(base: Sequence[float], other: Sequence[float], level: float = 0.05) -> Outcome:
    """Welch's t-test (1947), two-sided, between the scores of runs: would runs with other seeds differ, too?

    The data stay the same, so it says nothing about other documents. ValueError: fewer than 2 runs of one, or all runs
    of each system have the same score.
    """
    from scipy.stats import ttest_ind  # takes half a second

    if min(len(base), len(other)) < 2:
        raise ValueError("a single run vs. several; a test over runs needs two of each system")
    if not stdev(base) and not stdev(other):
        raise ValueError("the runs of each system have the same score, so a test over runs is not possible")
    found = ttest_ind(other, base, equal_var=False)
    low, high = map(float, found.confidence_interval(0.95))
    p_value, runs = float(found.pvalue), (len(base), len(other))
    return Outcome(mean(other) - mean(base), (low, high), p_value, None, p_value < level, runs=runs)


def holm_p_values(p_values: Sequence[float]) -> list[float]:
    """P-values such that comparing each with a level keeps the chance of one false alarm among them below that level.

    Holm (1979): the k-th smallest of m is multiplied by m - k + 1, is at least as large as the one before, and at most
    1. It holds whatever the tests have to do with each other.
    """
    order, adjusted, largest = sorted(range(len(p_values)), key=p_values.__getitem__), [1.0] * len(p_values), 0.0
    for number, index in enumerate(order):
        largest = max(largest, (len(order) - number) * p_values[index])
        adjusted[index] = min(1.0, largest)
    return adjusted


def corrected(pairs: Sequence[Pair], level: float) -> list[Pair]:
    """Each test with its p-value corrected by `holm_p_values`, which decides whether it is significant."""
    adjusted = holm_p_values([pair.test.p_value for pair in pairs])
    return [
        replace(pair, test=replace(pair.test, holm=p_value, significant=p_value < level))
        for pair, p_value in zip(pairs, adjusted)
    ]


def samples_for(tests: int) -> int:
    """How many samples a test is to draw: 1000, or twice as many as leave a p-value of `corrected` below 0.05."""
    return max(1000, 40 * tests)


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and the standard deviation with n - 1 below; None for a single value."""
    return mean(values), stdev(values) if len(values) > 1 else None


def compare_runs(
    systems: Mapping[str, Sequence[Result]],
    baseline: str,
    system: str,
    test: PairedTest,
    may_differ: Sequence[str] = (),
) -> Outcome:
    """How a system differs from the baseline, from {system: results of its runs} for one score.

    Single runs are tested over documents, several of each system over the runs. Systems are tested pair by pair, so
    that a result does not depend on the other systems. ValueError: the reason why there is no test.
    """
    if baseline not in systems:
        raise ValueError(f"no figure of {baseline} in the row")
    base, other = systems[baseline], systems[system]
    if len(base) == len(other) == 1:
        return compare_systems({baseline: base[0], system: other[0]}, baseline, test, may_differ)[system]
    for run in (*base, *other):
        check_comparable(run, base[0], system, baseline, may_differ)
    return welch_test([run.value for run in base], [run.value for run in other], test.level)


def significance_notes(
    baseline: str, tests: Sequence[Outcome], untested: Sequence[tuple[str, str]], test: PairedTest, others: int = 0
) -> list[str]:
    """The meaning of the marker, and the figures that could not be tested: `untested` has (figure, reason).

    `others` is the number of tests other than those against the baseline.
    """
    units = dict.fromkeys(f"{outcome.unit}s" for outcome in tests if not outcome.runs)
    how = [f"{test.method} over {', '.join(units)}, {test.samples} samples, seed {test.seed}"] if units else []
    how += ["Welch's t-test over runs"] if any(outcome.runs for outcome in tests) else []
    corrected_too = all(outcome.holm is not None for outcome in tests)
    marker = (
        f"* differs from {baseline} with p{' by Holm' * (corrected_too and len(tests) > 1)} < {test.level:g} "
        f"({'; '.join(how)}); {counted(len(tests) + others, 'test')}"
        f"{'' if corrected_too else ', p not corrected for their number'}."
    )
    figures: dict[str, list[str]] = {}
    for figure, reason in untested:
        figures.setdefault(reason, []).append(figure)
    reasons = [f"Not tested, {reason}: {first_names(names)}." for reason, names in figures.items()]
    return [marker, *reasons] if tests else reasons


def check_comparable(result: Result, base: Result, system: str, baseline: str, may_differ: Sequence[str] = ()) -> None:
    """ValueError, naming what differs, where two results are not of one score on one data set, measured in one way."""
    differing = [key for key in SCORE if getattr(result, key) != getattr(base, key)]
    measured, expected = (dict(measurement(measured_result, may_differ)) for measured_result in (result, base))
    differing += [key for key in {**measured, **expected} if measured.get(key) != expected.get(key)]
    differing += [DATA] * (len({result.signature.get(DATA), base.signature.get(DATA)} - {None}) > 1)
    if differing:
        raise ValueError(f"{system} and {baseline} cannot be compared: different {', '.join(differing)}")


def _comparable(
    results: Mapping[str, Result], baseline: str, may_differ: Sequence[str]
) -> tuple[dict[str, np.ndarray], Score]:
    """{system: rows of the documents that count}, and the function from their sums to scores."""
    for system, result in results.items():
        check_comparable(result, results[baseline], system, baseline, may_differ)
    if not all(result.statistics for result in results.values()):
        raise ValueError("no statistics in the reports")
    base = results[baseline].statistics
    for statistics in (result.statistics for result in results.values()):
        if statistics.unit != base.unit:
            raise ValueError(
                f"statistics of each {base.unit} and of each {statistics.unit}; evaluate both with one --unit, by one "
                "version"
            )
        if statistics.ids != base.ids:
            pairs = zip(statistics.ids, base.ids)
            number = next((n for n, pair in enumerate(pairs, 1) if pair[0] != pair[1]), None)
            raise ValueError(
                "scored on other documents than the baseline, or in another order"
                + (f", from document {number} on" if number else f", {len(statistics.ids)} and {len(base.ids)}")
            )
    rows = {system: np.array(result.statistics.rows, float, ndmin=2) for system, result in results.items()}
    if len({matrix.shape for matrix in rows.values()}) > 1:
        shapes = ", ".join(f"{system} {matrix.shape}" for system, matrix in rows.items())
        raise ValueError(f"different shapes of statistics: {shapes}; evaluate again")
    score = _score_function(results, rows)
    scored = np.any([np.any(matrix != 0, axis=1) for matrix in rows.values()], axis=0)
    if scored.sum() < 2:
        raise ValueError("fewer than two documents with something to score")
    return {system: matrix[scored] for system, matrix in rows.items()}, score


def _score_function(results: Mapping[str, Result], rows: Mapping[str, np.ndarray]) -> Score:
    """The function that gives the value of every result from its statistics.

    A ratio is in percent, unless only the plain ratio gives the values.
    """
    wrong = []
    for scale in (100.0, 1.0):
        scores = {name: score_function(result.metric, rows[name].shape[1], scale) for name, result in results.items()}
        values = {name: float(score(rows[name].sum(0, keepdims=True))[0]) for name, score in scores.items()}
        wrong.append([name for name, value in values.items() if not np.isclose(value, results[name].value, atol=1e-6)])
        if not wrong[-1]:
            return next(iter(scores.values()))
    system = min(wrong, key=len)[0]
    raise ValueError(
        f"{system}: the value of {results[system].metric} is {results[system].value:.4f}, which its statistics do "
        "not give; evaluate it again"
    )
