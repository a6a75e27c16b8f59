"""Statistics over runs: equal to tables of Student's t and to worked examples."""

import statistics

import numpy as np
import pytest

from hf_docmt.reports.runs import mean_and_deviation, t_quantile, t_tails, welch_test

TABLE = {  # degrees of freedom: t for 5 % and for 1 % in both tails together, as printed in textbooks
    1: (12.706, 63.657),
    2: (4.303, 9.925),
    4: (2.776, 4.604),
    10: (2.228, 3.169),
    30: (2.042, 2.750),
    120: (1.980, 2.617),
}


@pytest.mark.parametrize(("freedom", "quantiles"), TABLE.items())
def test_t_is_that_of_tables(freedom, quantiles):
    for tails, t in zip((0.05, 0.01), quantiles):
        assert t_quantile(tails, freedom) == pytest.approx(t, abs=6e-4)
        assert t_tails(t, freedom) == pytest.approx(tails, rel=2e-3)


def test_t_with_closed_forms():
    """1 degree of freedom is Cauchy's distribution; 2 have an algebraic one; none beyond 0 is everything."""
    for t in (0.1, 1.0, 5.0, 300.0):
        assert t_tails(t, 1) == pytest.approx(1 - 2 * np.arctan(t) / np.pi)
        assert t_tails(t, 2) == pytest.approx(1 - t / np.sqrt(2 + t * t), rel=1e-6)
    assert t_tails(0.0, 3.7) == pytest.approx(1.0)
    normal = statistics.NormalDist()
    assert t_tails(1.7, 1e5) == pytest.approx(2 * normal.cdf(-1.7), rel=1e-3)


def test_t_with_fractions_of_degrees():
    """Against the density, summed on a fine grid."""
    for freedom in (1.3, 2.5, 7.25):
        x = np.linspace(0, 5000, 5_000_001)
        density = (1 + x * x / freedom) ** (-(freedom + 1) / 2)
        assert t_tails(2.0, freedom) == pytest.approx(density[x >= 2.0].sum() / density.sum(), rel=5e-3)


def test_mean_and_deviation():
    values = [36.13, 36.59, 35.95, 36.20]
    assert mean_and_deviation(values) == pytest.approx((np.mean(values), np.std(values, ddof=1)))
    assert mean_and_deviation([36.13]) == (36.13, None)
    assert mean_and_deviation([0.1] * 3)[0] == pytest.approx(0.1)
    assert mean_and_deviation([0.05] * 3) == (0.05, 0.0)


def test_welch_with_a_worked_example():
    """Means 4 and 8, variances 4 and 16 of 4 runs: t = 4 / sqrt(5), freedom = 25 / ((1 + 16) / 3)."""
    low, high = [2.0, 3.0, 5.0, 6.0], [4.0, 6.0, 10.0, 12.0]
    scale = statistics.variance(low) / 4
    low, high = ([mean + (value - mean) / scale**0.5 for value in values] for values, mean in ((low, 4.0), (high, 8.0)))
    found = welch_test(low, high)
    assert (found.delta, found.runs) == (pytest.approx(4.0), (4, 4))
    freedom, error = 25 / (17 / 3), 5**0.5
    assert found.p_value == pytest.approx(t_tails(4 / error, freedom))
    half = t_quantile(0.05, freedom) * error
    assert found.interval == (pytest.approx(4 - half), pytest.approx(4 + half))
    assert found.significant == (found.p_value < 0.05) and welch_test(low, high, level=0.9).significant


def test_false_alarms_of_welch():
    """Without a difference about one test in twenty is significant, with other deviations and few runs, too."""
    rng = np.random.default_rng(0)
    drawn = [welch_test(rng.normal(30, 1, 4), rng.normal(30, 2, 3)).significant for _ in range(1000)]
    assert 0.02 < np.mean(drawn) < 0.08


@pytest.mark.parametrize(
    ("base", "other", "message"),
    [
        ([1.0], [1.0, 2.0], "a single run stands against several"),
        ([50.0] * 3, [60.0] * 2, "have the same score"),
        ([1700 / 450] * 3, [2500 / 450] * 3, "have the same score"),  # whose means are rounded
    ],
)
def test_what_has_no_test(base, other, message):
    with pytest.raises(ValueError, match=message):
        welch_test(base, other)
