"""The demo, a run through all rooms on the built-in corpus: documents, training, translation, scores, Hub folder."""

import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from transformers.utils.logging import disable_progress_bar

from hf_docmt.data.readers import read_documents
from hf_docmt.data.synthetic.corpus import CHANCE, write_corpus
from hf_docmt.evaluation.contrast import contrast_report
from hf_docmt.evaluation.translation_scores import evaluate_files
from hf_docmt.files import check_new_folder
from hf_docmt.hub.export import export_model
from hf_docmt.loading import model_folders
from hf_docmt.reports.report import Report
from hf_docmt.reports.tables import write_table
from hf_docmt.systems import DocMTSystem
from hf_docmt.training.recipe import load_recipe
from hf_docmt.training.run import train
from hf_docmt.training.run_folder import FACTS
from hf_docmt.translation.corpus import translate_corpus, write_translations

CORPUS = "built-in discourse corpus"
SYSTEMS = {"sentence": "demo_sentence.yaml", "concat": "demo_concat4.yaml"}
DOCUMENTS = {"train": 4000, "validation": 100, "test": 100}
LIMITS = (
    "It knows only the built-in corpus, synthetic documents with a small vocabulary. Other text becomes nonsense.",
    "For a pronoun, a form of address or an elliptic sentence it reads up to three previous sentences; "
    "if the clue is farther away, it guesses.",
)
EXAMPLE = ["I will show you the train.", "It departs late."]  # of the corpus: the second needs the first


def run_demo(folder: str | Path, seed: int = 1, documents: dict | None = None, overrides: tuple[str, ...] = ()) -> dict:
    """Train a sentence-level and a concatenation model (k = 4) equally, compare them, and write the latter for the Hub.

    `folder` is new; it gets `corpus`, `models`, `reports` and `hub` (the folder that loads with
    `trust_remote_code=True`). `documents` are corpus sizes, `overrides` go to both recipes. The systems are trained
    side by side, each in a process with its share of the cores. Returns the comparison: `rows`, `table` (text),
    `seconds`, `hub`.
    """
    started = time.monotonic()
    folder = check_new_folder(folder)
    say(
        "Trains a sentence-level and a document-level model side by side and compares them: 3 to 5 minutes on two cores"
    )
    say(f"1 of 4: the built-in corpus, into {folder / 'corpus'}")
    write_corpus(folder / "corpus", seed=seed, **(documents or DOCUMENTS))
    say("2 of 4: training")
    threads = max(1, torch.get_num_threads() // len(SYSTEMS))
    with ProcessPoolExecutor(
        len(SYSTEMS), get_context("spawn"), initializer=torch.set_num_threads, initargs=(threads,)
    ) as processes:
        work = partial(train_system, folder=folder, seed=seed, overrides=overrides)
        models = dict(zip(SYSTEMS, processes.map(work, SYSTEMS)))
        say("3 of 4: translating and scoring the test documents, and the contrastive suites")
        reports = dict(zip(SYSTEMS, processes.map(partial(report_on, folder=folder), SYSTEMS, models.values())))
    say(f"4 of 4: the document-level model as a folder for the Hub, into {folder / 'hub'}")
    model, tokenizer = model_folders.load_model(models["concat"])
    card: dict[str, Any] = {
        "license": "apache-2.0",
        "example": EXAMPLE,
        "baseline": reports["sentence"],
        "limits": LIMITS,
    }
    hub = export_model(model, tokenizer, folder / "hub", reports["concat"], **card)
    rows = comparison(reports)
    seconds = round(time.monotonic() - started, 1)
    table = write_table([["", "chance", *SYSTEMS], *[[cell_text(cell) for cell in row] for row in rows]])
    note = f"\n{seconds:.0f} seconds. The document-level model, for the Hub: {hub}"
    return {"rows": rows, "table": table + note, "seconds": seconds, "hub": str(hub)}


def say(line: str) -> None:
    """Print a line on standard error at once."""
    print(line, file=sys.stderr, flush=True)


def train_system(name: str, folder: Path, seed: int, overrides: tuple[str, ...]) -> Path:
    """Train one system on the corpus in the folder; returns the folder of its model."""
    disable_progress_bar()  # of loading and saving, which take a moment
    settings = {
        "seed": seed,
        "output_dir": folder / "models" / name,
        "data.train.path": folder / "corpus" / "train.jsonl",
        "data.validation.path": folder / "corpus" / "validation.jsonl",
    }
    file = Path(str(files("hf_docmt.recipes").joinpath(SYSTEMS[name])))
    return train(load_recipe(file, (*(f"{key}={value}" for key, value in settings.items()), *overrides)))


def report_on(name: str, model_folder: Path, folder: Path) -> Report:
    """Translate the test part with a trained model, score it and the suites, and write its report."""
    corpus, reports = folder / "corpus", folder / "reports"
    model, tokenizer = model_folders.load_model(model_folder)
    documents = read_documents("jsonl", path=corpus / "test.jsonl", source_lang="en", target_lang="de")
    reports.mkdir(parents=True, exist_ok=True)
    rows = translate_corpus(model, tokenizer, documents, batch_size=64, num_beams=1)
    write_translations(rows, reports / f"{name}.jsonl")
    scores = evaluate_files(
        reports / f"{name}.jsonl", corpus / "test.jsonl", source_lang="en", target_lang="de", beams=1
    )
    system = DocMTSystem(model, tokenizer, name)
    accuracies = contrast_report(system, [corpus / f"{suite}.json" for suite in CHANCE]).results
    report = Report(
        model=system.describe(),
        data={"corpus": CORPUS, "source_lang": "en", "target_lang": "de"},
        training=json.loads((model_folder / FACTS).read_text(encoding="utf-8")),
        results=[
            *(replace(score, dataset=CORPUS) for score in scores.results),
            *(result for result in accuracies if result.metric == "accuracy"),
        ],
    )
    report.write(reports / f"{name}.json")
    return report


def comparison(reports: dict[str, Report]) -> list[list]:
    """Rows [score, chance, value of each system]: corpus scores, then accuracy by phenomenon and distance."""
    rows = []
    for results in zip(*(report.results for report in reports.values()), strict=True):
        first = results[0]
        label = first.metric if first.task == "translation" else f"accuracy {first.dataset}"
        chance = CHANCE.get(first.dataset)
        rows.append([label, chance and 100 * chance, *(result.value for result in results)])
        for part in (part for part in first.breakdown if part.startswith("distance")):
            rows.append([f"  {part}", None, *(result.breakdown[part].value for result in results)])
    return rows


def cell_text(cell: str | float | None) -> str:
    """A cell of the comparison as text, numbers with one decimal."""
    return "" if cell is None else cell if isinstance(cell, str) else f"{cell:.1f}"
