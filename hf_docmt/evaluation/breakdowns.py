"""Scores by sentence index in the document, by length of the document and by domain, as parts of a result."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence

from hf_docmt.messages import check_known
from hf_docmt.reports.result import PartScore
from hf_docmt.reports.statistics import column_sums, score_function

AXES = ("index", "length", "domain")
INDEX_BOUNDS = (1, 2, 3, 5, 10, 20, 50)  # last sentence of each bucket, counted from 1
LENGTH_BOUNDS = (1, 10, 20, 50, 100)  # sentences of the longest document of each bucket

Domains = Mapping[str, str] | str


def break_down(
    metric: str,
    rows: Sequence[Sequence[float]],
    labels: Sequence[Sequence[str]],
    groups: Sequence[str],
    samples: int = 1000,
    seed: int = 1,
) -> dict[str, PartScore]:
    """{label: part}, from the sufficient statistics of single sentences, documents or items.

    A value follows from the sums of the rows with that label, so values of corpus scores are corpus scores, not means.
    `groups` is the document of every row: the 95 % interval comes from `samples` bootstrap samples of documents with
    the label, and is omitted for fewer than 2 documents. Labels are ordered by axis, buckets by their bounds.
    """
    import numpy as np

    from hf_docmt.reports.resampling import bootstrap_interval

    score, parts = score_function(metric, len(rows[0]) if rows else 2), {}
    by_label: dict[str, dict[str, list]] = defaultdict(lambda: defaultdict(list))  # {label: {group: rows}}
    for row, of_row, group in zip(rows, labels, groups, strict=True):
        for label in of_row:
            by_label[label][group].append(row)
    for label in sorted(by_label, key=_order):
        sums = np.array([column_sums(of_group) for of_group in by_label[label].values()], float)
        interval = bootstrap_interval(sums, score, samples, seed) if samples else None
        value, n = float(score(sums.sum(0, keepdims=True))[0]), sum(map(len, by_label[label].values()))
        parts[label] = PartScore(value, n, {"interval": list(interval)} if interval else {})
    return parts


def segment_labels(
    doc_ids: Sequence[str],
    lengths: Sequence[int],
    by: Sequence[str] = AXES,
    domains: Domains | None = None,
    of_documents: bool = False,
) -> list[list[str]]:
    """Labels of every sentence, or document: `index=4-5` in its document, `length=11-20` (sentences), `domain=news`.

    They are as far as `by` asks for them; documents have no index. `domains` is {doc_id: domain}, or a regular
    expression that matches the beginning of every doc_id, whose first group, or the whole match if it has none, is the
    domain. ValueError: a document without a domain.
    """
    labels = []
    for doc_id, length in zip(doc_ids, lengths):
        own = [f"length={bucket(length, LENGTH_BOUNDS)}"] if "length" in by else []
        own += [f"domain={domain_of(doc_id, domains)}"] if "domain" in by else []
        indices = [[f"index={bucket(index, INDEX_BOUNDS)}"] * ("index" in by) for index in range(1, length + 1)]
        labels += [own] if of_documents else [index + own for index in indices]
    return labels


def check_axes(by: Sequence[str], domains: Domains | None) -> None:
    """ValueError: an axis that is not known, or a breakdown by domain without domains."""
    for axis in by:
        check_known(axis, AXES, "breakdown", "expected some of")
    if "domain" in by and not domains:
        raise ValueError(
            "a breakdown by domain needs the domains: a column 'domain' with that of every document, a mapping from "
            r"doc_id, or a regular expression that finds the domain at the beginning of a doc_id, such as '([a-z]+)-'"
        )
    if isinstance(domains, str):
        try:
            re.compile(domains)
        except re.error as error:
            raise ValueError(f"{domains!r} is not a regular expression: {error}") from error


def domain_of(doc_id: str, domains: Domains) -> str:
    """The domain of a document: given by its id, or the first group of the pattern, or all of its match."""
    if not isinstance(domains, str):
        if doc_id not in domains:
            raise ValueError(f"document {doc_id!r} has no domain: give one for every document, got {len(domains)}")
        return domains[doc_id]
    match = re.match(domains, doc_id)
    domain = match and (match.group(1) if match.re.groups else match.group())
    if not domain:
        raise ValueError(f"document {doc_id!r}: {domains!r} finds no domain at its beginning; change the expression")
    return domain


def bucket(number: int, bounds: Sequence[int]) -> str:
    """The bucket of a number: `4-5` with the bounds (…, 3, 5, …), `3` alone, `>50` beyond the last one, `0` for 0."""
    if number == 0:
        return "0"
    last = bisect_left(bounds, number)
    if last == len(bounds):
        return f">{bounds[-1]}"
    first = bounds[last - 1] + 1 if last else 1
    return str(first) if first == bounds[last] else f"{first}-{bounds[last]}"


def _order(label: str) -> tuple:
    """Axes in their order, buckets by their numbers, domains by their names."""
    axis, _, value = label.partition("=")
    number = re.match(r">?(\d+)", value) if axis in AXES[:2] else None
    return (AXES.index(axis), (int(number.group(1)), value.startswith(">")) if number else (0, False), value)
