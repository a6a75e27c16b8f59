"""Cost of attention by length: a training step on documents of growing length, each architecture beside `concat`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch.nn import functional as F
from transformers import LogitsProcessor

from hf_docmt import registry
from hf_docmt.bench.benchmark import Benchmark, OnRow, ignore_row
from hf_docmt.bench.measurement import measure_rows
from hf_docmt.bench.models import SENTENCE_TOKENS, SEP, TRANSFORMER_BASE, random_document, random_model
from hf_docmt.bench.options import AttentionOptions
from hf_docmt.bench.results import BenchResult, Check, ScalingRow, find_row, growth_rows, ratio_of
from hf_docmt.modeling.window_attention import window_attention, windows_around

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
HEADS, HEAD_DIM = 8, 64  # of attention alone
WARM_UP = 4  # tokens of segments written before the measurement
STEP, ALONE_STEP, WRITING = (f"{__name__}:{name}" for name in ("training_step", "attention_alone", "segment_decoding"))
MAX_EXPONENT, MIN_RATIO = 1.1, 1.0  # exponent of time and memory; ratio from the second length on
ALONE_MIN_RATIO, ALONE_MAX_MEMORY, EAGER_MAX_MEMORY = 25.0, 2.0, 1 / 30  # of sdpa's speed, its memory, eager's memory
LST_MAX_TIME, LST_MAX_MEMORY = 1.15, 1.1  # over those of `PEER`


@dataclass(kw_only=True)
class AttentionBenchmark(AttentionOptions, Benchmark):
    """Target tokens a second and extra memory of a training step, forward and backward, on one document.

    Herold and Ney (2023), table 2: the second length is theirs. The document has as many source as target tokens, in
    sentences of 25. The update of the weights is left out, since its cost does not depend on the length. `peer` is
    `concat` with sdpa at the same length. At the last length attention alone is measured, too (8 heads of 64, w = 20);
    then lst and concat write segments of sentences of 25 tokens, greedy and with four beams.

    Processes, rounds and what is `skipped` are those of `measure_rows`. At last come the exponents with which time and
    memory grow, fitted from the second length on. On CUDA lst and window are measured with FlexAttention, too.
    """

    report_options = ({"repeats": 3},)

    sizes: Mapping[str, int] = field(default_factory=lambda: TRANSFORMER_BASE)
    vocab_size: int = 15000

    @property
    def cases(self) -> dict[str, tuple[str, str, dict]]:
        """Architecture, implementation and fields of what is measured at every length."""
        return CASES | (FLEX if torch.device(self.device).type == "cuda" else {})

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        rows: list[ScalingRow] = []

        def measure(cases: Mapping[str, Mapping], peer: str, shorter: Sequence[ScalingRow] = ()) -> None:
            rows.extend(measure_rows(cases, partial(ScalingRow.at_length, peer=peer), self, on_row, shorter))

        for tokens in self.lengths:
            measure({name: self.step_case(name, tokens) for name in self.cases}, PEER, rows)
        at_last = {"build": ALONE_STEP, "tokens": self.lengths[-1]}
        alone = {name: self.shared_case(**at_last, implementation=name, fields=ALONE[name]) for name in ALONE}
        measure({f"attention alone, {name}": case for name, case in alone.items()}, "attention alone, sdpa")
        for text, (batch, length) in DECODING.items():
            size = {"build": WRITING, "batch": batch, "length": length, "tokens": batch * length}
            for mode, beams in MODES.items():
                cases = {name: self.shared_case(**size, architecture=name, beams=beams) for name in DECODERS}
                cases = {decoding_name(name, mode, text): case for name, case in cases.items()}
                measure(cases, decoding_name("concat", mode, text))
        growth = [row for name in self.cases for row in growth_rows(name, PEER, rows, self.lengths)]
        return self.result(rows + growth, target_checks(rows, growth, self.lengths))

    def step_case(self, name: str, tokens: int) -> dict:
        """The training step of one of the cases."""
        architecture, implementation, fields = self.cases[name]
        settings = {"architecture": architecture, "implementation": implementation, "fields": fields}
        return self.shared_case(build=STEP, tokens=tokens, **settings)


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
        value = ratio_of(window.memory_mib, other.memory_mib)
        checks.append(Check.at_most(f"attention alone: memory over {name}'s", value, target))
    return checks


def lst_checks(rows: Sequence[ScalingRow], lengths: Sequence[int]) -> list[Check]:
    """The targets of lst: time and memory of a step, and time of decoding, over those of `PEER`."""
    checks = []
    for tokens in lengths:
        lst, peer = (find_row(rows, tokens, name) for name in ("lst", PEER))
        memory = ratio_of(lst.memory_mib, peer.memory_mib)
        checks.append(Check.at_most(f"lst, {tokens} tokens: time over concat's", lst.time_ratio, LST_MAX_TIME))
        checks.append(Check.at_most(f"lst, {tokens} tokens: memory over concat's", memory, LST_MAX_MEMORY))
    for text, (batch, length) in DECODING.items():
        for mode in MODES:
            row = find_row(rows, batch * length, decoding_name("lst", mode, text))
            checks.append(Check.at_most(f"{row.name}: time over concat's", row.time_ratio, LST_MAX_TIME))
    return checks


# Works, see `measure_work`: weights, and what is made of a short document, such as gradients, are in memory before


def training_step(case: Mapping, device: torch.device) -> Callable[[], object]:
    """Forward and backward pass of a new model on one document, without the update.

    A case has the `implementation` of attention; and may say `checkpointing`, `skip_logits` and `precision`.
    """
    architecture = registry.get(case["architecture"])
    config = architecture.config_class(vocab_size=case["vocab_size"], **case["sizes"], **case["fields"])
    model = architecture.model_class(config).train().to(device)
    model.set_attn_implementation(case.get("implementation", "sdpa"))
    if case.get("checkpointing"):
        model.activation_checkpointing_enable()
    more = {name: case[name] for name in ("skip_logits",) if name in case}

    def step(tokens: int) -> None:
        source, target = (random_document(tokens, case["vocab_size"]).to(device) for _ in range(2))
        with torch.autocast(device.type, torch.bfloat16, enabled=case.get("precision") == "bf16"):
            loss = model(input_ids=source, attention_mask=torch.ones_like(source), labels=target, **more).loss
        loss.backward()

    step(min(2 * SENTENCE_TOKENS, case["tokens"]))
    if case.get("implementation") == "flex_attention":
        step(case["tokens"])  # compiles its kernels
    return lambda: step(case["tokens"])


def attention_alone(case: Mapping, device: torch.device) -> Callable[[], object]:
    """Forward and backward pass of one attention of a sequence to itself, `implementation` sdpa, eager or window."""
    attend = {"sdpa": F.scaled_dot_product_attention, "eager": plain_attention}.get(case["implementation"])
    if case["implementation"] == "window":

        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            positions, width = torch.arange(key.shape[2], device=device)[None], case["fields"]["window"]
            windows = windows_around(positions, width, width, key.shape[2], None, None)
            return window_attention(query, key, value, windows)

    def step_for(tokens: int) -> Callable[[], object]:
        shape = (1, HEADS, tokens, HEAD_DIM)
        inputs = [torch.randn(shape, device=device, requires_grad=True) for _ in range(3)]
        gradient = torch.randn(shape, device=device)
        return lambda: torch.autograd.grad(attend(*inputs), inputs, gradient)

    step_for(min(2 * SENTENCE_TOKENS, case["tokens"]))()
    return step_for(case["tokens"])


def plain_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """softmax(QK^T / sqrt(d))V with all weights in memory."""
    return F.softmax(query @ key.transpose(2, 3) * HEAD_DIM**-0.5, dim=-1) @ value


def segment_decoding(case: Mapping, device: torch.device) -> Callable[[], object]:
    """`generate` for a batch of random segments; weights of equal names are equal in all architectures."""
    model = random_model(case["architecture"], {}, case["sizes"], case["vocab_size"]).to(device)
    source = torch.cat([random_document(case["length"], case["vocab_size"]) for _ in range(case["batch"])]).to(device)
    settings = {"num_beams": case["beams"], "do_sample": False, "logits_processor": [SentenceEnds()]}

    def write(tokens: int) -> torch.Tensor:
        mask = torch.ones_like(source)
        return model.generate(source, attention_mask=mask, max_new_tokens=tokens, min_new_tokens=tokens, **settings)

    write(min(WARM_UP, case["length"]))
    return lambda: write(case["length"])


class SentenceEnds(LogitsProcessor):
    """Nothing but a separator at the end of every `SENTENCE_TOKENS` tokens."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores (B, V) of the next token, of which there were (B, T)."""
        if input_ids.shape[1] % SENTENCE_TOKENS == 0:
            scores = torch.full_like(scores, -torch.inf).index_fill(1, scores.new_tensor([SEP], dtype=torch.long), 0.0)
        return scores
