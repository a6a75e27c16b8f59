"""COMET through files: unbabel-comet runs in an environment of its own, for its pins clash with this package's."""

import hashlib
import json
import logging
import math
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hf_docmt.evaluation.metrics.comet_input import CometInput
from hf_docmt.files import DataError, parse_json, read_lines

MODEL = "Unbabel/wmt22-comet-da"
LONG = ("refuse", "chunk")
INSTALL = "comet-env/bin/pip install unbabel-comet 'setuptools<81'"  # its torchmetrics needs pkg_resources

_PROGRAM = Path(__file__).with_name("comet_scorer.py")
_logger = logging.getLogger(__name__)


def write_comet_input(prepared: CometInput, path: str | Path) -> None:
    """JSON lines with `doc_id`, `sentence` and lists of sentences `src`, `mt` and `ref`, at last the current one."""
    Path(path).write_text(_lines(prepared), encoding="utf-8")


def comet_command(
    prepared: CometInput, python: str = "comet-env/bin/python", model: str = MODEL, long: str = "refuse"
) -> list[str]:
    """The command that scores the file {input} into the file {output}, to be run where unbabel-comet is installed.

    `python -m venv comet-env` and `INSTALL` make such an environment. The program in the command needs nothing of this
    package, so it can be copied to another machine. It counts subwords with the model's own tokenizer. Where a
    side is too long for the model it ends with an error, or with `long="chunk"` takes context away on all sides, the
    farthest first; a sentence that is too long alone is always an error.
    """
    if long not in LONG:
        raise ValueError(f"unknown long {long!r}: expected {' or '.join(LONG)}")
    command = [python, "-W", "ignore", str(_PROGRAM), "{input}", "{output}", "--model", model, "--long", long]
    return command + ["--context"] * (prepared.context > 0)


def run_comet(prepared: CometInput, command: Sequence[str]) -> dict:
    """The scores of a command that has `{input}` and `{output}` for its files.

    ValueError: a command without them, or one that fails, with what it said.
    """
    if not all(any(mark in part for part in command) for mark in ("{input}", "{output}")):
        raise ValueError(f"the command {shlex.join(command)} lacks {{input}} or {{output}}; put them for the files")
    with tempfile.TemporaryDirectory() as folder:
        files = {"{input}": str(Path(folder) / "input.jsonl"), "{output}": str(Path(folder) / "scores.json")}
        write_comet_input(prepared, files["{input}"])
        filled = [part.replace("{input}", files["{input}"]).replace("{output}", files["{output}"]) for part in command]
        try:
            done = subprocess.run(filled, capture_output=True, text=True)
        except OSError as error:
            raise ValueError(_failed(prepared, filled, str(error))) from error
        if done.returncode or not Path(files["{output}"]).is_file():
            said = (done.stderr.strip() or done.stdout.strip() or "it wrote no scores").splitlines()
            if said[-1].startswith("COMET: "):  # what the program refuses
                raise ValueError(said[-1])
            lines = "\n".join(said[-5:])
            raise ValueError(_failed(prepared, filled, f"status {done.returncode}: {lines}"))
        return read_comet_scores(files["{output}"], prepared)


def read_comet_scores(path: str | Path, prepared: CometInput) -> dict:
    """{"model", "scores"} from the JSON of the program, one finite score for each item.

    `comet` (its version), `separator`, `limit` and `shortened` (the number of items with less context than asked for)
    are None where the program does not tell them. DataError: another number of scores, or the scores of another input
    where the file says of which (`input`, the SHA-256 of its bytes).
    """
    found = parse_json("\n".join(line for _, line in read_lines(path)), path)
    scores = found.get("scores") if isinstance(found, dict) else None
    if not isinstance(scores, list) or not isinstance(found.get("model"), str):
        raise DataError(f"{path}: expected an object with `model` and a list `scores`, as {_PROGRAM.name} writes it")
    if len(scores) != len(prepared.items):
        raise DataError(f"{path}: {len(scores)} scores for {len(prepared.items)} sentences; score the input again")
    for number, score in enumerate(scores, 1):
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise DataError(f"{path}, score {number}: {score!r} is not a finite number; score the input again")
    if found.get("input") not in (None, _digest(prepared)):
        raise DataError(f"{path}: these are the scores of another input; score the one that was written last")
    if found.get("context") not in (None, prepared.context > 0):
        raise DataError(f"{path}: scored {'with' if found['context'] else 'without'} --context, the input is otherwise")
    known = {key: found.get(key) for key in ("comet", "separator", "limit", "shortened")}
    if known["shortened"]:
        _logger.warning(
            "COMET: %d of %d sentences got less context, %s subwords", known["shortened"], len(scores), known["limit"]
        )
    return {"model": found["model"], "scores": scores, **known}


def _lines(prepared: CometInput) -> str:
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in prepared.items)


def _digest(prepared: CometInput) -> str:
    return hashlib.sha256(_lines(prepared).encode("utf-8")).hexdigest()


def _failed(prepared: CometInput, command: Sequence[str], said: str) -> str:
    usual = shlex.join(comet_command(prepared)).replace("'{input}'", "{input}").replace("'{output}'", "{output}")
    return (
        f"{shlex.join(command)} failed, {said}\nCOMET runs in an environment of its own:\n"
        f"  python -m venv comet-env && {INSTALL}\n  {usual}"
    )
