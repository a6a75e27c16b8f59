"""Significance over documents and over runs: equal to sacrebleu's paired tests, slow loops and cases by hand."""

import itertools
import random
import statistics
from dataclasses import replace

import numpy as np
import pytest
from sacrebleu import significance as sacrebleu_significance
from sacrebleu.metrics import BLEU, CHRF, TER
from scipy import stats
from support.corpus_scores import corpus_results
from support.errors import refused

from hf_docmt.reports import significance
from hf_docmt.reports.resampling import bootstrap_interval
from hf_docmt.reports.result import Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.significance import (
    METHODS,
    PairedTest,
    compare_systems,
    holm_p_values,
    mean_and_deviation,
    welch_test,
)
from hf_docmt.reports.statistics import Statistics, score_function

WORDS = "der die das ein Hund Katze schläft sitzt sieht auf unter Matte Baum alt neu nie oft gern".split()


def noisy(sentences, share, seed):
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) if rng.random() < share else word for word in s.split()) for s in sentences]


REFERENCES = [" ".join(random.Random(n).choices(WORDS, k=5 + n % 9)) for n in range(60)]
SYSTEMS = {name: noisy(REFERENCES, share, seed) for name, share, seed in (("a", 0.4, 1), ("b", 0.36, 5), ("c", 0.2, 3))}


def result(rows, metric="accuracy", **changes):
    """A result whose value follows from its rows, as written."""
    sums = np.array(rows, float).sum(0)
    value = 100 * sums[0] / sums[1] if len(sums) == 2 else 200 * sums[0] / (sums[1] + sums[2])
    details = {"statistics": Statistics([str(n) for n in range(len(rows))], rows).to_dict()}
    given = {"task": "contrastive", "dataset": "suite", "split": "test", "metric": metric, "value": float(value)}
    given |= {"signature": Signature.parse("logprob:sum|past:1|version:1"), "n": len(rows), "details": details}
    return Result(**given | changes)


def with_statistics(made, **changes):
    return made.with_details({"statistics": made.details["statistics"] | changes})


def interval_of(made, samples=1000, seed=1):
    rows = made.statistics.rows
    return bootstrap_interval(rows, score_function(made.metric, len(rows[0])), samples, seed)


def accuracies(seed, documents=25, share=0.6, size=8):
    rng = np.random.default_rng(seed)
    return result([[int(rng.binomial(size, share)), size] for _ in range(documents)])


def loop(base, other, score, method, samples, seed):
    """The p-value and the interval, one sample, one document and one column at a time."""

    def total(rows):
        return score([sum(column) for column in zip(*rows)])

    observed, rng, drawn = abs(total(other) - total(base)), np.random.default_rng(seed), []
    for chosen in rng.choice(len(base), size=(samples, len(base)), replace=True):
        drawn.append(total([other[n] for n in chosen]) - total([base[n] for n in chosen]))
    low, high = np.quantile(drawn, 0.025), np.quantile(drawn, 0.975)
    if method == "bootstrap":
        beyond = [abs(d - sum(drawn) / samples) for d in drawn]
    elif method == "sacrebleu-bootstrap":
        beyond = [abs(d) - sum(map(abs, drawn)) / samples for d in drawn]
    else:
        beyond = []
        for keep in np.random.default_rng(seed).integers(2, size=(samples, len(base)), dtype=bool):
            one = total([b if k else o for k, b, o in zip(keep, base, other)])
            beyond.append(abs(one - total([o if k else b for k, b, o in zip(keep, base, other)])))
    return (sum(d >= observed - 1e-9 for d in beyond) + 1) / (samples + 1), (low, high)


@pytest.mark.parametrize(("kind", "method"), [("ar", "randomisation"), ("bs", "sacrebleu-bootstrap")])
def test_equals_sacrebleu(kind, method, monkeypatch):
    """Documents of one sentence are what sacrebleu tests; TER has equal differences, which it does not count."""
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    metrics = {"BLEU": BLEU(), "chrF2": CHRF(), "TER": TER()}
    _, expected = sacrebleu_significance.PairedTest(
        list(SYSTEMS.items()), metrics, [REFERENCES], test_type=kind, n_samples=300
    )()
    for metric, outcomes in zip(("s-BLEU", "chrF", "TER"), (expected[name] for name in metrics)):
        results = {}
        for name, sentences in SYSTEMS.items():
            documents = [[[s] for s in side] for side in (sentences, REFERENCES)]
            (results[name],) = corpus_results(*documents, [metric])
        found = compare_systems(results, "a", PairedTest(method, 300, 7))
        with monkeypatch.context() as strict:
            strict.setattr(significance, "_TOLERANCE", -1e-9)
            counted = compare_systems(results, "a", PairedTest(method, 300, 7))
        expected_p = [outcome.p_value for outcome in outcomes[1:]]
        assert [outcome.p_value for outcome in counted.values()] == expected_p
        if metric != "TER":
            assert [outcome.p_value for outcome in found.values()] == expected_p
        assert 0.01 < found["b"].p_value < 0.9 and found["c"].p_value < 0.05
        assert results["c"].value == outcomes[2].score


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("columns", [2, 3])
def test_equals_loops(method, columns):
    rng = np.random.default_rng(columns)
    base, other = [
        [[min(row[:columns]), *row[1:columns]] for row in rng.integers(1, 9, size=(20, 3)).tolist()] for _ in range(2)
    ]
    score = (lambda s: 100 * s[0] / s[1]) if columns == 2 else (lambda s: 200 * s[0] / (s[1] + s[2]))
    (found,) = compare_systems({"x": result(base), "y": result(other)}, "x", PairedTest(method, 150, 3)).values()
    p_value, interval = loop(base, other, score, method, 150, 3)
    assert found.p_value == pytest.approx(p_value) and found.interval == pytest.approx(interval)
    assert found.delta == pytest.approx(result(other).value - result(base).value) and found.documents == 20


@pytest.mark.parametrize("method", METHODS)
def test_equal_systems_do_not_differ(method):
    found = compare_systems({"x": accuracies(1), "y": accuracies(1)}, "x", PairedTest(method, 100))["y"]
    assert (found.delta, found.interval, found.p_value) == (0, (0, 0), 1)


def test_false_alarms():
    """Of systems that are equally good, about one in twenty differs significantly."""
    rng, alarms = np.random.default_rng(3), dict.fromkeys(METHODS, 0)
    for trial in range(300):
        share = rng.beta(4, 2, size=40)
        x, y = (result([[int(k), 12] for k in rng.binomial(12, share)]) for _ in range(2))
        for method in METHODS:
            alarms[method] += compare_systems({"x": x, "y": y}, "x", PairedTest(method, 200, trial))["y"].p_value < 0.05
    assert 6 <= alarms["randomisation"] <= 24 and 6 <= alarms["bootstrap"] <= 27
    assert alarms["sacrebleu-bootstrap"] > 1.5 * alarms["bootstrap"]


@pytest.mark.parametrize("method", METHODS)
def test_blocks_make_no_difference(method, monkeypatch):
    results = {"x": accuracies(1), "y": accuracies(2, share=0.7)}
    whole = compare_systems(results, "x", PairedTest(method, 200))
    monkeypatch.setattr("hf_docmt.reports.resampling._CELLS", 25 * 70)
    assert compare_systems(results, "x", PairedTest(method, 200)) == whole


def test_documents_with_nothing_to_score_are_skipped():
    rows = [[3, 4], [1, 4], [2, 5], [4, 4]]
    padded = [row for pair in rows for row in (pair, [0, 0])]
    better = [[min(a + 1, b), b] for a, b in rows]
    found = compare_systems({"x": result(rows), "y": result(better)}, "x")
    more = compare_systems({"x": result(padded), "y": result([r for p in better for r in (p, [0, 0])])}, "x")
    assert found == more and more["y"].documents == 4
    assert interval_of(result(rows)) == interval_of(result(padded))


def test_columns_that_are_not_known():
    refused(r"statistics of 'accuracy' have 4 columns, expected 2 \(a ratio", score_function, "accuracy", 4)


def test_f1_without_anything_is_zero():
    score = score_function("pronoun F1", 3)
    assert score(np.array([[0.0, 0, 0], [0, 3, 0], [2, 3, 5]])).tolist() == [0, 0, 50]


def test_plain_ratios():
    """A mean that is not in percent, such as log-probabilities."""
    x = result([[-2.5, 2], [-1.0, 4], [-3.0, 3]], value=-6.5 / 9)
    y = result([[-2, 2], [-1, 4], [-1, 3]], value=-4 / 9)
    found = compare_systems({"x": x, "y": y}, "x")["y"]
    assert found.delta == pytest.approx(2.5 / 9) and 0 <= found.interval[0] < found.interval[1] < 1


def test_interval_by_hand():
    """Of two documents, each pair of draws has probability 1/4."""
    assert interval_of(result([[0, 1], [1, 1]]), samples=4000) == (0, 100)
    assert bootstrap_interval([[3, 4]], score_function("accuracy", 2)) is None
    assert bootstrap_interval([[3, 4], [0, 0]], score_function("accuracy", 2)) is None


def test_what_may_differ():
    past = result([[3, 4], [1, 4]], signature=Signature.parse("logprob:sum|past:0|version:2"), strategy="sliding")
    mean = replace(past, signature=Signature.parse("logprob:mean|past:1|version:1"))
    base = result([[1, 4], [1, 4]])
    assert compare_systems({"x": base, "y": past}, "x")["y"].delta == 25  # what a system is
    refused("y and x cannot be compared: different logprob", compare_systems, {"x": base, "y": mean}, "x")
    assert compare_systems({"x": base, "y": mean}, "x", may_differ=("logprob",))["y"].delta == 25


BASE = result([[1, 4], [2, 4], [3, 4]])


@pytest.mark.parametrize(
    ("other", "options", "message"),
    [
        (BASE, {"baseline": "z"}, "unknown baseline 'z': the systems are x, y"),
        (replace(BASE, dataset="other"), {}, "y and x cannot be compared: different dataset"),
        (replace(BASE, signature=Signature.parse("logprob:mean|past:1|ties:wrong")), {}, "different logprob, ties"),
        (replace(BASE, details={}), {}, "no statistics in the reports"),
        (
            with_statistics(BASE, ids=["0", "b", "2"]),
            {},
            "other documents than the baseline, or in another order, from document 2 on",
        ),
        (result([[1, 4], [2, 4]]), {}, "other documents than the baseline, or in another order, 2 and 3"),
        (with_statistics(BASE, rows=[[1, 4], [2, 4]]), {}, r"different shapes of statistics: x \(3, 2\), y \(2, 2\)"),
        (with_statistics(BASE, rows=[[1, 4], [2, 4], [3]]), {}, "inhomogeneous shape"),
        (with_statistics(BASE, rows=[]), {}, "different shapes of statistics"),
        (replace(BASE, value=51.0), {}, "y: the value of accuracy is 51.0000, which its statistics do not give"),
        (result([[1, 2, 3]] * 3), {}, r"different shapes of statistics: x \(3, 2\), y \(3, 3\); evaluate again"),
    ],
)
def test_bad_input(other, options, message):
    refused(message, compare_systems, {"x": BASE, "y": other}, **{"baseline": "x"} | options)


def test_one_document_is_not_enough():
    for rows in ([[1, 4]], [[1, 4], [0, 0]]):
        with pytest.raises(ValueError, match="fewer than two documents with something to score"):
            compare_systems({"x": result(rows), "y": result(rows)}, "x")


def test_mean_and_deviation():
    values = [36.13, 36.59, 35.95, 36.20]
    assert mean_and_deviation(values) == pytest.approx((np.mean(values), np.std(values, ddof=1)))
    assert mean_and_deviation([36.13]) == (36.13, None)
    assert mean_and_deviation([0.1] * 3)[0] == pytest.approx(0.1)
    assert mean_and_deviation([0.05] * 3) == (0.05, 0.0)


def closed_tests(p_values):
    """Holm's p-values as the closure of Bonferroni's tests: the largest over all sets of tests that a test is in."""
    every = range(len(p_values))
    sets = [some for size in every for some in itertools.combinations(every, size + 1)]
    return [max(min(1.0, len(some) * min(p_values[i] for i in some)) for some in sets if k in some) for k in every]


@pytest.mark.parametrize("seed", range(20))
def test_holm_is_the_closure_of_bonferroni(seed):
    rng = random.Random(seed)
    p_values = [rng.choice((rng.random(), rng.random() / 20, 0.01, 1.0)) for _ in range(rng.randrange(1, 9))]
    assert holm_p_values(p_values) == pytest.approx(closed_tests(p_values))
    assert holm_p_values([]) == [] and holm_p_values([0.3]) == [0.3]


def test_welch_with_a_worked_example():
    """Means 4 and 8, variances 4 and 16 of 4 runs: t = 4 / sqrt(5), freedom = 25 / ((1 + 16) / 3)."""
    low, high = [2.0, 3.0, 5.0, 6.0], [4.0, 6.0, 10.0, 12.0]
    scale = statistics.variance(low) / 4
    low, high = ([mean + (value - mean) / scale**0.5 for value in values] for values, mean in ((low, 4.0), (high, 8.0)))
    found = welch_test(low, high)
    assert (found.delta, found.runs) == (pytest.approx(4.0), (4, 4))
    freedom, error = 25 / (17 / 3), 5**0.5
    assert found.p_value == pytest.approx(2 * stats.t.sf(4 / error, freedom))
    half = stats.t.ppf(0.975, freedom) * error
    assert found.interval == (pytest.approx(4 - half), pytest.approx(4 + half))
    whole = stats.ttest_ind(high, low, equal_var=False)
    assert found.p_value == pytest.approx(whole.pvalue) and found.interval == pytest.approx(whole.confidence_interval())
    assert found.significant == (found.p_value < 0.05) and welch_test(low, high, level=0.9).significant


@pytest.mark.parametrize(
    ("base", "other", "message"),
    [
        ([1.0], [1.0, 2.0], "a single run vs. several"),
        ([50.0] * 3, [60.0] * 2, "have the same score"),
        ([1700 / 450] * 3, [2500 / 450] * 3, "have the same score"),  # whose means are rounded
    ],
)
def test_untestable_figures(base, other, message):
    refused(message, welch_test, base, other)
