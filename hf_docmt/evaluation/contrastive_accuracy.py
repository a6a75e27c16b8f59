"""From scores of a contrastive suite to accuracies: which candidates won, by phenomenon, distance and label."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

from hf_docmt import __version__
from hf_docmt.evaluation.suites import TIES, SuiteItem, labels_of
from hf_docmt.evaluation.suites.items import context_name
from hf_docmt.reports.report import make_result

RULES = ("wrong", "first")
_UNITS = {"bawden": "block", "voita": "context", "lopes": "context"}  # what groups of items are


@dataclass(frozen=True)
class Verdict:
    """How often the right candidate won: percent, number of items, each item, and its parts.

    `breakdown` is {label: {"value", "n", "interval"}}, `ties` the rule that held, `details` what a report says besides:
    format and name of the suite, 95 % interval, context, statistics by group.
    """

    accuracy: float
    n: int
    right: tuple[bool, ...]
    breakdown: dict[str, dict]
    ties: str = "wrong"
    details: dict = field(default_factory=dict)


def judge(items: Sequence[SuiteItem], scores: Sequence[Sequence[float]], ties: str | None = None) -> Verdict:
    """Accuracy in percent, with its breakdown by phenomenon, distance and further labels; higher scores are better.

    `ties`: `wrong`, the right candidate has to be strictly better than every wrong one (Müller et al. 2018, Lopes et
    al. 2020; so taken for the pairs of Bawden et al. 2018); `first`, the first of the best candidates is the choice
    (Voita et al. 2019). By default the rule of the items' format, `wrong` where they have none. Bawden's pairs are
    given by block, too: a block is right if all of its pairs are, which no model can be without context; blocks of
    which pairs are missing are left out. Intervals are Wilson's at 95 %, as if items were independent. ValueError:
    another number of items or candidates than scores, a score that is not a number, an unknown rule, items of several
    formats and no rule.
    """
    ties = _rule(items, ties)
    if len(items) != len(scores) or not items:
        raise ValueError(f"{len(scores)} rows of scores for {len(items)} items; one row for each item is needed")
    parts: dict[str, list[bool]] = defaultdict(list)
    several, right = len({item.phenomenon for item in items}) > 1, []
    for item, row in zip(items, scores):
        right.append(_is_right(item, row, ties))
        for label in _labels(item, crossed=several):
            parts[label].append(right[-1])
    groups = _groups(items, right)
    if items[0].format == "bawden":
        sizes = {item.group: item.group_size for item in items}
        blocks = [found for name, found in groups.items() if sizes.get(name) in (None, len(found))]
        parts["block=all right"] = [all(found) for found in blocks]
    breakdown = {label: _part(parts[label]) for label in sorted(parts) if parts[label]}
    whole = _part(right)
    details = _about(items) | {"interval": whole["interval"], "statistics": _statistics(items, groups)}
    return Verdict(whole["value"], len(right), tuple(right), breakdown, ties, details)


def contrastive_result(
    verdict: Verdict,
    *,
    dataset: str,
    split: str,
    normalization: str,
    past_context: int,
    future_context: int = 0,
    tokens: str = "current",
    target_context: str = "reference",
    context: str = "true",
) -> dict:
    """The verdict as an entry of a report, its signature saying how the scores were made.

    `tokens` of which sentences are scored, the `target_context` that they follow, and whether the `context` is the
    `true` one or another that was put in its place.
    """
    made = (
        f"logprob:{normalization}|tokens:{tokens}|target-context:{target_context}|past:{context_name(past_context)}|"
        f"future:{future_context}|context:{context}"
    )
    return _result(verdict, made, dataset, split)


def file_result(verdict: Verdict, *, dataset: str, split: str, better: str) -> dict:
    """The verdict on scores read from a file as an entry of a report; how they were made is not known.

    `better`: whether `higher` or `lower` scores are better in the file; with the same choices the accuracy is the same.
    """
    return _result(replace(verdict, details=verdict.details | {"better": better}), "scores:file", dataset, split)


def wilson_interval(right: int, n: int, confidence: float = 0.95) -> list[float]:
    """[low, high] in percent of a share of n, by the score interval of Wilson (1927), not corrected for continuity."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share, weight = right / n, z * z / n
    middle = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / n + weight / (4 * n)) / (1 + weight)
    return [100 * (middle - half) if right else 0.0, 100 * (middle + half) if right < n else 100.0]


def _result(verdict: Verdict, made: str, dataset: str, split: str) -> dict:
    return make_result(
        task="contrastive",
        dataset=dataset,
        split=split,
        metric="accuracy",
        value=verdict.accuracy,
        signature=f"{made}|ties:{verdict.ties}|version:{__version__}",
        n=verdict.n,
        breakdown=verdict.breakdown,
        details=verdict.details,
    )


def _rule(items: Sequence[SuiteItem], ties: str | None) -> str:
    formats = sorted({str(item.format) for item in items})
    if ties is None and len(formats) > 1:
        raise ValueError(f"items of {' and '.join(formats)} together; judge each suite alone, or give ties")
    ties = ties or TIES.get(items[0].format if items else None, "wrong")
    if ties not in RULES:
        raise ValueError(f"unknown rule for ties {ties!r}: expected {' or '.join(RULES)}")
    return ties


def _is_right(item: SuiteItem, row: Sequence[float], ties: str) -> bool:
    if len(row) != len(item.candidates):
        raise ValueError(f"{item.where}: {len(row)} scores for {len(item.candidates)} candidates")
    if any(math.isnan(score) for score in row):
        raise ValueError(
            f"{item.where}: NaN in its scores {list(row)}; check the model's weights, or the file of scores"
        )
    if ties == "first":
        return list(row).index(max(row)) == item.correct
    return row[item.correct] > max(score for place, score in enumerate(row) if place != item.correct)


def _labels(item: SuiteItem, crossed: bool) -> list[str]:
    """What an item counts for in the breakdown; `crossed`: each distance within a phenomenon, too."""
    labels = labels_of(item)
    found = [f"{name}={value}" for name, value in labels.items()]
    if crossed and "distance" in labels:
        found.append(f"phenomenon={item.phenomenon} distance={labels['distance']}")
    return found


def _groups(items: Sequence[SuiteItem], right: Sequence[bool]) -> dict[str, list[bool]]:
    """Verdicts by what the items were taken from; an item that says nothing of it stands alone."""
    groups: dict[str, list[bool]] = defaultdict(list)
    for item, found in zip(items, right):
        groups[item.item_id if item.group is None else item.group].append(found)
    return groups


def _statistics(items: Sequence[SuiteItem], groups: dict[str, list[bool]]) -> dict:
    """[right, items] of every group, from which the accuracy of any choice of groups follows."""
    unit = "item" if items[0].group is None else _UNITS.get(items[0].format, "document")
    return {"unit": unit, "ids": list(groups), "rows": [[sum(found), len(found)] for found in groups.values()]}


def _about(items: Sequence[SuiteItem]) -> dict:
    """The suite, and how many sentences of context its items have at most, and none."""
    suite = items[0].item_id.rpartition(":")[0]
    past, future = ([len(side) for side in sides] for sides in _context(items))
    return {
        "format": items[0].format,
        "suite": suite,
        "context": {"past": max(past), "future": max(future), "items without past": past.count(0)},
    }


def _context(items: Sequence[SuiteItem]) -> tuple[list, list]:
    return [item.source[:-1] for item in items], [item.source_after for item in items]


def _part(right: Sequence[bool]) -> dict:
    count, n = sum(right), len(right)
    return {"value": 100.0 * count / n, "n": n, "interval": wilson_interval(count, n)}
