"""Reports of several systems as one table: a row holds what may be compared, all else has a row of its own."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hf_docmt.reports.columns import read_reports, system_names
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Part
from hf_docmt.reports.result_groups import (
    SCORE,
    SETTINGS,
    Group,
    check_known,
    first_names,
    group_results,
    group_signature,
    separation_notes,
)
from hf_docmt.reports.significance_markers import (
    GroupTests,
    PairedTest,
    SignificanceTest,
    compare_with_baseline,
    significance_notes,
)
from hf_docmt.reports.tables import letter_of


@dataclass(frozen=True)
class Figure:
    """One number of one system, over how many items, how it was measured, its 95 % interval, its test."""

    value: float
    n: int
    signature: str
    strategy: str | None
    beams: int | None
    interval: tuple[float, float] | None = None
    test: SignificanceTest | None = None  # against the baseline

    @property
    def significant(self) -> bool:
        """Whether it differs significantly from the baseline's."""
        return self.test is not None and self.test.significant


@dataclass(frozen=True)
class Row:
    """One score, or one part of its breakdown, of every system that has it measured in the same way.

    A score and its parts have one `group` and one `letter`, that of their signature. `strategy` and `beams` are None
    where they may differ or are not known. `axis` and `axis_value` are from the label of a part: `distance` and `0` of
    `distance=0`, empty for other labels.
    """

    group: int
    letter: str
    task: str
    dataset: str
    split: str
    metric: str
    strategy: str | None
    beams: int | None
    part: str  # label in the breakdown, empty for the whole score
    axis: str
    axis_value: str
    figures: dict[str, Figure]  # by system


@dataclass(frozen=True)
class Comparison:
    """Systems in the order given, rows, {letter: signature}, and what has to be known to read them."""

    systems: tuple[str, ...]
    rows: tuple[Row, ...]
    signatures: dict[str, str]
    baseline: str | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values for JSON."""
        found = asdict(self)
        for row in found["rows"]:
            row |= {"place": row.pop("axis_value"), "figures": row.pop("figures")}  # the names and the order of 0.1
        return found


def compare_reports(
    reports: Sequence[str | Path | Report],
    *,
    names: Sequence[str] | None = None,
    breakdown: str = "none",
    may_differ: Sequence[str] = (),
    baseline: str | None = None,
    method: str = "bootstrap",
    samples: int = 1000,
    seed: int = 1,
    level: float = 0.05,
) -> Comparison:
    """The results of reports, files or objects, with one column for each, named by its model or by `names`.

    Results share a row if task, dataset, split, metric, strategy, beams and signature are the same, but for those keys
    of the signature, `strategy` and `beams` that `may_differ` names: `("strategy", "past")` puts a sentence-level
    system beside one with context. Documents that the statistics name must be the same, too. `breakdown` is `none`,
    `all`, an axis (`distance`; `phenomenon distance` for the two crossed), or the start of labels. With a `baseline`,
    the scores of the other systems are tested against its scores where the reports hold statistics of the same
    documents (see significance.compare_systems for `method`, `samples`, `seed`); p below `level` is significant. The
    notes name what could not be tested. ValueError: a file that is no report, two results of a system for one row,
    nothing in common, an unknown name.
    """
    test = PairedTest(method, samples, seed, level)
    paths, reports = read_reports(reports)
    systems = system_names(paths, reports, names)
    if baseline is not None:
        check_known(baseline, systems, "baseline", "the systems are")
    groups = group_results(systems, reports, may_differ)
    _check_breakdown(breakdown, groups)
    texts = [group_signature(systems, group, may_differ) for group in groups]
    letters = {text: letter_of(number) for number, text in enumerate(dict.fromkeys(texts))}
    outcomes = [GroupTests({}, {}) for _ in groups]
    if baseline is not None:
        outcomes = [compare_with_baseline(baseline, group, test, may_differ) for group in groups]
    rows = []
    for number, (group, outcome) in enumerate(zip(groups, outcomes)):
        first = next(iter(group.values()))
        shared = {"group": number, "letter": letters[texts[number]], **{name: getattr(first, name) for name in SCORE}}
        shared |= {name: None if name in may_differ else getattr(first, name) for name in SETTINGS}
        rows += _rows(shared, group, outcome.tests, breakdown)
    notes = separation_notes(groups) + _notes_n(rows)
    if may_differ:
        notes.insert(0, f"Within a row may differ, in the order of the columns: {', '.join(may_differ)}.")
    if baseline is not None:
        notes += significance_notes(baseline, groups, outcomes, test)
    signatures = {letter: text for text, letter in letters.items()}
    return Comparison(tuple(systems), tuple(rows), signatures, baseline, tuple(notes))


def _rows(shared: dict, group: Group, tests: Mapping[str, SignificanceTest], breakdown: str) -> list[Row]:
    """The row of a score and those of the parts of it that were asked for."""
    parts = {"": {system: Part(result.value, result.n, result.details) for system, result in group.items()}}
    for system, result in group.items():
        for label, part in result.breakdown.items():
            if _chosen(label, breakdown):
                parts.setdefault(label, {})[system] = part
    rows = []
    for label, found in parts.items():
        figures = {}
        for system, part in found.items():
            result = group[system]
            interval = _interval(part, f"{system}, {result.name} {label}".strip())
            test = None if label else tests.get(system)
            measured = (str(result.signature), result.strategy, result.beams)
            figures[system] = Figure(part.value, part.n, *measured, interval, test)
        axis, value = _axis(label)
        rows.append(Row(**shared, part=label, axis=axis, axis_value=value, figures=figures))
    return rows


def _notes_n(rows: list[Row]) -> list[str]:
    unequal = [
        f"{row.dataset} {row.metric} {row.part}".strip()
        for row in rows
        if len({figure.n for figure in row.figures.values()}) > 1
    ]
    return (
        [f"Systems scored on different numbers of items, n in their order: {first_names(unequal)}."] if unequal else []
    )


def _axis(label: str) -> tuple[str, str]:
    """(`distance`, `0`) of `distance=0`, (`phenomenon distance`, `it:er 0`) of two crossed; empty without `=`."""
    parts = re.findall(r"(?:^|(?<= ))([^ =]+)=(.*?)(?= [^ =]+=|$)", label)
    return " ".join(name for name, _ in parts), " ".join(value for _, value in parts)


def _chosen(label: str, breakdown: str) -> bool:
    axis = _axis(label)[0]
    if breakdown in ("none", "all") or (axis and "=" not in breakdown):
        return breakdown in ("all", axis)
    return label.startswith(breakdown)


def _check_breakdown(breakdown: str, groups: list[Group]) -> None:
    labels = dict.fromkeys(label for group in groups for result in group.values() for label in result.breakdown)
    if breakdown not in ("none", "all") and not any(_chosen(label, breakdown) for label in labels):
        known = dict.fromkeys(_axis(label)[0] or label for label in labels)
        raise ValueError(f"no result is broken down by {breakdown!r}: known are {', '.join(['none', 'all', *known])}")


def _interval(part: Part, name: str) -> tuple[float, float] | None:
    """The 95 % interval in the details of a part, checked."""
    found = part.details.get("interval")
    if found is None:
        return None
    numbers = isinstance(found, list | tuple) and all(type(end) in (int, float) for end in found)
    if not numbers or len(found) != 2 or found[0] > found[1]:
        raise ValueError(f"{name}: interval {found!r}, expected [low, high] in the unit of the score")
    return tuple(found)
