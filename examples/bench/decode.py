"""Sentences per second of `generate` vs. transformers, CTranslate2 with the same weights, and fxtranslate.

python examples/bench/decode.py
python examples/bench/decode.py --parts real --model runs/demo/models/sentence --text lines.txt --json
python examples/bench/decode.py --parts real --model runs/real/en-pt --marian FOLDER --precisions int8

`real`: a trained model (default: the demo's sentence model) translates the lines of a text (default: the test text
of the built-in corpus), with their real lengths, in CPU seconds. With FOLDER, Marian's files of the same model, we use
its shortlist, and the peer is fxtranslate, which translates line by line. `fixed`: random sources of `--tokens`
tokens; every translation has the same length, since the end token is never chosen. int8 is compared with transformers
in fp32.
"""

import argparse
import copy
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import torch
from documents import train_demo
from random_models import COMMON, EOS, NEVER, SIZES, SPECIAL_TOKENS, marian_pair, served, word_tokenizer
from rows import Row, alternate, main, parser, row
from transformers import AutoModelForSeq2SeqLM, GenerationConfig, PreTrainedModel

import hf_docmt
from hf_docmt.engine.shortlist import LexicalShortlist

PRECISIONS = ("fp32", "bf16", "int8")
COMPUTE_TYPES = {"fp32": "float32", "int8": "int8"}  # CTranslate2's names of those that it has on every CPU
MODES = {"greedy": 1, "beam 4": 4}  # name: number of beams
EMBEDDING_SIZE, ATTENTION_GAIN = 9.0, 3.6  # see `diversify_translations`
REAL, PARTS = "real text", ("real", "fixed")
COLUMNS = ("ours", "ratio", "ctranslate2", "over_ctranslate2")
REAL_COLUMNS = ("ours", "peer", "ratio", "equal")
Translate = Callable[[list[str], int, int], list[str]]  # of lines, rows of a batch and beams


def options() -> argparse.ArgumentParser:
    """The arguments of all scripts, and the inputs to decode."""
    made = parser(__doc__)
    made.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    made.add_argument("--model", help="folder of a trained sentence-level model, for real text")
    made.add_argument("--text", type=Path, help="its source text, one sentence per line")
    made.add_argument("--marian", type=Path, help="folder of Marian's files of this model")
    made.add_argument("--steps", type=int, default=600, help="of training, if no model is given")
    made.add_argument("--sizes", nargs="+", default=["base", "small"], help="instead of --size")
    made.add_argument("--batch-sizes", nargs="+", type=int, default=[1, 16, 64])
    made.add_argument("--precisions", nargs="+", default=list(PRECISIONS))
    made.add_argument("--tokens", type=int, default=25)
    return made


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Real text first, then each size."""
    if "real" in options.parts:
        with tempfile.TemporaryDirectory() as folder:
            yield from real_rows(options, Path(folder))
    if "fixed" in options.parts:
        yield from fixed_rows(options)


# Real text


def real_rows(options: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Each precision, mode and batch, a row for each peer; `equal` is the share of equal lines."""
    path = options.model or train_demo(folder, options.steps, recipe="demo_sentence")
    lines = text_lines(options.text, folder)
    for precision in options.precisions:
        if precision == "bf16" or precision == "int8" and options.device != "cpu":
            continue
        model, tokenizer = hf_docmt.load_model(path)
        model = model.to(options.device)
        peers = peers_of(model, tokenizer, precision, folder) if options.marian is None else marian(options.marian)
        if precision == "int8":
            model.quantize("int8")
        more = {} if options.marian is None else {"shortlist": shortlist(options.marian)}
        modes = MODES if options.marian is None else {"greedy": 1}
        for mode, beams in modes.items():
            for batch in options.batch_sizes:
                search = {"batch_size": batch, "num_beams": beams, "do_sample": False}
                ours = partial(model.translate_documents, [lines], tokenizer, strategy="sentence", **search, **more)
                works = {"ours": lambda ours=ours: ours()[0]}
                works |= {name: partial(peer, lines, batch, beams) for name, peer in peers.items()}
                seconds, outputs = alternate(works, options.repeats, clock=process_time)
                for name in peers:
                    speeds = [len(lines) / seconds[one] for one in ("ours", name)]
                    equal = sum(map(str.__eq__, outputs["ours"], outputs[name])) / len(lines)
                    case = {"part": REAL, "at": precision, "equal": equal}
                    yield row(f"{mode}, batch {batch}: {name}", "sentences/s", *speeds, **case)


def text_lines(path: Path | None, folder: Path) -> list[str]:
    """The lines with text; default: the English test text of the built-in corpus."""
    if path is not None:
        return list(filter(str.strip, path.read_text("utf-8").splitlines()))
    hf_docmt.write_corpus(folder / "test", seed=1, train=1, validation=1, test=100)
    documents = map(json.loads, (folder / "test" / "test.jsonl").read_text("utf-8").splitlines())
    return [pair["en"] for document in documents for pair in document["translation"]]


def peers_of(model: PreTrainedModel, tokenizer, precision: str, folder: Path) -> dict[str, Translate]:
    """Models with these weights in transformers, and in CTranslate2 if it can run them."""
    stock_folder = hf_docmt.export_model(model, tokenizer, folder / f"stock_{precision}", form="stock")
    stock = AutoModelForSeq2SeqLM.from_pretrained(stock_folder).to(model.device).eval()
    stock.generation_config.update(max_length=None, max_new_tokens=256)

    def by_transformers(lines: list[str], batch: int, beams: int) -> list[str]:
        def translate(rows: list[list[int]]) -> list[list[int]]:
            inputs = tokenizer.pad({"input_ids": rows}, return_tensors="pt").to(stock.device)
            return stock.generate(**inputs, num_beams=beams, do_sample=False).tolist()

        return in_batches(translate, lines, batch, tokenizer)

    translator = exported(model, tokenizer, precision)
    if translator is None:
        return {"transformers": by_transformers}
    start = [tokenizer.convert_ids_to_tokens(model.config.decoder_start_token_id)]

    def by_ctranslate2(lines: list[str], batch: int, beams: int) -> list[str]:
        def translate(rows: list[list[int]]) -> list[list[int]]:
            words = [tokenizer.convert_ids_to_tokens(ids) for ids in rows]
            results = translator.translate_batch(words, [start] * len(rows), beam_size=beams, max_decoding_length=256)
            return [tokenizer.convert_tokens_to_ids(result.hypotheses[0]) for result in results]

        return in_batches(translate, lines, batch, tokenizer)

    return {"transformers": by_transformers, "CTranslate2": by_ctranslate2}


def in_batches(translate: Callable, lines: list[str], batch: int, tokenizer) -> list[str]:
    """Translations of lines in batches sorted by length, as in `translate_documents`; in the order of the lines."""
    ids = tokenizer(lines)["input_ids"]
    order = sorted(range(len(ids)), key=lambda number: -len(ids[number]))
    made = [row for first in range(0, len(order), batch) for row in translate([ids[n] for n in order[first:][:batch]])]
    texts = tokenizer.batch_decode([row for _, row in sorted(zip(order, made))], skip_special_tokens=True)
    return [text.strip() for text in texts]


def marian(folder: Path) -> dict[str, Translate]:
    """Mozilla's engine with Marian's files, greedy, line by line for any batch size."""
    import fxtranslate

    model, vocab, words = (next(folder.glob(name)).read_bytes() for name in ("model*.bin", "vocab*.spm", "lex*.bin"))
    translator = fxtranslate.Translator(model, vocab, vocab, words)
    return {"fxtranslate": lambda lines, batch, beams: list(map(translator.translate, lines))}


def shortlist(folder: Path) -> LexicalShortlist:
    return LexicalShortlist.read(next(folder.glob("lex*.bin")))


# Fixed lengths


def fixed_rows(options: argparse.Namespace) -> Iterator[Row]:
    """Each size, precision, mode and batch."""
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
            tokenizer = word_tokenizer(SIZES[size][1])
            translator = exported(models["ours"], tokenizer, precision) if options.device == "cpu" else None
            for mode, beams in MODES.items():
                for batch in options.batch_sizes:
                    case = {"part": f"decoding, {size}", "case": f"{mode}, batch {batch}", "at": precision}
                    yield measure(sides, translator, sources[:batch].to(options.device), beams, options) | case


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
    made = row("", "sentences/s", speeds["ours"], speeds["peer"], equal_tokens=equal)
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


def exported(model: PreTrainedModel, tokenizer, precision: str) -> object | None:
    """A model with these weights in CTranslate2, with the number of threads of torch; None if it is not installed."""
    if model.device.type != "cpu" or precision not in COMPUTE_TYPES or not find_spec("ctranslate2"):
        return None
    import ctranslate2

    with tempfile.TemporaryDirectory() as folder:
        kind = {"form": "ctranslate2", "quantization": COMPUTE_TYPES[precision]}
        made = hf_docmt.export_model(model, tokenizer, Path(folder, "model"), **kind)
        return ctranslate2.Translator(str(made / "ctranslate2"), intra_threads=torch.get_num_threads())


if __name__ == "__main__":
    main(rows, options(), {REAL: REAL_COLUMNS} | {f"decoding, {size}": COLUMNS for size in SIZES})
