"""Memory of training on long documents: the loss in chunks and gradient checkpointing against all logits at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from hf_docmt import registry
from hf_docmt.bench.benchmark import (
    Benchmark,
    OnRow,
    check_device,
    check_model,
    check_positive,
    check_time_limit,
    ignore_row,
    option,
)
from hf_docmt.bench.marian import TRANSFORMER_BASE
from hf_docmt.bench.results import BenchResult, Check, ScalingRow
from hf_docmt.bench.rounds import alternate_rounds
from hf_docmt.bench.scaling import find_row, scaling_row
from hf_docmt.bench.train import check_precision

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
class TrainMemoryBenchmark(Benchmark):
    """Seconds and extra memory of a training step, forward and backward, on one long document.

    The document has as many source as target tokens, in sentences of 25; the update of the weights is left out. Every
    measurement has a process of its own, and each round measures every case once. `peer` is the same model with the
    logits of all tokens in memory (`skip_logits=False`) and without gradient checkpointing.
    """

    name = "train_memory"
    command = "train"
    by = "memory"
    report_options = ({"repeats": 1},)
    help = "--by memory: time and memory of a training step on a long document, with and without all logits."

    repeats: int = option(5, "Rounds, the median is reported.")
    tokens: int = option(8192, "Tokens of the document.")
    architecture: str = option("window", "Architecture of the model.")
    precision: str = option("fp32", "fp32 or bf16.")
    fields: Mapping = field(default_factory=lambda: {"label_smoothing": 0.1})
    sizes: Mapping[str, int] = field(default_factory=lambda: TRANSFORMER_BASE)
    vocab_size: int = 32000
    device: str = option("cpu", "cpu or cuda.")
    time_limit: float = option(600, "Longest time of a measurement, in seconds.")

    def __post_init__(self) -> None:
        check_positive(repeats=self.repeats, tokens=self.tokens)
        registry.get(self.architecture)
        check_precision(self.precision)
        check_model(self.sizes, self.vocab_size)
        check_device(self.device)
        check_time_limit(self.time_limit)

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        cases = {name: self.case(*CASES[name]) for name in CASES}
        module, found = "hf_docmt.bench.train_memory_step", {}
        for name, numbers in alternate_rounds(module, cases, (), self.repeats, self.time_limit):
            found[name] = numbers
        rows: list[ScalingRow] = []
        for name in CASES:
            rows.append(scaling_row(name, self.tokens, found[name], find_row(rows, self.tokens, PEER)))
            on_row(rows[-1])
        setting = {name: getattr(self, name) for name in ("architecture", "precision", "vocab_size")}
        setting |= {"fields": dict(self.fields), "sizes": dict(self.sizes), "repeats": self.repeats}
        setting |= {"tokens": self.tokens, "time_limit": self.time_limit}
        return BenchResult.of(rows, target_checks(rows, self.tokens), device=self.device, **setting)

    def case(self, skip_logits: bool, checkpointing: bool) -> dict:
        """A training step, for `hf_docmt.bench.train_memory_step`."""
        case = {"skip_logits": skip_logits, "checkpointing": checkpointing, "tokens": self.tokens, "repeats": 1}
        case |= {"architecture": self.architecture, "precision": self.precision, "vocab_size": self.vocab_size}
        case |= {"fields": dict(self.fields), "sizes": dict(self.sizes)}
        return case | {"device": self.device, "threads": torch.get_num_threads()}


def target_checks(rows: Sequence[ScalingRow], tokens: int) -> list[Check]:
    """Memory and time over the peer's; a check is missed where a side was not measured."""
    peer, checks = find_row(rows, tokens, PEER), []
    for name, (most_memory, most_time) in TARGETS.items():
        row = find_row(rows, tokens, name)
        for what, column, target in (("memory", "memory_mib", most_memory), ("time", "seconds", most_time)):
            ours, theirs = getattr(row, column), getattr(peer, column)
            checks.append(Check.at_most(f"{name}: {what}", ours / theirs if ours and theirs else None, target))
    return checks
