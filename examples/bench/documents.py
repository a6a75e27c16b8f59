"""Sentences per second when translating documents: strategies, CTranslate2 by the same strategy, every architecture.

`start` is the command for twenty sentences, in CPU seconds and MiB of whole processes.

python examples/bench/documents.py
python examples/bench/documents.py --model runs/concat --parts strategies

Strategies are those of a model of windows, by default the demo's, trained for `--steps` updates before. Architectures
have random weights and one sentence of context; each is compared with `concat`, on windows of two if it reads these,
otherwise on single sentences.
"""

import argparse
import copy
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch
from random_models import SENTENCE, random_documents, random_model, served
from rows import Row, alternate, main, parser, row

import hf_docmt
from hf_docmt.data.documents import sentences
from hf_docmt.loading import registry

LONG, JOINED = 100, 30  # sentences of a document, in a row
STRATEGIES, ARCHITECTURES, START = "strategies", "architectures", "start"
COLUMNS = {STRATEGIES: ("ours", "peer", "ratio", "equal", "unit"), ARCHITECTURES: ("time",)}
COLUMNS[START] = ("ours", "peer", "ratio", "mib", "peer_mib", "unit")
COMMAND = """
import re, sys, time
from hf_docmt.cli import main
try:
    main()
finally:
    peak = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]
    print(time.process_time(), peak, file=sys.stderr)
"""
GREEDY = {"num_beams": 1, "do_sample": False}
WINDOWS = "windows of two"


def options() -> argparse.ArgumentParser:
    """The arguments of all scripts, and the documents to translate."""
    made = parser(__doc__)
    made.add_argument("--parts", nargs="+", default=[STRATEGIES, ARCHITECTURES, START])
    made.add_argument("--model", help="folder of a trained model of windows")
    made.add_argument("--steps", type=int, default=600, help="of training, where no model is given")
    made.add_argument("--number", type=int, default=60, help="documents of the built-in corpus")
    made.add_argument("--batch-size", type=int, default=16)
    return made


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """The strategies, and the architectures in both precisions."""
    if STRATEGIES in options.parts:
        with tempfile.TemporaryDirectory() as folder:
            yield from strategy_rows(options, Path(folder))
    if START in options.parts and options.device == "cpu":
        with tempfile.TemporaryDirectory() as folder:
            yield from start_rows(options, Path(folder))
    if ARCHITECTURES in options.parts:
        for precision in ("fp32", "int8") if options.device == "cpu" else ("fp32",):
            for unit in ("sentences", WINDOWS):
                yield from architecture_rows(options, precision, unit)


def strategy_rows(options: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Each strategy vs. `sentence`, also on one long document; CTranslate2 vs. ours, both with int8 weights.

    `equal` is the share of sentences that come out alike.
    """
    model, tokenizer = hf_docmt.load_model(options.model or train_demo(folder, options.steps))
    model = model.to(options.device)
    documents = [sentences(made, "en") for made in demo_documents(folder, options.number)]
    lines = [sentence for document in documents for sentence in document]
    engines = {"fp32": model}
    if options.device == "cpu":
        engines["int8"] = copy.deepcopy(model)
        engines["int8"].quantize("int8")

    def side(engine, strategy: str, read: list[list[str]]):
        more = {"batch_size": options.batch_size, **GREEDY}
        return partial(engine.translate_documents, read, tokenizer, strategy=strategy, **more)

    def measured(case: str, ours, peer) -> Row:
        seconds, outputs = alternate({"ours": ours, "peer": peer}, options.repeats)
        found = {name: [line for document in made for line in document] for name, made in outputs.items()}
        equal = sum(one == other for one, other in zip(*found.values())) / len(found["ours"])
        speeds = {name: len(found["ours"]) / value for name, value in seconds.items()}
        return row(case, "sentences/s", speeds["ours"], speeds["peer"], part=STRATEGIES, equal=equal)

    for precision, engine in engines.items():
        for name in ("sliding", "sequential"):
            yield measured(
                f"{precision}: {name} : sentence", side(engine, name, documents), side(engine, "sentence", documents)
            )
    fastest, precision = engines[list(engines)[-1]], list(engines)[-1]
    long = [lines[:LONG]]
    case = f"{precision}: sequential : sentence, a document of {LONG} sentences"
    yield measured(case, side(fastest, "sequential", long), side(fastest, "sentence", long))
    if "int8" in engines and find_spec("ctranslate2"):
        peer = ctranslate2_model(model, tokenizer, folder / "ctranslate2")
        joined = [lines[first : first + JOINED] for first in range(0, len(lines), JOINED)]
        for name in ("sentence", "sliding", "sequential"):
            case = f"int8: {name} : CTranslate2's, documents of {JOINED} sentences"
            yield measured(case, side(fastest, name, joined), side(peer, name, joined))


def start_rows(options: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """The command that translates twenty sentences; the peer is this command without the kernels, by torch."""
    model, text = options.model or train_demo(folder, options.steps), folder / "sentences.txt"
    lines = [sentence for made in demo_documents(folder, 20) for sentence in sentences(made, "en")]
    text.write_text("".join(f"{line}\n" for line in lines[:20]), encoding="utf-8")

    def process(precision: str, kernels: str) -> dict:
        command = [sys.executable, "-c", COMMAND, "translate", str(model), str(text), "--dtype", precision]
        env = {**os.environ, "DOCMT_KERNELS": kernels}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        seconds, kilobytes = done.stderr.split()[-2:]
        return {"seconds": float(seconds), "mib": int(kilobytes) / 1024}

    for precision in ("int8", "fp32"):
        sides = {"ours": partial(process, precision, "1"), "peer": partial(process, precision, "0")}
        seconds, last = alternate(sides, options.repeats, "seconds")
        memory = {"mib": last["ours"]["mib"], "peer_mib": last["peer"]["mib"]}
        case = f"{precision}: docmt translate, 20 sentences : by torch alone"
        yield row(case, "CPU s", seconds["ours"], seconds["peer"], part=START, **memory)


def ctranslate2_model(model, tokenizer, folder: Path):
    """A model with these weights in CTranslate2's format, int8."""
    hf_docmt.export_model(model, tokenizer, folder, form="ctranslate2")
    return hf_docmt.load_system(folder, engine="ctranslate2").model


def demo_documents(folder: Path, number: int):
    """The first documents of the built-in corpus, English to German."""
    if not (folder / "corpus").exists():
        hf_docmt.write_corpus(folder / "corpus", seed=1, train=number, validation=20, test=1)
    read = hf_docmt.read_documents(path=folder / "corpus" / "train.jsonl", source_lang="en", target_lang="de")
    return read.select(range(min(number, len(read))))


def train_demo(folder: Path, steps: int, recipe: str = "demo_concat4") -> Path:
    """The window model of the demo, or that of another recipe, trained for `steps` updates on the built-in corpus."""
    demo_documents(folder, min(2000, 30 * steps))
    settings = [f"data.{part}.path={folder}/corpus/{part}.jsonl" for part in ("train", "validation")]
    settings += [f"output_dir={folder}/model", f"training.max_steps={steps}"]
    with redirect_stdout(sys.stderr):
        return hf_docmt.train(hf_docmt.load_recipe(recipe, settings))


def architecture_rows(options: argparse.Namespace, precision: str, unit: str, number: int = 4, length: int = 8):
    """The architectures that read these units, measured in the same rounds; greedy, one batch of documents.

    No special token is chosen, so outputs have the length of inputs.
    """
    models = {"concat": {} if unit == "sentences" else {"past_context": 1}}
    for name, entry in registry.ARCHITECTURES.items():
        if name != "concat" and entry.reads_segments != (unit == "sentences"):
            models[name] = {} if entry.carries_state else {"past_context": 1}
    torch.manual_seed(1)
    documents = random_documents(number, length, options.size)
    written = SENTENCE if unit == "sentences" else 2 * SENTENCE + 1  # with the separator that was read
    settings = {"batch_size": number, "max_new_tokens": written, **GREEDY}
    settings |= {"repairs": "none"} if unit == WINDOWS else {}
    works = {}
    for name, fields in models.items():
        model, tokenizer = served(random_model(name, options.size, **fields), precision, options.device)
        works[name] = partial(model.translate_documents, documents, tokenizer, **settings)
    seconds, _ = alternate(works, options.repeats)
    speeds = {name: number * length / value for name, value in seconds.items()}
    for name in list(models)[1:]:
        case, time = f"{name}, {unit}", seconds[name] / seconds["concat"]
        more = {"part": ARCHITECTURES, "at": f"{options.size} {precision}", "time": time}
        yield row(case, "sentences/s", speeds[name], speeds["concat"], **more)


if __name__ == "__main__":
    main(rows, options(), COLUMNS)
