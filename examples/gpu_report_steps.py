"""The steps of gpu_report.py, each of them a process that prints a line of JSON for every row that it has.

python examples/gpu_report_steps.py decode --device cuda
"""

import argparse
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import torch

from hf_docmt.data.documents import make_documents, sentences
from hf_docmt.data.synthetic.corpus import make_corpus, write_corpus
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.loading import model_folders, registry
from hf_docmt.training.recipe import load_recipe
from hf_docmt.training.run import train

SIZES = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "max_position_embeddings": 512,
    "dropout": 0.0,
    "init_std": 0.2,
    "source_lang": "en",
    "target_lang": "de",
}
FIELDS = {"window": {"past_context": 2, "window": 4, "length_ratio": 1.0}, "memory": {"memory_size": 4}, "doct": {}}
BENCHMARKS = {  # step: script in bench/, its options on a GPU, and whether it must be small
    "decode": ("decode", "--sizes base", "--sizes tiny --batch-sizes 1 2 --tokens 5 --repeats 1"),
    "train": (
        "train",
        "--parts speed --repeats 2",
        "--parts speed --speed-size tiny --documents 8 --max-tokens 500 --repeats 1",
    ),
    "attention": (
        "cost",
        "--parts 'training by length' --time-limit 60",
        "--parts 'training by length' --size tiny --lengths 64 128 256 --repeats 1",
    ),
    "cost": (
        "cost",
        "--parts 'translation by length' --repeats 1 --time-limit 60",
        "--parts 'translation by length' --size tiny --text-lengths 100 200 300 --repeats 1",
    ),
}


def print_row(row: dict) -> None:
    print(json.dumps(row), flush=True)


def run_benchmark(step: str, device: str, small: bool) -> None:
    """The rows as they come, then what is asked of them."""
    sys.path.insert(0, str(Path(__file__).with_name("bench")))
    name, *options = BENCHMARKS[step]
    script, rows = import_module(name), []
    for row in script.rows(script.options().parse_args(["--device", device, *shlex.split(options[small])])):
        rows.append(row)
        print_row(row)
    for target in import_module("rows").targets(rows):
        print_row(target)


def check_architectures(device: str) -> None:
    """Each architecture here and on the CPU: logits, translations, updates, and the loss in bf16."""
    each_architecture(check_architecture, device)


def compile_architectures(device: str, small: bool) -> None:
    """A compiled training step of each architecture vs. the plain one; the small one only as a graph."""
    each_architecture(lambda *setting: check_compiled(*setting, "eager" if small else "inductor"), device)


def each_architecture(check: Callable[..., dict], device: str) -> None:
    """Print a row of each one, or the error."""
    torch.set_float32_matmul_precision("highest")
    corpus = make_documents(make_corpus(seed=1, train=4, validation=1, test=1)["train"], "en", "de")
    texts = [text for row in corpus for lang in ("en", "de") for text in sentences(row, lang)]
    tokenizer = train_tokenizer(texts, vocab_size=300)
    for name in registry.ARCHITECTURES:
        started = time.monotonic()
        try:
            row = check(name, corpus, tokenizer, device)
        except Exception as error:  # whatever it is, it belongs into the report
            row = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        print_row({"case": name, **row, "seconds": round(time.monotonic() - started, 2)})


def model_and_batch(name: str, corpus, tokenizer) -> tuple:
    """A small model with random weights on the CPU, and its first examples as a batch."""
    architecture = registry.get(name)
    torch.manual_seed(1)
    fields = SIZES | {"vocab_size": len(tokenizer)} | FIELDS.get(name, {"past_context": 2})
    model = architecture.model_class(architecture.config_class(**fields)).eval()
    examples = architecture.examples(corpus, tokenizer, model.config)
    chosen = [examples[number] for number in range(min(4, len(examples)))]
    return model, architecture.collator(model.config, tokenizer)(chosen)


def check_architecture(name: str, corpus, tokenizer, device: str) -> dict:
    """Differences between the device and the CPU."""
    found = []
    for place in ("cpu", device):
        model, batch = model_and_batch(name, corpus, tokenizer)
        model, batch = model.to(place), {key: value.to(place) for key, value in batch.items()}
        with torch.no_grad():
            scored = ("labels", "label_weights")
            logits = model(**{key: value for key, value in batch.items() if key not in scored}).logits.cpu()
            with torch.autocast(torch.device(place).type, torch.bfloat16):
                half = float(model(**batch).loss)
        documents = [sentences(row, "en")[:4] for row in corpus]
        texts = [
            model.translate_documents(documents, tokenizer, num_beams=beams, max_new_tokens=12) for beams in (1, 4)
        ]
        found.append((logits, half, texts, losses(model, batch)))
    (logits, half, texts, course), (other_logits, other_half, other_texts, other_course) = found
    return {
        "logits_difference": float((logits - other_logits).abs().max()),
        "greedy_equal": texts[0] == other_texts[0],
        "beams_equal": texts[1] == other_texts[1],
        "updates_difference": max(abs(one - other) for one, other in zip(course, other_course)),
        "bf16_difference": abs(half - other_half) / half,
    }


def losses(model, batch: dict, step=None, updates: int = 3) -> list[float]:
    """Before each update."""
    model.train()
    step = step or (lambda: model(**batch).loss)
    optimizer, found = torch.optim.AdamW(model.parameters(), lr=1e-3), []
    for _ in range(updates):
        loss = step()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def check_compiled(name: str, corpus, tokenizer, device: str, backend: str) -> dict:
    """Losses of updates, compiled without a break in the graph and plain."""
    found = {}
    for kind in ("plain", "compiled"):
        model, batch = model_and_batch(name, corpus, tokenizer)
        model, batch = model.to(device), {key: value.to(device) for key, value in batch.items()}
        function = torch.compile(model, backend=backend, fullgraph=True) if kind == "compiled" else model
        found[kind] = losses(model, batch, lambda function=function, batch=batch: function(**batch).loss)
    return {"difference": max(abs(one - other) for one, other in zip(*found.values()))}


def short_training(device: str, small: bool, recipe: str) -> None:
    """Train by a recipe for some updates, in bf16 on a GPU, then translate; the demo's recipe has its own documents."""
    sizes, updates = ({"train": 20, "validation": 5, "test": 2}, 3) if small else ({}, 300)
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(f"{folder}/corpus", seed=1, **sizes)
        own = []
        if recipe.startswith("demo"):
            own = [f"data.{part}.path={folder}/corpus/{part}.jsonl" for part in ("train", "validation", "test")]
        settings = [f"output_dir={folder}/model", f"training.bf16={device != 'cpu'}"]
        settings += [f"training.max_steps={updates}", "training.epochs=null"]
        started = time.monotonic()
        model_folder = train(load_recipe(recipe, [*own, *settings]))
        seconds = time.monotonic() - started
        facts = json.loads((model_folder / "training.json").read_text(encoding="utf-8"))
        model, tokenizer = model_folders.load_model(model_folder)
    kept = {key: facts[key] for key in ("steps", "device", "precision", "best_validation_loss", "tokens_per_update")}
    print_row({"case": f"training {recipe}", **kept, "seconds": round(seconds, 1)})
    documents = [sentences(row, "en") for row in make_documents(make_corpus(seed=1, **sizes)["test"], "en", "de")]
    started = time.monotonic()
    model.to(device).translate_documents(documents, tokenizer, batch_size=64, num_beams=1)
    seconds = time.monotonic() - started
    rate = sum(map(len, documents)) / seconds
    print_row({"case": "translation", "sentences_per_second": rate, "seconds": round(seconds, 1)})


def main(step: str, device: str, small: bool, recipe: str) -> None:
    if step == "architectures":
        check_architectures(device)
    elif step == "compiled":
        compile_architectures(device, small)
    elif step == "training":
        short_training(device, small, recipe)
    else:
        run_benchmark(step, device, small)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("architectures", *BENCHMARKS, "training", "compiled"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="sizes for a CPU")
    parser.add_argument("--recipe", default="demo_concat4")
    main(**vars(parser.parse_args()))
