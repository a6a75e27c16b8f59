"""Ways to translate that take turns: each measurement in a process of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from hf_docmt.bench.subprocesses import free_memory, measure_in_subprocess, reason_to_skip


@dataclass(frozen=True)
class System:
    """One way to translate: an architecture with fields of its configuration, and a strategy.

    `whole`: all tokens are one source; otherwise they come in chunks of equal length.
    """

    architecture: str
    strategy: str
    whole: bool = False
    fields: Mapping = field(default_factory=dict)


def alternate_rounds(
    process: str, cases: Mapping[str, Mapping], before: Sequence[Mapping], repeats: int, time_limit: float
) -> Iterator[tuple[str, dict]]:
    """After each measurement the system's name and its medians of `seconds` and `memory_mib`, or why it is `skipped`.

    The medians are over the rounds so far, in which the systems take turns: the last ones count. Every other round
    begins with the last system, so that what slows the machine for a while slows all of them. `process` is the module
    that measures a case.
    """
    runs: dict[str, list[dict]] = {}
    for name, case in cases.items():
        shorter = [row for row in before if row["name"] == name]
        reason = reason_to_skip(shorter, case["tokens"], 1, time_limit, free_memory(case["device"]))
        if reason:
            yield name, {"skipped": reason}
        else:
            runs[name] = []
    for number in range(repeats):
        for name in list(runs)[:: -1 if number % 2 else 1]:
            found = measure_in_subprocess(process, cases[name], time_limit)
            if "skipped" in found:
                del runs[name]
                yield name, found
            else:
                runs[name].append(found)
                yield name, medians(runs[name])


def medians(runs: Sequence[Mapping]) -> dict:
    """The median of each number; null where the system tells none."""
    return {name: None if value is None else median(run[name] for run in runs) for name, value in runs[0].items()}
