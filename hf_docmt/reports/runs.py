"""Runs of one system that differ in their seed: which reports they are, mean, deviation, and a test between systems."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hf_docmt.reports.columns import Column, differing_settings

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


@dataclass(frozen=True)
class RunsTest:
    """Mean of a system's runs minus that of the baseline's, its 95 % interval, p-value, the numbers of runs."""

    delta: float
    interval: tuple[float, float]
    p_value: float
    runs: tuple[int, int]  # of the baseline, of the system
    significant: bool


def group_runs(columns: Sequence[Column], pattern: str | None) -> dict[str, list[Column]]:
    """{system: its runs}: columns whose labels are equal without what the regular expression `pattern` matches.

    Labels in which it matches nothing may be equal from the start. Without a pattern every column is a system.
    ValueError: no regular expression, no two runs of one system, one run twice, runs that differ in a setting such as
    the strategy.
    """
    if pattern is None:
        return {column.name: [column] for column in columns}
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise ValueError(
            f"runs {pattern!r} is no regular expression: {error}; give one that matches what is different in the names "
            r"of runs, such as -seed\d+"
        ) from error
    systems: dict[str, list[Column]] = {}
    for column in columns:
        systems.setdefault(found.sub("", column.label).strip() or column.label, []).append(column)
    if len(systems) == len(columns):
        raise ValueError(
            f"no two names are equal without {pattern!r}, so no system has several runs: the names are "
            f"{', '.join(column.label for column in columns)}"
        )
    for system, runs in systems.items():
        labels = [run.label for run in runs]
        if twice := next((label for label in labels if labels.count(label) > 1 and label != system), None):
            raise ValueError(
                f"{', '.join(run.name for run in runs if run.label == twice)} are all called {twice!r}, which is one "
                f"run of {system!r}: give them names"
            )
        if different := differing_settings({run.name: run.settings for run in runs}):
            raise ValueError(
                f"{', '.join(run.name for run in runs)} are no runs of one system, {system!r}: different "
                f"{', '.join(different)}; give them names that stay different, or leave one out"
            )
    return systems


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and the standard deviation with n - 1 below; None for a single value."""
    if len(set(values)) == 1:  # else rounding of the mean would be a deviation
        return values[0], 0.0 if len(values) > 1 else None
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def welch_test(base: Sequence[float], other: Sequence[float], level: float = 0.05) -> RunsTest:
    """Welch's t-test (1947), two-sided, between the scores of runs: would runs with other seeds differ, too?

    The data stay the same, so it says nothing about other documents. ValueError: fewer than 2 runs of one, or all runs
    of each system have the same score.
    """
    if min(len(base), len(other)) < 2:
        raise ValueError("a single run stands against several; a test over runs needs two of each system")
    (mean, deviation), (other_mean, other_deviation) = mean_and_deviation(base), mean_and_deviation(other)
    errors = deviation**2 / len(base), other_deviation**2 / len(other)
    if not (squared := sum(errors)):
        raise ValueError("the runs of each system have the same score, so a test over runs has no deviation to go by")
    freedom = squared**2 / (errors[0] ** 2 / (len(base) - 1) + errors[1] ** 2 / (len(other) - 1))
    delta, error = other_mean - mean, math.sqrt(squared)
    p_value, half = t_tails(abs(delta) / error, freedom), error * t_quantile(0.05, freedom)
    return RunsTest(delta, (delta - half, delta + half), p_value, (len(base), len(other)), p_value < level)


def t_tails(t: float, freedom: float) -> float:
    """P(|T| > t) of Student's t with at least 1 degree of freedom.

    With T = sqrt(freedom) tan(a) the density of the angle a is proportional to cos(a) ** (freedom - 1).
    """

    def area(start: float) -> float:
        half = (math.pi / 2 - start) / 2
        return half * float(_WEIGHTS @ np.cos(start + half * (1 + _NODES)) ** (freedom - 1))

    return area(math.atan(t / math.sqrt(freedom))) / area(0.0)


def t_quantile(tails: float, freedom: float) -> float:
    """The t for which `t_tails` is `tails`, by bisection of the angle."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tails(math.sqrt(freedom) * math.tan(middle), freedom) > tails else (low, middle)
    return math.sqrt(freedom) * math.tan(low)
