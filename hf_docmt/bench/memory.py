"""Seconds and peak memory of one piece of work, measured inside the process that does it; memory that is available."""

import ctypes
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

import torch

from hf_docmt.bench.timing import elapsed_seconds

BuildWork = Callable[[Mapping, torch.device], Callable[[], object]]


def measure_work(build: BuildWork, case: Mapping) -> dict:
    """Median `seconds` of a case over its `repeats`, and `memory_mib` at the peak beyond what was in use before.

    `build` gets the case and the device, makes what has to exist before the work, and returns the work.
    """
    device = prepare_process(case)
    work = build(case, device)
    return measure_repeats(lambda: elapsed_seconds(work, device), case["repeats"], device)


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


def available_memory(device: str) -> float:
    """Bytes that a new process may still allocate on a device; infinite where the system does not report them."""
    if torch.device(device).type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    available, info, group = float("inf"), Path("/proc/meminfo"), Path("/sys/fs/cgroup")
    if info.is_file():
        lines = dict(line.split(":") for line in info.read_text(encoding="utf-8").splitlines())
        available = int(lines["MemAvailable"].split()[0]) * 1024
    limit_file, used_file = group / "memory.max", group / "memory.current"
    if limit_file.is_file() and used_file.is_file():
        limit = limit_file.read_text(encoding="utf-8").strip()
        if limit != "max":
            available = min(available, int(limit) - int(used_file.read_text(encoding="utf-8")))
    return available
