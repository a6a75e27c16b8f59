"""Breakdowns by index, length and domain: buckets, values from sums, intervals over documents, bad input."""

import numpy as np
import pytest

from hf_docmt.evaluation.breakdowns import (
    INDEX_BOUNDS,
    LENGTH_BOUNDS,
    break_down,
    bucket,
    check_axes,
    segment_labels,
)
from hf_docmt.reports.result import PartScore

IDS = ["news-7", "talk-1", "talk-2"]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (INDEX_BOUNDS, ["1", "2", "3", "4-5", "4-5", "6-10", "6-10", "11-20", "11-20", "21-50", "21-50", ">50"]),
        (
            LENGTH_BOUNDS,
            ["1", "2-10", "2-10", "2-10", "2-10", "2-10", "2-10", "11-20", "11-20", "21-50", "21-50", "51-100"],
        ),
    ],
)
def test_buckets(bounds, expected):
    assert [bucket(number, bounds) for number in (1, 2, 3, 4, 5, 6, 10, 11, 20, 21, 50, 51)] == expected
    assert bucket(101, LENGTH_BOUNDS) == ">100" and bucket(0, LENGTH_BOUNDS) == "0"


def test_labels():
    assert segment_labels(IDS, [1, 12, 0], domains="[a-z]+", of_documents=True) == [
        ["length=1", "domain=news"],
        ["length=11-20", "domain=talk"],
        ["length=0", "domain=talk"],
    ]
    found = segment_labels(IDS, [1, 12, 0], by=["domain", "index"], domains=dict(zip(IDS, "abc")))
    assert len(found) == 13 and found[0] == ["index=1", "domain=a"] and found[-1] == ["index=11-20", "domain=b"]
    assert segment_labels(IDS, [1, 1, 0], by=[]) == [[], []]


def test_domains_by_expression():
    """The first group is the domain, or the match at the beginning of the id."""
    for expression, expected in ((r"(\w)\w+-", "n"), (r"\w+", "news"), (r"(?:x|n)e", "ne")):
        assert segment_labels(IDS[:1], [1], ["domain"], expression) == [[f"domain={expected}"]]


def test_accuracies():
    labels = [
        ["index=11-20", "domain=b"],
        ["index=2", "domain=b"],
        ["index=2", "domain=a"],
        [],
        ["index=>50", "domain=b"],
    ]
    parts = break_down("accuracy", [[1, 1], [0, 1], [1, 1], [0, 1], [0, 1]], labels, list("pqrst"), samples=50)
    assert list(parts) == ["index=2", "index=11-20", "index=>50", "domain=a", "domain=b"]
    assert [(part.value, part.n) for part in parts.values()] == [
        (50, 2),
        (100, 1),
        (0, 1),
        (100, 1),
        (pytest.approx(100 / 3), 3),
    ]
    assert set(parts["index=2"].details) == {"interval"} and parts["index=11-20"].details == {}


def test_values_are_of_the_sums():
    """Not the mean of the documents' values."""
    parts = break_down("accuracy", [[9, 9], [0, 1]], [["domain=a"]] * 2, ["p", "q"], samples=0)
    assert parts == {"domain=a": PartScore(90, 2)}


def test_intervals_are_over_documents():
    """The rows of a document are drawn together."""
    rows = [[1, 1]] * 20 + [[0, 1]] * 20
    together = break_down("accuracy", rows, [["domain=a"]] * 40, ["p"] * 20 + ["q"] * 20)["domain=a"]
    by_domain = break_down("accuracy", rows, [["domain=a"]] * 40, [str(n) for n in range(40)])["domain=a"]
    assert (
        together.details["interval"] == [0, 100]
        and 30 < by_domain.details["interval"][0] < 40 < 60 < by_domain.details["interval"][1] < 70
    )
    drawn = np.random.default_rng(1).choice(40, size=(1000, 40))
    expected = np.quantile(100 * np.mean(drawn < 20, axis=1), [0.025, 0.975])
    assert by_domain.details["interval"] == pytest.approx(expected)


def test_nothing():
    assert break_down("accuracy", [], [], []) == {}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_axes(["size"], None), "unknown breakdown 'size': expected some of index, length"),
        (lambda: check_axes(["domain"], None), "breakdown by domain needs the domains"),
        (lambda: segment_labels(IDS, [1, 2, 3], ["domain"], {"news-7": "n"}), "'talk-1' has no domain.* got 1"),
        (lambda: segment_labels(IDS, [1, 2, 3], ["domain"], "news"), "document 'talk-1': 'news' finds no domain"),
        (lambda: segment_labels(IDS, [1, 2, 3], ["domain"], "()"), "document 'news-7': .* finds no domain"),
        (lambda: check_axes(["domain"], "(["), "'\\(\\[' is not a regular expression"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
