"""The columns of a comparison: reports of several systems, what they are called, what the systems are, their runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from hf_docmt.reports.measurement import (
    SEARCH_KEYS,
    SETTINGS,
    SYSTEM_KEYS,
    measures_the_same,
    model_settings,
    system_settings,
)
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Result

Settings = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Column:
    """The results of one system as one setting of it was scored.

    `label` is the name that was given, or the model's; `name` is different for every column. `settings` has all values
    of each setting that its results know, those of a model of chunks and suites of different length being several.
    """

    name: str
    label: str
    results: tuple[Result, ...]
    settings: Settings


def read_columns(
    reports: Sequence[str | Path | Report],
    names: Sequence[str] | None = None,
    may_differ: Sequence[str] = (),
    runs: bool = False,
) -> list[Column]:
    """A column for each report.

    With `runs`, names may be equal. ValueError: no reports, one given twice, equal names, two results of one report
    that measure the same.
    """
    paths, read = read_reports(reports)
    columns = []
    for name, label, report in zip(*system_names(paths, [report.name for report in read], names, runs), read):
        _check_once(name, report.results, may_differ)
        columns.append(Column(name, label, tuple(report.results), _settings(report, may_differ)))
    return columns


def read_reports(reports: Sequence[str | Path | Report]) -> tuple[list[Path | None], list[Report]]:
    """The path of each report, None for one that is given as an object, and the reports."""
    if isinstance(reports, str | Path | Report) or not reports:
        raise ValueError("expected a list of reports to compare, one for each system")
    paths = [None if isinstance(report, Report) else Path(report) for report in reports]
    files = [path.resolve() for path in paths if path]
    if again := [str(path) for path in paths if path and files.count(path.resolve()) > 1]:
        raise ValueError(f"{again[0]}: given twice; give each report once")
    return paths, [report if isinstance(report, Report) else Report.read(path) for path, report in zip(paths, reports)]


def system_names(
    paths: Sequence[Path | None], own: Sequence[str], names: Sequence[str] | None, runs: bool = False
) -> tuple[list[str], list[str]]:
    """Different names, and the labels that they are made from: `names`, or their `own`.

    Equal labels are followed by the shortest different ends of paths; `names` may be equal only with `runs`.
    """
    labels = list(own if names is None else names)
    if len(labels) != len(own):
        raise ValueError(f"{len(labels)} names for {len(own)} reports; one for each is needed, in their order")
    unique = list(labels)
    if names is None or runs:
        for name in labels:
            same = [number for number, other in enumerate(labels) if other == name]
            for number, suffix in zip(same, _suffixes([paths[number] for number in same], same)):
                unique[number] = f"{name} ({suffix})" if len(same) > 1 else name
    if twice := [name for name in unique if unique.count(name) > 1]:
        raise ValueError(f"two systems are called {twice[0]!r}; give every report its own name")
    return unique, labels


def group_runs(columns: Sequence[Column], pattern: str | None) -> dict[str, list[Column]]:
    """{system: its runs}: columns whose labels are equal without what the regular expression `pattern` matches.

    Labels in which it matches nothing may be equal from the start. Without a pattern every column is a system.
    ValueError: no regular expression, no two runs of one system, one run twice, runs that differ in a setting such as
    the strategy.
    """
    if pattern is None:
        return {column.name: [column] for column in columns}
    try:
        changing = re.compile(pattern)
    except re.error as error:
        raise ValueError(
            f"runs {pattern!r} is not a regular expression: {error}; give one that matches the differences of "
            r"the names of runs, such as -seed\d+"
        ) from error
    systems: dict[str, list[Column]] = {}
    for column in columns:
        systems.setdefault(changing.sub("", column.label).strip() or column.label, []).append(column)
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
                f"{', '.join(run.name for run in runs)} are not runs of one system, {system!r}: different "
                f"{', '.join(different)}; give them different names, or omit one"
            )
    return systems


def differing_settings(settings: Mapping[str, Settings], may_differ: Sequence[str] = ()) -> list[str]:
    """The settings, from {system: settings}, that differ between systems.

    Settings that only some systems have are skipped, unless they are about search or context.
    """
    keys = dict.fromkeys(key for own in settings.values() for key in own)
    different = [key for key in keys if len({own.get(key) for own in settings.values()}) > 1]
    always = ("architecture", *SETTINGS, *SYSTEM_KEYS, *SEARCH_KEYS, *may_differ)
    return [key for key in different if key in always or all(key in own for own in settings.values())]


def _settings(report: Report, may_differ: Sequence[str]) -> Settings:
    """The settings of a system, with all the values in its results; those in no result come from the model."""
    settings: Settings = {}
    for result in report.results:
        for key, value in system_settings(result, may_differ).items():
            settings[key] = tuple(dict.fromkeys((*settings.get(key, ()), value)))
    model = {key: (value,) for key, value in model_settings(report.model).items()}
    first = {"architecture": model["architecture"]} if "architecture" in model else {}
    return first | settings | {key: value for key, value in model.items() if key not in (first | settings)}


def _check_once(name: str, results: Sequence[Result], may_differ: Sequence[str]) -> None:
    """ValueError for two results of a report that measure the same."""
    for first, second in combinations(results, 2):
        if measures_the_same(first, second, may_differ):
            raise ValueError(
                f"{name}: two results for {first.name} ({first.split}), {first.signature} and {second.signature}; give "
                "reports of one strategy and one context each"
            )


def _suffixes(paths: Sequence[Path | None], numbers: list[int]) -> list[str]:
    """The fewest last parts of the paths that all differ; without paths the numbers of the reports."""
    if None not in paths:
        parts = [path.resolve().with_suffix("").parts for path in paths]
        for length in range(1, max(map(len, parts)) + 1):
            ends = ["/".join(part[-length:]) for part in parts]
            if len(set(ends)) == len(ends):
                return ends
    return [f"report {number + 1}" for number in numbers]
