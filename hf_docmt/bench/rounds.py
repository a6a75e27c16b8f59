"""Systems that are measured in alternating rounds, each measurement in a process of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isinf
from statistics import median

import torch

from hf_docmt.bench.memory import available_memory
from hf_docmt.bench.results import ScalingRow
from hf_docmt.bench.subprocesses import measure_in_subprocess

RESERVED = 2**30  # bytes that are left to the machine


@dataclass(frozen=True)
class BenchSystem:
    """One way to translate: an architecture with fields of its configuration, and a strategy.

    `whole`: the document is one source of all tokens; otherwise it comes in chunks of equal length.
    """

    architecture: str
    strategy: str
    whole: bool = False
    fields: Mapping = field(default_factory=dict)


def alternate_rounds(
    module: str, cases: Mapping[str, Mapping], shorter: Sequence[ScalingRow], repeats: int, time_limit: float
) -> Iterator[tuple[str, dict]]:
    """After each measurement the system's name and its medians of `seconds` and `memory_mib`, or why it is `skipped`.

    The medians are over the rounds so far; the last ones are the result. Every round measures each system once, every
    other round in reverse order, so that what slows the machine for a while slows all of them. `module` measures a
    case in a subprocess, which is stopped after `time_limit` seconds and where it needs more memory than is available.
    `shorter` are rows at shorter lengths: what was stopped there is not tried again.
    """
    runs: dict[str, list[dict]] = {}
    for name in cases:
        stopped = next((row for row in shorter if row.name == name and row.skipped), None)
        if stopped is not None:
            yield name, {"skipped": f"at {stopped.tokens} tokens: {stopped.skipped}"}
        else:
            runs[name] = []
    for number in range(repeats):
        for name in list(runs)[:: -1 if number % 2 else 1]:
            numbers = measure_in_subprocess(module, cases[name] | memory_limit(cases[name]["device"]), time_limit)
            if "skipped" in numbers:
                del runs[name]
                yield name, numbers
            else:
                runs[name].append(numbers)
                yield name, medians(runs[name])


def medians(runs: Sequence[Mapping]) -> dict:
    """The median of each number; None where the system reports none."""
    return {name: None if value is None else median(run[name] for run in runs) for name, value in runs[0].items()}


def memory_limit(device: str) -> dict[str, int]:
    """The bytes that a process may take, where the system reports them; a GPU keeps its limit by itself."""
    available = available_memory("cpu")
    if torch.device(device).type == "cuda" or isinf(available):
        return {}
    return {"memory_limit": max(int(available) - RESERVED, RESERVED)}
