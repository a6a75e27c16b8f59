"""Cost of attention by length: a training step on documents of growing length, each architecture beside `concat`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

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
from hf_docmt.bench.results import BenchResult, Check, ScalingRow
from hf_docmt.bench.rounds import alternate_rounds
from hf_docmt.bench.scaling import find_row, growth_rows, scaling_row

PEER = "concat sdpa"
CASES = {  # name: architecture, implementation, fields of its configuration
    PEER: ("concat", "sdpa", {}),
    "concat eager": ("concat", "eager", {}),
    "lst": ("lst", "sdpa", {}),
    "window w=10": ("window", "sdpa", {"window": 10}),
    "window w=20": ("window", "sdpa", {"window": 20}),
}
FLEX = {  # on CUDA alone: on a CPU its kernels have no backward pass
    "lst flex": ("lst", "flex_attention", {}),
    "window w=10 flex": ("window", "flex_attention", {"window": 10}),
    "window w=20 flex": ("window", "flex_attention", {"window": 20}),
}
LINEAR = ("window w=10", "window w=20")  # cases whose cost has to grow linearly
ALONE = {"sdpa": {}, "eager": {}, "window": {"window": 20}}  # attention alone, at the last length
DECODING = {  # name: segments of a batch, tokens of each
    "windows of four sentences": (16, 100),
    "a segment of twenty sentences": (1, 500),
}
DECODERS = ("concat", "lst")
MODES = {"greedy": 1, "beam 4": 4}  # name: number of beams
STEP, SEGMENTS = "hf_docmt.bench.attention_step", "hf_docmt.bench.segment_decoding"  # processes
MAX_EXPONENT, MIN_RATIO = 1.1, 1.0  # exponent of time and memory; ratio from the second length on
ALONE_MIN_RATIO, ALONE_MAX_MEMORY, EAGER_MAX_MEMORY = (
    25.0,
    2.0,
    1 / 30,
)  # times sdpa's speed, its memory, eager's memory
LST_MAX_TIME, LST_MAX_MEMORY = 1.15, 1.1  # over those of `PEER`


@dataclass(kw_only=True)
class AttentionBenchmark(Benchmark):
    """Target tokens a second and extra memory of a training step, forward and backward, on one document.

    Herold and Ney (2023), table 2: the second length is theirs. The document has as many source as target tokens, in
    sentences of 25. The update of the weights is left out, since its cost does not depend on the length. `peer` is
    `concat` with sdpa at the same length. At the last length attention alone is measured, too (8 heads of 64, w = 20);
    then lst and concat write segments of sentences of 25 tokens, greedy and with four beams.

    Every measurement has a process of its own; the cases of a length are measured in `repeats` alternating rounds, and
    the medians are reported. A measurement is stopped where it needs more than the available memory or more than
    `time_limit` seconds; `skipped` says so, and longer documents are not tried. `on_row` gets the row of a case after
    each of its measurements, with the medians so far. At last come the exponents with which time and memory grow,
    fitted from the second length on. On CUDA lst and window are measured with FlexAttention, too.
    """

    name = "attention"
    help = (
        "Time and memory of a training step by length: concat, lst and window attention; decoding with lst.\n\n"
        "Every row is printed on standard error as soon as it is measured."
    )
    report_options = ({"repeats": 3},)

    repeats: int = option(3, "Measurements of each case, the median is reported.")
    lengths: tuple[int, ...] = option((1024, 2208, 4096, 8192), "Tokens of the documents, separated by commas.")
    sizes: Mapping[str, int] = field(default_factory=lambda: TRANSFORMER_BASE)
    vocab_size: int = 15000
    device: str = option("cpu", "cpu or cuda.")
    time_limit: float = option(600, "Longest time of one measurement, in seconds.")

    def __post_init__(self) -> None:
        check_lengths(self.lengths)
        check_positive(repeats=self.repeats)
        check_model(self.sizes, self.vocab_size)
        check_device(self.device)
        check_time_limit(self.time_limit)

    @property
    def cases(self) -> dict[str, tuple[str, str, dict]]:
        """Architecture, implementation and fields of what is measured at every length."""
        return CASES | (FLEX if torch.device(self.device).type == "cuda" else {})

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        rows: list[ScalingRow] = []
        for tokens in self.lengths:
            cases = {name: self.step_case(name, tokens) for name in self.cases}
            rows += self.measure(STEP, cases, PEER, rows, on_row)
        alone = {f"attention alone, {name}": self.alone_case(name, self.lengths[-1]) for name in ALONE}
        rows += self.measure(STEP, alone, next(iter(alone)), (), on_row)
        for text in DECODING:
            for mode in MODES:
                cases = {decoding_name(name, mode, text): self.decoding_case(name, mode, text) for name in DECODERS}
                rows += self.measure(SEGMENTS, cases, next(iter(cases)), (), on_row)
        growth = [row for name in self.cases for row in growth_rows(name, PEER, rows, self.lengths)]
        setting = {"lengths": list(self.lengths), "repeats": self.repeats, "vocab_size": self.vocab_size}
        setting |= {"sizes": dict(self.sizes), "device": self.device, "time_limit": self.time_limit}
        return BenchResult.of(rows + growth, target_checks(rows, growth, self.lengths), **setting)

    def step_case(self, name: str, tokens: int) -> dict:
        """The training step of one of the cases, for `hf_docmt.bench.attention_step`."""
        architecture, implementation, fields = self.cases[name]
        case = {"architecture": architecture, "implementation": implementation, "fields": fields}
        case |= {"work": "training step", "sizes": dict(self.sizes), "vocab_size": self.vocab_size}
        return case | self.shared_case(tokens)

    def alone_case(self, implementation: str, tokens: int) -> dict:
        """Attention alone, for `hf_docmt.bench.attention_step`."""
        case = {"implementation": implementation, "fields": ALONE[implementation], "work": "attention alone"}
        return case | self.shared_case(tokens)

    def decoding_case(self, architecture: str, mode: str, text: str) -> dict:
        """One of `DECODING`, for `hf_docmt.bench.segment_decoding`."""
        batch, length = DECODING[text]
        case = {"architecture": architecture, "sizes": dict(self.sizes), "vocab_size": self.vocab_size}
        return case | {"batch": batch, "length": length, "beams": MODES[mode]} | self.shared_case(batch * length)

    def shared_case(self, tokens: int) -> dict:
        """What all cases of so many target tokens have in common."""
        return {"repeats": 1, "device": self.device, "threads": torch.get_num_threads(), "tokens": tokens}

    def measure(
        self, process: str, cases: Mapping[str, Mapping], peer: str, shorter: Sequence[ScalingRow], on_row: OnRow
    ) -> list[ScalingRow]:
        """The rows of cases that are measured in alternating rounds."""
        numbers: dict[str, dict] = {}
        for name, latest in alternate_rounds(process, cases, shorter, self.repeats, self.time_limit):
            numbers[name] = latest
            on_row(case_row(name, cases, peer, numbers))
        return [case_row(name, cases, peer, numbers) for name in cases]


def case_row(name: str, cases: Mapping[str, Mapping], peer: str, numbers: Mapping[str, Mapping]) -> ScalingRow:
    """The row of a case; `numbers` are those of all cases measured so far."""
    tokens = cases[name]["tokens"]
    peer_row = scaling_row(peer, tokens, numbers.get(peer, {}), None)
    return peer_row if name == peer else scaling_row(name, tokens, numbers[name], peer_row)


def decoding_name(architecture: str, mode: str, text: str) -> str:
    """The name of a row of decoding."""
    return f"{architecture}, {mode}, {text}"


def target_checks(rows: Sequence[ScalingRow], growth: Sequence[ScalingRow], lengths: Sequence[int]) -> list[Check]:
    """The targets of window attention and lst; a check is missed where what it takes was not measured."""
    checks = lst_checks(rows, lengths)
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


def lst_checks(rows: Sequence[ScalingRow], lengths: Sequence[int]) -> list[Check]:
    """The targets of lst: time and memory of a step, and time of decoding, over those of `PEER`."""
    checks = []
    for tokens in lengths:
        lst, peer = (find_row(rows, tokens, name) for name in ("lst", PEER))
        memory = lst.memory_mib / peer.memory_mib if lst.memory_mib and peer.memory_mib else None
        checks.append(Check.at_most(f"lst, {tokens} tokens: time over concat's", inverse(lst.ratio), LST_MAX_TIME))
        checks.append(Check.at_most(f"lst, {tokens} tokens: memory over concat's", memory, LST_MAX_MEMORY))
    for text, (batch, length) in DECODING.items():
        for mode in MODES:
            row = find_row(rows, batch * length, decoding_name("lst", mode, text))
            checks.append(Check.at_most(f"{row.name}: time over concat's", inverse(row.ratio), LST_MAX_TIME))
    return checks


def inverse(ratio: float | None) -> float | None:
    """Time over the peer's, from the ratio of speeds."""
    return 1 / ratio if ratio else None
