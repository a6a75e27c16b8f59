"""Seconds and peak memory of one piece of work, measured inside the process that does it."""

import ctypes
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

import torch

Build = Callable[[Mapping, torch.device], Callable[[], object]]


def gauge(build: Build, case: Mapping) -> dict:
    """Median seconds of `repeats` times the work of a case, and MiB that it needs at its peak beyond what was there.

    `build` takes the case and the device, makes what stands before the work, and returns the work.
    """
    device = prepare(case)
    work = build(case, device)
    return gauged(lambda: timed(work, device), case["repeats"], device)


def prepare(case: Mapping) -> torch.device:
    """The device of a case, after threads and seed are set."""
    torch.set_num_threads(case["threads"])
    torch.manual_seed(1)
    return torch.device(case["device"])


def gauged(run: Callable[[], float], repeats: int, device: torch.device) -> dict:
    """Median of the `seconds` that `run` tells of itself, and `memory_mib` that it needs at its peak.

    Memory is what comes on top of what was there. On a CPU it is the resident memory of the process, as Linux tells it
    (null elsewhere), on a GPU what torch has allocated.
    """
    before, _ = memory_of(device, reset=True)
    seconds = [run() for _ in range(repeats)]
    _, peak = memory_of(device)
    return {"seconds": median(seconds), "memory_mib": None if peak is None else (peak - before) / 2**20}


def timed(work: Callable[[], object], device: torch.device) -> float:
    """Seconds of some work, to the end of what it has asked a GPU for."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    started = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - started


def memory_of(device: torch.device, reset: bool = False) -> tuple[int | None, int | None]:
    """Bytes that are taken now, and at the peak since the last `reset`; None where the system does not tell."""
    if device.type == "cuda":
        if reset:
            torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device), torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status")
    if not status.is_file():
        return None, None
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak begins at what is taken now
    lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
    return tuple(int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))


def trim_memory() -> None:
    """Return memory that is free inside the process to the system, where the C library can.

    Without it, work that needs no more than what ran before it would seem to need nothing.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def release_at_once(least: int = 2**14) -> None:
    """From now on memory blocks of at least so many bytes go back to the system when they are freed (GNU C library).

    What is resident is then what is in use. Without it blocks of growing size leave holes that no later one fits, which
    can be several times what is in use; with it work is slower.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        set_option(-3, least)  # M_MMAP_THRESHOLD
