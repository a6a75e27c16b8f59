"""Translation jobs that are killed at random moments and resumed: the same bytes as without, every time."""

import random

import pytest
from support.killed_jobs import kill_jobs


@pytest.mark.parametrize("kind", ["jsonl", "plain"])
def test_killed_now_and_then(tmp_path, kind):
    found = kill_jobs(tmp_path, kind, 2, random.Random(0), documents=25)
    assert found.kills.total() == 2 and found.identical == found.jobs > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jsonl", "gz", "plain"])
def test_killed_often(tmp_path, kind):
    found = kill_jobs(tmp_path, kind, 67, random.Random(0))
    assert found.kills.total() == 67 and found.identical == found.jobs > 0
