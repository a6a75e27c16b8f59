"""The base class of benchmarks: a dataclass whose fields are the options, checked by their names."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import torch

from hf_docmt.bench.models import SPECIAL_TOKENS, TRANSFORMER_BASE
from hf_docmt.bench.results import BenchResult, Check, Row, machine_setting

OnRow = Callable[[Row], None]
PRECISIONS = ("fp32", "bf16")


def ignore_row(row: Row) -> None:
    """Do nothing with a row."""


def option(default: Any, help: str) -> Any:
    """A field of a benchmark that the command line offers, with its help: an int, float, str, or tuple of int."""
    return field(default=default, metadata={"help": help})


@dataclass(kw_only=True)
class Benchmark(ABC):
    """A comparison of speed or memory. Its fields are its options, `run` measures.

    A subclass is a dataclass and writes `run`; `hf_docmt.bench` names it and its command, which has the options that
    were made with `option`. `docmt bench all` runs it once with each of `report_options`, never without any.
    ValueError: an option cannot be used; what a name asks for is in `CHECKS`.
    """

    report_options: ClassVar[Sequence[Mapping[str, Any]]] = ()  # of each of its runs in the report of `bench all`

    def __post_init__(self) -> None:
        for one in fields(self):
            CHECKS.get(one.name, ignore_value)(one.name, getattr(self, one.name))

    @abstractmethod
    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        """Measure. `on_row` is called with each row as soon as it is measured."""

    def result(self, rows: Sequence[Row], checks: Sequence[Check], **more: Any) -> BenchResult:
        """The result with the options and the machine as its setting; `device` is where it ran, cpu without it."""
        options = {one.name: plain(getattr(self, one.name)) for one in fields(self)} | more
        return BenchResult(list(rows), list(checks), options | machine_setting(options.get("device", "cpu")))


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, tuple | list):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else str(value) if isinstance(value, Path) else value


def ignore_value(name: str, value: Any) -> None:
    """Any value will do."""


# Checks of a value by the name of its field; ValueError says what is expected.


def check_positive(name: str, value: Any) -> None:
    """A whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")


def check_some(name: str, values: Sequence[int]) -> None:
    """Whole numbers of at least 1, not none."""
    if not values:
        raise ValueError(f"{name}: expected at least one, got none")
    for value in values:
        check_positive(name, value)


def check_lengths(name: str, lengths: Sequence[int]) -> None:
    """At least three lengths, over which a growth can be fitted."""
    for length in lengths:
        check_positive(name, length)
    if len(lengths) < 3 or list(lengths) != sorted(set(lengths)):
        raise ValueError(f"{name}: expected at least three, from the shortest to the longest, got {list(lengths)}")


def check_sizes(name: str, sizes: Mapping[str, int] | None) -> None:
    """The sizes of a model, all of them."""
    if sizes is not None and sizes.keys() != TRANSFORMER_BASE.keys():
        raise ValueError(f"{name}: got {sorted(sizes)}, expected {sorted(TRANSFORMER_BASE)}")


def check_vocab_size(name: str, size: int) -> None:
    """More than the special tokens."""
    if size <= SPECIAL_TOKENS:
        least = SPECIAL_TOKENS + 1
        raise ValueError(f"{name}: expected at least {least} ({SPECIAL_TOKENS} special tokens), got {size}")


def check_device(name: str, device: str) -> None:
    """A device that this machine has."""
    if device != "cpu" and not (device.split(":")[0] == "cuda" and torch.cuda.is_available()):
        raise ValueError(f"{name}: expected cpu, or cuda where there is one, got {device!r}")


def check_time_limit(name: str, time_limit: float) -> None:
    """Seconds, more than none."""
    if not time_limit > 0:
        raise ValueError(f"{name}: expected more than 0 seconds, got {time_limit!r}")


def check_precision(name: str, precision: str) -> None:
    """One of `PRECISIONS`."""
    if precision not in PRECISIONS:
        raise ValueError(f"{name}: expected {' or '.join(PRECISIONS)}, got {precision!r}")


def check_documents(name: str, documents: str | Path | int) -> None:
    """A file, or a number of documents of the built-in corpus."""
    if isinstance(documents, int):
        check_positive(name, documents)


POSITIVE = (
    "repeats", "tokens", "chunk", "items", "number", "batch_size", "steps", "sentences", "max_tokens", "pairs",
    "memory_pairs", "updates", "matrix_size", "copied_mib",
)  # fmt: skip
CHECKS: dict[str, Callable[[str, Any], None]] = {
    **dict.fromkeys(POSITIVE, check_positive),
    "batch_sizes": check_some,
    "lengths": check_lengths,
    "sizes": check_sizes,
    "vocab_size": check_vocab_size,
    "device": check_device,
    "time_limit": check_time_limit,
    "precision": check_precision,
    "documents": check_documents,
}
