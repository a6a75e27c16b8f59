"""The base class of benchmarks: a dataclass whose fields are the options, checked by their names."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch

from hf_docmt.bench.models import SPECIAL_TOKENS, TRANSFORMER_BASE
from hf_docmt.bench.results import BenchResult, Check, Row, machine_setting

OnRow = Callable[[Row], None]
WORKS = ("translation", "training")  # whose cost by context is measured


def ignore_row(row: Row) -> None:
    """Do nothing with a row."""


@dataclass(kw_only=True)
class Benchmark(ABC):
    """A comparison of speed or memory. Its fields are its options, `run` measures.

    A subclass is a dataclass and writes `run`; options of the command line come from `hf_docmt.bench.options`.
    `docmt bench all` runs it once with each of `report_options`, never without any.
    ValueError: an option cannot be used; what a name asks for is in `CHECKS`.
    """

    report_options: ClassVar[Sequence[Mapping[str, Any]]] = ()  # of each of its runs in the report of `bench all`

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            for fits, expected in CHECKS.get(name, ()):
                if not fits(value):
                    raise ValueError(f"{name}: expected {expected}, got {plain(value)!r}")

    @abstractmethod
    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        """Measure. `on_row` is called with each row as soon as it is measured."""

    def shared_case(self, **more: Any) -> dict:
        """All options and `more`, for a process of its own."""
        return self.options() | {"threads": torch.get_num_threads()} | more

    def result(self, rows: Sequence[Row], checks: Sequence[Check], **more: Any) -> BenchResult:
        """The result with the options and the machine as its setting; `device` is where it ran, cpu without it."""
        options = self.options() | more
        return BenchResult(list(rows), list(checks), options | machine_setting(options.get("device", "cpu")))

    def options(self) -> dict[str, Any]:
        """The options as JSON has them."""
        return {name: plain(value) for name, value in asdict(self).items()}


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    return list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value


# Checks of options, by the names of their fields: a test, and what is expected

Test = tuple[Callable[[Any], object], str]


def _at_least(least: int) -> Test:
    return lambda value: type(value) is int and value >= least, f"a whole number of at least {least}"


def _each_at_least(least: int) -> Test:
    fits, _ = _at_least(least)
    return lambda values: all(map(fits, values)), f"whole numbers of at least {least}"


def _one_of(*values: str) -> Test:
    return values.__contains__, " or ".join(values)


def _is_here(device: str) -> bool:
    return device == "cpu" or (device.split(":")[0] == "cuda" and torch.cuda.is_available())


def _is_rising(values: Sequence[int]) -> bool:
    return list(values) == sorted(set(values))


POSITIVE = (
    "repeats", "tokens", "chunk", "items", "number", "batch_size", "steps", "sentences", "max_tokens", "pairs",
    "memory_pairs", "matrix_size", "copied_mib",
)  # fmt: skip
CHECKS: dict[str, list[Test]] = {
    **{name: [_at_least(1)] for name in POSITIVE},
    "batch_sizes": [(len, "at least one"), _each_at_least(1)],
    "contexts": [
        _each_at_least(0),
        (
            lambda values: _is_rising(values) and sum(value > 0 for value in values) > 1,
            "at least two of 1 or more, from the fewest sentences to the most",
        ),
    ],
    "device": [(_is_here, "cpu, or cuda where there is one")],
    "documents": [
        (lambda value: not isinstance(value, int) or _at_least(1)[0](value), "a whole number of at least 1"),
    ],
    "lengths": [
        _each_at_least(1),
        (lambda values: _is_rising(values) and len(values) > 2, "at least three, from the shortest to the longest"),
    ],
    "precision": [_one_of("fp32", "bf16")],
    "precisions": [(len, "at least one"), ({"fp32", "bf16", "int8"}.issuperset, "some of fp32, bf16, int8")],
    "size": [_one_of("base", "small")],
    "sizes": [(lambda sizes: sizes is None or sizes.keys() == TRANSFORMER_BASE.keys(), ", ".join(TRANSFORMER_BASE))],
    "stream_sentences": [
        (
            lambda value: type(value) is int and (value == 0 or value >= 10),
            "0 (not measured) or a whole number of at least 10",
        )
    ],
    "time_limit": [(lambda value: value > 0, "more than 0 seconds")],
    "updates": [(_at_least(2)[0], "at least 2, as speed is measured after the first")],
    "vocab_size": [
        (
            lambda size: size is None or size > SPECIAL_TOKENS,
            f"at least {SPECIAL_TOKENS + 1} ({SPECIAL_TOKENS} special tokens)",
        )
    ],
    "work": [_one_of(*WORKS)],
}
