"""COMET scores of JSON lines with src, mt and ref. Run by the Python that has unbabel-comet; needs nothing else.

comet-env/bin/python comet_scorer.py input.jsonl scores.json --model Unbabel/wmt22-comet-da [--context]
"""

import argparse
import hashlib
import json
import sys
from importlib.metadata import version
from pathlib import Path

SIDES = ("src", "mt", "ref")


def main() -> None:
    """Write {"model", "comet", "separator", "limit", "shortened", "scores"}."""
    parser = argparse.ArgumentParser(description="COMET scores of JSON lines with src, mt and ref")
    parser.add_argument("input", help="each side a list of sentences, the last one is scored, the others are context")
    parser.add_argument("output")
    parser.add_argument("--model", default="Unbabel/wmt22-comet-da", help="name on the Hub, or a checkpoint file")
    parser.add_argument("--context", action="store_true", help="embed the last sentence only")
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()
    items = [json.loads(line) for line in Path(options.input).read_text(encoding="utf-8").split("\n") if line]
    model = load(options.model)
    if options.context:
        enable_context(model)
    texts, output = fit(items, model)
    output |= {
        "model": named(options.model),
        "comet": version("unbabel-comet"),
        "scores": predict(model, texts, options.batch_size),
    }
    Path(options.output).write_text(json.dumps(output), encoding="utf-8")


def load(name: str):
    """A COMET model by its name on the Hub or its checkpoint file."""
    here = Path(__file__).resolve().parent
    sys.path = [folder for folder in sys.path if Path(folder).resolve() != here]  # beside this file is another comet.py
    from comet import download_model, load_from_checkpoint

    return load_from_checkpoint(name if Path(name).is_file() else download_model(name))


def named(model: str) -> str:
    """The name on the Hub, or of a checkpoint file its name and what tells it from others of that name."""
    if not Path(model).is_file():
        return model
    digest = hashlib.sha256()
    with open(model, "rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return f"{Path(model).name}@{digest.hexdigest()[:12]}"


def enable_context(model) -> None:
    """Ends the program where the model cannot leave the context out of its sentence embeddings."""
    if not hasattr(model, "enable_context"):
        stop("this unbabel-comet cannot score with context: pip install -U unbabel-comet")
    model.enable_context()
    if getattr(model, "use_context", True) is False:
        stop("this model cannot score with context: take one that pools by average, as wmt22-comet-da")


def fit(items: list, model) -> tuple[list, dict]:
    """The text of every side of the items, and what was done: {"separator", "limit", "shortened" (number of items)}.

    COMET silently cuts a text that is too long for its encoder at the end, which is the current sentence. So context is
    taken away on all sides, the farthest first. The program ends where the current sentence alone is too long, or holds
    the separator, after which the current sentence is looked for.
    """
    joint = getattr(model.hparams, "input_segments", None)  # the sides of a model that reads them as one sequence
    limit = model.encoder.max_positions - (0 if joint else 2)
    tokenizer, context = model.encoder.tokenizer, getattr(model, "use_context", False)
    texts, shortened = [], 0
    for item in items:
        for size in range(len(item["src"]), 0, -1):
            text = {side: f" {tokenizer.sep_token} ".join(item[side][-size:]) for side in SIDES}
            ids = [tokenizer(text[side])["input_ids"] for side in joint or SIDES]
            count = (sum if joint else max)(map(len, ids))
            if count <= limit:
                break
            if size == 1:
                stop(f"{location(item)}: {count} subwords, this model reads {limit}; cut the sentence")
        if context and any(side.count(tokenizer.sep_token_id) != size for side in ids):
            stop(f"{location(item)}: the separator {tokenizer.sep_token} occurs in it or its context; take it out")
        texts.append(text)
        shortened += size < len(item["src"])
    return texts, {"separator": tokenizer.sep_token if context else None, "limit": limit, "shortened": shortened}


def predict(model, texts: list, batch_size: int) -> list:
    """Scores in the order of the texts, on a GPU where there is one."""
    import torch

    prediction = model.predict(texts, batch_size=batch_size, gpus=int(torch.cuda.is_available()))
    return [float(score) for score in prediction.scores]


def location(item: dict) -> str:
    """Where an item stands, for messages."""
    return f"document {item['doc_id']!r}, sentence {item['sentence']}"


def stop(message: str) -> None:
    """End with a message on stderr and status 1."""
    sys.exit(f"COMET: {message}")


if __name__ == "__main__":
    main()
