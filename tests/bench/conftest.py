"""Measurements in this process, whose memory says nothing."""

import json
from io import StringIO
from pkgutil import resolve_name

import pytest

from hf_docmt.bench import cost_by_length, measurement
from hf_docmt.bench.process import answer


@pytest.fixture
def in_this_process(monkeypatch):
    """Cases, which come as JSON, are measured here; the list of them."""
    cases = []

    def measure(work, case, time_limit):
        cases.append(json.loads(json.dumps(case)))
        return resolve_name(work)(cases[-1], None)

    for module in (measurement, cost_by_length):
        monkeypatch.setattr(module, "measure_in_subprocess", measure)
    return cases


@pytest.fixture
def other_end(monkeypatch):
    """What a process of its own does, in this one: a case comes as JSON; the list of what is sent and returned."""

    def messages(work, case):
        monkeypatch.setattr("sys.stdin", StringIO(json.dumps(case)))
        output = StringIO()
        answer(work, output)
        return [json.loads(line) for line in output.getvalue().splitlines()]

    return messages
