"""Runs that are killed at random moments and resumed end like runs without a break, byte for byte."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent


@pytest.mark.slow
def test_a_hundred_kills(tmp_path):
    """In forks of one process; `python -m support.killed_runs FOLDER --kills N` for more of them."""
    command = [sys.executable, "-m", "support.killed_runs", str(tmp_path), "--kills", "100"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=TESTS, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1].split()[0]) >= 100
