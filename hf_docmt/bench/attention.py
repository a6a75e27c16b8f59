"""Cost of attention by length: one training step on documents of growing length, each architecture beside `concat`."""

from collections.abc import Callable, Mapping, Sequence

import torch

from hf_docmt import registry
from hf_docmt.bench.marian import TRANSFORMER_BASE
from hf_docmt.bench.scaling import check_arguments, growth_rows, make_row, peer_of
from hf_docmt.bench.subprocesses import free_memory, measure_in_subprocess, reason_to_skip
from hf_docmt.bench.timing import bench_result, check_at_least, check_at_most

PEER = "concat sdpa"
CASES = {  # name: architecture, implementation, fields of its configuration
    PEER: ("concat", "sdpa", {}),
    "concat eager": ("concat", "eager", {}),
    "lst": ("lst", "sdpa", {}),
    "window w=10": ("window", "sdpa", {"window": 10}),
    "window w=20": ("window", "sdpa", {"window": 20}),
}
LINEAR = ("window w=10", "window w=20")  # cases whose cost has to grow with the length
ALONE = {"sdpa": {}, "eager": {}, "window": {"window": 20}}  # attention alone, at the last length
MOST_GROWTH, LEAST_SPEED = 1.1, 1.0  # exponent of time and memory; ratio from the second length on
ALONE_SPEED, ALONE_MEMORY, EAGER_MEMORY = 25.0, 2.0, 1 / 30  # times sdpa's speed, its memory, eager's memory


def bench_attention(
    repeats: int = 3,
    *,
    lengths: Sequence[int] = (736, 1472, 2208, 4096, 8192),
    sizes: Mapping[str, int] = TRANSFORMER_BASE,
    vocab_size: int = 15000,
    device: str = "cpu",
    time_limit: float = 600,
    tell: Callable[[Mapping], None] = lambda row: None,
) -> dict:
    """Target tokens a second and extra memory of a training step, forward and backward, on one document.

    Herold and Ney (2023), table 2: the first three lengths are theirs. The document has as many source as target
    tokens, in sentences of 25; the update of the weights, which no length changes, is left out. Every measurement has
    a process of its own; at each length the cases follow each other. `peer` is `concat` with sdpa at the same length.
    A length that would not fit into the free memory, or into `time_limit` seconds, going by the shorter ones, is
    skipped, and `skipped` says why. At the last length attention alone is measured, too (8 heads of 64, w = 20).
    `tell` hears each row as soon as it is measured.

    After them stand the exponents with which time and memory grow, fitted from the second length on. Returns `rows`,
    `checks`, `setting`. Raises `ValueError` for bad arguments.
    """
    check_arguments(repeats, lengths, sizes, vocab_size, device, time_limit)
    shared = {"repeats": repeats, "device": device, "threads": torch.get_num_threads()}
    model = {"work": "training step", "sizes": dict(sizes), "vocab_size": vocab_size}
    rows: list[dict] = []
    for tokens in lengths:
        for name, (architecture, implementation, fields) in CASES.items():
            before = [row for row in rows if row["name"] == name]
            case = {"architecture": architecture, "implementation": implementation, "fields": fields}
            found = measure_case(case | model | shared | {"tokens": tokens}, before, time_limit)
            rows.append(make_row(name, tokens, found, peer_of(rows, tokens, PEER)))
            tell(rows[-1])
    for implementation, fields in ALONE.items():
        name, case = f"attention alone, {implementation}", {"implementation": implementation, "fields": fields}
        found = measure_case(case | shared | {"work": "attention alone", "tokens": lengths[-1]}, (), time_limit)
        rows.append(make_row(name, lengths[-1], found, peer_of(rows, lengths[-1], "attention alone, sdpa")))
        tell(rows[-1])
    growth = [row for name in CASES for row in growth_rows(name, PEER, rows, lengths)]
    setting = {"lengths": list(lengths), "repeats": repeats, "vocab_size": vocab_size, "sizes": dict(sizes)}
    checks = checks_of(rows, growth, lengths)
    return bench_result(rows + growth, checks, **setting, device=device, time_limit=time_limit)


def measure_case(case: Mapping, before: Sequence[Mapping], time_limit: float) -> dict:
    """`seconds` and `memory_mib` of a case, or why it is `skipped`."""
    architecture = case.get("architecture")
    if architecture is not None and architecture not in registry.ARCHITECTURES:
        return {"skipped": f"this version has no architecture {architecture!r}"}
    reason = reason_to_skip(before, case["tokens"], case["repeats"], time_limit, free_memory(case["device"]))
    return {"skipped": reason} if reason else measure_in_subprocess("hf_docmt.bench.attention_step", case, time_limit)


def checks_of(rows: Sequence[Mapping], growth: Sequence[Mapping], lengths: Sequence[int]) -> list[dict]:
    """What window attention has to show; what was not measured, up to the last length, is missed."""
    checks = []
    for row in growth:
        if row["name"].rpartition(", ")[0] in LINEAR:
            value = row["ours"] if row["tokens"] == lengths[-1] else None
            checks.append(check_at_most(row["name"], value, MOST_GROWTH))
    for name in LINEAR:
        ratios = [row["ratio"] for row in rows if row["name"] == name and row["tokens"] >= lengths[1]]
        compared = [ratio for ratio in ratios if ratio is not None]
        checks.append(check_at_least(f"{name}: smallest ratio", min(compared, default=None), LEAST_SPEED))
    sdpa, eager, window = (peer_of(rows, lengths[-1], f"attention alone, {name}") for name in ALONE)
    checks.append(check_at_least("attention alone: ratio to sdpa", window["ratio"], ALONE_SPEED))
    for name, other, target in (("sdpa", sdpa, ALONE_MEMORY), ("eager", eager, EAGER_MEMORY)):
        value = None
        if window["memory_mib"] is not None and other["memory_mib"]:
            value = window["memory_mib"] / other["memory_mib"]
        checks.append(check_at_most(f"attention alone: memory over {name}'s", value, target))
    return checks
