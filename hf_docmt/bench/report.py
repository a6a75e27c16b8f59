"""The report of all benchmarks of one run on one machine, as it stands in a file."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from hf_docmt.bench.results import Check
from hf_docmt.files import check_file, parse_json, write_text
from hf_docmt.store import sync

FORMAT = 1
UNFINISHED = "not finished"
CEILINGS = "ceilings"  # the benchmark that is run several times
MIN_STEADINESS = 0.8  # of a machine that does nothing else


@dataclass(kw_only=True)
class BenchmarkRun:
    """One run of a benchmark: its options, seconds, and what it measured, rows and checks as `BenchResult` has them.

    `problem` says why it was not finished; its rows are then those that were measured before.
    """

    benchmark: str
    options: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    problem: str | None = UNFINISHED
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    checks: list[Mapping[str, Any]] = field(default_factory=list)
    setting: Mapping[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class BenchReport:
    """All runs, in the order in which they were made, and the machine and versions that they have in common.

    `started` is a time of day (ISO 8601). The ceilings were measured first, between benchmarks and last.
    """

    setting: Mapping[str, Any]
    started: str
    seconds: float = 0.0
    runs: list[BenchmarkRun] = field(default_factory=list)

    def runs_of(self, benchmark: str) -> Iterator[BenchmarkRun]:
        """The runs of a benchmark."""
        return (run for run in self.runs if run.benchmark == benchmark)

    def failed(self) -> list[BenchmarkRun]:
        """The runs that were not finished."""
        return [run for run in self.runs if run.problem is not None]

    def ceilings(self) -> dict[str, list[float]]:
        """Each ceiling by its name, as often as it was measured."""
        found: dict[str, list[float]] = {}
        for run in self.runs_of(CEILINGS):
            for row in run.rows:
                found.setdefault(row["case"], []).append(row["ours"])
        return found

    def checks(self) -> list[Check]:
        """Whether the machine was steady: the lowest value of each ceiling over its highest."""
        return [
            Check.at_least(f"{name}: lowest over highest", min(values) / max(values), MIN_STEADINESS)
            for name, values in self.ceilings().items()
        ]

    def to_json(self) -> dict[str, Any]:
        """The JSON object of the report."""
        return {"format": FORMAT, **asdict(self), "checks": [asdict(check) for check in self.checks()]}

    def write(self, path: str | Path) -> None:
        """Write the report; it is on the disk when this returns, and what was there stays whole until then. OSError."""
        write_text(json.dumps(self.to_json(), ensure_ascii=False, indent=1) + "\n", path)
        if Path(path).is_file():
            sync(path)
            sync(Path(path).resolve().parent)

    @classmethod
    def read(cls, path: str | Path) -> "BenchReport":
        """The report in a file; ValueError where it is none, or of another format."""
        found = parse_json(check_file(path).read_text(encoding="utf-8"), path)
        names = [one.name for one in fields(cls)]
        if not isinstance(found, dict) or found.get("format") != FORMAT or not found.keys() >= set(names):
            raise ValueError(f"{path}: expected a report of `docmt bench all`, format {FORMAT}; write it again")
        runs = [BenchmarkRun(**run) for run in found["runs"]]
        return cls(**{name: found[name] for name in names} | {"runs": runs})
