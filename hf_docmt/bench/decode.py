"""Decoding speed: `generate` against transformers' MarianMTModel with the same weights."""

import copy
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig, PreTrainedModel

from hf_docmt.bench.benchmark import Benchmark, OnRow, ignore_row
from hf_docmt.bench.measurement import median_seconds_and_outputs
from hf_docmt.bench.models import COMMON, NEVER, SMALL, SPECIAL_TOKENS, TRANSFORMER_BASE, build_pair
from hf_docmt.bench.options import DecodeOptions
from hf_docmt.bench.results import SIDES, BenchResult, Check, Row
from hf_docmt.modeling.cpu_kernels import are_used

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.float32}  # beside int8 weights: fp32
COMPUTE_TYPES = {"fp32": "float32", "int8": "int8"}  # our name of a precision: CTranslate2's
RECURRENT = "ssru"  # the further side with this decoder
NAMED_SIZES = {"base": (TRANSFORMER_BASE, 32000), "small": (SMALL, 8000)}  # with the size of the vocabulary
MODES = {"greedy": 1, "beam 4": 4}  # name: number of beams
MIN_RATIOS = {  # targets
    "fp32": {"greedy": 1.8, "beam 4": 2.0},
    "int8": {"greedy": 2.5, "beam 4": 3.0},
}
MIN_RATIO = 1.0  # target of every case
MIN_OVER_CTRANSLATE2 = {  # targets of int8 in batches of 1, 16 and 64; whether it runs on the compiled primitives
    ("base", True): {"greedy": (2.5, 1.5, 1.2), "beam 4": (2.0, 1.5, 1.5)},
    ("base", False): {"greedy": (1.5, 1.0, 0.9), "beam 4": (1.3, 0.9, 1.0)},
    ("small", True): {"greedy": (1.5, 1.2, 1.2), "beam 4": (1.3, 1.2, 1.2)},
    ("small", False): {"greedy": (0.5, 0.6, 0.7), "beam 4": (0.5, 0.6, 0.7)},
}
EMBEDDING_SIZE, ATTENTION_GAIN = 9.0, 3.6  # see `diversify_translations`
Generate = Callable[[torch.Tensor, int], torch.Tensor]  # input_ids (B, S), number of beams: translations (B, 1 + T)


@dataclass(kw_only=True)
class DecodeBenchmark(DecodeOptions, Benchmark):
    """Sentences a second, ours and Marian's, greedy and with four beams, in fp32, with bf16 and with int8 weights.

    Random weights (see `diversify_translations`) and random sources of `tokens` tokens; every translation has exactly
    `tokens` tokens, because a logit bias keeps the end token from being chosen. Both sides run the library's `generate`
    with the same settings. int8 is ours, on a CPU alone, against Marian in fp32. `equal_tokens` is the share of tokens
    that are the same on both sides: all of them in fp32, while elsewhere rounding decides between near-equal ones, and
    what follows differs. `equal_choices` is the share of places in Marian's translation at which both sides rank the
    same token first. `different_tokens` counts the distinct tokens of ours.
    `ssru` has the sentences a second of ours with the recurrent decoder of Kim et al. (2019) in the place of
    self-attention, and `ctranslate2`, where it is installed, its own, measured in the same rounds. `kernels` of the
    setting: whether it runs on the compiled primitives.
    """

    report_options = ({"repeats": 3}, {"size": "small", "repeats": 3})

    batch_sizes: Sequence[int] = (1, 16, 64)
    precisions: Sequence[str] = tuple(PRECISIONS)
    tokens: int = 25
    sizes: Mapping[str, int] | None = None  # in place of those of `size`
    vocab_size: int | None = None
    seed: int = 1

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        sizes, vocab_size = NAMED_SIZES[self.size]
        sizes, vocab_size = self.sizes or sizes, self.vocab_size or vocab_size
        models = dict(zip(SIDES, build_pair(sizes, vocab_size, self.seed)))
        sources = random_sources(max(self.batch_sizes), self.tokens, vocab_size, self.seed).to(self.device)
        rows = []
        for model in models.values():
            diversify_translations(model)
        models[RECURRENT] = recurrent_model(models["ours"])
        for model in models.values():
            model.eval().final_logits_bias[:, COMMON["eos_token_id"]] = NEVER
        further = ctranslate2_peers(models["ours"], self.precisions, self.device, self.tokens)
        for precision in self.precisions:
            if precision == "int8" and torch.device(self.device).type != "cpu":
                continue
            sides = models_in(precision, models, self.device)
            for mode, beams in MODES.items():
                for size in self.batch_sizes:
                    case = {"precision": precision, "mode": mode, "batch": size}
                    peer = further.get(precision)
                    rows.append(self.decoding_row(case, sides, peer, sources[:size], beams))
                    on_row(rows[-1])
        setting = {"source_tokens": self.tokens, "target_tokens": self.tokens, "kernels": are_used()}
        setting |= {"sizes": dict(sizes), "vocab_size": vocab_size}
        checks = target_checks(rows)
        if self.sizes is None:
            checks += ctranslate2_checks(rows, self.size, are_used())
        return self.result(rows, checks, **setting, ctranslate2=ctranslate2_version() or "not installed")

    def decoding_row(
        self,
        case: Mapping,
        models: Mapping[str, PreTrainedModel],
        further: Generate | None,
        input_ids: torch.Tensor,
        beams: int,
    ) -> Row:
        """One row: all models, and the further peer if there is one, translate `input_ids` (B, S)."""
        ends = {name: value for name, value in COMMON.items() if name.endswith("token_id")}
        config = GenerationConfig(num_beams=beams, do_sample=False, max_new_tokens=self.tokens, **ends)
        inputs = {"attention_mask": torch.ones_like(input_ids), "generation_config": config}
        works = {name: partial(model.generate, input_ids, **inputs) for name, model in models.items()}
        if further is not None:
            works["ctranslate2"] = partial(further, input_ids, beams)
        seconds, outputs = median_seconds_and_outputs(works, self.repeats, input_ids.device)
        wrong = {name: tuple(ids.shape) for name, ids in outputs.items() if ids.shape[1] != self.tokens + 1}
        if wrong:  # the decoder's start token and `tokens` more
            raise RuntimeError(f"expected {self.tokens + 1} tokens a sentence, got {wrong}")
        more = {
            "equal_tokens": (outputs["ours"] == outputs["peer"])[:, 1:].float().mean().item(),
            "equal_choices": equal_choices(models, input_ids, outputs["peer"]),
            "different_tokens": outputs["ours"][:, 1:].unique().numel(),
        }
        more |= {name: len(input_ids) / seconds[name] for name in works if name not in SIDES}
        name = "{precision} {mode} batch {batch}".format(**case)
        return Row.of_speeds(name, "sentences/s", len(input_ids), seconds, **more, **case)


def models_in(precision: str, models: Mapping[str, PreTrainedModel], device: str) -> dict[str, PreTrainedModel]:
    """Copies of models (fp32) in a precision, on a device; the peer has no int8."""
    copies = {name: copy.deepcopy(model).to(device, PRECISIONS[precision]) for name, model in models.items()}
    if precision == "int8":
        for name in copies.keys() - {"peer"}:
            copies[name].quantize("int8")
    return copies


@torch.inference_mode()
def equal_choices(models: Mapping[str, PreTrainedModel], input_ids: torch.Tensor, translations: torch.Tensor) -> float:
    """Share of the places in `translations` (B, T) at which both models rank the same token first."""
    inputs = {"input_ids": input_ids, "decoder_input_ids": translations[:, :-1]}
    ours, peer = (models[side](**inputs).logits.argmax(dim=-1) for side in SIDES)  # (B, T - 1)
    return (ours == peer).float().mean().item()


def target_checks(rows: Sequence[Row]) -> list[Check]:
    """The targets in fp32 and int8, no case slower than the peer, the same tokens in fp32."""
    exact = [row for row in rows if row.more["precision"] == "fp32"]
    checks = [
        Check.at_least(f"{row.case}: ratio", row.ratio, MIN_RATIOS[row.more["precision"]][row.more["mode"]])
        for row in rows
        if row.more["precision"] in MIN_RATIOS
    ]
    for precision in dict.fromkeys(row.more["precision"] for row in rows):
        slowest = min(row.ratio for row in rows if row.more["precision"] == precision)
        checks.append(Check.at_least(f"{precision}: smallest ratio", slowest, MIN_RATIO))
    if exact:
        checks.append(Check.at_least("fp32: equal tokens", min(row.more["equal_tokens"] for row in exact), 1.0))
    return checks


def ctranslate2_checks(rows: Sequence[Row], size: str, kernels: bool) -> list[Check]:
    """The targets of int8 beside CTranslate2's, of the rows that have it."""
    checks = []
    for row in rows:
        case = row.more
        targets = dict(zip((1, 16, 64), MIN_OVER_CTRANSLATE2[size, kernels][case["mode"]]))
        if case["precision"] == "int8" and "ctranslate2" in case and case["batch"] in targets:
            ratio = row.ours / case["ctranslate2"]
            checks.append(Check.at_least(f"{row.case}: over CTranslate2", ratio, targets[case["batch"]]))
    return checks


def recurrent_model(model: PreTrainedModel) -> PreTrainedModel:
    """A model like this one, of other random weights, with the recurrent decoder."""
    config = copy.deepcopy(model.config)
    config.decoder_autoregression = RECURRENT
    return type(model)(config)


@torch.no_grad()
def diversify_translations(model: PreTrainedModel) -> None:
    """Enlarge embeddings and the last decoder layer's attention, so that translations vary with their source.

    With the initial weights of training, a tied model repeats one token whatever the source, so that equal tokens on
    both sides would prove nothing. Times do not depend on it.
    """
    unit = 1 / (model.config.init_std * model.config.d_model**0.5)
    model.get_input_embeddings().weight.mul_(EMBEDDING_SIZE * unit)
    layer = model.get_decoder().layers[-1]
    for attention in (layer.self_attn, layer.encoder_attn):
        for linear in (attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj):
            linear.weight.mul_(ATTENTION_GAIN * unit)


def random_sources(sentences: int, tokens: int, vocab_size: int, seed: int) -> torch.Tensor:
    """Sentences of random tokens without special ones, followed by the end token, (sentences, tokens)."""
    generator = torch.Generator().manual_seed(seed)
    sources = torch.randint(SPECIAL_TOKENS, vocab_size, (sentences, tokens), generator=generator)
    sources[:, -1] = COMMON["eos_token_id"]
    return sources


def ctranslate2_version() -> str | None:
    """The version of the library; None where it is not installed, since nothing needs it."""
    try:
        return version("ctranslate2")
    except PackageNotFoundError:
        return None


def ctranslate2_peers(
    model: PreTrainedModel, precisions: Sequence[str], device: str, tokens: int
) -> dict[str, Generate]:
    """A peer for each precision that the library has; none where it is not installed."""
    if ctranslate2_version() is None:
        return {}
    types = {precision: COMPUTE_TYPES[precision] for precision in precisions if precision in COMPUTE_TYPES}
    models = {precision: ctranslate2_model(model, kind, device) for precision, kind in types.items()}
    return {precision: partial(ctranslate2_generate, peer, tokens) for precision, peer in models.items()}


def ctranslate2_model(model: PreTrainedModel, quantization: str, device: str = "cpu") -> Any:
    """The model in CTranslate2's format, with weights of a type; its tokens are named by their ids."""
    from hf_docmt.hub.ctranslate2_conversion import write_ctranslate2_folder
    from hf_docmt.systems.ctranslate2_model import CTranslate2Model

    with tempfile.TemporaryDirectory() as folder:
        write_ctranslate2_folder(model, list(map(str, range(model.config.vocab_size))), Path(folder), quantization)
        return CTranslate2Model(Path(folder), device)


def ctranslate2_generate(model: Any, tokens: int, input_ids: torch.Tensor, beams: int) -> torch.Tensor:
    """The translations by CTranslate2, with as many threads as torch, after the decoder's start token, (B, 1 + T)."""
    sources = [list(map(str, ids)) for ids in input_ids.tolist()]
    start = COMMON["decoder_start_token_id"]
    prompts = [[str(start)]] * len(sources)
    results = model.translator.translate_batch(sources, prompts, beam_size=beams, max_decoding_length=tokens)
    return torch.tensor([[start, *map(int, result.hypotheses[0])] for result in results])
