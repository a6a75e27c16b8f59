"""The benchmark of contrastive scoring: the same scores both ways."""

import pytest

from hf_docmt.bench.contrast import ContrastBenchmark, largest_difference
from hf_docmt.bench.models import TINY


def test_contrast_scores_the_same_one_by_one():
    found = ContrastBenchmark(repeats=1, items=6, sizes=TINY, vocab_size=300).run().to_json()
    assert [row["case"] for row in found["rows"]] == ["deixis, 2 candidates", "ellipsis, 4 candidates"]
    assert all(row["difference"] <= 1e-5 and row["ratio"] > 0 for row in found["rows"])
    assert len(found["checks"]) == 3 and found["checks"][2]["ok"]


def test_largest_difference_is_relative_to_large_scores():
    ours, peer = [[[-1.0, -20.0]], [[-0.5]]], [[[-1.25, -16.0]], [[-0.5]]]
    assert largest_difference(ours, peer) == 0.25
    assert largest_difference(ours, ours) == 0
    with pytest.raises(ValueError):
        largest_difference(ours, peer[:1])
