"""Systems that are measured in alternating rounds, each measurement in a process of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from hf_docmt.bench.memory import available_memory
from hf_docmt.bench.results import ScalingRow
from hf_docmt.bench.scaling import reason_to_skip
from hf_docmt.bench.subprocesses import measure_in_subprocess


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
    case in a subprocess. `shorter` are rows at shorter lengths, see `reason_to_skip`.
    """
    runs: dict[str, list[dict]] = {}
    for name, case in cases.items():
        rows = [row for row in shorter if row.name == name]
        reason = reason_to_skip(rows, case["tokens"], 1, time_limit, available_memory(case["device"]))
        if reason:
            yield name, {"skipped": reason}
        else:
            runs[name] = []
    for number in range(repeats):
        for name in list(runs)[:: -1 if number % 2 else 1]:
            numbers = measure_in_subprocess(module, cases[name], time_limit)
            if "skipped" in numbers:
                del runs[name]
                yield name, numbers
            else:
                runs[name].append(numbers)
                yield name, medians(runs[name])


def medians(runs: Sequence[Mapping]) -> dict:
    """The median of each number; None where the system reports none."""
    return {name: None if value is None else median(run[name] for run in runs) for name, value in runs[0].items()}
