"""A double of the Hub, and the files of fairseq checkpoints."""

import json
import os
import subprocess
import sys

import pytest
from support import hub_double
from support.fairseq_cases import write_vocabularies
from support.hidden_packages import HIDE


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with SentencePiece models, dictionaries and BPE codes."""
    folder = tmp_path_factory.mktemp("fairseq")
    write_vocabularies(pytest.importorskip("sentencepiece"), folder)
    return folder


@pytest.fixture
def hub(tmp_path, monkeypatch):
    with hub_double.hub_double() as server:
        hub_double.use(server, tmp_path / "home", monkeypatch)
        yield server


@pytest.fixture
def run_elsewhere():
    """A function that gives what code prints in a process of its own, which has `hide`, tasks and a folder."""

    def run(code, tasks, folder, settings_of_hub):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "PYTHON"))}
        done = subprocess.run(
            [sys.executable, "-c", HIDE + code, json.dumps(tasks)],
            cwd=folder, env=kept | settings_of_hub, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout + done.stderr

    return run
