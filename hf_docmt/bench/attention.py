"""Cost of attention by length: a training step on documents of growing length, each architecture beside `concat`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from hf_docmt import registry
from hf_docmt.bench.benchmark import (
    Benchmark,
    OnRow,
    check_device,
    check_lengths,
    check_model,
    check_positive,
    check_time_limit,
    ignore_row,
    option,
)
from hf_docmt.bench.marian import TRANSFORMER_BASE
from hf_docmt.bench.memory import available_memory
from hf_docmt.bench.results import BenchResult, Check, ScalingRow
from hf_docmt.bench.scaling import find_row, growth_rows, reason_to_skip, scaling_row
from hf_docmt.bench.subprocesses import measure_in_subprocess

PEER = "concat sdpa"
CASES = {  # name: architecture, implementation, fields of its configuration
    PEER: ("concat", "sdpa", {}),
    "concat eager": ("concat", "eager", {}),
    "lst": ("lst", "sdpa", {}),
    "window w=10": ("window", "sdpa", {"window": 10}),
    "window w=20": ("window", "sdpa", {"window": 20}),
}
LINEAR = ("window w=10", "window w=20")  # cases whose cost has to grow linearly
ALONE = {"sdpa": {}, "eager": {}, "window": {"window": 20}}  # attention alone, at the last length
MAX_EXPONENT, MIN_RATIO = 1.1, 1.0  # exponent of time and memory; ratio from the second length on
ALONE_MIN_RATIO, ALONE_MAX_MEMORY, EAGER_MAX_MEMORY = (
    25.0,
    2.0,
    1 / 30,
)  # times sdpa's speed, its memory, eager's memory


@dataclass(kw_only=True)
class AttentionBenchmark(Benchmark):
    """Target tokens a second and extra memory of a training step, forward and backward, on one document.

    Herold and Ney (2023), table 2: the first three lengths are theirs. The document has as many source as target
    tokens, in sentences of 25. The update of the weights is left out, since its cost does not depend on the length.
    Every measurement has a process of its own; at each length the cases follow each other. `peer` is `concat` with sdpa
    at the same length. A length is skipped where, extrapolated from the shorter ones, it would need more than the
    available memory or more than `time_limit` seconds; `skipped` says why. At the last length attention alone is
    measured, too (8 heads of 64, w = 20).

    After them come the exponents with which time and memory grow, fitted from the second length on.
    """

    name = "attention"
    help = (
        "Time and memory of a training step by length: concat, lst and window attention.\n\n"
        "Every row is printed on standard error as soon as it is measured."
    )
    report_options = ({"lengths": (1024, 2208, 4096), "repeats": 1, "time_limit": 120.0},)

    repeats: int = option(3, "Steps of each case, the median is reported.")
    lengths: tuple[int, ...] = option((736, 1472, 2208, 4096, 8192), "Tokens of the documents, separated by commas.")
    sizes: Mapping[str, int] = field(default_factory=lambda: TRANSFORMER_BASE)
    vocab_size: int = 15000
    device: str = option("cpu", "cpu or cuda.")
    time_limit: float = option(600, "Longest time of a case at one length, in seconds.")

    def __post_init__(self) -> None:
        check_lengths(self.lengths)
        check_positive(repeats=self.repeats)
        check_model(self.sizes, self.vocab_size)
        check_device(self.device)
        check_time_limit(self.time_limit)

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        rows: list[ScalingRow] = []
        for tokens in self.lengths:
            for name in CASES:
                shorter = [row for row in rows if row.name == name]
                numbers = measure_or_skip(self.step_case(name, tokens), shorter, self.time_limit)
                rows.append(scaling_row(name, tokens, numbers, find_row(rows, tokens, PEER)))
                on_row(rows[-1])
        tokens = self.lengths[-1]
        for implementation in ALONE:
            numbers = measure_or_skip(self.alone_case(implementation, tokens), (), self.time_limit)
            peer = find_row(rows, tokens, "attention alone, sdpa")
            rows.append(scaling_row(f"attention alone, {implementation}", tokens, numbers, peer))
            on_row(rows[-1])
        growth = [row for name in CASES for row in growth_rows(name, PEER, rows, self.lengths)]
        setting = {"lengths": list(self.lengths), "repeats": self.repeats, "vocab_size": self.vocab_size}
        setting |= {"sizes": dict(self.sizes), "device": self.device, "time_limit": self.time_limit}
        return BenchResult.of(rows + growth, target_checks(rows, growth, self.lengths), **setting)

    def step_case(self, name: str, tokens: int) -> dict:
        """The training step of one of `CASES`, for `hf_docmt.bench.attention_step`."""
        architecture, implementation, fields = CASES[name]
        case = {"architecture": architecture, "implementation": implementation, "fields": fields}
        case |= {"work": "training step", "sizes": dict(self.sizes), "vocab_size": self.vocab_size}
        return case | self.shared_case(tokens)

    def alone_case(self, implementation: str, tokens: int) -> dict:
        """Attention alone, for `hf_docmt.bench.attention_step`."""
        case = {"implementation": implementation, "fields": ALONE[implementation], "work": "attention alone"}
        return case | self.shared_case(tokens)

    def shared_case(self, tokens: int) -> dict:
        """What all cases at a length have in common."""
        threads = torch.get_num_threads()
        return {"repeats": self.repeats, "device": self.device, "threads": threads, "tokens": tokens}


def measure_or_skip(case: Mapping, shorter: Sequence[ScalingRow], time_limit: float) -> dict:
    """`seconds` and `memory_mib` of a case, or why it is `skipped`; `shorter` are its rows at shorter lengths."""
    architecture = case.get("architecture")
    if architecture is not None and architecture not in registry.ARCHITECTURES:
        return {"skipped": f"this version has no architecture {architecture!r}"}
    available = available_memory(case["device"])
    reason = reason_to_skip(shorter, case["tokens"], case["repeats"], time_limit, available)
    if reason:
        return {"skipped": reason}
    return measure_in_subprocess("hf_docmt.bench.attention_step", case, time_limit)


def target_checks(rows: Sequence[ScalingRow], growth: Sequence[ScalingRow], lengths: Sequence[int]) -> list[Check]:
    """The targets of window attention; a check is missed where a value up to the last length was not measured."""
    checks = []
    for row in growth:
        if row.name.rpartition(", ")[0] in LINEAR:
            value = row.ours if row.tokens == lengths[-1] else None
            checks.append(Check.at_most(row.name, value, MAX_EXPONENT))
    for name in LINEAR:
        ratios = [row.ratio for row in rows if row.name == name and row.tokens >= lengths[1]]
        measured = [ratio for ratio in ratios if ratio is not None]
        checks.append(Check.at_least(f"{name}: smallest ratio", min(measured, default=None), MIN_RATIO))
    sdpa, eager, window = (find_row(rows, lengths[-1], f"attention alone, {name}") for name in ALONE)
    checks.append(Check.at_least("attention alone: ratio to sdpa", window.ratio, ALONE_MIN_RATIO))
    for name, other, target in (("sdpa", sdpa, ALONE_MAX_MEMORY), ("eager", eager, EAGER_MAX_MEMORY)):
        value = None
        if window.memory_mib is not None and other.memory_mib:
            value = window.memory_mib / other.memory_mib
        checks.append(Check.at_most(f"attention alone: memory over {name}'s", value, target))
    return checks
