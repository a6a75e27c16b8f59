"""The report of contrastive accuracy of a system, or of a file of its scores, on the files of suites.

Files of scores have one per line, in the order in which the published evaluations of the suites read them: that of the
items, and of the candidates within an item, ContraPro's reference and then its errors, every candidate of Voita's,
Lopes' and Bawden's lines in file order. The evaluations of ContraPro, Lopes and Voita take costs, such as negative
log-probabilities, of which the lowest wins; `better="higher"` is for files of log-probabilities.
"""

import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from hf_docmt.evaluation.context_ablation import CONDITIONS, condition_label, with_context
from hf_docmt.evaluation.contrastive_accuracy import contrastive_accuracy, item_records
from hf_docmt.evaluation.item_records import ItemRecords, hash_of, write_item_records
from hf_docmt.evaluation.metrics.external import finite_number
from hf_docmt.evaluation.suites import SuiteItem, average_results, check_language, counts_note, read_suite
from hf_docmt.files import DataError, display_path, location_of, read_lines, write_lines
from hf_docmt.messages import check_known
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Result
from hf_docmt.reports.significance import PairedTest, compare_systems
from hf_docmt.systems import ContextReach, System

BETTER = ("lower", "higher")
CHUNK_CONTEXT = 3  # past sentences that models of chunks get, as in ContraPro
NORMALIZATIONS = ("sum", "mean", "window-mean")


def contrast_report(
    system: System,
    suites: Sequence[str | Path],
    *,
    normalization: str = "sum",
    conditions: Sequence[str] = ("true",),
    scores_folder: str | Path | None = None,
    details: str | Path | None = None,
    **reading,
) -> Report:
    """The report of a system's contrastive accuracy on suite files: every suite under every condition of context.

    Further results join suites (`average_results`). Items get the context that the system reads; `reading` are the
    options of `read_items`. `conditions` are those of `with_context`. With a `scores_folder`, the scores under each
    condition are written there in the published order, lower ones better: `SUITE.true.scores`. With `details`, a
    `ItemRecords` of every item, an interrupted run can go on. ValueError: a suite of other languages than the system's,
    two suites of one name.

    >>> report = contrast_report(load_system("runs/concat"), ["runs/corpus/deixis.json"])
    >>> [(result.metric, result.dataset) for result in report.results]
    [('accuracy', 'deixis')]
    """
    file = ItemRecords(details)
    parts = [read_items(suite, system.context, **reading) for suite in suites]
    check_names([items[0].suite for items, _, _ in parts], suites)
    for items, _, _ in parts:  # conditions are tried, too, before the first suite is scored
        check_language(items, *system.languages)
        for condition in conditions:
            with_context(items, condition)
    if scores_folder is not None:
        Path(scores_folder).mkdir(parents=True, exist_ok=True)
    results = []
    options = {"conditions": conditions, "normalization": normalization, "scores_folder": scores_folder}
    for items, split, note in parts:
        of_suite = context_results(system, items, dataset=items[0].suite, split=split, details=file, **options)
        results += [result.with_details(note) for result in of_suite]
    file.finish()
    data = {"suites": [Path(suite).name for suite in suites]}
    return Report(model=system.describe(), data=data, results=results + average_results(results))


def score_file_report(
    name: str,
    suite: str | Path,
    scores: str | Path,
    *,
    better: str = "lower",
    details: str | Path | None = None,
    **reading,
) -> Report:
    """The report of a system of this name from a file of its scores, one per line in the published order of the suite.

    `reading` are the options of `read_items`. With `only` or a `limit` they are the scores of these items alone.
    """
    reach = ContextReach(0 if reading.get("documents") is None else CHUNK_CONTEXT)  # the accuracy needs no texts
    items, split, note = read_items(suite, reach, **reading)
    rows = read_scores(scores, items, better)
    facts = {"context": "file", "better": better, "numbers": hash_of(rows)}
    write_item_records(details, items, item_records(items, rows), **facts)
    result = contrastive_accuracy(items, rows, split=split, how_scored={"scores": "file"})
    result = result.with_details({"better": better} | note)
    data = {"suites": [Path(suite).name], "scores": Path(scores).name}
    return Report(model={"name": name}, data=data, results=[result, *average_results([result])])


def read_items(
    path: str | Path, reach: ContextReach, *, only: tuple[int, int] | None = None, limit: int | None = None, **reading
) -> tuple[list[SuiteItem], str, dict]:
    """Items of a suite with this context, see `items_between`, and details that say how its counts are other ones.

    `reading` are `format`, `documents` and `records` of `read_suite`.
    """
    items = read_suite(path, context=reach.past, future_context=reach.future, **reading)
    note = counts_note(items)
    return *items_between(items, only, limit), {"counts": note} if note else {}


def context_results(
    system: System,
    items: Sequence[SuiteItem],
    *,
    dataset: str,
    split: str = "all",
    conditions: Sequence[str] = CONDITIONS,
    normalization: str = "sum",
    samples: int = 1000,
    scores_folder: str | Path | None = None,
    details: ItemRecords | None = None,
) -> list[Result]:
    """Contrastive accuracy under each condition of `with_context`, as report results that differ in `context`.

    With `true` among the conditions, `details["difference"]` of the others is how far they are above `true` (in
    points), its 95 % interval and p-value (paired bootstrap over the groups of their statistics, such as documents),
    where there are two groups or more. `details` gets texts, scores and verdict of every item.
    """
    check_known(normalization, NORMALIZATIONS, "normalization", "expected one of")
    reach, results, details = system.context, {}, details or ItemRecords()

    def find(part: Sequence[SuiteItem]) -> list[dict]:
        return item_records(part, candidate_scores(system, part, normalization))

    for condition in conditions:
        label, changed = condition_label(condition), with_context(items, condition)
        settings = {"past": reach.past, "future": reach.future, "logprob": normalization, "context": label}
        records = details.records(changed, find, system, **settings)
        scores = [record["scores"] for record in records]
        if scores_folder is not None:
            write_scores(Path(scores_folder) / f"{dataset}.{condition}.scores", scores)
        how_scored = {
            "logprob": normalization.removeprefix("window-"),
            "tokens": "window" if normalization == "window-mean" else "current",
            "target-context": reach.target,
            **reach.entries(),
            "context": label,
        }
        results[condition] = contrastive_accuracy(changed, scores, dataset=dataset, split=split, how_scored=how_scored)
    return add_differences(results, samples)


def candidate_scores(system: System, items: Sequence[SuiteItem], normalization: str = "sum") -> list[list[float]]:
    """One number for each candidate of each item: the `sum` or `mean` of its log-probabilities, higher ones better.

    The released code of Maka et al. takes the `mean` over the current sentence with its end token, that of Lupo et al.
    the mean over all tokens of the target window, context and separators included: `window-mean`.
    """
    window = normalization == "window-mean"
    rows = system.window_log_probabilities(items) if window else system.token_log_probabilities(items)
    return [[math.fsum(tokens) / (1 if normalization == "sum" else len(tokens)) for tokens in row] for row in rows]


def add_differences(results: dict[str, Result], samples: int = 1000) -> list[Result]:
    """The results by condition; those other than `true` get their difference from it in `details["difference"]`."""
    true = results.get("true")
    if true and len(results) > 1 and len(true.statistics.ids) > 1:
        outcomes = compare_systems(results, "true", PairedTest(samples=samples), may_differ=("context",))
        for condition, outcome in outcomes.items():
            difference = {"value": outcome.delta, "interval": list(outcome.interval), "p_value": outcome.p_value}
            results = {**results, condition: results[condition].with_details({"difference": difference})}
    return list(results.values())


def check_names(names: Sequence[str], paths: Sequence[str | Path]) -> None:
    """ValueError where two files have the same name in results, in which nothing else would distinguish them."""
    for number, name in enumerate(names):
        if (first := names.index(name)) < number:
            raise ValueError(
                f"{paths[first]} and {paths[number]} are both called {name!r} in results; give them one by one, or "
                "rename one of them"
            )


def items_between(items: list, only: tuple[int, int] | None, limit: int | None = None) -> tuple[list, str]:
    """Items from (first, last), from 1, or at most the first `limit`, and the name of that part.

    ValueError: items that do not exist, a limit below 1, both.
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


def write_scores(path: str | Path, scores: Sequence[Sequence[float]]) -> None:
    """Scores, of which higher ones are better, as a file of losses, of which lower ones are.

    Numbers are written in full, so that ties stay ties.
    """
    write_lines((repr(-float(score)) for row in scores for score in row), path)


def read_scores(path: str | Path, items: Sequence[SuiteItem], better: str = "lower") -> list[list[float]]:
    """Scores of every candidate of every item, turned so that higher ones are better.

    DataError names file and line: scores that are not numbers, too few or too many lines for the suite.
    """
    check_known(better, BETTER, "order of scores", "the better ones are")
    sign, needed = 1 if better == "higher" else -1, sum(len(item.candidates) for item in items)
    numbers = [sign * finite_number(line, path, number) for number, line in read_lines(path)]
    if len(numbers) > needed:
        raise DataError(
            f"{location_of(path, needed + 1)}: one score more than the {needed} candidates of the {len(items)} items; "
            "the file is of another suite"
        )
    remaining = iter(numbers)
    scores = [list(islice(remaining, len(item.candidates))) for item in items]
    for item, row in zip(items, scores):
        if len(row) < len(item.candidates):
            raise DataError(
                f"{display_path(path)}: ends after line {len(numbers)}, expected {needed} lines, one for each "
                f"candidate; scores are missing from {item.where} on, so the file is cut or of another suite"
            )
    return scores
