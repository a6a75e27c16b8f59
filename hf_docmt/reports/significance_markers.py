"""What differs significantly from a baseline, from the statistics that results carry."""

from collections.abc import Sequence
from dataclasses import asdict

from hf_docmt.reports.result_groups import SETTINGS, check_known, listed, score_name
from hf_docmt.reports.significance import METHODS, compare_systems


def tests_against(
    baseline: str, group: dict[str, dict], level: float, may_differ: Sequence[str], **how
) -> tuple[dict[str, dict], dict[str, str]]:
    """What the test of each system against the baseline gave, and {system: why it could not be tested}.

    Systems are tested pair by pair, so that a result does not depend on which others stand beside it.
    """
    tests, obstacles = {}, {}
    keys = [name for name in may_differ if name not in SETTINGS]
    for system, result in group.items():
        if system == baseline:
            continue
        reason = _obstacle(result, group[baseline]) if baseline in group else f"no figure of {baseline} in the row"
        if not reason:
            try:
                pair = {baseline: group[baseline], system: result}
                outcome = compare_systems(pair, baseline, may_differ=keys, **how)[system]
                tests[system] = asdict(outcome) | {"significant": outcome.p_value < level}
            except ValueError as error:  # statistics that cannot be used: the other figures still stand
                reason = str(error)
        if reason:
            obstacles[system] = reason
    return tests, obstacles


def check_test(level: float, method: str, samples: int) -> None:
    check_known(method, METHODS, "method", "known are")
    if samples < 1:
        raise ValueError(f"samples is {samples}, expected a positive number such as 1000")
    if not 0 < level < 1:
        raise ValueError(f"level is {level}, expected the p-value below which a difference is marked, such as 0.05")


def notes_tested(
    baseline: str, groups: Sequence[dict], outcomes: Sequence[tuple[dict, dict]], level: float, how: dict
) -> list[str]:
    """What the mark means, and which figures could not have one."""
    count = sum(len(tests) for tests, _ in outcomes)
    tested = (group[system] for group, (tests, _) in zip(groups, outcomes) for system in tests)
    units = dict.fromkeys(f"{result['details']['statistics'].get('unit', 'document')}s" for result in tested)
    told = f"{how['method']} over {', '.join(units)}, {how['samples']} samples, seed {how['seed']}"
    notes = [f"* differs from {baseline} with p < {level:g} ({told}); {count} tests, p not corrected for their number."]
    untested: dict[str, list[str]] = {}
    for group, (_, obstacles) in zip(groups, outcomes):
        for system, reason in obstacles.items():
            untested.setdefault(reason, []).append(f"{score_name(group[system])} of {system}")
    said = [f"Not tested, {reason}: {listed(names)}." for reason, names in untested.items()]
    return (notes if count else []) + said


def _obstacle(result: dict, base: dict) -> str:
    """The usual reasons why two results cannot be tested; empty where there is none of them."""
    held = [found["details"].get("statistics") for found in (result, base)]
    if not all(held):
        return "no statistics in the reports"
    if held[0]["ids"] != held[1]["ids"]:
        return "scored on other documents than the baseline, or in another order"
    scored = sum(any(one) or any(other) for one, other in zip(held[0]["rows"], held[1]["rows"]))
    return "" if scored > 1 else "fewer than two documents with something to score"
