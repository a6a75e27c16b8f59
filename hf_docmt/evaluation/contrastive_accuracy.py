"""Contrastive accuracy: how often the right translation has the best score, by phenomenon, distance and label."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

from hf_docmt import __version__
from hf_docmt.evaluation.suites import SuiteItem, labels_of, suite_rules
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
    right = [is_right(item, row, ties) for item, row in zip(items, scores)]
    parts: dict[str, Sequence[bool]] = defaultdict(list)
    groups: dict[str, list[bool]] = defaultdict(list)  # an item without a group is one of its own
    several, rules = len({item.phenomenon for item in items}) > 1, suite_rules(items)
    for item, verdict in zip(items, right):
        groups[item.item_id if item.group is None else item.group].append(verdict)
        labels = labels_of(item)
        for name, value in labels.items():
            parts[f"{name}={value}"].append(verdict)
        if several and "distance" in labels:
            parts[f"phenomenon={item.phenomenon} distance={labels['distance']}"].append(verdict)
    parts |= rules.group_breakdown(items, groups)
    whole, unit = accuracy_part(right), "item" if items[0].group is None else items[0].group_unit or rules.unit
    past, future = [len(item.source) - 1 for item in items], [len(item.source_after) for item in items]
    details = {
        "format": items[0].format,
        "suite": items[0].suite,
        "chance": 100.0 * sum(1 / len(item.candidates) for item in items) / len(items),
        "context": {"past": max(past), "future": max(future), "items without past": past.count(0)},
        **whole.details,
        "statistics": Statistics(list(groups), [[sum(own), len(own)] for own in groups.values()], unit).to_dict(),
    }
    breakdown = {label: accuracy_part(parts[label]) for label in sorted(parts) if parts[label]}
    return Accuracy(whole.value, len(right), tuple(right), breakdown, ties, details)


def accuracy_result(accuracy: Accuracy, dataset: str, split: str, how_scored: dict) -> Result:
    """The accuracy as a result of a report; `how_scored` goes into its signature."""
    return Result(
        task="contrastive",
        dataset=dataset,
        split=split,
        metric="accuracy",
        value=accuracy.value,
        signature=Signature.of({**how_scored, "ties": accuracy.ties, "version": __version__}),
        n=accuracy.n,
        breakdown=accuracy.breakdown,
        details=accuracy.details,
    )


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
    check_row(item, row)
    if ties == "first":
        return list(row).index(max(row)) == item.correct
    return row[item.correct] > max(score for number, score in enumerate(row) if number != item.correct)


def check_row(item: SuiteItem, row: Sequence[float]) -> None:
    """ValueError: another number of scores than candidates, or NaN."""
    if len(row) != len(item.candidates):
        raise ValueError(f"{item.where}: {len(row)} scores for {len(item.candidates)} candidates; one for each")
    if any(math.isnan(score) for score in row):
        raise ValueError(
            f"{item.where}: NaN in its scores {list(row)}; check the model's weights, or the file of scores"
        )


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


def accuracy_part(right: Sequence[bool]) -> Part:
    """The share of what is right in percent, with its interval."""
    count, n = sum(right), len(right)
    return Part(100.0 * count / n, n, {"interval": wilson_interval(count, n)})


def wilson_interval(right: int, n: int, confidence: float = 0.95) -> list[float]:
    """[low, high] in percent of a share of n, by the score interval of Wilson (1927), not corrected for continuity."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share, weight = right / n, z * z / n
    middle = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / n + weight / (4 * n)) / (1 + weight)
    return [100 * (middle - half) if right else 0.0, 100 * (middle + half) if right < n else 100.0]
