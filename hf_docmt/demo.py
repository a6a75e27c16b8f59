"""The demo, a run through all rooms on the built-in corpus: documents, training, translation, scores, Hub folder."""

import json
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path

import torch
from transformers.utils.logging import disable_progress_bar

from hf_docmt import registry
from hf_docmt.data.readers import read_documents
from hf_docmt.data.synthetic.corpus import CHANCE, write_corpus
from hf_docmt.evaluation.contrast import contrast
from hf_docmt.evaluation.systems import DocMTSystem
from hf_docmt.evaluation.translation_scores import evaluate
from hf_docmt.files import check_new_folder
from hf_docmt.hub.export import export_model
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Result
from hf_docmt.reports.tables import align_columns
from hf_docmt.training.recipe import load_recipe
from hf_docmt.training.run import train
from hf_docmt.training.run_folder import FACTS
from hf_docmt.translation.corpus import translate_corpus, write_translations

SYSTEMS = {"sentence": "demo_sentence.yaml", "concat": "demo_concat4.yaml"}
DOCUMENTS = {"train": 4000, "validation": 100, "test": 100}
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
    write_corpus(folder / "corpus", seed=seed, **(documents or DOCUMENTS))
    threads = max(1, torch.get_num_threads() // len(SYSTEMS))
    with ProcessPoolExecutor(
        len(SYSTEMS), get_context("spawn"), initializer=torch.set_num_threads, initargs=(threads,)
    ) as processes:
        work = partial(run_system, folder=folder, seed=seed, overrides=overrides)
        reports = dict(zip(SYSTEMS, processes.map(work, SYSTEMS)))
    model, tokenizer = registry.load_model(folder / "models" / "concat")
    hub = export_model(model, tokenizer, folder / "hub", reports["concat"], license="apache-2.0", example=EXAMPLE)
    rows = comparison(reports)
    seconds = round(time.monotonic() - started, 1)
    table = align_columns([["", "chance", *SYSTEMS], *[[cell_text(cell) for cell in row] for row in rows]])
    note = f"\n{seconds:.0f} seconds. The document-level model, for the Hub: {hub}"
    return {"rows": rows, "table": table + note, "seconds": seconds, "hub": str(hub)}


def run_system(name: str, folder: Path, seed: int, overrides: tuple[str, ...]) -> Report:
    """Train one system on the corpus in the folder; returns its report."""
    disable_progress_bar()  # of loading and saving, which take a moment
    corpus = folder / "corpus"
    recipe = load_recipe(
        files("hf_docmt.recipes").joinpath(SYSTEMS[name]),
        (
            f"seed={seed}",
            f"output_dir={folder / 'models' / name}",
            f"data.train.path={corpus / 'train.jsonl'}",
            f"data.validation.path={corpus / 'validation.jsonl'}",
            *overrides,
        ),
    )
    return report_on(name, train(recipe), corpus, folder)


def report_on(name: str, model_folder: Path, corpus: Path, folder: Path) -> Report:
    """Translate the test part with a trained model, score it and the suites, and write its report."""
    model, tokenizer = registry.load_model(model_folder)
    documents = read_documents("jsonl", path=corpus / "test.jsonl", source_lang="en", target_lang="de")
    strategy = model.default_strategy()
    rows = translate_corpus(model, tokenizer, documents, batch_size=64, num_beams=1)
    (folder / "reports").mkdir(parents=True, exist_ok=True)
    write_translations(rows, folder / "reports" / f"{name}.jsonl")
    scores = evaluate(rows, documents, dataset="built-in discourse corpus", strategy=strategy, beams=1).results
    results = [replace(result, split="test") for result in scores]
    system = DocMTSystem(model, tokenizer, name)
    accuracies = contrast(system, [corpus / f"{suite}.json" for suite in CHANCE])
    results += [result for result in accuracies if result.metric == "accuracy"]
    report = Report(
        model=system.describe(),
        data={"corpus": "built-in discourse corpus", "source_lang": "en", "target_lang": "de"},
        training=json.loads((model_folder / FACTS).read_text(encoding="utf-8")),
        results=results,
    )
    report.write(folder / "reports" / f"{name}.json")
    return report


def comparison(reports: dict[str, Report]) -> list[list]:
    """Rows [score, chance, value of each system]: corpus scores, then accuracy by phenomenon and distance."""
    found = {name: {result_key(result): result for result in report.results} for name, report in reports.items()}
    first = next(iter(found.values()))
    rows = []
    for key, result in first.items():
        chance = CHANCE.get(result.dataset)
        rows.append([key, chance and 100 * chance, *(results[key].value for results in found.values())])
        for label in [label for label in result.breakdown if label.startswith("distance")]:
            values = [results[key].breakdown[label].value for results in found.values()]
            rows.append([f"  {label}", None, *values])
    return rows


def result_key(result: Result) -> str:
    """The row of the comparison that a result belongs to."""
    return result.metric if result.task == "translation" else f"accuracy {result.dataset}"


def cell_text(cell: str | float | None) -> str:
    """A cell of the comparison as text, numbers with one decimal."""
    return "" if cell is None else cell if isinstance(cell, str) else f"{cell:.1f}"
