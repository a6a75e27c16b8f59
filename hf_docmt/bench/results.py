"""What a benchmark returns: rows, checks, and the setting that it takes to measure the same again."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
import transformers

from hf_docmt import __version__
from hf_docmt.reports.report import package_commit
from hf_docmt.reports.tables import cells_frame, write_table

SIDES = ("ours", "peer")
HIDDEN = ("precision", "mode", "batch", "name", "tokens", "context")  # columns that repeat a part of `case`


@dataclass(frozen=True, kw_only=True)
class Row:
    """One case: the number of each side in `unit`, and ours over the peer's. None: it was not measured."""

    case: str
    ours: float | None = None
    peer: float | None = None
    ratio: float | None = None
    unit: str

    def to_json(self) -> dict[str, Any]:
        """The row as a dict; the keys are the names of the fields."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True, kw_only=True)
class SpeedRow(Row):
    """Two sides that were timed in this process. `more` are further columns."""

    ours_seconds: float
    peer_seconds: float
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, case: str, unit: str, amounts: Mapping[str, float], seconds: Mapping[str, float], **more: Any
    ) -> "SpeedRow":
        """The row of the speeds amount / seconds of both sides (keys `SIDES`).

        For equal amounts `ratio` is the peer's time over ours.
        """
        ours, peer = (amounts[side] / seconds[side] for side in SIDES)
        times = {f"{side}_seconds": seconds[side] for side in SIDES}
        return cls(case=case, ours=ours, peer=peer, ratio=ours / peer, unit=unit, **times, more=more)

    def to_json(self) -> dict[str, Any]:
        row = super().to_json()
        return row | row.pop("more")


@dataclass(frozen=True, kw_only=True)
class ScalingRow(Row):
    """A system at one length, or the growth of its cost over the lengths.

    `seconds` and `memory_mib` were measured in a process of its own, unless `skipped` says why they were not.
    """

    seconds: float | None = None
    memory_mib: float | None = None
    skipped: str | None = None
    name: str
    tokens: int | None

    def to_line(self) -> str:
        """The row as one line for a terminal; the columns of successive lines are aligned."""
        case = f"{self.case:<40}"
        if self.skipped:
            return f"{case}  skipped: {self.skipped}"
        columns = (self.seconds, self.memory_mib, self.ratio)
        seconds, mib, ratio = (" " * 10 + "-" if value is None else f"{value:11.2f}" for value in columns)
        return f"{case} {seconds} s {mib} MiB {ratio} ratio"


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

    @classmethod
    def of(cls, rows: Sequence[Row], checks: Sequence[Check], **options: Any) -> "BenchResult":
        """The result of a run on this machine with these options; `device` is where it ran, cpu without it."""
        return cls(list(rows), list(checks), options | machine_setting(options.get("device", "cpu")))

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
        frames = [cells_frame([columns, *cells]), cells_frame([["check", "value", "target", ""], *checks])]
        return "\n\n".join([*map(write_table, frames), "\n".join(setting)])


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
