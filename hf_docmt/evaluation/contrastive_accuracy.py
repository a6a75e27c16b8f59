"""Contrastive accuracy: how often the right translation has the best score, by phenomenon, distance and label."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from hf_docmt.evaluation.suites import SuiteItem, items_digest, labels_of, suite_rules
from hf_docmt.messages import __version__
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import Statistics

Value = TypeVar("Value")


def contrastive_accuracy(
    items: Sequence[SuiteItem],
    scores: Sequence[Sequence[float]],
    *,
    dataset: str | None = None,
    split: str = "all",
    how_scored: Mapping[str, object] | None = None,
) -> Result:
    """Accuracy in percent, with its breakdown by phenomenon, distance and further labels; higher scores are better.

    `scores`: for each item one number for each candidate; ties count by the rule of the items' suite, see `is_right`.
    Suites can add parts that count whole groups (`Suite.group_breakdown`). Intervals are Wilson's at 95 %, as if items
    were independent. `how_scored` goes into the signature. ValueError: another number of items or candidates than
    scores, a score that is not a number.
    """
    rules = suite_rules(items)
    right = [is_right(item, row, rules.ties) for item, row in zip(items, scores, strict=True)]
    parts: dict[str, Sequence[bool]] = defaultdict(list)
    several = len({item.phenomenon for item in items}) > 1
    for item, verdict in zip(items, right):
        labels = labels_of(item)
        for name, value in labels.items():
            parts[f"{name}={value}"].append(verdict)
        if several and "distance" in labels:
            parts[f"phenomenon={item.phenomenon} distance={labels['distance']}"].append(verdict)
    groups = by_group(items, right)
    parts |= rules.group_breakdown(items, groups)
    past, future = [len(item.source) - 1 for item in items], [len(item.source_after) for item in items]
    unit = "item" if items[0].group is None else items[0].group_unit or rules.unit
    return verdict_result(
        right,
        parts,
        groups,
        unit,
        task="contrastive",
        dataset=dataset or items[0].suite,
        split=split,
        metric="accuracy",
        signature=Signature.of(
            {**(how_scored or {}), "ties": rules.ties, "version": __version__, "data": items_digest(items)}
        ),
        details={
            "format": items[0].format,
            "suite": items[0].suite,
            "chance": 100.0 * sum(1 / len(item.candidates) for item in items) / len(items),
            "context": {"past": max(past), "future": max(future), "items without past": past.count(0)},
        },
    )


def by_group(items: Sequence[Any], values: Sequence[Value]) -> dict[str, list[Value]]:
    """Values of items by group, such as a document; an item without a group is its own group."""
    groups: dict[str, list[Value]] = defaultdict(list)
    for item, value in zip(items, values, strict=True):
        groups[item.item_id if item.group is None else item.group].append(value)
    return groups


def verdict_result(
    right: Sequence[bool],
    parts: Mapping[str, Sequence[bool]],
    groups: Mapping[str, Sequence[bool]],
    unit: str = "document",
    details: Mapping[str, object] | None = None,
    **fields,
) -> Result:
    """The share of what is right as a result with these fields; statistics are [right, n] of each group."""
    whole = accuracy_part(right)
    statistics = Statistics(list(groups), [[sum(own), len(own)] for own in groups.values()], unit)
    return Result(
        value=whole.value,
        n=whole.n,
        breakdown={label: accuracy_part(parts[label]) for label in sorted(parts) if parts[label]},
        details={**(details or {}), **whole.details, "statistics": statistics.to_dict()},
        **fields,
    )


def is_right(item: SuiteItem, row: Sequence[float], ties: str) -> bool:
    """Whether the right candidate wins with these scores.

    `ties`: `wrong`, it has to be strictly better than every wrong one (Müller et al. 2018, Lopes et al. 2020; so taken
    for the pairs of Bawden et al. 2018); `first`, the first of the best candidates is the choice (Voita et al. 2019).
    """
    check_row(item, row)
    if ties == "first":
        return list(row).index(max(row)) == item.correct
    return row[item.correct] > max(score for number, score in enumerate(row) if number != item.correct)


def check_row(item: SuiteItem, row: Sequence[float]) -> None:
    """ValueError: another number of scores than candidates, or NaN."""
    if len(row) != len(item.candidates):
        raise ValueError(f"{item.where}: {len(row)} scores for {len(item.candidates)} candidates; one for each")
    if any(math.isnan(score) for score in row):
        raise ValueError(f"{item.where}: NaN in its scores {list(row)}; check the model's weights, or the scores")


def item_records(items: Sequence[SuiteItem], scores: Sequence[Sequence[float]]) -> list[dict]:
    """Texts and labels of every item for details files, with the scores of its candidates and the verdict."""
    ties = suite_rules(items).ties
    return [
        {
            "suite": item.suite,
            **labels_of(item),
            "target_context": list(item.target_context),
            "source_after": list(item.source_after),
            "target_after": list(item.target_after),
            "candidates": list(item.candidates),
            "correct": item.correct,
            "scores": list(row),
            "right": is_right(item, row, ties),
        }
        for item, row in zip(items, scores, strict=True)
    ]


def accuracy_part(right: Sequence[bool]) -> PartScore:
    """The share of what is right in percent, with its interval."""
    count, n = sum(right), len(right)
    return PartScore(100.0 * count / n, n, {"interval": wilson_interval(count, n)})


def wilson_interval(right: int, n: int) -> list[float]:
    """[low, high] in percent of a share of n: Wilson (1927), 95 %, not corrected for continuity."""
    from scipy.stats import binomtest  # takes half a second

    return [100.0 * end for end in binomtest(right, n).proportion_ci(method="wilson")]
