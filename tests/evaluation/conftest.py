"""Suites in temporary folders, tiny models for systems."""

from functools import partial

import pytest
from support.suite_files import write_json_suite, write_lopes
from support.systems import llama, marian, tokenizer  # noqa: F401 (fixtures)


@pytest.fixture
def write_suite(tmp_path):
    """Writes a suite of JSON items, with the documents beside it; see `write_json_suite`."""
    return partial(write_json_suite, tmp_path)


@pytest.fixture
def lopes(tmp_path):
    """Writes the files of Lopes; see `write_lopes`."""
    return partial(write_lopes, tmp_path / "lopes")
