"""The base class of benchmarks: one subclass, in one file, for each of them."""

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch

from hf_docmt.bench.marian import TRANSFORMER_BASE
from hf_docmt.bench.results import BenchResult, Row

BENCHMARKS: dict[str, type["Benchmark"]] = {}  # every class by its name, in the order of registration
SPECIAL_TOKENS = 6  # number of special tokens; their ids are the first ones

OnRow = Callable[[Row], None]


def ignore_row(row: Row) -> None:
    """Do nothing with a row."""


def option(default: Any, help: str) -> Any:
    """A field of a benchmark that the command line offers, with its help: an int, float, str, or tuple of int."""
    return field(default=default, metadata={"help": help})


@dataclass(kw_only=True)
class Benchmark(ABC):
    """A comparison of speed or memory. Its fields are its options, `run` measures.

    A subclass is a dataclass, sets `name`, checks its options in `__post_init__` (ValueError) and writes `run`. It is
    registered when it is defined and becomes `docmt bench NAME`; of its options the command has those that were made
    with `option`. Several benchmarks share one command when they name it as their `command` and differ in `by`, for
    example `docmt bench cost --by length`, or in the value of another `option_of_choice`. Their common options have the
    same defaults.

    `docmt bench all` runs it once with each of `report_options`, never without any.
    """

    name: ClassVar[str]
    help: ClassVar[str]  # text for --help
    command: ClassVar[str]  # default: `name`
    by: ClassVar[str | None] = None  # value of the option that chooses, where the command has several benchmarks
    option_of_choice: ClassVar[str] = "by"  # that option
    default_by: ClassVar[bool] = False  # whether it is the one without that option
    report_options: ClassVar[Sequence[Mapping[str, Any]]] = ()  # of each of its runs in the report of `bench all`

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "name" not in vars(cls):
            return
        cls.command = vars(cls).get("command", cls.name)
        other = BENCHMARKS.setdefault(cls.name, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"two benchmarks have the name {cls.name!r}: {other} and {cls}; give one another name")
        BENCHMARKS[cls.name] = cls

    @abstractmethod
    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        """Measure. `on_row` is called with each row as soon as it is measured."""


def load_benchmarks() -> dict[str, type[Benchmark]]:
    """All benchmarks by name, after every module of this package has been imported."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"{__package__}.{module.name}")
    return BENCHMARKS


def check_positive(**numbers: int) -> None:
    """Raise `ValueError` for an argument that is not a whole number of at least 1."""
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")


def check_model(sizes: Mapping[str, int], vocab_size: int) -> None:
    """Raise `ValueError` for sizes and vocabularies that no model can have."""
    if sizes.keys() != TRANSFORMER_BASE.keys():
        raise ValueError(f"sizes: got {sorted(sizes)}, expected {sorted(TRANSFORMER_BASE)}")
    if vocab_size <= SPECIAL_TOKENS:
        least = SPECIAL_TOKENS + 1
        raise ValueError(f"vocab_size: expected at least {least} ({SPECIAL_TOKENS} special tokens), got {vocab_size}")


def check_device(device: str) -> None:
    """Raise `ValueError` for a device that this machine does not have."""
    if device != "cpu" and not (device.split(":")[0] == "cuda" and torch.cuda.is_available()):
        raise ValueError(f"device: expected cpu, or cuda where there is one, got {device!r}")


def check_time_limit(time_limit: float) -> None:
    """Raise `ValueError` for a limit that nothing keeps."""
    if not time_limit > 0:
        raise ValueError(f"time_limit: expected more than 0 seconds, got {time_limit!r}")


def check_lengths(lengths: Sequence[int]) -> None:
    """Raise `ValueError` for lengths over which no growth can be fitted."""
    for length in lengths:
        check_positive(lengths=length)
    if len(lengths) < 3 or list(lengths) != sorted(set(lengths)):
        raise ValueError(f"lengths: expected at least three, from the shortest to the longest, got {list(lengths)}")
