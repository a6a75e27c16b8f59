"""Contrastive accuracy: how often the right translation has the best score, by phenomenon, distance and label."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

from hf_docmt import __version__
from hf_docmt.evaluation.suites import SuiteItem, labels_of, suite_rules
from hf_docmt.evaluation.suites.items import context_name
from hf_docmt.reports.result import Part, Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import Statistics

TIES = ("wrong", "first")


@dataclass(frozen=True)
class Accuracy:
    """How often the right candidate won: percent, number of items, each item, and parts of the suite.

    `breakdown` is {label: part}, `ties` the rule that was used, `details` the rest of a report
    result: format and name of the suite, 95 % interval, context, statistics by group.
    """

    value: float
    n: int
    right: tuple[bool, ...]
    breakdown: dict[str, Part]
    ties: str = "wrong"
    details: dict = field(default_factory=dict)


def contrastive_accuracy(
    items: Sequence[SuiteItem], scores: Sequence[Sequence[float]], ties: str | None = None
) -> Accuracy:
    """Accuracy in percent, with its breakdown by phenomenon, distance and further labels; higher scores are better.

    `scores`: for each item one number for each candidate. `ties`: `wrong`, the right candidate has to be strictly
    better than every wrong one (Müller et al. 2018, Lopes et al. 2020; so taken for the pairs of Bawden et al. 2018);
    `first`, the first of the best candidates is the choice (Voita et al. 2019). By default the rule of the items'
    suite, `wrong` where they have none. Suites can add parts that count whole groups (`Suite.group_breakdown`).
    Intervals are Wilson's at 95 %, as if items were independent. ValueError: another number of items or candidates than
    scores, a score that is not a number, an unknown rule, items of several formats and no rule.
    """
    ties = tie_rule(items, ties)
    if len(items) != len(scores) or not items:
        raise ValueError(f"{len(scores)} rows of scores for {len(items)} items; one row for each item is needed")
    parts: dict[str, Sequence[bool]] = defaultdict(list)
    several, right = len({item.phenomenon for item in items}) > 1, []
    for item, row in zip(items, scores):
        right.append(is_right(item, row, ties))
        for label in _labels(item, crossed=several):
            parts[label].append(right[-1])
    groups = _groups(items, right)
    parts |= suite_rules(items).group_breakdown(items, groups)
    breakdown = {label: _part(parts[label]) for label in sorted(parts) if parts[label]}
    whole = _part(right)
    details = _suite_details(items) | whole.details | {"statistics": _statistics(items, groups).to_dict()}
    return Accuracy(whole.value, len(right), tuple(right), breakdown, ties, details)


def contrastive_result(
    accuracy: Accuracy,
    *,
    dataset: str,
    split: str,
    normalization: str,
    past_context: int,
    future_context: int = 0,
    tokens: str = "current",
    target_context: str = "reference",
    context: str = "true",
) -> Result:
    """The accuracy as a result of a report, whose signature says how the scores were made.

    `tokens` of which sentences are scored, the `target_context` that they follow, and whether the `context` is the
    `true` one or another instead.
    """
    made = {
        "logprob": normalization.removeprefix("window-"),
        "tokens": "window" if normalization == "window-mean" else tokens,
        "target-context": target_context,
        "past": context_name(past_context),
        "future": future_context,
        "context": context,
    }
    return _result(accuracy, made, dataset, split)


def file_result(accuracy: Accuracy, *, dataset: str, split: str, better: str) -> Result:
    """The accuracy of scores read from a file as a result of a report; how they were made is not known.

    `better`: whether `higher` or `lower` scores are better in the file; with the same choices the accuracy is the same.
    """
    return _result(replace(accuracy, details=accuracy.details | {"better": better}), {"scores": "file"}, dataset, split)


def tie_rule(items: Sequence[SuiteItem], ties: str | None = None) -> str:
    """The rule for ties that is given, else that of the items' suite. ValueError: unknown, or items of several."""
    formats = sorted({str(item.format) for item in items})
    if ties is None and len(formats) > 1:
        raise ValueError(f"items of {' and '.join(formats)} together; score each suite alone, or give ties")
    ties = ties or (suite_rules(items).ties if items else "wrong")
    if ties not in TIES:
        raise ValueError(f"unknown rule for ties {ties!r}: expected {' or '.join(TIES)}")
    return ties


def is_right(item: SuiteItem, row: Sequence[float], ties: str) -> bool:
    """Whether the right candidate wins with these scores, see `contrastive_accuracy`."""
    if len(row) != len(item.candidates):
        raise ValueError(f"{item.where}: {len(row)} scores for {len(item.candidates)} candidates")
    if any(math.isnan(score) for score in row):
        raise ValueError(
            f"{item.where}: NaN in its scores {list(row)}; check the model's weights, or the file of scores"
        )
    if ties == "first":
        return list(row).index(max(row)) == item.correct
    return row[item.correct] > max(score for number, score in enumerate(row) if number != item.correct)


def item_records(
    items: Sequence[SuiteItem], scores: Sequence[Sequence[float]], context: str, ties: str | None = None
) -> list[dict]:
    """What details files have of every item: its texts and labels, the scores of its candidates, the verdict."""
    ties = tie_rule(items, ties)
    return [
        {
            "suite": item.suite,
            "context": context,
            **labels_of(item),
            "document": item.group,
            "source": list(item.source),
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


def wilson_interval(right: int, n: int, confidence: float = 0.95) -> list[float]:
    """[low, high] in percent of a share of n, by the score interval of Wilson (1927), not corrected for continuity."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share, weight = right / n, z * z / n
    middle = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / n + weight / (4 * n)) / (1 + weight)
    return [100 * (middle - half) if right else 0.0, 100 * (middle + half) if right < n else 100.0]


def _result(accuracy: Accuracy, made: dict, dataset: str, split: str) -> Result:
    return Result(
        task="contrastive",
        dataset=dataset,
        split=split,
        metric="accuracy",
        value=accuracy.value,
        signature=Signature.of({**made, "ties": accuracy.ties, "version": __version__}),
        n=accuracy.n,
        breakdown=accuracy.breakdown,
        details=accuracy.details,
    )


def _labels(item: SuiteItem, crossed: bool) -> list[str]:
    """The labels of the breakdown that an item counts for; `crossed`: each distance within a phenomenon, too."""
    labels = labels_of(item)
    found = [f"{name}={value}" for name, value in labels.items()]
    if crossed and "distance" in labels:
        found.append(f"phenomenon={item.phenomenon} distance={labels['distance']}")
    return found


def _groups(items: Sequence[SuiteItem], right: Sequence[bool]) -> dict[str, list[bool]]:
    """Right or wrong of the items of every group; an item without a group is one of its own."""
    groups: dict[str, list[bool]] = defaultdict(list)
    for item, found in zip(items, right):
        groups[item.item_id if item.group is None else item.group].append(found)
    return groups


def _statistics(items: Sequence[SuiteItem], groups: dict[str, list[bool]]) -> Statistics:
    """[right, items] of every group, from which the accuracy of any choice of groups follows."""
    unit = "item" if items[0].group is None else items[0].group_unit or suite_rules(items).unit
    return Statistics(list(groups), [[sum(found), len(found)] for found in groups.values()], unit)


def _suite_details(items: Sequence[SuiteItem]) -> dict:
    """The suite, the accuracy of guessing in percent, the most sentences of context, and how many items have none."""
    past, future = [len(item.source) - 1 for item in items], [len(item.source_after) for item in items]
    return {
        "format": items[0].format,
        "suite": items[0].suite,
        "chance": 100.0 * sum(1 / len(item.candidates) for item in items) / len(items),
        "context": {"past": max(past), "future": max(future), "items without past": past.count(0)},
    }


def _part(right: Sequence[bool]) -> Part:
    count, n = sum(right), len(right)
    return Part(100.0 * count / n, n, {"interval": wilson_interval(count, n)})
