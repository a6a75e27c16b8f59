"""Side-by-side timing: both sides alternate in one run, and the median of their times is reported."""

import time
from collections.abc import Callable, Mapping
from statistics import median

import torch

from hf_docmt.bench.benchmark import check_positive


def median_seconds(sides: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """Median seconds of each side over `repeats` rounds, after a warm-up round.

    A side is a function that does its work once and returns the seconds it took. Every other round runs in reverse
    order, so that what slows the machine for a while slows both sides.
    """
    check_positive(repeats=repeats)
    names = list(sides)
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(repeats + 1):
        for name in names[:: -1 if number % 2 else 1]:
            seconds = sides[name]()
            if number > 0:
                times[name].append(seconds)
    return {name: median(values) for name, values in times.items()}


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
