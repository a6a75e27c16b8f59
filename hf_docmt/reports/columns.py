"""The columns of a comparison: reports of several systems, and what the systems are called."""

from collections.abc import Sequence
from pathlib import Path

from hf_docmt.reports.report import Report


def read_reports(reports: Sequence[str | Path | Report]) -> tuple[list[Path | None], list[Report]]:
    """The path of each report, None for one that is given as an object, and the reports."""
    if isinstance(reports, str | Path | Report) or not reports:
        raise ValueError("expected a list of reports to compare, one for each system")
    paths = [None if isinstance(report, Report) else Path(report) for report in reports]
    files = [path.resolve() for path in paths if path]
    if again := [str(path) for path in paths if path and files.count(path.resolve()) > 1]:
        raise ValueError(f"{again[0]}: given twice; give each report once")
    return paths, [report if isinstance(report, Report) else Report.read(path) for path, report in zip(paths, reports)]


def system_names(paths: list[Path | None], reports: list[Report], names: Sequence[str] | None) -> list[str]:
    """`names`, or those of the models; equal names of models are followed by the shortest different ends of paths."""
    given = [report.name for report in reports] if names is None else list(names)
    if len(given) != len(reports):
        raise ValueError(f"{len(given)} names for {len(reports)} reports; one for each is needed, in their order")
    unique = list(given)
    if names is None:
        for name in given:
            same = [number for number, other in enumerate(given) if other == name]
            for number, suffix in zip(same, _suffixes([paths[number] for number in same], same)):
                unique[number] = f"{name} ({suffix})" if len(same) > 1 else name
    if twice := [name for name in unique if unique.count(name) > 1]:
        raise ValueError(f"two systems are called {twice[0]!r}; give every report a name of its own")
    return unique


def _suffixes(paths: list[Path | None], numbers: list[int]) -> list[str]:
    """The fewest last parts of the paths that all differ; without paths the numbers of the reports."""
    if None not in paths:
        parts = [path.resolve().with_suffix("").parts for path in paths]
        for length in range(1, max(map(len, parts)) + 1):
            ends = ["/".join(part[-length:]) for part in parts]
            if len(set(ends)) == len(ends):
                return ends
    return [f"report {number + 1}" for number in numbers]
