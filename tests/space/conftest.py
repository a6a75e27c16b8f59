"""The page of examples/space is a folder of modules, as a Space has it."""

from pathlib import Path

import pytest

SPACE = Path(__file__).resolve().parents[2] / "examples" / "space"


@pytest.fixture(autouse=True)
def space(monkeypatch):
    monkeypatch.syspath_prepend(str(SPACE))
    return SPACE
