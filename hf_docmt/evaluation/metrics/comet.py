"""COMET and document-level COMET, the mean over sentences times 100.

unbabel-comet runs in an environment of its own, for its pins clash with this package's; see `comet_scorer`.
"""

import json
import logging
import math
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hf_docmt import __version__
from hf_docmt.evaluation.metrics.metric import Metric, ScoreSettings
from hf_docmt.evaluation.metrics.translated_documents import TranslatedDocuments, check_sides
from hf_docmt.files import DataError, parse_json, read_lines
from hf_docmt.reports.resampling import document_details
from hf_docmt.reports.result import Result
from hf_docmt.reports.signature import Signature

MODEL = "Unbabel/wmt22-comet-da"
PYTHON = "comet-env/bin/python"
INSTALL = "comet-env/bin/pip install unbabel-comet 'setuptools<81'"  # its torchmetrics needs pkg_resources

_PROGRAM = Path(__file__).with_name("comet_scorer.py")
_logger = logging.getLogger(__name__)


class Comet(Metric):
    """COMET (Rei et al. 2020), scored by `python`, that of an environment with unbabel-comet.

    `model`: name on the Hub or checkpoint file. With `context`, sentences before the current one, see `DocumentComet`.
    """

    name = "COMET"
    needs_sources = True

    def __init__(self, python: str = PYTHON, model: str = MODEL, context: int = 0):
        self.python, self.model, self.context = python, model, context

    def score(self, documents: TranslatedDocuments, settings: ScoreSettings | None = None) -> list[Result]:
        """One result; context that is too long is shortened, which is logged and reported.

        What the program does not report, such as the separator and the limit in subwords, is not in the signature.
        """
        settings = settings or ScoreSettings()
        if self.context < 0:
            raise ValueError(f"context is {self.context}: expected 0 or more sentences")
        sources = self.required_sources(documents)
        ids = check_sides(documents.hypotheses, documents.references, sources, documents.doc_ids or None)
        items = list(comet_items(documents, ids, self.context))
        output = run_comet(items, self.python, self.model, with_context=self.context > 0)
        by_document: dict[str, list[float]] = {doc_id: [] for doc_id in ids}
        for item, score in zip(items, output["scores"]):
            by_document[item["doc_id"]].append(score)
        rows = [[math.fsum(scores), len(scores)] for scores in by_document.values()]
        how = {"model": output["model"], "scale": 100, "context": self.context}
        how |= {"mt-context": "reference"} if self.context else {}
        how |= {key: output[key] for key in ("separator", "limit") if output[key] is not None}
        result = self.result(
            documents,
            value=100 * math.fsum(output["scores"]) / len(output["scores"]),
            signature=Signature.of({**how, "comet": output["comet"], "version": __version__}),
            n=len(output["scores"]),
            breakdown={},
            details={
                "shortened": output["shortened"],
                **document_details(self.name, ids, rows, settings.samples, settings.seed),
            },
        )
        return [result]


class DocumentComet(Comet):
    """Document-level COMET (Vernikos et al. 2022) with up to `context` sentences before the current one.

    All sides have the same number of sentences, all are read and only the current one is pooled. The context before a
    hypothesis is that of the reference.
    """

    name = "doc-COMET"

    def __init__(self, python: str = PYTHON, model: str = MODEL, context: int = 2):
        super().__init__(python, model, context)


def comet_items(documents: TranslatedDocuments, ids: list[str], context: int) -> Iterator[dict]:
    """{"doc_id", "sentence", "src", "mt", "ref"} of every sentence; a side is the context and then the sentence.

    A sentence that is blank on all three sides, as those between paragraphs are, is no item, but stays as context.
    """
    for doc_id, source, hypothesis, reference in zip(
        ids, documents.sources, documents.hypotheses, documents.references
    ):
        for index, sides in enumerate(zip(source, hypothesis, reference)):
            if not any(text.strip() for text in sides):
                continue
            first = max(0, index - context)
            yield {
                "doc_id": doc_id,
                "sentence": index + 1,
                "src": list(source[first : index + 1]),
                "mt": [*reference[first:index], hypothesis[index]],
                "ref": list(reference[first : index + 1]),
            }


def run_comet(items: list[dict], python: str, model: str, with_context: bool = False) -> dict:
    """The output of `comet_scorer` for these items: `model`, `scores`, `comet`, `separator`, `limit`, `shortened`.

    ValueError: a program that fails, with what it said; DataError: scores that are not one number for each item.
    """
    with tempfile.TemporaryDirectory() as folder:
        items_path, scores_path = Path(folder) / "input.jsonl", Path(folder) / "scores.json"
        items_path.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items), encoding="utf-8")
        command = [python, "-W", "ignore", str(_PROGRAM), str(items_path), str(scores_path), "--model", model]
        command += ["--context"] * with_context
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            raise ValueError(_failed(command, str(error))) from error
        if done.returncode or not scores_path.is_file():
            said = (done.stderr.strip() or done.stdout.strip() or "it wrote no scores").splitlines()
            if said[-1].startswith("COMET: "):  # what the program refuses
                raise ValueError(said[-1])
            raise ValueError(_failed(command, f"status {done.returncode}: " + "\n".join(said[-5:])))
        return read_comet_scores(scores_path, len(items))


def read_comet_scores(path: Path, count: int) -> dict:
    """The JSON of the program; what it does not tell is None. DataError: not `count` finite scores."""
    output = parse_json("\n".join(line for _, line in read_lines(path)), path)
    scores = output.get("scores") if isinstance(output, dict) else None
    if not isinstance(scores, list) or not isinstance(output.get("model"), str):
        raise DataError(f"{path}: expected an object with `model` and a list `scores`, as {_PROGRAM.name} writes it")
    if len(scores) != count:
        raise DataError(f"{path}: {len(scores)} scores for {count} sentences; score the input again")
    for number, score in enumerate(scores, 1):
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise DataError(f"{path}, score {number}: {score!r} is not a finite number; score the input again")
    output = dict.fromkeys(("comet", "separator", "limit", "shortened")) | output
    if output["shortened"]:
        _logger.warning(
            "COMET: %d of %d sentences got less context, %s subwords", output["shortened"], count, output["limit"]
        )
    return output


def _failed(command: list[str], said: str) -> str:
    return (
        f"{shlex.join(command)} failed, {said}\nCOMET runs in an environment of its own:\n"
        f"  python -m venv comet-env && {INSTALL}\nGive its Python ({PYTHON})."
    )
