"""From a system and the files of a suite to a report: contrastive accuracy, CXMI."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from datasets import Dataset

from hf_docmt.evaluation.conditions import with_context
from hf_docmt.evaluation.context_ablation import (
    context_results,
    cxmi_result,
    items_of_documents,
    pointwise_cxmi,
    word_gains,
)
from hf_docmt.evaluation.contrastive_accuracy import file_result, judge
from hf_docmt.evaluation.score_files import read_scores, write_scores
from hf_docmt.evaluation.suites import average_results, check_language, counts_note, read_suite
from hf_docmt.evaluation.systems.interface import System, system_languages
from hf_docmt.reports.report import build_report

CHUNK_CONTEXT = 3  # sentences before the current one that a suite gives a model of chunks, as ContraPro has them


def contrast_files(system: System, suites: Sequence[str | Path], **options) -> dict:
    """The report of a system's contrastive accuracy on suite files; `options` are those of `contrast`."""
    results = contrast(system, suites, **options)
    data = {"suites": [Path(suite).name for suite in suites]}
    return build_report(model=system.describe(), data=data, results=results)


def contrast(
    system: System,
    suites: Sequence[str | Path],
    *,
    format: str = "auto",
    documents: str | Path | None = None,
    records: str | Path | None = None,
    only: tuple[int, int] | None = None,
    normalization: str = "sum",
    conditions: Sequence[str] = ("true",),
    scores_folder: str | Path | None = None,
) -> list[dict]:
    """Results for every suite and condition of context, and those that join suites (`average_results`).

    Items get as much context as the system reads. `format`, `documents` and `records` go to `read_suite`, `only` is
    (first, last) item of each suite, from 1: the rest may be in the training data. `conditions` are those of
    `with_context`. With a `scores_folder`, the scores under each condition are written there in the
    published order, lower ones better: `SUITE.true.scores`. ValueError: a suite of other languages than the system's,
    two suites of one name.
    """
    reading = {"documents": documents, "records": records}
    reading |= {"context": system.past_context, "future_context": system.future_context}
    read = [read_suite(suite, format, **reading) for suite in suites]
    check_names([items[0].item_id.rpartition(":")[0] for items in read], suites)
    results, parts = [], []
    for items in read:  # other contexts are drawn, too, before the first suite is scored
        name, note = items[0].item_id.rpartition(":")[0], counts_note(items)
        items, split = items_between(items, only)
        check_language(items, *system_languages(system))
        for condition in conditions:
            with_context(items, condition)
        parts.append((name, split, items, note))
    if scores_folder is not None:
        Path(scores_folder).mkdir(parents=True, exist_ok=True)
    for name, split, items, note in parts:
        keep = partial(_write_scores, Path(scores_folder), name) if scores_folder is not None else None
        found = context_results(
            system, items, dataset=name, split=split, conditions=conditions, normalization=normalization, keep=keep
        )
        results += [_with_counts(result, note) for result in found]
    return results + average_results(results)


def check_names(names: Sequence[str], paths: Sequence[str | Path]) -> None:
    """ValueError where two files have the same name in results, in which nothing else would tell them apart."""
    for place, name in enumerate(names):
        if (first := names.index(name)) < place:
            raise ValueError(
                f"{paths[first]} and {paths[place]} are both called {name!r} in results; give them one by one, or "
                "rename one of them"
            )


def _with_counts(result: dict, note: str | None) -> dict:
    """A result that says what differs from the counts of the whole suite as published."""
    return result | {"details": result["details"] | {"counts": note}} if note else result


def items_between(items: list, only: tuple[int, int] | None) -> tuple[list, str]:
    """Items from (first, last), from 1, and what to call that part; ValueError where there are no such items."""
    if only is None:
        return items, "all"
    first, last = only
    if not 1 <= first <= last <= len(items):
        name = items[0].item_id.rpartition(":")[0]
        raise ValueError(f"items {first}-{last} of {name}, which has {len(items)}: give a part of 1-{len(items)}")
    return items[first - 1 : last], f"items {first}-{last}"


def _write_scores(folder: Path, name: str, condition: str, items, scores) -> None:
    write_scores(folder / f"{name}.{condition}.scores", items, scores)


def judge_files(
    name: str,
    suite: str | Path,
    scores: str | Path,
    *,
    better: str = "lower",
    format: str = "auto",
    documents: str | Path | None = None,
    records: str | Path | None = None,
    only: tuple[int, int] | None = None,
) -> dict:
    """The report of a system of this name from a file of its scores, one a line in the published order of the suite.

    With `only` (first, last), from 1, they are the scores of these items alone.
    """
    context = 0 if documents is None else CHUNK_CONTEXT  # texts are not needed to judge
    items = read_suite(suite, format, documents=documents, records=records, context=context)
    note = counts_note(items)
    items, split = items_between(items, only)
    result = file_result(
        judge(items, read_scores(scores, items, better)),
        dataset=items[0].item_id.rpartition(":")[0],
        split=split,
        better=better,
    )
    result = _with_counts(result, note)
    data = {"suites": [Path(suite).name], "scores": Path(scores).name}
    return build_report(model={"name": name}, data=data, results=[result, *average_results([result])])


def cxmi_files(system: System, documents: Dataset, *, source_lang: str, target_lang: str, dataset: str) -> dict:
    """The report of what context adds to the log-probability of references: CXMI, with the words that gain most.

    ValueError: documents of other languages than the system's.
    """
    items = items_of_documents(
        documents,
        source_lang=source_lang,
        target_lang=target_lang,
        past_context=system.past_context,
        future_context=system.future_context,
    )
    check_language(items, *system_languages(system))
    found = pointwise_cxmi(system, items)
    result = cxmi_result(system, found, dataset=dataset)
    result["details"]["gains"] = [list(row) for row in word_gains(found)[:20]]
    data = {"documents": len(documents), "source_lang": source_lang, "target_lang": target_lang}
    return build_report(model=system.describe(), data=data, results=[result])
