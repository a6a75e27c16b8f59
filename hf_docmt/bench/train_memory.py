"""Memory of training on long documents: the loss in chunks and gradient checkpointing against all logits at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from hf_docmt import registry
from hf_docmt.bench.attention import STEP
from hf_docmt.bench.benchmark import Benchmark, OnRow, ignore_row
from hf_docmt.bench.measurement import measure_rows
from hf_docmt.bench.models import TRANSFORMER_BASE
from hf_docmt.bench.options import TrainMemoryOptions
from hf_docmt.bench.results import BenchResult, Check, ScalingRow, find_row, ratio_of

PEER = "all logits"
CASES = {  # name: whether the loss is computed in chunks, whether layers are computed again in the backward pass
    PEER: (False, False),
    "loss in chunks": (True, False),
    "all logits, checkpointing": (False, True),
    "loss in chunks, checkpointing": (True, True),
}
TARGETS = {  # name: most memory and most time, over those of the peer
    "loss in chunks": (0.65, 1.02),
    "loss in chunks, checkpointing": (0.3, 1.35),
}


@dataclass(kw_only=True)
class TrainMemoryBenchmark(TrainMemoryOptions, Benchmark):
    """Seconds and extra memory of a training step, forward and backward, on one long document.

    The document has as many source as target tokens, in sentences of 25; the update of the weights is left out; see
    `measure_rows`. `peer` is the same model with the
    logits of all tokens in memory (`skip_logits=False`) and without gradient checkpointing.
    """

    report_options = ({"repeats": 1},)

    fields: Mapping = field(default_factory=lambda: {"label_smoothing": 0.1})
    sizes: Mapping[str, int] = field(default_factory=lambda: TRANSFORMER_BASE)
    vocab_size: int = 32000

    def __post_init__(self) -> None:
        super().__post_init__()
        registry.get(self.architecture)

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        cases = {
            name: self.shared_case(build=STEP, skip_logits=skip_logits, checkpointing=checkpointing)
            for name, (skip_logits, checkpointing) in CASES.items()
        }
        rows = measure_rows(cases, partial(ScalingRow.at_length, peer=PEER), self, on_row)
        return self.result(rows, target_checks(rows, self.tokens))


def target_checks(rows: Sequence[ScalingRow], tokens: int) -> list[Check]:
    """Memory and time over the peer's; a check is missed where a side was not measured."""
    peer, checks = find_row(rows, tokens, PEER), []
    for name, (most_memory, most_time) in TARGETS.items():
        row = find_row(rows, tokens, name)
        for what, column, target in (("memory", "memory_mib", most_memory), ("time", "seconds", most_time)):
            value = ratio_of(getattr(row, column), getattr(peer, column))
            checks.append(Check.at_most(f"{name}: {what}", value, target))
    return checks
