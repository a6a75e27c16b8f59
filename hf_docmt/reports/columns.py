"""Reports that are put beside each other, and the names of their columns."""

from collections.abc import Sequence
from pathlib import Path

from hf_docmt.reports.report import read_report, validate_report


def read_reports(reports: Sequence[str | Path | dict]) -> tuple[list[Path | None], list[dict]]:
    """Where each report comes from, and the report, checked."""
    if isinstance(reports, str | Path | dict) or not reports:
        raise ValueError("expected a list of reports to compare, one for each system")
    paths = [None if isinstance(report, dict) else Path(report) for report in reports]
    files = [path.resolve() for path in paths if path]
    if again := [str(path) for path in paths if path and files.count(path.resolve()) > 1]:
        raise ValueError(f"{again[0]}: given twice; give each report once")
    for number, report in enumerate(reports, 1):
        if isinstance(report, dict):
            try:
                validate_report(report)
            except ValueError as error:
                raise ValueError(f"report {number}: {error}") from error
    return paths, [read_report(path) if path else report for path, report in zip(paths, reports)]


def system_names(paths: list[Path | None], reports: list[dict], names: Sequence[str] | None) -> list[str]:
    """`names`, or those of the models; where two are the same, what tells the files apart is added."""
    given = [report["model"]["name"] for report in reports] if names is None else list(names)
    if len(given) != len(reports):
        raise ValueError(f"{len(given)} names for {len(reports)} reports; one for each is needed, in their order")
    found = list(given)
    if names is None:
        for name in given:
            same = [place for place, other in enumerate(given) if other == name]
            for place, origin in zip(same, _origins([paths[place] for place in same], same)):
                found[place] = f"{name} ({origin})" if len(same) > 1 else name
    if twice := [name for name in found if found.count(name) > 1]:
        raise ValueError(f"two systems are called {twice[0]!r}; give every report a name of its own")
    return found


def _origins(paths: list[Path | None], places: list[int]) -> list[str]:
    """As many of the last parts of the paths as tell them apart; numbers of the reports without paths."""
    if None not in paths:
        parts = [path.resolve().with_suffix("").parts for path in paths]
        for length in range(1, max(map(len, parts)) + 1):
            tails = ["/".join(part[-length:]) for part in parts]
            if len(set(tails)) == len(tails):
                return tails
    return [f"report {place + 1}" for place in places]
