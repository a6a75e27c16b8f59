"""Reports of several systems as one table: a column for each system, a row for what was measured in the same way."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from hf_docmt.messages import check_known, counted
from hf_docmt.reports.columns import Column, differing_settings, group_runs, read_columns
from hf_docmt.reports.measurement import SCORE, SETTINGS, first_names, group_results, group_signature, measurement_notes
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.significance import (
    Outcome,
    Pair,
    PairedTest,
    compare_runs,
    corrected,
    mean_and_deviation,
    samples_for,
    significance_notes,
)
from hf_docmt.reports.tables import letter_of

Systems = dict[str, list[Result]]  # the results of a system's runs, mostly one


@dataclass(frozen=True)
class Figure:
    """One number of one system, over how many items, how it was measured, its 95 % interval, its test.

    For several `runs`, `value` is the mean and `deviation` the standard deviation (runs - 1 below); `n` is that of the
    first, and there is no interval.
    """

    value: float
    n: int
    signature: str
    strategy: str | None
    beams: int | None
    interval: tuple[float, float] | None = None
    test: Outcome | None = None  # against the baseline
    runs: int = 1
    deviation: float | None = None

    @property
    def significant(self) -> bool:
        """Whether it differs significantly from the baseline's."""
        return self.test is not None and self.test.significant


@dataclass(frozen=True)
class Row:
    """One score, or one part of its breakdown, of every system that has it measured in the same way.

    A score and its parts have one `group` and one `letter`, that of their signature. `strategy` and `beams` are None
    where they differ or are not known. `axis` and `place` are from the label of a part: `distance` and `0` of
    `distance=0`, empty for other labels. `chance`: the score of guessing, None if unknown or undefined.
    """

    group: int
    letter: str
    task: str
    dataset: str
    split: str
    metric: str
    strategy: str | None
    beams: int | None
    chance: float | None
    part: str  # label in the breakdown, empty for the whole score
    axis: str
    place: str
    figures: dict[str, Figure]  # by system


@dataclass(frozen=True)
class Comparison:
    """Systems in the order given, rows, {letter: signature}, and what has to be known to read them.

    `settings`: {system: {setting: its values}}, of those settings that are not the same in all systems. `pairs`:
    tests of all systems against each other, where they were asked for.
    """

    systems: tuple[str, ...]
    rows: tuple[Row, ...]
    signatures: dict[str, str]
    baseline: str | None
    notes: tuple[str, ...]
    settings: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    pairs: tuple[Pair, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values for JSON."""
        return asdict(self)


def compare_reports(
    reports: Sequence[str | Path | Report],
    *,
    names: Sequence[str] | None = None,
    breakdown: str = "none",
    may_differ: Sequence[str] = (),
    runs: str | None = None,
    baseline: str | None = None,
    method: str = "bootstrap",
    samples: int | None = None,
    seed: int = 1,
    level: float = 0.05,
    all_pairs: bool = False,
) -> Comparison:
    """The results of reports, files or objects, with one column for each, named by its model or by `names`.

    Results share a row if task, dataset, split, metric and signature are the same, except properties of the system
    (strategy, beams, context; see `system_settings`) and the keys of the signature that `may_differ` names. Documents
    that the statistics name must be the same, too. `breakdown` is `none`, `all`, an axis (`distance`; `phenomenon
    distance` for the two crossed), or the start of labels. Reports whose names are equal without what the regular
    expression `runs` matches are runs of one system, of which means and deviations are given.

    The scores of the other systems are tested against those of the `baseline`, by default the first system: single runs
    where the reports hold statistics of the same documents (see significance.compare_systems for `method`, `samples`,
    `seed`; None: see samples_for), several by `significance.welch_test`. With `all_pairs` every system is tested
    against every other one as well. P-values below `level` are significant after Holm's correction for all tests of the
    table. Notes name what could not be tested.
    ValueError: a file that is not a report, two equal results of one system, nothing in common, an unknown name.
    """
    columns = read_columns(reports, names, may_differ, runs is not None)
    systems = group_runs(columns, runs)
    if baseline is not None:
        check_known(baseline, systems, "baseline", "the systems are")
    elif len(systems) > 1:
        baseline = next(iter(systems))
    groups = group_results({column.name: column.results for column in columns}, may_differ)
    _check_breakdown(breakdown, [label for group in groups for result in group.values() for label in result.breakdown])
    texts = [group_signature(group, may_differ) for group in groups]
    letters = {text: letter_of(number) for number, text in enumerate(dict.fromkeys(texts))}
    everything: list[Systems] = []
    for group in groups:
        of_systems = {name: [group[run.name] for run in own if run.name in group] for name, own in systems.items()}
        everything.append({name: results for name, results in of_systems.items() if results})
    number_of_tests = sum(len(results) * (len(results) - 1 if all_pairs else 2) // 2 for results in everything)
    test = PairedTest(method, samples_for(number_of_tests) if samples is None else samples, seed, level)
    order = [] if baseline is None else [baseline, *(name for name in systems if name != baseline)]
    tested = list(combinations(order, 2)) if all_pairs else [(baseline, name) for name in order[1:]]
    pairs, untested = _tested(everything, tested, baseline, test, may_differ)
    rows, against = [], [pair for pair in pairs if pair.other == baseline]
    for number, results in enumerate(everything):
        tests = {pair.system: pair.test for pair in against if pair.group == number}
        rows += _rows({"group": number, "letter": letters[texts[number]]}, results, tests, breakdown)
    settings = {name: own[0].settings for name, own in systems.items()}  # those of all runs of a system
    keys = differing_settings(settings, may_differ)
    settings = {name: {key: own[key] for key in keys if key in own} for name, own in settings.items()}
    notes = measurement_notes(groups, may_differ) + _notes_n(rows) + _missing_notes(columns)
    if baseline is not None:
        others = len(pairs) - len(against)
        notes += significance_notes(baseline, [pair.test for pair in against], untested, test, others)
    signatures = {letter: text for text, letter in letters.items()}
    shown = tuple(pairs) if all_pairs else ()
    return Comparison(tuple(systems), tuple(rows), signatures, baseline, tuple(notes), settings, shown)


def select_breakdown(comparison: Comparison, breakdown: str) -> Comparison:
    """A comparison that was made with more parts of scores, with those only that `breakdown` asks for.

    ValueError: it has none of them.
    """
    _check_breakdown(breakdown, [row.part for row in comparison.rows if row.part])
    rows = tuple(row for row in comparison.rows if not row.part or _chosen(row.part, breakdown))
    return replace(comparison, rows=rows)


def _tested(
    groups: Sequence[Systems],
    systems: Sequence[tuple[str, str]],
    baseline: str | None,
    test: PairedTest,
    may_differ: Sequence[str],
) -> tuple[list[Pair], list[tuple[str, str]]]:
    """The tests of these pairs of systems in each group, corrected together, and what has none against the baseline."""
    pairs, untested = [], []
    for number, results in enumerate(groups):
        for other, system in systems:
            if system not in results or other != baseline and other not in results:
                continue
            try:
                pairs.append(Pair(number, other, system, compare_runs(results, other, system, test, may_differ)))
            except ValueError as error:  # statistics that cannot be used: the other figures are still valid
                if other == baseline:
                    untested.append((f"{results[system][0].name} of {system}", str(error)))
    return corrected(pairs, test.level), untested


def _rows(shared: dict, systems: Systems, tests: Mapping, breakdown: str) -> list[Row]:
    """The row of a score and those of the parts of it that were asked for."""
    results = [result for runs in systems.values() for result in runs]
    shared |= {name: getattr(results[0], name) for name in SCORE}
    for name in SETTINGS:
        values = {getattr(result, name) for result in results}
        shared[name] = values.pop() if len(values) == 1 else None
    labels = dict.fromkeys(label for result in results for label in result.breakdown if _chosen(label, breakdown))
    rows = []
    for label in ("", *labels):
        figures, levels = {}, set()
        for system, runs in systems.items():
            if runs := [run for run in runs if not label or label in run.breakdown]:
                parts = [_part(run, label) for run in runs]
                test = None if label else tests.get(system)
                figures[system] = _figure(parts, runs[0], test)
                levels |= {part.details.get("chance") for part in parts}
        axis, place = _axis(label)
        levels.discard(None)  # reports of 0.1.0 do not say
        chance = levels.pop() if len(levels) == 1 else None
        rows.append(Row(**shared, part=label, axis=axis, place=place, figures=figures, chance=chance))
    return rows


def _part(result: Result, label: str) -> PartScore:
    """A part of the breakdown of a result, for an empty label the whole score."""
    return result.breakdown[label] if label else PartScore(result.value, result.n, result.details)


def _figure(parts: Sequence[PartScore], result: Result, test: Outcome | None) -> Figure:
    """The figure of one run, or of the mean over several."""
    mean, deviation = mean_and_deviation([part.value for part in parts])
    measured = (str(result.signature), result.strategy, result.beams)
    interval = parts[0].details.get("interval") if len(parts) == 1 else None
    return Figure(mean, parts[0].n, *measured, interval and tuple(interval), test, len(parts), deviation)


def _notes_n(rows: list[Row]) -> list[str]:
    unequal = [row for row in rows if len({figure.n for figure in row.figures.values()}) > 1]
    names = first_names([f"{row.dataset} {row.metric} {row.part}".strip() for row in unequal])
    return [f"Systems scored on different numbers of items, n in their order: {names}."] if unequal else []


def _missing_notes(columns: Sequence[Column]) -> list[str]:
    """Note on systems with untranslated documents or blank sentences, which lower every score."""
    failed, blank = [], []
    for column in columns:
        if number := max((result.details.get("untranslated", 0) for result in column.results), default=0):
            documents = f"{counted(number, 'document')} of {column.name}"
            failed.append(f"{documents} could not be translated, which lowers its scores; translate again.")
        if number := max((result.details.get("blank", {}).get("sentences", 0) for result in column.results), default=0):
            blank.append(f"{counted(number, 'sentence')} of {column.name} blank where the reference has text.")
    return failed + blank


def _axis(label: str) -> tuple[str, str]:
    """(`distance`, `0`) of `distance=0`, (`phenomenon distance`, `it:er 0`) of two crossed; empty without `=`."""
    parts = re.findall(r"(?:^|(?<= ))([^ =]+)=(.*?)(?= [^ =]+=|$)", label)
    return " ".join(name for name, _ in parts), " ".join(value for _, value in parts)


def _chosen(label: str, breakdown: str) -> bool:
    axis = _axis(label)[0]
    if breakdown in ("none", "all") or (axis and "=" not in breakdown):
        return breakdown in ("all", axis)
    return label.startswith(breakdown)


def _check_breakdown(breakdown: str, labels: Sequence[str]) -> None:
    if breakdown not in ("none", "all") and not any(_chosen(label, breakdown) for label in labels):
        axes = dict.fromkeys(_axis(label)[0] or label for label in labels)
        raise ValueError(f"no result is broken down by {breakdown!r}: known are {', '.join(['none', 'all', *axes])}")
