"""Measurements in this process, whose memory says nothing."""

from importlib import import_module

import pytest

from hf_docmt.bench import cost_by_length, measurement


@pytest.fixture
def in_this_process(monkeypatch):
    """Cases are measured here; the list of them."""
    cases = []

    def measure(work, case, time_limit):
        module, _, function = work.partition(":")
        cases.append(case)
        return getattr(import_module(module), function)(case, None)

    for module in (measurement, cost_by_length):
        monkeypatch.setattr(module, "measure_in_subprocess", measure)
    return cases
