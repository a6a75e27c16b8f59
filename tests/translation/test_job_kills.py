"""Translation jobs that are killed at random moments and resumed: the same bytes as without, every time."""

import os

import pytest
from support.killed_processes import kill_jobs

KILLS = int(os.environ.get("DOCMT_KILLS", "67"))


@pytest.mark.parametrize("kind", ["jsonl", "plain"])
def test_killed_now_and_then(tmp_path, kind):
    assert kill_jobs(tmp_path, kind, 2, documents=25).total() == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jsonl", "gz", "plain"])
def test_killed_often(tmp_path, kind):
    """`DOCMT_KILLS=250 pytest -s -m slow` on this file kills more often, and prints how."""
    counts = kill_jobs(tmp_path, kind, KILLS)
    print(kind, counts)
    assert counts.total() == KILLS
