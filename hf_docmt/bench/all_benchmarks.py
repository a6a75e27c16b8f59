"""All benchmarks in one report, with the ceilings of the machine measured before, between and after them."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hf_docmt.bench.benchmark import Benchmark, load_benchmarks
from hf_docmt.bench.benchmark_process import run_in_process
from hf_docmt.bench.report import CEILINGS, BenchmarkRun, BenchReport
from hf_docmt.bench.results import machine_setting

OnProgress = Callable[[str], None]


def run_all_benchmarks(path: str | Path | None = None, on_progress: OnProgress = print) -> BenchReport:
    """The report of every benchmark with each of its `report_options`, the ceilings before and after each of them.

    With `path` it is written after every row; an interrupted one has what was measured until then. A benchmark that
    fails is named in its run, see `BenchmarkRun.problem`, and the others go on. `on_progress` gets lines of text.
    """
    report = BenchReport(setting=machine_setting(), started=datetime.now(UTC).isoformat(timespec="seconds"))
    started = time.monotonic()

    def keep() -> None:
        report.seconds = time.monotonic() - started
        if path is not None:
            report.write(path)

    for run in planned_runs(load_benchmarks()):
        report.runs.append(run)
        keep()
        for row in run_in_process(run):
            on_progress(f"{run.benchmark}: {row_text(row)}")
            keep()
        keep()
        if run.problem is not None:
            on_progress(f"{run.benchmark}: failed: {run.problem}")
    return report


def planned_runs(benchmarks: Mapping[str, type[Benchmark]]) -> list[BenchmarkRun]:
    """The runs of a report in their order."""
    runs = [BenchmarkRun(benchmark=CEILINGS)]
    for name, benchmark in benchmarks.items():
        for options in benchmark.report_options:
            runs += [BenchmarkRun(benchmark=name, options=dict(options)), BenchmarkRun(benchmark=CEILINGS)]
    return runs


def row_text(row: Mapping[str, Any]) -> str:
    """A row as a line of text."""
    skipped = row.get("skipped")
    if skipped:
        return f"{row['case']}: skipped: {skipped}"
    ours, peer, ratio = ("-" if row[name] is None else f"{row[name]:.4g}" for name in ("ours", "peer", "ratio"))
    return f"{row['case']}: {ours} beside {peer} {row['unit']}, ratio {ratio}"
