"""A measurement in a process of its own, so that its peak memory is its own, and what it may take."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from math import log
from pathlib import Path

import torch

GIB = 2**30
SPARE = GIB  # memory that is left to weights and to the machine


def measure_in_subprocess(module: str, case: Mapping, time_limit: float) -> dict:
    """What `python -m module` prints as JSON when it reads `case` as JSON; {"skipped": reason} where it fails."""
    command = [sys.executable, "-m", module]
    try:
        done = subprocess.run(command, input=json.dumps(case), capture_output=True, text=True, timeout=time_limit)
    except subprocess.TimeoutExpired:
        return {"skipped": f"not done after {time_limit:g} s"}
    if done.returncode < 0:
        return {"skipped": f"its process was ended by {signal.Signals(-done.returncode).name}"}
    if done.returncode:
        return {"skipped": (done.stderr.strip() or "no message").splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def reason_to_skip(before: Sequence[Mapping], tokens: int, repeats: int, time_limit: float, free: float) -> str | None:
    """Why so many tokens would not fit into time or memory, going by shorter lengths; None where they would.

    `before` are rows with `tokens`, `seconds` and `memory_mib`, in order. Growth goes on as between the last two, at
    least linear and at most with the square; with one row it is the square.
    """
    seconds, mib = (predicted(before, tokens, name) for name in ("seconds", "memory_mib"))
    if mib is not None and mib * 2**20 + SPARE > free:
        return f"would need about {mib / 1024:.1f} GiB more memory, {free / GIB:.1f} GiB are free"
    if seconds is not None and seconds * repeats > time_limit:
        return f"would take about {seconds * repeats:.0f} s, the limit is {time_limit:g} s"
    return None


def predicted(before: Sequence[Mapping], tokens: int, name: str) -> float | None:
    rows = [row for row in before if row[name]]
    if not rows:
        return None
    last = rows[-1]
    exponent = growth_exponent(rows[-2:], name)
    return last[name] * (tokens / last["tokens"]) ** (2.0 if exponent is None else min(max(exponent, 1.0), 2.0))


def growth_exponent(rows: Sequence[Mapping], name: str) -> float | None:
    """The e of value ~ tokens^e, by least squares on logarithms; None for fewer than two rows with a value."""
    return slope([(log(row["tokens"]), log(row[name])) for row in rows if row[name]])


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """What y rises by for each x, by least squares; None for fewer than two points."""
    if len(points) < 2:
        return None
    across, upwards = (sum(values) / len(points) for values in zip(*points))
    spread = sum((x - across) ** 2 for x, _ in points)
    return sum((x - across) * (y - upwards) for x, y in points) / spread


def free_memory(device: str) -> float:
    """Bytes that a new process may still take on a device; infinite where the system does not tell."""
    if torch.device(device).type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    free, info, group = float("inf"), Path("/proc/meminfo"), Path("/sys/fs/cgroup")
    if info.is_file():
        lines = dict(line.split(":") for line in info.read_text(encoding="utf-8").splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    limit, used = group / "memory.max", group / "memory.current"
    if limit.is_file() and used.is_file() and (most := limit.read_text(encoding="utf-8").strip()) != "max":
        free = min(free, int(most) - int(used.read_text(encoding="utf-8")))
    return free
