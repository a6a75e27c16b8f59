"""Does a system use context? Contrastive accuracy under the true and under other contexts."""

from collections.abc import Callable, Sequence

from hf_docmt.evaluation.conditions import CONDITIONS, condition_label, with_context
from hf_docmt.evaluation.contrastive_accuracy import contrastive_accuracy, contrastive_result
from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.evaluation.systems import System
from hf_docmt.evaluation.systems.log_probabilities import NORMALIZATIONS, normalized
from hf_docmt.reports.result import Result
from hf_docmt.reports.significance import compare_systems


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
) -> list[Result]:
    """Contrastive accuracy under each condition of `with_context`, as report results that differ in `context`.

    Intervals of accuracies are those of `contrastive_accuracy`. With `true` among the conditions,
    `details["difference"]` of the others is how far they are above `true` (in points), its 95 % interval and p-value
    (paired bootstrap over the groups of their statistics, such as documents), where there are two groups or more.
    `keep(condition, items, scores)` gets the scores.
    """
    if normalization not in NORMALIZATIONS:
        raise ValueError(f"unknown normalization {normalization!r}: expected {' or '.join(NORMALIZATIONS)}")
    reach, results = system.context, {}
    for condition in conditions:
        given = with_context(items, condition, seed)
        scores = [
            [normalized(tokens, normalization) for tokens in row] for row in system.token_log_probabilities(given)
        ]
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
            context=condition_label(condition, seed),
        )
    return add_differences(results, samples)


def add_differences(results: dict[str, Result], samples: int = 1000) -> list[Result]:
    """The results by condition; those other than `true` get their difference from it in `details["difference"]`."""
    true = results.get("true")
    if true and len(results) > 1 and len(true.statistics.ids) > 1:
        outcomes = compare_systems(results, "true", samples=samples, may_differ=("context",))
        for condition, outcome in outcomes.items():
            difference = {"value": outcome.delta, "interval": list(outcome.interval), "p_value": outcome.p_value}
            results = {**results, condition: results[condition].with_details({"difference": difference})}
    return list(results.values())
