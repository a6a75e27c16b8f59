"""Progress of a translation job on standard error: a bar on a terminal, else a line now and then."""

import sys
import time
from typing import Protocol

from tqdm import tqdm

from hf_docmt.messages import counted
from hf_docmt.translation.job_input import Size
from hf_docmt.translation.job_summary import JobSummary

FIRST_LINE, NEXT_LINES = 10.0, 60.0  # seconds; a job that is shorter writes none


class Progress(Protocol):
    """What is told of every group that was written."""

    def update(self, summary: JobSummary) -> None:
        """Show what was done so far."""
        ...

    def close(self) -> None:
        """End the display."""
        ...


def job_progress(total: Size | None, done: JobSummary) -> Progress:
    """The display of a job of this size (None: unknown), of which a job before has `done` some."""
    return ProgressBar(total, done) if sys.stderr.isatty() else ProgressLines(total, done)


class ProgressBar:
    """A bar of tqdm that counts sentences."""

    def __init__(self, total: Size | None, done: JobSummary):
        sentences = None if total is None else total.sentences
        self.bar = tqdm(total=sentences, initial=done.sentences, unit=" sentences", smoothing=0.1, dynamic_ncols=True)

    def update(self, summary: JobSummary) -> None:
        """Move the bar."""
        self.bar.set_postfix_str(counted(summary.documents, "document"), refresh=False)
        self.bar.update(summary.sentences - self.bar.n)

    def close(self) -> None:
        """Leave the bar as it is."""
        self.bar.close()


class ProgressLines:
    """A line after ten seconds, and then one a minute: for logs."""

    def __init__(self, total: Size | None, done: JobSummary, clock=time.monotonic):
        self.total, self.clock = total, clock
        self.start, self.before = clock(), done.sentences
        self.next = self.start + FIRST_LINE

    def update(self, summary: JobSummary) -> None:
        """Write a line where it is time."""
        now = self.clock()
        if now >= self.next:
            print(self.line(summary, now - self.start), file=sys.stderr, flush=True)
            self.next = now + NEXT_LINES

    def line(self, summary: JobSummary, seconds: float) -> str:
        """What was done, how fast since this job started, and the time left."""
        rate = (summary.sentences - self.before) / max(seconds, 1e-9)
        documents, sentences = counted(summary.documents, "document"), counted(summary.sentences, "sentence")
        if self.total is None:
            return f"{documents}, {sentences}, {rate:.4g} sentences/s"
        share = summary.sentences / max(self.total.sentences, 1)
        left = (self.total.sentences - summary.sentences) / rate if rate else float("inf")
        return (
            f"{documents} of {self.total.documents}, {sentences} of {self.total.sentences} ({share:.1%}), "
            f"{rate:.4g} sentences/s, {duration(left)} left"
        )

    def close(self) -> None:
        """Nothing is left to be done."""


def duration(seconds: float) -> str:
    """A time as `45 s`, `12 min` or `3 h 05 min`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds == float("inf"):
        return "unknown time"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
