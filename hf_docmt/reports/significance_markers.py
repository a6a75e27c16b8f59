"""Which figures of a comparison differ significantly from a baseline, from the statistics that results hold."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hf_docmt.reports.result import Result
from hf_docmt.reports.result_groups import SETTINGS, Group, check_known, first_names
from hf_docmt.reports.significance import METHODS, Outcome, compare_systems


@dataclass(frozen=True)
class SignificanceTest(Outcome):
    """The outcome of a test, and whether its p-value is below the level."""

    significant: bool


@dataclass(frozen=True)
class GroupTests:
    """The tests of the systems of a group, and for those that could not be tested the reason."""

    tests: dict[str, SignificanceTest]
    obstacles: dict[str, str]


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


def compare_with_baseline(baseline: str, group: Group, test: PairedTest, may_differ: Sequence[str]) -> GroupTests:
    """Tests of each other system of a group against the baseline.

    Systems are tested pair by pair, so that a result does not depend on which others stand beside it.
    """
    tests, obstacles = {}, {}
    keys = [name for name in may_differ if name not in SETTINGS]
    options: dict[str, Any] = {"method": test.method, "samples": test.samples, "seed": test.seed}
    for system, result in group.items():
        if system == baseline:
            continue
        reason = _obstacle(result, group[baseline]) if baseline in group else f"no figure of {baseline} in the row"
        if not reason:
            try:
                pair = {baseline: group[baseline], system: result}
                outcome = compare_systems(pair, baseline, may_differ=keys, **options)[system]
                tests[system] = SignificanceTest(**asdict(outcome), significant=outcome.p_value < test.level)
            except ValueError as error:  # statistics that cannot be used: the other figures still stand
                reason = str(error)
        if reason:
            obstacles[system] = reason
    return GroupTests(tests, obstacles)


def significance_notes(
    baseline: str, groups: Sequence[Group], outcomes: Sequence[GroupTests], test: PairedTest
) -> list[str]:
    """What the marker means, and which figures could not have one."""
    count = sum(len(found.tests) for found in outcomes)
    tested = (group[system] for group, found in zip(groups, outcomes) for system in found.tests)
    units = dict.fromkeys(f"{result.statistics.unit or 'document'}s" for result in tested)
    how = f"{test.method} over {', '.join(units)}, {test.samples} samples, seed {test.seed}"
    marker = (
        f"* differs from {baseline} with p < {test.level:g} ({how}); {count} tests, p not corrected for their number."
    )
    untested: dict[str, list[str]] = {}
    for group, found in zip(groups, outcomes):
        for system, reason in found.obstacles.items():
            untested.setdefault(reason, []).append(f"{group[system].name} of {system}")
    reasons = [f"Not tested, {reason}: {first_names(names)}." for reason, names in untested.items()]
    return [marker, *reasons] if count else reasons


def _obstacle(result: Result, base: Result) -> str:
    """The usual reasons why two results cannot be tested; empty where there is none of them."""
    held, other = result.statistics, base.statistics
    if not (held and other):
        return "no statistics in the reports"
    if held.ids != other.ids:
        return "scored on other documents than the baseline, or in another order"
    scored = sum(any(row) or any(base_row) for row, base_row in zip(held.rows, other.rows))
    return "" if scored > 1 else "fewer than two documents with something to score"
