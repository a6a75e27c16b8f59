"""Does a system use context? Contrastive accuracy under the true and under other contexts."""

from collections.abc import Callable, Sequence

from hf_docmt.evaluation.conditions import CONDITIONS, condition_label, with_context
from hf_docmt.evaluation.contrastive_accuracy import contrastive_accuracy, contrastive_result, item_records
from hf_docmt.evaluation.details import DetailsFile
from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.evaluation.systems import System
from hf_docmt.evaluation.systems.log_probabilities import NORMALIZATIONS, normalized
from hf_docmt.reports.result import Result
from hf_docmt.reports.significance import PairedTest, compare_systems


def context_results(
    system: System,
    items: Sequence[SuiteItem],
    *,
    dataset: str,
    split: str = "all",
    conditions: Sequence[str] = CONDITIONS,
    normalization: str = "sum",
    ties: str | None = None,
    seed: int = 0,
    samples: int = 1000,
    keep: Callable[[str, Sequence[SuiteItem], list[list[float]]], None] | None = None,
    details: DetailsFile | None = None,
) -> list[Result]:
    """Contrastive accuracy under each condition of `with_context`, as report results that differ in `context`.

    Intervals of accuracies are those of `contrastive_accuracy`. With `true` among the conditions,
    `details["difference"]` of the others is how far they are above `true` (in points), its 95 % interval and p-value
    (paired bootstrap over the groups of their statistics, such as documents), where there are two groups or more.
    `keep(condition, items, scores)` gets the scores; `details` gets texts, scores and verdict of every item.
    """
    if normalization not in NORMALIZATIONS:
        raise ValueError(f"unknown normalization {normalization!r}: expected {' or '.join(NORMALIZATIONS)}")
    reach, results, details = system.context, {}, details or DetailsFile()
    for condition in conditions:
        label = condition_label(condition, seed)
        given = with_context(items, condition, seed)
        settings = {"past": reach.past, "future": reach.future, "logprob": normalization, "context": label}
        records = details.records(
            given,
            lambda part, label=label: item_records(part, candidate_scores(system, part, normalization), label, ties),
            lambda settings=settings: {"model": system.fingerprint(), **settings},
        )
        scores = [record["scores"] for record in records]
        if keep is not None:
            keep(condition, given, scores)
        results[condition] = contrastive_result(
            contrastive_accuracy(given, scores, ties),
            dataset=dataset,
            split=split,
            normalization=normalization,
            past_context=reach.past,
            future_context=reach.future,
            target_context=reach.target,
            context=label,
        )
    return add_differences(results, samples)


def candidate_scores(system: System, items: Sequence[SuiteItem], normalization: str = "sum") -> list[list[float]]:
    """One number for each candidate of each item: the `sum` or `mean` of its log-probabilities, higher ones better.

    The released code of Maka et al. takes the `mean` over the current sentence with its end token, that of Lupo et al.
    the mean over all tokens of the target window, context and separators included: `window-mean`.
    """
    window = normalization == "window-mean"
    found = system.window_log_probabilities(items) if window else system.token_log_probabilities(items)
    return [[normalized(tokens, normalization) for tokens in row] for row in found]


def add_differences(results: dict[str, Result], samples: int = 1000) -> list[Result]:
    """The results by condition; those other than `true` get their difference from it in `details["difference"]`."""
    true = results.get("true")
    if true and len(results) > 1 and len(true.statistics.ids) > 1:
        outcomes = compare_systems(results, "true", PairedTest(samples=samples), may_differ=("context",))
        for condition, outcome in outcomes.items():
            difference = {"value": outcome.delta, "interval": list(outcome.interval), "p_value": outcome.p_value}
            results = {**results, condition: results[condition].with_details({"difference": difference})}
    return list(results.values())
