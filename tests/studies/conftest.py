"""A small study file."""

import copy

import pytest
import yaml
from support.small_study import VALUES


@pytest.fixture
def study_file(tmp_path, monkeypatch):
    """A function that writes the study, with values changed by dotted keys, into the folder that is then current."""
    monkeypatch.chdir(tmp_path)

    def write(changes: dict | None = None):
        values = copy.deepcopy(VALUES)
        for key, value in (changes or {}).items():
            *sections, last = key.split(".")
            section = values
            for name in sections:
                section = section[name]
            section[last] = value
        (tmp_path / "small.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
        return tmp_path / "small.yaml"

    return write
