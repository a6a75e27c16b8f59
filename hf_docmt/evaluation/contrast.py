"""From a system, or a file of its scores, and the files of suites to a report of contrastive accuracy."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from hf_docmt.evaluation.conditions import with_context
from hf_docmt.evaluation.context_ablation import context_results
from hf_docmt.evaluation.contrastive_accuracy import contrastive_accuracy, file_result, item_records
from hf_docmt.evaluation.details import DetailsFile, hash_of
from hf_docmt.evaluation.score_files import read_scores, write_scores
from hf_docmt.evaluation.suites import average_results, check_language, counts_note, read_suite
from hf_docmt.evaluation.systems import System
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Result

CHUNK_CONTEXT = 3  # past sentences that models of chunks get, as in ContraPro


def contrast_report(system: System, suites: Sequence[str | Path], **options) -> Report:
    """The report of a system's contrastive accuracy on suite files; `options` are those of `contrast`.

    >>> report = contrast_report(load_system("runs/concat"), ["runs/corpus/deixis.json"])
    >>> [(result.metric, result.dataset) for result in report.results]
    [('accuracy', 'deixis')]
    """
    results = contrast(system, suites, **options)
    data = {"suites": [Path(suite).name for suite in suites]}
    return Report(model=system.describe(), data=data, results=results)


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
    limit: int | None = None,
    details: str | Path | None = None,
) -> list[Result]:
    """Results for every suite and condition of context, and those that join suites (`average_results`).

    Items get as much context as the system reads. `format`, `documents` and `records` go to `read_suite`, `only` is
    (first, last) item of each suite, from 1: the rest may be in the training data. `conditions` are those of
    `with_context`. With a `scores_folder`, the scores under each condition are written there in the
    published order, lower ones better: `SUITE.true.scores`. `limit` is the most items of a suite. With `details`, a
    `DetailsFile` of every item, an interrupted run can go on. ValueError: a suite of other languages than the system's,
    two suites of one name.
    """
    file = DetailsFile(details)
    reading = {"documents": documents, "records": records}
    reading |= {"context": system.context.past, "future_context": system.context.future}
    read = [read_suite(suite, format, **reading) for suite in suites]
    check_names([items[0].suite for items in read], suites)
    results, parts = [], []
    for items in read:  # conditions are tried, too, before the first suite is scored
        name, note = items[0].suite, counts_note(items)
        items, split = items_between(items, only, limit)
        check_language(items, *system.languages)
        for condition in conditions:
            with_context(items, condition)
        parts.append((name, split, items, note))
    if scores_folder is not None:
        Path(scores_folder).mkdir(parents=True, exist_ok=True)
    for name, split, items, note in parts:
        keep = partial(_write_scores, Path(scores_folder), name) if scores_folder is not None else None
        options = {"conditions": conditions, "normalization": normalization, "keep": keep, "details": file}
        found = context_results(system, items, dataset=name, split=split, **options)
        results += [_with_counts(result, note) for result in found]
    file.finish()
    return results + average_results(results)


def check_names(names: Sequence[str], paths: Sequence[str | Path]) -> None:
    """ValueError where two files have the same name in results, in which nothing else would distinguish them."""
    for number, name in enumerate(names):
        if (first := names.index(name)) < number:
            raise ValueError(
                f"{paths[first]} and {paths[number]} are both called {name!r} in results; give them one by one, or "
                "rename one of them"
            )


def _with_counts(result: Result, note: str | None) -> Result:
    """The result with a note on what differs from the published counts of the whole suite."""
    return result.with_details({"counts": note}) if note else result


def items_between(items: list, only: tuple[int, int] | None, limit: int | None = None) -> tuple[list, str]:
    """Items from (first, last), from 1, or at most the first `limit`, and the name of that part.

    ValueError: there are no such items, a limit below 1, both.
    """
    if limit is not None and (limit < 1 or only is not None):
        raise ValueError(f"limit is {limit}, items {only}: give a limit of 1 or more, or a part of the items, not both")
    if limit is not None and limit < len(items):
        only = (1, limit)
    if only is None:
        return items, "all"
    first, last = only
    if not 1 <= first <= last <= len(items):
        raise ValueError(
            f"items {first}-{last} of {items[0].suite}, which has {len(items)}: give a part of 1-{len(items)}"
        )
    return items[first - 1 : last], f"items {first}-{last}"


def _write_scores(folder: Path, name: str, condition: str, items, scores) -> None:
    write_scores(folder / f"{name}.{condition}.scores", items, scores)


def score_file_report(
    name: str,
    suite: str | Path,
    scores: str | Path,
    *,
    better: str = "lower",
    format: str = "auto",
    documents: str | Path | None = None,
    records: str | Path | None = None,
    only: tuple[int, int] | None = None,
    limit: int | None = None,
    details: str | Path | None = None,
) -> Report:
    """The report of a system of this name from a file of its scores, one a line in the published order of the suite.

    With `only` (first, last), from 1, or with a `limit` they are the scores of these items alone. `details` as in
    `contrast`.
    """
    context = 0 if documents is None else CHUNK_CONTEXT  # the accuracy needs no texts
    items = read_suite(suite, format, documents=documents, records=records, context=context)
    note = counts_note(items)
    items, split = items_between(items, only, limit)
    found, file = read_scores(scores, items, better), DetailsFile(details)
    file.records(
        items,
        lambda part: item_records(part, found, "file"),
        lambda: {"scores": "file", "better": better, "numbers": hash_of(found)},
        chunk=len(items),
    )
    file.finish()
    result = file_result(
        contrastive_accuracy(items, found),
        dataset=items[0].suite,
        split=split,
        better=better,
    )
    result = _with_counts(result, note)
    data = {"suites": [Path(suite).name], "scores": Path(scores).name}
    return Report(model={"name": name}, data=data, results=[result, *average_results([result])])
