"""The columns of a comparison: reports of several systems, what they are called, and what the systems are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Result
from hf_docmt.reports.result_groups import measures_the_same
from hf_docmt.reports.system_settings import SEARCH_KEYS, SETTINGS, SYSTEM_KEYS, model_settings, system_settings

Settings = dict[str, tuple[str, ...]]
Values = tuple[str | None, ...]  # of settings


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
    """A column for each report, several for one that has results of several strategies, beams or contexts.

    With `runs`, names may be equal. ValueError: no reports, one given twice, equal names, two results of one report
    that nothing tells apart.
    """
    paths, read = read_reports(reports)
    columns = []
    for name, label, report in zip(*system_names(paths, [report.name for report in read], names, runs), read):
        for suffix, results in _by_setting(name, report.results, may_differ).items():
            columns.append(Column(name + suffix, label + suffix, results, _settings(report, results, may_differ)))
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
        raise ValueError(f"two systems are called {twice[0]!r}; give every report a name of its own")
    return unique, labels


def differing_settings(settings: Mapping[str, Settings], may_differ: Sequence[str] = ()) -> list[str]:
    """The settings, of {system: settings}, that are not the same in all systems.

    What only some systems know is left out, unless it says how they translate and what they read.
    """
    keys = dict.fromkeys(key for found in settings.values() for key in found)
    different = [key for key in keys if len({found.get(key) for found in settings.values()}) > 1]
    always = ("architecture", *SETTINGS, *SYSTEM_KEYS, *SEARCH_KEYS, *may_differ)
    return [key for key in different if key in always or all(key in found for found in settings.values())]


def _settings(report: Report, results: Sequence[Result], may_differ: Sequence[str]) -> Settings:
    """What is known of a system, with all the values that its results name; from the model what no result names."""
    settings: Settings = {}
    for result in results:
        for key, value in system_settings(result, may_differ).items():
            settings[key] = tuple(dict.fromkeys((*settings.get(key, ()), value)))
    known = {key: (value,) for key, value in model_settings(report.model).items()}
    first = {key: known[key] for key in ("architecture",) if key in known}
    return first | settings | {key: value for key, value in known.items() if key not in (first | settings)}


def _by_setting(name: str, results: Sequence[Result], may_differ: Sequence[str]) -> dict[str, tuple[Result, ...]]:
    """{end of the name: results}: several where results measure the same with different settings of the system.

    A result without any of these settings, as an accuracy has no strategy, belongs to all of them.
    """
    keys: dict[str, None] = {}
    for first, second in combinations(results, 2):
        if measures_the_same(first, second, may_differ):
            one, other = (system_settings(result, may_differ) for result in (first, second))
            different = [key for key in {**one, **other} if one.get(key) != other.get(key)]
            if not different:
                raise ValueError(
                    f"{name}: two results for {first.name} ({first.split}) with the same settings; keep the one that "
                    "counts"
                )
            keys |= dict.fromkeys(different)
    values = [tuple(system_settings(result, may_differ).get(key) for key in keys) for result in results]
    known: dict[Values, None] = dict.fromkeys(found for found in values if any(found))
    if not known:
        return {"": tuple(results)}
    for result in (result for result, found in zip(results, values) if not any(found)):
        if any(measures_the_same(result, other, may_differ) for other in results if other is not result):
            raise ValueError(
                f"{name}: two results for {result.name} ({result.split}), of which one does not say "
                f"{' and '.join(keys)}; keep the one that counts"
            )
    return {
        f" ({_setting_names(tuple(keys), wanted)})": tuple(
            result for result, found in zip(results, values) if found == wanted or not any(found)
        )
        for wanted in known
    }


def _setting_names(keys: tuple[str, ...], values: Values) -> str:
    """`sliding, beams 4`: the values, but for those of a strategy after their keys."""
    pairs = [(key, value) for key, value in zip(keys, values) if value is not None]
    return ", ".join(value if key == "strategy" else f"{key} {value}" for key, value in pairs)


def _suffixes(paths: Sequence[Path | None], numbers: list[int]) -> list[str]:
    """The fewest last parts of the paths that all differ; without paths the numbers of the reports."""
    if None not in paths:
        parts = [path.resolve().with_suffix("").parts for path in paths]
        for length in range(1, max(map(len, parts)) + 1):
            ends = ["/".join(part[-length:]) for part in parts]
            if len(set(ends)) == len(ends):
                return ends
    return [f"report {number + 1}" for number in numbers]
