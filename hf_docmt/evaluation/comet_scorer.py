"""COMET scores of JSON lines with src, mt and ref. Run by the Python that has unbabel-comet; needs nothing else.

comet-env/bin/python comet_scorer.py input.jsonl scores.json --model Unbabel/wmt22-comet-da [--context]
"""

import argparse
import hashlib
import json
import sys
from importlib.metadata import version
from pathlib import Path


def main() -> None:
    """Write {"model", "comet", "context", "input" (SHA-256 of the file), "scores"}."""
    parser = argparse.ArgumentParser(description="COMET scores of JSON lines with src, mt and ref")
    parser.add_argument("input")
    parser.add_argument("output")
    parser.add_argument("--model", default="Unbabel/wmt22-comet-da", help="name on the Hub, or a checkpoint file")
    parser.add_argument("--context", action="store_true", help="embed the last sentence only")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--gpus", type=int, default=0)
    options = parser.parse_args()
    raw = Path(options.input).read_bytes()
    items = [json.loads(line) for line in raw.decode("utf-8").split("\n") if line]
    model = load(options.model)
    if options.context:
        enable_context(model)
    scores = model.predict(items, batch_size=options.batch_size, gpus=options.gpus).scores
    found = {
        "model": options.model,
        "comet": version("unbabel-comet"),
        "context": options.context,
        "input": hashlib.sha256(raw).hexdigest(),
        "scores": [float(score) for score in scores],
    }
    Path(options.output).write_text(json.dumps(found), encoding="utf-8")


def load(name: str):
    """A COMET model by its name on the Hub or its checkpoint file."""
    here = Path(__file__).resolve().parent
    sys.path = [place for place in sys.path if Path(place).resolve() != here]  # beside this file is another comet.py
    from comet import download_model, load_from_checkpoint

    return load_from_checkpoint(name if Path(name).is_file() else download_model(name))


def enable_context(model) -> None:
    """Ends the program where the model cannot leave the context out of its sentence embeddings."""
    if not hasattr(model, "enable_context"):
        sys.exit("this unbabel-comet cannot score with context: pip install -U unbabel-comet")
    model.enable_context()
    if getattr(model, "use_context", True) is False:
        sys.exit("this COMET model cannot score with context: take one that pools by average, as wmt22-comet-da")


if __name__ == "__main__":
    main()
