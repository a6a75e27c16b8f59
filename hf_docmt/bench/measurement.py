"""Seconds and memory: sides that alternate in one process, or cases that alternate in processes of their own."""

import ctypes
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from statistics import median
from typing import Any

import psutil  # which accelerate requires
import torch

from hf_docmt.bench.process import measure_in_subprocess
from hf_docmt.bench.results import ScalingRow

RESERVED = 2**30  # bytes that are left to the machine
MEASURE_WORK = "hf_docmt.bench.measurement:measure_work"

# Time


def median_seconds(sides: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """Median seconds of each side over `repeats` rounds, after a warm-up round.

    A side is a function that does its work once and returns the seconds it took. Every other round runs in reverse
    order, so that what slows the machine for a while slows both sides.
    """
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(repeats + 1):
        for name in list(sides)[:: -1 if number % 2 else 1]:
            times[name].append(sides[name]())
    return {name: median(seconds[1:]) for name, seconds in times.items()}


def median_seconds_and_outputs(
    works: Mapping[str, Callable[[], Any]], repeats: int, device: torch.device | str = "cpu"
) -> tuple[dict[str, float], dict[str, Any]]:
    """Median seconds of the work of each side, see `median_seconds`, and what each returned the last time."""
    outputs: dict[str, Any] = {}

    def side(name: str) -> Callable[[], float]:
        return lambda: elapsed_seconds(lambda: outputs.update({name: works[name]()}), device)

    return median_seconds({name: side(name) for name in works}, repeats), outputs


def elapsed_seconds(
    work: Callable[[], object], device: torch.device | str = "cpu", clock: Callable[[], float] = time.perf_counter
) -> float:
    """Seconds that one call of `work` takes, until the GPU, where it runs on one, has done its part."""
    synchronize(device)
    started = clock()
    work()
    synchronize(device)
    return clock() - started


def synchronize(device: torch.device | str) -> None:
    """Wait until a GPU has done what it was asked to do; a CPU has done it."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


# Rounds of processes


def measure_rows(
    cases: Mapping[str, Mapping],
    make_row: Callable[[str, Mapping, Mapping[str, Mapping]], ScalingRow],
    options: Any,
    on_row: Callable[[ScalingRow], None],
    shorter: Sequence[ScalingRow] = (),
    work: str = MEASURE_WORK,
) -> list[ScalingRow]:
    """The rows of cases measured in `options.repeats` alternating rounds.

    Every round measures each case once, every other round in reverse order, so that what slows the machine for a while
    slows all of them. `work` measures a case in a subprocess (see `messages_of`), which is stopped after
    `options.time_limit` seconds and where it needs more memory than is available. `shorter` are rows at shorter
    lengths: what was stopped there is not tried again. `make_row` gets a name, its case and the numbers of all cases so
    far: medians of `seconds` and `memory_mib`, or why it is `skipped`. `on_row` gets a row after each measurement.
    """
    runs: dict[str, list[dict]] = {name: [] for name in cases}
    numbers: dict[str, dict] = {}

    def keep(name: str, latest: dict) -> None:
        numbers[name] = latest
        on_row(make_row(name, cases[name], numbers))

    for name in cases:
        stopped = next((row for row in shorter if row.name == name and row.skipped), None)
        if stopped is not None:
            keep(name, {"skipped": f"at {stopped.tokens} tokens: {stopped.skipped}"})
    for number in range(options.repeats):
        for name in [name for name in cases if "skipped" not in numbers.get(name, {})][:: -1 if number % 2 else 1]:
            limits = memory_limit(cases[name]["device"])
            measured = measure_in_subprocess(work, {**cases[name], **limits}, options.time_limit)
            runs[name].append(measured)
            keep(name, medians(runs[name]))
    return [make_row(name, case, numbers) for name, case in cases.items()]


def medians(runs: Sequence[dict]) -> dict:
    """The median of each number, None where the system reports none; the first run that was skipped, where one was."""
    for run in runs:
        if "skipped" in run:
            return run
    numbers = {name: value for name, value in runs[0].items() if not isinstance(value, str)}
    return {name: None if value is None else median(run[name] for run in runs) for name, value in numbers.items()}


def memory_limit(device: str) -> dict[str, int]:
    """The bytes that a process may take; a GPU keeps its limit by itself."""
    is_gpu = torch.device(device).type == "cuda"
    return {} if is_gpu else {"memory_limit": max(available_memory("cpu") - RESERVED, RESERVED)}


# Inside the process that does the work


def measure_work(case: Mapping, send: Callable) -> dict:
    """`seconds` of a case, and `memory_mib` at the peak beyond what was in use before.

    Its `build`, `module:function`, gets the case and the device, makes what has to exist before the work, and returns
    the work.
    """
    device = prepare_process(case)
    work = resolve_name(case["build"])(case, device)
    return measure_repeats(lambda: elapsed_seconds(work, device), 1, device)


def prepare_process(case: Mapping) -> torch.device:
    """Set threads and seed; returns the device of the case."""
    torch.set_num_threads(case["threads"])
    torch.manual_seed(1)
    return torch.device(case["device"])


def measure_repeats(run: Callable[[], float], repeats: int, device: torch.device) -> dict:
    """Median of the `seconds` that `run` returns, and `memory_mib` at the peak beyond what was in use before.

    On a CPU memory is the resident memory of the process, as Linux reports it (None elsewhere), on a GPU what torch has
    allocated.
    """
    before, _ = memory_in_use(device, reset_peak=True)
    seconds = [run() for _ in range(repeats)]
    _, peak = memory_in_use(device)
    mib = None if before is None or peak is None else (peak - before) / 2**20
    return {"seconds": median(seconds), "memory_mib": mib}


def memory_in_use(device: torch.device, reset_peak: bool = False) -> tuple[int | None, int | None]:
    """Bytes in use now, and at the peak since the last `reset_peak`; None where the system does not report them."""
    if device.type == "cuda":
        if reset_peak:
            torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status")
    if not status.is_file():
        return None, None
    if reset_peak:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # sets the peak to what is in use
    lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
    resident, peak = (int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return resident, peak


def trim_memory() -> None:
    """Return the free memory of the process to the system, where the C library can.

    Without it, work that needs no more memory than the work before it would seem to need none.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def return_freed_blocks(min_bytes: int = 2**14) -> None:
    """From now on return memory blocks of at least so many bytes to the system when they are freed (GNU C library).

    Resident memory is then memory in use. Without it, blocks of growing size leave holes that no later block fits,
    which can add up to several times the memory in use. With it the work is slower.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        set_option(-3, min_bytes)  # M_MMAP_THRESHOLD


def available_memory(device: str) -> int:
    """Bytes that a new process may still allocate on a device."""
    if torch.device(device).type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    available, group = psutil.virtual_memory().available, Path("/sys/fs/cgroup")
    limit_file, used_file = group / "memory.max", group / "memory.current"
    if limit_file.is_file() and used_file.is_file():
        limit = limit_file.read_text(encoding="utf-8").strip()
        if limit != "max":
            available = min(available, int(limit) - int(used_file.read_text(encoding="utf-8")))
    return available
