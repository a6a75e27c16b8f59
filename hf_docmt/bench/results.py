"""What a benchmark returns: rows, checks, and the setting that it takes to measure the same again."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import log
from pathlib import Path
from statistics import linear_regression
from typing import Any, Self

import torch
import transformers

from hf_docmt import __version__
from hf_docmt.reports.report import package_commit
from hf_docmt.reports.tables import write_table

SIDES = ("ours", "peer")
HIDDEN = ("precision", "mode", "batch", "name", "tokens", "context")  # columns that repeat a part of `case`


@dataclass(frozen=True, kw_only=True)
class Row:
    """One case: the number of each side in `unit`, ours over the peer's, and `more` columns. None: not measured."""

    case: str
    ours: float | None = None
    peer: float | None = None
    ratio: float | None = None
    unit: str
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, case: str, unit: str, ours: float | None, peer: float | None, **more: Any) -> Self:
        """The row of two numbers and their ratio."""
        return cls(case=case, ours=ours, peer=peer, ratio=ratio_of(ours, peer), unit=unit, **more)

    @classmethod
    def of_speeds(cls, case: str, unit: str, amount: float, seconds: Mapping[str, float], **more: Any) -> Self:
        """The row of the speeds amount / seconds of both sides (keys `SIDES`), which were timed in this process.

        `more` gets the seconds, too.
        """
        ours, peer = (amount / seconds[side] for side in SIDES)
        return cls.of(case, unit, ours, peer, more={f"{side}_seconds": seconds[side] for side in SIDES} | more)

    @property
    def time_ratio(self) -> float | None:
        """Our time over the peer's, from the ratio of speeds."""
        return 1 / self.ratio if self.ratio else None

    def to_json(self) -> dict[str, Any]:
        """The row as a dict; the keys are the names of the fields, and those of `more`."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name != "more"} | dict(self.more)


@dataclass(frozen=True, kw_only=True)
class ScalingRow(Row):
    """A system at one length or context, or the growth of its cost over them.

    `seconds` and `memory_mib` were measured in a process of its own, unless `skipped` says why they were not.
    """

    seconds: float | None = None
    memory_mib: float | None = None
    skipped: str | None = None
    name: str
    tokens: int | None
    context: int | None = None

    @classmethod
    def at_length(cls, name: str, case: Mapping, numbers: Mapping[str, Mapping], peer: str) -> "ScalingRow":
        """The row of a system on the `tokens` of a case beside its peer, which may be itself.

        `numbers` are, of each system, `seconds` and `memory_mib`, or the reason it is `skipped`. Speeds and ratio are
        None where a side was not measured.
        """
        tokens = case["tokens"]
        times = [numbers.get(system, {}).get("seconds") for system in (name, peer)]
        speeds = [tokens / seconds if seconds else None for seconds in times]
        return cls.of(f"{name}, {tokens} tokens", "target tokens/s", *speeds, name=name, tokens=tokens, **numbers[name])

    def to_line(self) -> str:
        """The row as one line for a terminal; the columns of successive lines are aligned."""
        case = f"{self.case:<40}"
        if self.skipped:
            return f"{case}  skipped: {self.skipped}"
        columns = (self.seconds, self.memory_mib, self.ratio)
        seconds, mib, ratio = (" " * 10 + "-" if value is None else f"{value:11.2f}" for value in columns)
        return f"{case} {seconds} s {mib} MiB {ratio} ratio"


def ratio_of(ours: float | None, peer: float | None) -> float | None:
    """Ours over the peer's; None where one was not measured, or there is nothing to be measured by."""
    return ours / peer if ours is not None and peer is not None and peer > 0 else None


def find_row(rows: Sequence[ScalingRow], tokens: int, name: str) -> ScalingRow | None:
    """The row of a system at a length."""
    return next((row for row in rows if (row.name, row.tokens) == (name, tokens)), None)


def growth_rows(name: str, peer: str, rows: Sequence[ScalingRow], lengths: Sequence[int]) -> list[ScalingRow]:
    """Exponents of time and memory of a system and of its peer, each fitted from the second length on.

    `tokens` of a row is the last length at which the system was measured.
    """
    growth = []
    for unit, column in (("exponent of time", "seconds"), ("exponent of memory", "memory_mib")):
        measured = [row for row in rows if row.name == name and getattr(row, column)]
        fitted, peers = (
            [row for row in rows if row.name == system and row.tokens >= lengths[1] and getattr(row, column)]
            for system in (name, peer)
        )
        exponents = growth_exponent(fitted, column), growth_exponent(peers, column)
        span = f"{fitted[0].tokens} to {fitted[-1].tokens} tokens" if fitted else "not measured"
        last = max((row.tokens for row in measured), default=None)
        growth.append(ScalingRow.of(f"{name}, {span}", unit, *exponents, name=f"{name}, {unit}", tokens=last))
    return growth


def growth_exponent(rows: Sequence[ScalingRow], column: str) -> float | None:
    """The e of value ~ tokens^e, by least squares on logarithms; None for fewer than two rows with a value."""
    values = [(row.tokens, getattr(row, column)) for row in rows]
    return least_squares_slope([(log(tokens), log(value)) for tokens, value in values if value])


def least_squares_slope(points: Sequence[tuple[float, float]]) -> float | None:
    """The slope of the line through points (x, y), by least squares; None for fewer than two points."""
    return linear_regression(*zip(*points)).slope if len(points) > 1 else None


@dataclass(frozen=True)
class Check:
    """A value beside its target. `ok` is false where the value was not measured (None)."""

    name: str
    value: float | None
    target: float
    ok: bool

    @classmethod
    def at_least(cls, name: str, value: float | None, target: float) -> "Check":
        """A check that is ok where the value reaches the target."""
        return cls(name, value, target, value is not None and value >= target)

    @classmethod
    def at_most(cls, name: str, value: float | None, target: float) -> "Check":
        """A check that is ok where the value does not exceed the target."""
        return cls(name, value, target, value is not None and value <= target)


@dataclass(frozen=True)
class BenchResult:
    """Rows and checks of a benchmark, and its setting: options, machine, versions."""

    rows: Sequence[Row]
    checks: Sequence[Check]
    setting: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """`rows`, `checks` and `setting`, as `docmt bench NAME --json` prints them."""
        rows, checks = [row.to_json() for row in self.rows], [asdict(check) for check in self.checks]
        return {"rows": rows, "checks": checks, "setting": dict(self.setting)}

    def to_text(self) -> str:
        """Two tables and the setting, for a terminal."""
        rows = [row.to_json() for row in self.rows]
        names = dict.fromkeys(name for row in rows for name in row)  # a peer may not have all cases
        columns = [name for name in names if name not in HIDDEN and not name.endswith("_seconds")]
        cells = [[_cell(row.get(name)) for name in columns] for row in rows]
        checks = [
            [check.name, _cell(check.value), _cell(check.target), "ok" if check.ok else "missed"]
            for check in self.checks
        ]
        setting = [f"{name}: {value}" for name, value in self.setting.items() if value is not None]
        tables = [[columns, *cells], [["check", "value", "target", ""], *checks]]
        return "\n\n".join([*map(write_table, tables), "\n".join(setting)])


def machine_setting(device: str = "cpu") -> dict[str, Any]:
    """Processor, threads and versions of this process; for a GPU its name and the version of CUDA, too."""
    gpu = {}
    if torch.device(device).type == "cuda":
        gpu = {"gpu": torch.cuda.get_device_name(device), "cuda": torch.version.cuda}
    return gpu | {
        "processor": processor_name(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "hf_docmt": __version__,
        "commit": package_commit(),
    }


def processor_name() -> str:
    """The name of the processor, as the system reports it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.processor() or platform.machine())


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.1e}" if 0 < abs(value) < 0.005 else f"{value:.2f}"
