"""Checks, benchmarks and a short training on a GPU in under nine minutes: one JSON file and one table.

python examples/gpu_report.py --output runs/gpu
python examples/gpu_report.py --output runs/try --device cpu --small --minutes 3

Every step is a process with a time limit of its own. What fails, or runs out of time, is recorded with what it found so
far, and the rest goes on. Time that a step leaves goes to those after it.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import torch

from hf_docmt import registry
from hf_docmt.data.documents import make_documents, sentences
from hf_docmt.data.synthetic.corpus import make_corpus, write_corpus
from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.training.recipe import load_recipe
from hf_docmt.training.run import train

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests" / "modeling"
SHARES = {  # of the time, for each step
    "architectures": 60,
    "decode": 90,
    "train": 60,
    "attention": 60,
    "cost": 40,
    "training": 70,
    "compiled": 60,
    "battery": 90,
}
BENCHMARKS = {  # options: on a GPU, and where it is to be small
    "decode": (["--repeats", "3"], ["--repeats", "1"]),
    "train": (["--repeats", "2"], ["--repeats", "1"]),
    "attention": (["--lengths", "1024,2208,4096,8192"], ["--lengths", "32,64,128", "--repeats", "1"]),
    "cost": (["--lengths", "500,1000,2000", "--repeats", "1"], ["--lengths", "100,200,300", "--repeats", "1"]),
}
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


def main(output: str, device: str, small: bool, minutes: float, steps: list[str], recipe: str) -> dict:
    """Run the steps, write `gpu_report.json` and `gpu_report.md` into the folder `output`, and print the table."""
    unknown = sorted(set(steps) - SHARES.keys())
    if unknown:
        raise ValueError(f"steps: unknown {', '.join(unknown)}, expected some of {', '.join(SHARES)}")
    if not minutes > 0:
        raise ValueError(f"minutes: expected more than 0, got {minutes}")
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + 60 * minutes - 5
    report = {"machine": machine(device), "small": small, "minutes": minutes, "steps": []}
    for number, name in enumerate(steps):
        left = ends - time.monotonic()
        limit = max(0.0, left) * SHARES[name] / sum(SHARES[later] for later in steps[number:])
        print(f"{name}: at most {limit:.0f} of {left:.0f} s", file=sys.stderr, flush=True)
        step = run_step(name, command_of(name, device, small, recipe), device, limit)
        print(f"{name}: {step['status']} after {step['seconds']} s", file=sys.stderr, flush=True)
        report["steps"].append(step)
        (folder / "gpu_report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")  # what is there so far
    (folder / "gpu_report.md").write_text(table(report), encoding="utf-8")
    print(table(report), end="")
    return report


def machine(device: str) -> dict:
    """What the numbers were measured on, and with."""
    found = {name: version(name) for name in ("torch", "transformers", "hf-docmt")}
    found |= {"device": device, "cores": os.cpu_count(), "processor": platform.processor() or platform.machine()}
    if device.startswith("cuda") and torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(device)
        found |= {"gpu": properties.name, "gpu_gib": round(properties.total_memory / 2**30), "cuda": torch.version.cuda}
    return found


def command_of(name: str, device: str, small: bool, recipe: str) -> list[str] | None:
    """The command of a step; None where this machine has no tests, or nothing to run them with."""
    if name in BENCHMARKS:
        options = BENCHMARKS[name][small]
        return [sys.executable, "-m", "hf_docmt", "bench", name, "--json", "--device", device, *options]
    if name != "battery":
        size = ["--small"] if small else []
        return [sys.executable, __file__, "--step", name, "--device", device, "--recipe", recipe, *size]
    if not TESTS.is_dir() or find_spec("pytest") is None:
        return None
    chosen = ["-k", "reduction"] if small else []
    options = ["-v", "-p", "no:cacheprovider", "--device", device, "--cases", "1", *chosen]
    return [sys.executable, "-m", "pytest", *options, str(TESTS)]


def run_step(name: str, command: list[str] | None, device: str, limit: float) -> dict:
    """Run one command; its status, seconds, rows, and the end of its standard error where it did not pass."""
    step = {"step": name, "status": "left out", "limit": round(limit, 1), "seconds": 0.0, "rows": []}
    if command is None:
        return step
    started = time.monotonic()
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | hidden, stdout=output, stderr=errors, start_new_session=True
        )
        try:
            step["status"] = "failed" if process.wait(timeout=limit) else "passed"
        except subprocess.TimeoutExpired:
            step["status"] = "out of time"
        finally:
            end_processes(process)
        output.seek(0)
        errors.seek(0)
        lines, last = output.read().splitlines(), errors.read()[-2000:]
    step |= {"seconds": round(time.monotonic() - started, 1), "rows": rows_of(name, lines)}
    if any("error" in row for row in step["rows"]) and step["status"] == "passed":
        step["status"] = "failed"
    return step if step["status"] == "passed" else step | {"errors": last or "\n".join(lines[-20:])}


def end_processes(process: subprocess.Popen) -> None:
    """End a process and those that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def rows_of(name: str, lines: list[str]) -> list[dict]:
    """Rows from what a step printed: JSON, or the verdicts of pytest."""
    if name == "battery":
        verdicts = [line for line in lines if "::" in line]
        failed = [line.split(" ")[0] for line in verdicts if " FAILED" in line or " ERROR" in line]
        counts = {word.lower(): sum(f" {word}" in line for line in verdicts) for word in ("PASSED", "SKIPPED")}
        return [{"case": "tests", **counts, "failed": len(failed), "failures": failed}]
    found = [json.loads(line) for line in lines if line.startswith("{")]
    return [row for one in found for row in one.get("rows", [one])]


def table(report: dict) -> str:
    """Steps, and below each what it found, as Markdown."""
    facts = ", ".join(f"{name} {value}" for name, value in report["machine"].items())
    lines = [facts, "", "| step | case | found |", "|---|---|---|"]
    for step in report["steps"]:
        lines.append(f"| {step['step']} | **{step['status']}** | {step['seconds']} of {step['limit']} s |")
        for row in step["rows"]:
            values = {key: value for key, value in row.items() if key != "case" and not isinstance(value, dict | list)}
            found = ", ".join(
                f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in values.items()
            )
            lines.append(f"| | {row.get('case', '')} | {found} |")
    return "\n".join(lines) + "\n"


# The steps that are no commands of their own


def check_architectures(device: str, small: bool, recipe: str) -> None:
    """Each architecture here and on the CPU: logits, translations, updates, and the loss in bf16."""
    each_architecture(check_architecture, device)


def compile_architectures(device: str, small: bool, recipe: str) -> None:
    """A compiled training step of each architecture beside the plain one; the small one as a graph alone."""
    each_architecture(lambda *setting: check_compiled(*setting, "eager" if small else "inductor"), device)


def each_architecture(check, device: str) -> None:
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
        print(json.dumps({"case": name, **row, "seconds": round(time.monotonic() - started, 2)}), flush=True)


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
        settings = [f"output_dir={folder}/model", f"training.max_steps={updates}", f"training.bf16={device != 'cpu'}"]
        started = time.monotonic()
        model_folder = train(load_recipe(recipe, [*own, *settings]))
        seconds = time.monotonic() - started
        facts = json.loads((model_folder / "training.json").read_text(encoding="utf-8"))
        model, tokenizer = registry.load_model(model_folder)
    kept = {key: facts[key] for key in ("steps", "device", "precision", "best_validation_loss", "tokens_per_update")}
    print(json.dumps({"case": f"training {recipe}", **kept, "seconds": round(seconds, 1)}), flush=True)
    documents = [sentences(row, "en") for row in make_documents(make_corpus(seed=1, **sizes)["test"], "en", "de")]
    started = time.monotonic()
    model.to(device).translate_documents(documents, tokenizer, batch_size=64, num_beams=1)
    seconds = time.monotonic() - started
    rate = sum(map(len, documents)) / seconds
    print(json.dumps({"case": "translation", "sentences_per_second": rate, "seconds": round(seconds, 1)}), flush=True)


OWN = {"architectures": check_architectures, "compiled": compile_architectures, "training": short_training}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="runs/gpu_report", help="folder of the report")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="sizes for a CPU")
    parser.add_argument("--minutes", type=float, default=9.0, help="for all steps together")
    parser.add_argument("--steps", nargs="+", default=list(SHARES), help="some of them")
    parser.add_argument("--recipe", default="demo_concat4", help="of the short training: a name, or a file of your own")
    parser.add_argument("--step", choices=OWN, help=argparse.SUPPRESS)
    arguments = vars(parser.parse_args())
    step, output = arguments.pop("step"), arguments["output"]
    if step:
        OWN[step](arguments["device"], arguments["small"], arguments["recipe"])
    else:
        main(**arguments)
