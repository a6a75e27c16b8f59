"""Results that join parts of a suite, or several sets, as weighted averages of their accuracies."""

from collections.abc import Mapping, Sequence

from hf_docmt.evaluation.suites.reading import suite_classes
from hf_docmt.reports.result import Part, Result


def average_results(results: Sequence[Result]) -> list[Result]:
    """The averages that the suites of these contrastive results define (see `Suite.averages`), as report results."""
    found = []
    for format, suite in suite_classes().items():
        own = [result for result in results if result.details.get("format") == format]
        found += suite.averages(own) if own else []
    return found


def weighted_average(
    metric: str, dataset: str, result: Result, parts: Mapping[str, Part], weights: Mapping[str, int]
) -> Result:
    """A result with the settings of another one: the mean of the values of `parts` by these weights."""
    total = sum(weights[name] for name in parts)
    return Result(
        task="contrastive",
        dataset=dataset,
        split=result.split,
        metric=metric,
        value=sum(weights[name] * part.value for name, part in parts.items()) / total,
        signature=result.signature,
        n=sum(part.n for part in parts.values()),
        details={
            "weights": {name: weights[name] for name in parts},
            "parts": {name: part.value for name, part in parts.items()},
        },
    )
