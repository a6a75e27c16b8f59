"""Runs that are killed at random moments and resumed end like runs without a break, byte for byte."""

import os

import pytest
from support.killed_processes import kill_runs

KILLS = int(os.environ.get("DOCMT_KILLS", "100"))


@pytest.mark.slow
def test_killed_often(tmp_path, monkeypatch):
    """`DOCMT_KILLS=250 pytest -s -m slow` on this file kills more often, and prints at which moments."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    counts = kill_runs(tmp_path, KILLS)
    print(counts)
    assert counts.total() >= KILLS
