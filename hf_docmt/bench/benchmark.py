"""The base class of benchmarks: a dataclass whose fields are the options, checked by their names."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import torch

from hf_docmt.bench.models import SPECIAL_TOKENS, TRANSFORMER_BASE
from hf_docmt.bench.results import BenchResult, Check, Row, machine_setting

OnRow = Callable[[Row], None]
PRECISIONS = ("fp32", "bf16")
INT8_TOO = {*PRECISIONS, "int8"}
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
        for item in fields(self):
            value = getattr(self, item.name)
            for fits, expected in CHECKS.get(item.name, ()):
                if not fits(value):
                    raise ValueError(f"{item.name}: expected {expected}, got {plain(value)!r}")

    @abstractmethod
    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        """Measure. `on_row` is called with each row as soon as it is measured."""

    def shared_case(self, **more: Any) -> dict:
        """All options and `more`, for a process of its own."""
        options = {item.name: plain(getattr(self, item.name)) for item in fields(self)}
        return options | {"threads": torch.get_num_threads()} | more

    def result(self, rows: Sequence[Row], checks: Sequence[Check], **more: Any) -> BenchResult:
        """The result with the options and the machine as its setting; `device` is where it ran, cpu without it."""
        options = {item.name: plain(getattr(self, item.name)) for item in fields(self)} | more
        return BenchResult(list(rows), list(checks), options | machine_setting(options.get("device", "cpu")))


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, tuple | list):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else str(value) if isinstance(value, Path) else value


# Checks of options, by the names of their fields: a test, and what is expected


def _is_positive(value: Any) -> bool:
    return type(value) is int and value >= 1


def _are_positive(values: Sequence) -> bool:
    return all(map(_is_positive, values))


def _is_here(device: str) -> bool:
    return device == "cpu" or (device.split(":")[0] == "cuda" and torch.cuda.is_available())


def _is_rising(values: Sequence[int]) -> bool:
    return list(values) == sorted(set(values))


WHOLE = "a whole number of at least 1"
POSITIVE = (
    "repeats", "tokens", "chunk", "items", "number", "batch_size", "steps", "sentences", "max_tokens", "pairs",
    "memory_pairs", "matrix_size", "copied_mib",
)  # fmt: skip
CHECKS: dict[str, list[tuple[Callable[[Any], object], str]]] = {
    **{name: [(_is_positive, WHOLE)] for name in POSITIVE},
    "batch_sizes": [(len, "at least one"), (_are_positive, "whole numbers of at least 1")],
    "contexts": [
        (lambda values: all(type(value) is int and value >= 0 for value in values), "whole numbers of at least 0"),
        (
            lambda values: _is_rising(values) and sum(value > 0 for value in values) > 1,
            "at least two of 1 or more, from the fewest sentences to the most",
        ),
    ],
    "device": [(_is_here, "cpu, or cuda where there is one")],
    "documents": [(lambda value: not isinstance(value, int) or _is_positive(value), WHOLE)],
    "lengths": [
        (_are_positive, "whole numbers of at least 1"),
        (
            lambda values: _is_rising(values) and len(values) > 2,
            "at least three, from the shortest to the longest",
        ),
    ],
    "precision": [(PRECISIONS.__contains__, " or ".join(PRECISIONS))],
    "precisions": [(len, "at least one"), (INT8_TOO.issuperset, "some of fp32, bf16, int8")],
    "size": [(("base", "small").__contains__, "base or small")],
    "sizes": [
        (lambda sizes: sizes is None or sizes.keys() == TRANSFORMER_BASE.keys(), f"{', '.join(TRANSFORMER_BASE)}")
    ],
    "stream_sentences": [
        (
            lambda value: type(value) is int and (value == 0 or value >= 10),
            "0 (not measured) or a whole number of at least 10",
        )
    ],
    "time_limit": [(lambda value: value > 0, "more than 0 seconds")],
    "updates": [(lambda value: _is_positive(value) and value > 1, "at least 2, as speed is measured after the first")],
    "vocab_size": [
        (
            lambda size: size is None or size > SPECIAL_TOKENS,
            f"at least {SPECIAL_TOKENS + 1} ({SPECIAL_TOKENS} special tokens)",
        )
    ],
    "work": [(WORKS.__contains__, " or ".join(WORKS))],
}
