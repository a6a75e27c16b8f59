"""Decoding speed: `generate` against transformers' MarianMTModel with the same weights."""

from collections.abc import Mapping, Sequence

import torch
from transformers import GenerationConfig, PreTrainedModel

from hf_docmt.bench.marian import COMMON, TRANSFORMER_BASE, build_pair
from hf_docmt.bench.timing import SIDES, alternate, bench_result, check_at_least, check_positive, make_row, seconds_of

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}
MODES = {"greedy": 1, "beam 4": 4}  # name: number of beams
TARGETS = {"greedy": 1.8, "beam 4": 2.0}  # ratio that each mode has to reach in fp32
LEAST = 1.0  # ratio that every case has to reach
NEVER = -1e9  # logit bias
EMBEDDING_SIZE, ATTENTION_GAIN = 9.0, 3.6  # see `make_lively`


def bench_decode(
    repeats: int = 5,
    *,
    batch_sizes: Sequence[int] = (1, 16, 64),
    precisions: Sequence[str] = tuple(PRECISIONS),
    tokens: int = 25,
    sizes: Mapping[str, int] = TRANSFORMER_BASE,
    vocab_size: int = 32000,
    seed: int = 1,
) -> dict:
    """Sentences a second on the CPU, ours and Marian's, greedy and with four beams, in fp32 and with bf16 weights.

    Random weights (see `make_lively`) and random sources of `tokens` tokens; every translation has exactly `tokens`
    tokens, because the bias of the end token's logit keeps it from ever being chosen. Both sides run the library's
    `generate` with the same settings. `equal_tokens` is the share of tokens that are the same on both sides: all of
    them in fp32, while in bf16 rounding decides between near-equal ones. `different_tokens` counts the tokens that
    occur at all.

    Returns `rows`, `checks`, `setting`. Raises `ValueError` for bad arguments.
    """
    check_arguments(repeats, batch_sizes, precisions, tokens, vocab_size)
    models = dict(zip(SIDES, build_pair(sizes, vocab_size, seed)))
    sources = random_sources(max(batch_sizes), tokens, vocab_size, seed)
    rows = []
    for model in models.values():
        make_lively(model.eval())
        model.final_logits_bias[:, COMMON["eos_token_id"]] = NEVER
    for precision in precisions:
        for model in models.values():
            model.to(PRECISIONS[precision])
        for mode, beams in MODES.items():
            for size in batch_sizes:
                case = {"precision": precision, "mode": mode, "batch": size}
                rows.append(compare(case, models, sources[:size], beams, tokens, repeats))
    setting = {"source_tokens": tokens, "target_tokens": tokens, "vocab_size": vocab_size, "repeats": repeats}
    return bench_result(rows, checks_of(rows), **setting, seed=seed, sizes=dict(sizes))


def compare(
    case: Mapping, models: Mapping[str, PreTrainedModel], input_ids: torch.Tensor, beams: int, tokens: int, repeats: int
) -> dict:
    """One row: both models translate `input_ids` (B, S)."""
    config = GenerationConfig(
        num_beams=beams,
        do_sample=False,
        max_new_tokens=tokens,
        **{name: COMMON[name] for name in COMMON if name.endswith("token_id")},
    )
    outputs = {}

    def side(name: str):
        def generate() -> None:
            mask = torch.ones_like(input_ids)
            outputs[name] = models[name].generate(input_ids, attention_mask=mask, generation_config=config)

        return lambda: seconds_of(generate)

    seconds = alternate({name: side(name) for name in models}, repeats)
    wrong = {name: tuple(found.shape) for name, found in outputs.items() if found.shape[1] != tokens + 1}
    if wrong:  # the decoder's start token and `tokens` more
        raise RuntimeError(f"expected {tokens + 1} tokens a sentence, got {wrong}")
    found = {"equal_tokens": (outputs["ours"] == outputs["peer"])[:, 1:].float().mean().item()}
    found |= {"different_tokens": outputs["ours"][:, 1:].unique().numel()}
    name = "{precision} {mode} batch {batch}".format(**case)
    return make_row(name, "sentences/s", dict.fromkeys(SIDES, len(input_ids)), seconds, **found, **case)


def checks_of(rows: Sequence[Mapping]) -> list[dict]:
    """What the rows have to show: the targets in fp32, no case slower than the peer, the same tokens in fp32."""
    exact = [row for row in rows if row["precision"] == "fp32"]
    checks = [check_at_least(f"{row['case']}: ratio", row["ratio"], TARGETS[row["mode"]]) for row in exact]
    for precision in dict.fromkeys(row["precision"] for row in rows):
        slowest = min(row["ratio"] for row in rows if row["precision"] == precision)
        checks.append(check_at_least(f"{precision}: smallest ratio", slowest, LEAST))
    if exact:
        checks.append(check_at_least("fp32: equal tokens", min(row["equal_tokens"] for row in exact), 1.0))
    return checks


@torch.no_grad()
def make_lively(model: PreTrainedModel) -> None:
    """Enlarge embeddings and the last decoder layer's attention, so that translations vary and follow their source.

    With random weights as training begins with, a tied model repeats one token, whatever the source, and the same
    tokens on both sides would show nothing. Times do not depend on it.
    """
    unit = 1 / (model.config.init_std * model.config.d_model**0.5)
    model.get_input_embeddings().weight.mul_(EMBEDDING_SIZE * unit)
    layer = model.get_decoder().layers[-1]
    for attention in (layer.self_attn, layer.encoder_attn):
        for linear in (attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj):
            linear.weight.mul_(ATTENTION_GAIN * unit)


def random_sources(sentences: int, tokens: int, vocab_size: int, seed: int) -> torch.Tensor:
    """Sentences of random tokens without special ones, closed by the end token, (sentences, tokens)."""
    generator = torch.Generator().manual_seed(seed)
    sources = torch.randint(6, vocab_size, (sentences, tokens), generator=generator)
    sources[:, -1] = COMMON["eos_token_id"]
    return sources


def check_arguments(repeats, batch_sizes, precisions, tokens, vocab_size) -> None:
    """Raise `ValueError` for what cannot be measured."""
    check_positive(repeats=repeats, tokens=tokens)
    for name, values in {"batch_sizes": batch_sizes, "precisions": precisions}.items():
        if not values:
            raise ValueError(f"{name}: expected at least one, got none")
    for size in batch_sizes:
        check_positive(batch_sizes=size)
    unknown = [precision for precision in precisions if precision not in PRECISIONS]
    if unknown:
        raise ValueError(f"precisions: expected some of {', '.join(PRECISIONS)}, got {unknown[0]!r}")
    if vocab_size < 7:
        raise ValueError(f"vocab_size: expected at least 7 (6 special tokens), got {vocab_size}")
