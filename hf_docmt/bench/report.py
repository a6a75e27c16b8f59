"""All benchmarks in one report, with the ceilings of the machine measured before, between and after them."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from hf_docmt.bench import CLASSES, load_benchmark
from hf_docmt.bench.process import ProcessError, messages_of
from hf_docmt.bench.results import Check, machine_setting
from hf_docmt.files import check_file, parse_json, sync, write_text
from hf_docmt.plugins import load_plugins

FORMAT = 1
UNFINISHED = "not finished"
CEILINGS = "ceilings"  # the benchmark that is run several times
MIN_STEADINESS = 0.8  # of a machine that does nothing else
WORK = "hf_docmt.bench.report:run_benchmark"


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

    def measure(self) -> Iterator[Mapping[str, Any]]:
        """Measure in a new process with as many threads as this one has; yields each row at once."""
        case = {"benchmark": self.benchmark, "options": dict(self.options), "threads": torch.get_num_threads()}
        started, rows = time.monotonic(), {}
        try:
            for message in messages_of(WORK, case):
                self.seconds = time.monotonic() - started
                if row := message.get("row"):
                    rows[row["case"], row["unit"]] = row  # of a case that is measured again the later one counts
                    self.rows = list(rows.values())
                    yield row
                else:
                    self.rows, self.checks, self.setting = (message[name] for name in ("rows", "checks", "setting"))
                    self.problem = None
        except ProcessError as problem:
            self.problem = str(problem)


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
        values: dict[str, list[float]] = {}
        for run in self.runs_of(CEILINGS):
            for row in run.rows:
                values.setdefault(row["case"], []).append(row["ours"])
        return values

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
        values = parse_json(check_file(path).read_text(encoding="utf-8"), path)
        names = [item.name for item in fields(cls)]
        with suppress(KeyError, TypeError):  # no object, or one with other keys
            if values["format"] == FORMAT:
                runs = [BenchmarkRun(**run) for run in values["runs"]]
                return cls(**{name: values[name] for name in names} | {"runs": runs})
        raise ValueError(f"{path}: expected a report of `docmt bench all`, format {FORMAT}; write it again")


def run_all_benchmarks(
    path: str | Path | None = None, on_progress: Callable[[str], None] = print, only: str | None = None
) -> BenchReport:
    """The report of every benchmark with each of its `report_options`, the ceilings before and after each of them.

    `only`: the runs of one benchmark alone. In a report that is at `path` they are measured again, and the others stay;
    ValueError for one that it has not, and for the report of another machine or of other versions.

    With `path` it is written after every row; an interrupted one has what was measured until then. A benchmark that
    fails is named in its run, see `BenchmarkRun.problem`, and the others go on. `on_progress` gets lines of text.
    """
    report = BenchReport(setting=machine_setting(), started=datetime.now(UTC).isoformat(timespec="seconds"))
    is_new = only is None or path is None or not Path(path).exists()
    if is_new:
        planned = planned_runs(only)
    else:
        report = report_of_this_machine(path, report.setting)
        planned = [run for run in report.runs if run.benchmark == only]
        if not planned:
            names = ", ".join(dict.fromkeys(run.benchmark for run in report.runs))
            raise ValueError(f"{path} has no runs of {only!r}: give one of {names}")
    started = time.monotonic() - report.seconds

    def keep() -> None:
        report.seconds = time.monotonic() - started
        if path is not None:
            report.write(path)

    for run in planned:
        if is_new:
            report.runs.append(run)
        run.rows, run.checks, run.setting, run.problem = [], [], {}, UNFINISHED
        keep()
        for row in run.measure():
            on_progress(f"{run.benchmark}: {row_text(row)}")
            keep()
        keep()
        if run.problem is not None:
            on_progress(f"{run.benchmark}: failed: {run.problem}")
    return report


def report_of_this_machine(path: str | Path, setting: Mapping[str, Any]) -> BenchReport:
    """The report at `path`; ValueError where it is of another machine or other versions than these."""
    report = BenchReport.read(path)
    for name in ("processor", "threads", "torch", "transformers"):
        if report.setting.get(name) != setting[name]:
            raise ValueError(
                f"{path} was measured with {name} {report.setting.get(name)}, here it is {setting[name]}: measure all "
                "benchmarks again"
            )
    return report


def row_text(row: Mapping[str, Any]) -> str:
    """A row as a line of text."""
    if row.get("skipped"):
        return f"{row['case']}: skipped: {row['skipped']}"
    ours, peer, ratio = ("-" if row[name] is None else f"{row[name]:.4g}" for name in ("ours", "peer", "ratio"))
    return f"{row['case']}: {ours} beside {peer} {row['unit']}, ratio {ratio}"


def planned_runs(only: str | None = None) -> list[BenchmarkRun]:
    """The runs of a report in their order, of one benchmark or of all; ValueError for an unknown one."""
    if only is not None and only not in CLASSES:
        raise ValueError(f"there is no benchmark {only!r}: give one of {', '.join(CLASSES)}")
    runs = [BenchmarkRun(benchmark=CEILINGS)]
    for name in CLASSES if only is None else (only,):
        for options in load_benchmark(name).report_options:
            runs += [BenchmarkRun(benchmark=name, options=dict(options)), BenchmarkRun(benchmark=CEILINGS)]
    return runs


def run_benchmark(case: Mapping, send: Callable) -> dict:
    """Run the benchmark that a case names; sends each row, returns the result."""
    torch.set_num_threads(case["threads"])
    load_plugins()
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in case["options"].items()}
    result = load_benchmark(case["benchmark"])(**options).run(lambda row: send({"row": row.to_json()}))
    return result.to_json()
