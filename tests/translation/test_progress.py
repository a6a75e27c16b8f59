"""Progress of jobs: lines in a log, a bar on a terminal."""

import io
import sys

import pytest

from hf_docmt.translation.progress import JobSummary, Progress, duration

INFINITE = float("inf")


def test_lines_come_now_and_then(capsys):
    seconds = [0.0]
    lines = Progress(JobSummary(40, 1000), JobSummary(documents=4, sentences=100), clock=lambda: seconds[0])
    for now, documents in ((9.9, 5), (10, 6), (60, 7), (70, 8)):
        seconds[0] = now
        lines.update(JobSummary(documents=documents, sentences=documents * 25))
    assert capsys.readouterr().err.splitlines() == [
        "6 documents of 40, 150 sentences of 1000 (15.0%), 5 sentences/s, 3 min left",  # 50 in 10 s, 850 to go
        "8 documents of 40, 200 sentences of 1000 (20.0%), 1.429 sentences/s, 9 min left",
    ]
    lines.total = None
    assert lines.line(JobSummary(documents=8, sentences=200), 70) == "8 documents, 200 sentences, 1.429 sentences/s"


def test_a_bar_on_a_terminal(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    bar = Progress(JobSummary(4, 10), JobSummary(documents=1, sentences=2))
    bar.update(JobSummary(documents=4, sentences=10))
    bar.close()
    assert "20%" in terminal.getvalue() and "10/10" in terminal.getvalue() and "4 documents" in terminal.getvalue()


DURATIONS = {0: "0 s", 59.4: "59 s", 61: "1 min", 3599: "1 h 00 min", 11100: "3 h 05 min", INFINITE: "unknown time"}


@pytest.mark.parametrize(("seconds", "text"), DURATIONS.items())
def test_durations(seconds, text):
    assert duration(seconds) == text
