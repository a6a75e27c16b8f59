"""Sentences per second of `generate` vs. transformers' MarianMT and CTranslate2 with the same weights.

python examples/bench/decode.py
python examples/bench/decode.py --sizes small --batch-sizes 16 --json

Random sources of `--tokens` tokens; every translation has the same length, since the end token is never chosen. int8 is
compared with Marian in fp32. `of_ceiling` is the minimum time on this machine divided by our time: for the products of
all weights with all tokens, or for reading the weights once, whichever is more.
"""

import argparse
import copy
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import torch
from random_models import COMMON, EOS, NEVER, SIZES, SPECIAL_TOKENS, marian_pair, served, word_tokenizer
from rows import Row, alternate, main, parser, row
from torch.utils.benchmark import timer
from transformers import GenerationConfig, PreTrainedModel

import hf_docmt

PRECISIONS = ("fp32", "bf16", "int8")
COMPUTE_TYPES = {"fp32": "float32", "int8": "int8"}  # CTranslate2's names of those that it has on every CPU
BYTES = {"fp32": 4, "bf16": 2, "int8": 1}  # of a weight
MODES = {"greedy": 1, "beam 4": 4}  # name: number of beams
EMBEDDING_SIZE, ATTENTION_GAIN = 9.0, 3.6  # see `diversify_translations`
COLUMNS = ("ours", "ratio", "ctranslate2", "over_ctranslate2", "of_ceiling")


def options() -> argparse.ArgumentParser:
    """The arguments of all scripts, and the inputs to decode."""
    made = parser(__doc__)
    made.add_argument("--sizes", nargs="+", default=["base", "small"], help="instead of --size")
    made.add_argument("--batch-sizes", nargs="+", type=int, default=[1, 16, 64])
    made.add_argument("--precisions", nargs="+", default=list(PRECISIONS))
    made.add_argument("--tokens", type=int, default=25)
    return made


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Each size, precision, mode and batch."""
    limits = ceilings(options.device, options.repeats)
    for size in options.sizes:
        models = dict(zip(("ours", "peer"), marian_pair(size)))
        for model in models.values():
            diversify_translations(model.eval())
            model.final_logits_bias[:, EOS] = NEVER
        generator = torch.Generator().manual_seed(1)
        shape = (max(options.batch_sizes), options.tokens)
        sources = torch.randint(len(SPECIAL_TOKENS), SIZES[size][1], shape, generator=generator)
        sources[:, -1] = EOS
        for precision in options.precisions:
            if precision == "int8" and options.device != "cpu":
                continue
            dtype = torch.bfloat16 if precision == "bf16" else torch.float32
            sides = {"peer": copy.deepcopy(models["peer"]).to(options.device, dtype)}
            sides["ours"], _ = served(models["ours"], precision, options.device)
            translator = ctranslate2_translator(models["ours"], precision) if options.device == "cpu" else None
            for mode, beams in MODES.items():
                for batch in options.batch_sizes:
                    case = {"part": f"decoding, {size}", "case": f"{mode}, batch {batch}", "at": precision}
                    made = measure(sides, translator, sources[:batch].to(options.device), beams, options)
                    least = least_seconds(size, precision, batch, beams, options.tokens, limits)
                    made["of_ceiling"] = least and least / made.pop("seconds")
                    yield made | case


def measure(
    sides: Mapping[str, PreTrainedModel], translator: object, sources: torch.Tensor, beams: int, options: object
) -> Row:
    """One row: all sides translate the sources, (B, S), in alternating rounds."""
    ends = {name: value for name, value in COMMON.items() if name.endswith("token_id")}
    search = GenerationConfig(num_beams=beams, do_sample=False, max_new_tokens=options.tokens, **ends)
    inputs = {"attention_mask": torch.ones_like(sources), "generation_config": search}
    works = {name: partial(model.generate, sources, **inputs) for name, model in sides.items()}
    if translator is not None:
        words = [[f"w{number}" for number in ids[:-1]] + ["</s>"] for ids in sources.tolist()]
        limits = {"beam_size": beams, "max_decoding_length": options.tokens}
        works["ctranslate2"] = partial(translator.translate_batch, words, [["<s>"]] * len(words), **limits)
    seconds, outputs = alternate(works, options.repeats)
    speeds = {name: len(sources) / value for name, value in seconds.items()}
    lengths = {name: outputs[name].shape[1] for name in sides}
    if set(lengths.values()) != {options.tokens + 1}:  # with the start token
        raise RuntimeError(f"expected {options.tokens + 1} tokens per sentence, got {lengths}")
    equal = (outputs["ours"] == outputs["peer"])[:, 1:].float().mean().item()
    made = row("", "sentences/s", speeds["ours"], speeds["peer"], equal_tokens=equal, seconds=seconds["ours"])
    if translator is not None:
        made |= {"ctranslate2": speeds["ctranslate2"], "over_ctranslate2": speeds["ours"] / speeds["ctranslate2"]}
    return made


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


def ctranslate2_translator(model: PreTrainedModel, precision: str) -> object | None:
    """The same weights in CTranslate2, with the number of threads of torch; None if it is not installed."""
    if precision not in COMPUTE_TYPES or not find_spec("ctranslate2"):
        return None
    import ctranslate2

    with tempfile.TemporaryDirectory() as folder:
        tokenizer = word_tokenizer(model.config.vocab_size)
        kind = {"form": "ctranslate2", "quantization": COMPUTE_TYPES[precision]}
        made = hf_docmt.export_model(model, tokenizer, Path(folder, "model"), **kind)
        return ctranslate2.Translator(str(made / "ctranslate2"), intra_threads=torch.get_num_threads())


# The limits of the machine


def ceilings(device: str, repeats: int, size: int = 2048, copied: int = 2**26) -> dict[str, float]:
    """Operations a second of the product of two square matrices by precision, and bytes a second of a copy."""
    if device != "cpu":
        return {}
    first, second = torch.randint(-100, 100, (2, size, size), dtype=torch.int8)
    source, target = torch.ones(2, copied)

    def seconds(work) -> float:
        work()
        times = []
        for _ in range(repeats):
            started = timer()
            work()
            times.append(timer() - started)
        return median(times)

    floats = {"fp32": (first.float(), second.float()), "bf16": (first.bfloat16(), second.bfloat16())}
    found = {name: 2 * size**3 / seconds(lambda pair=pair: pair[0] @ pair[1].t()) for name, pair in floats.items()}
    found["int8"] = 2 * size**3 / seconds(lambda: torch._int_mm(first, second.t()))
    return found | {"copy": 8 * copied / seconds(lambda: target.copy_(source))}


def least_seconds(
    size: str, precision: str, batch: int, beams: int, tokens: int, ceilings: Mapping[str, float]
) -> float | None:
    """The minimum seconds of a batch; attention, which adds little at such lengths, is ignored."""
    if not ceilings:
        return None
    sizes, vocab_size = SIZES[size]
    width, layers, ffn = sizes["d_model"], sizes["decoder_layers"], sizes["decoder_ffn_dim"]
    source = layers * (4 * width**2 + 2 * width * ffn) + layers * 2 * width**2  # the encoder, and keys of the decoder
    step = layers * (6 * width**2 + 2 * width * ffn) + vocab_size * width

    def least(weights: int, positions: int) -> float:
        products = 2 * weights * positions / ceilings[precision]
        return max(products, weights * BYTES[precision] / ceilings["copy"])

    return least(source, batch * tokens) + tokens * least(step, batch * beams)


if __name__ == "__main__":
    names = {f"decoding, {size}": COLUMNS for size in SIZES}
    main(rows, options(), names)
