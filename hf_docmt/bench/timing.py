"""Side-by-side timing: both sides take turns in one run, and the median of their times counts."""

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import torch
import transformers

from hf_docmt import __version__
from hf_docmt.reports.report import package_commit
from hf_docmt.reports.tables import align_columns

SIDES = ("ours", "peer")
HIDDEN = ("precision", "mode", "batch", "name", "tokens", "context")  # columns that are in the name of a case


def alternate(sides: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """Median seconds of each side over `repeats` rounds, after a round that does not count.

    A side is a function that does its work once and returns the seconds it took. The sides take turns, and every other
    round begins with the last one, so that what slows the machine for a while slows both.
    """
    check_positive(repeats=repeats)
    names, times = list(sides), {name: [] for name in sides}
    for number in range(repeats + 1):
        for name in names[:: -1 if number % 2 else 1]:
            seconds = sides[name]()
            if number > 0:
                times[name].append(seconds)
    return {name: median(values) for name, values in times.items()}


def seconds_of(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that one call of `work` takes."""
    started = clock()
    work()
    return clock() - started


def make_row(case: str, unit: str, amounts: Mapping[str, float], seconds: Mapping[str, float], **more) -> dict:
    """One row of a bench: the speed of both sides in `unit` (amount / seconds), and ours over the peer's as `ratio`.

    For equal amounts `ratio` is the peer's time over ours. `more` are further columns.
    """
    speeds = {side: amounts[side] / seconds[side] for side in SIDES}
    times = {f"{side}_seconds": seconds[side] for side in SIDES}
    return {"case": case, **speeds, "ratio": speeds["ours"] / speeds["peer"], "unit": unit, **times, **more}


def check_at_least(name: str, value: float | None, target: float) -> dict:
    """One entry of `checks`: fulfilled where the value reaches the target; never where it was not measured (None)."""
    return {"name": name, "value": value, "target": target, "ok": value is not None and value >= target}


def check_at_most(name: str, value: float | None, target: float) -> dict:
    """One entry of `checks`: fulfilled where the value does not pass the target; never where it was not measured."""
    return {"name": name, "value": value, "target": target, "ok": value is not None and value <= target}


def bench_result(rows: Sequence[dict], checks: Sequence[dict], **setting) -> dict:
    """What a bench returns: `rows`, `checks`, and as `setting` all it takes to measure the same again."""
    machine = {
        "processor": processor(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "hf_docmt": __version__,
        "commit": package_commit(),
    }
    return {"rows": list(rows), "checks": list(checks), "setting": {**setting, **machine}}


def format_bench(result: dict) -> str:
    """The result of a bench as text for a terminal."""
    columns = [name for name in result["rows"][0] if name not in HIDDEN and not name.endswith("_seconds")]
    rows = [[_cell(row[name]) for name in columns] for row in result["rows"]]
    checks = [[_cell(check[name]) for name in ("name", "value", "target")] for check in result["checks"]]
    checks = [[*cells, "ok" if check["ok"] else "missed"] for cells, check in zip(checks, result["checks"])]
    setting = [f"{name}: {value}" for name, value in result["setting"].items() if value is not None]
    tables = [align_columns([columns, *rows]), align_columns([["check", "value", "target", ""], *checks])]
    return "\n\n".join([*tables, "\n".join(setting)])


def check_positive(**numbers: int) -> None:
    """Raise `ValueError` for an argument that is not a whole number of at least 1."""
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")


def processor() -> str:
    """The name of the processor, as the system tells it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.processor() or platform.machine())


def _cell(value) -> str:
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.1e}" if 0 < abs(value) < 0.005 else f"{value:.2f}"
