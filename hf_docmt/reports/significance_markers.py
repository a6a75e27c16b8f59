"""Which figures of a comparison differ significantly from a baseline, from the statistics that results hold."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hf_docmt.messages import counted
from hf_docmt.reports.result import Result
from hf_docmt.reports.result_groups import check_known, first_names
from hf_docmt.reports.runs import RunsTest, welch_test
from hf_docmt.reports.significance import METHODS, Outcome, check_comparable, compare_systems


@dataclass(frozen=True)
class SignificanceTest(Outcome):
    """The outcome of a test, and whether its p-value is below the level."""

    significant: bool


@dataclass(frozen=True)
class GroupTests:
    """The tests of the systems of a group, and for those that could not be tested the reason."""

    tests: dict[str, SignificanceTest | RunsTest]
    obstacles: dict[str, str]
    units: frozenset[str] = frozenset()  # what was drawn in paired tests


@dataclass(frozen=True)
class PairedTest:
    """How systems are tested; see `significance.compare_systems`. ValueError: unknown method, impossible numbers."""

    method: str = "bootstrap"
    samples: int = 1000
    seed: int = 1
    level: float = 0.05  # p-value below which a difference is significant

    def __post_init__(self):
        check_known(self.method, METHODS, "method", "known are")
        if self.samples < 1:
            raise ValueError(f"samples is {self.samples}, expected a positive number such as 1000")
        if not 0 < self.level < 1:
            raise ValueError(
                f"level is {self.level}, expected the p-value below which a difference is marked, such as 0.05"
            )


def compare_with_baseline(
    baseline: str, systems: Mapping[str, Sequence[Result]], test: PairedTest, may_differ: Sequence[str] = ()
) -> GroupTests:
    """Tests of each other system against the baseline, from {system: results of its runs} for one score.

    Single runs are tested over documents, several of each system over the runs. Systems are tested pair by pair, so
    that a result does not depend on which others stand beside it.
    """
    tests: dict[str, SignificanceTest | RunsTest] = {}
    obstacles: dict[str, str] = {}
    units: set[str] = set()
    for system in (name for name in systems if name != baseline):
        try:
            if baseline not in systems:
                raise ValueError(f"no figure of {baseline} in the row")
            base, other = systems[baseline], systems[system]
            if len(base) == len(other) == 1:
                tests[system] = _paired({baseline: base[0], system: other[0]}, baseline, test, may_differ)
                units.add(f"{other[0].statistics.unit or 'document'}s")
            else:
                for run in (*base, *other):
                    check_comparable(run, base[0], system, baseline, may_differ)
                values = [[run.value for run in runs] for runs in (base, other)]
                tests[system] = welch_test(values[0], values[1], test.level)
        except ValueError as error:  # statistics that cannot be used: the other figures still stand
            obstacles[system] = str(error)
    return GroupTests(tests, obstacles, frozenset(units))


def significance_notes(
    baseline: str, scores: Sequence[str], outcomes: Sequence[GroupTests], test: PairedTest
) -> list[str]:
    """What the marker means, and which figures could not have one; `scores` are the names of the groups' scores."""
    tests = [found for outcome in outcomes for found in outcome.tests.values()]
    units = dict.fromkeys(unit for outcome in outcomes for unit in sorted(outcome.units))
    how = [f"{test.method} over {', '.join(units)}, {test.samples} samples, seed {test.seed}"] if units else []
    how += ["Welch's t-test over runs"] if any(isinstance(found, RunsTest) for found in tests) else []
    marker = (
        f"* differs from {baseline} with p < {test.level:g} ({'; '.join(how)}); {counted(len(tests), 'test')}, p not "
        "corrected for their number."
    )
    untested: dict[str, list[str]] = {}
    for name, found in zip(scores, outcomes):
        for system, reason in found.obstacles.items():
            untested.setdefault(reason, []).append(f"{name} of {system}")
    reasons = [f"Not tested, {reason}: {first_names(names)}." for reason, names in untested.items()]
    return [marker, *reasons] if tests else reasons


def _paired(pair: Mapping[str, Result], baseline: str, test: PairedTest, may_differ: Sequence[str]) -> SignificanceTest:
    """The test over documents. ValueError says why there is none."""
    base, other = (found.statistics for found in (pair[baseline], *(pair[name] for name in pair if name != baseline)))
    if not (base and other):
        raise ValueError("no statistics in the reports")
    if base.unit != other.unit:
        raise ValueError(
            f"statistics of each {base.unit} and of each {other.unit}; evaluate both with one --unit, by one version"
        )
    if base.ids != other.ids:
        raise ValueError("scored on other documents than the baseline, or in another order")
    if sum(any(row) or any(base_row) for row, base_row in zip(other.rows, base.rows)) < 2:
        raise ValueError("fewer than two documents with something to score")
    options: dict[str, Any] = {"method": test.method, "samples": test.samples, "seed": test.seed}
    (outcome,) = compare_systems(pair, baseline, may_differ=may_differ, **options).values()
    return SignificanceTest(**asdict(outcome), significant=outcome.p_value < test.level)
