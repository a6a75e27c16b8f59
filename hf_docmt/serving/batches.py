"""The thread that translates: documents that wait together share batches."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException

from hf_docmt.modeling.opaque_runs import CarriedSentence, Span
from hf_docmt.translation.group_translation import DOCUMENT_ERRORS

SENTENCES_AT_ONCE = 256  # of several requests; more only of one
PAUSE, LONGEST_PAUSE = 0.01, 0.1  # seconds without a further request, and at most, for which a batch is waited with
STOPPING = "the server is stopping; try again"
Runs = Mapping[int, list[Span]]  # opaque ones of a document, by sentence


class Translated(NamedTuple):
    """A translated document: what the strategy repaired, the sentences with opaque runs, and n-best lists if asked."""

    sentences: list[str]
    repairs: list[dict]
    carried: dict[int, CarriedSentence]
    candidates: list[list[str]] = []


@dataclass(frozen=True)
class Query:
    """How a document is translated; those with equal ones share batches. `options` are pairs of name and value."""

    source_lang: str
    target_lang: str
    strategy: str | None = None
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(eq=False)
class WaitingRequest:
    """A document that waits with its search, or a call, which is made by itself, of so many sentences."""

    work: Any
    search: Query | None
    size: int
    future: Future = field(default_factory=Future)


class Batches:
    """A queue of at most `most_waiting` sentences (one job may be larger), and the thread that works it off."""

    def __init__(self, translate: Callable[[list[tuple[list[str], Runs]], Query], list[Translated]], most_waiting: int):
        self.translate, self.most_waiting = translate, most_waiting
        self.jobs: deque[WaitingRequest] = deque()
        self.condition = threading.Condition()
        self.size = self.batches = self.sentences = 0  # waiting; made; translated
        self.is_shared = False  # several jobs waited together last time
        self.is_stopping = False  # set by a signal, which must not wait for the lock
        threading.Thread(target=self._work, daemon=True).start()

    def submit(self, document: list[str], search: Query, runs: Runs) -> Future:
        """What becomes of a document: `Translated`. HTTPException: 503 where too many wait, or the server stops."""
        return self._add(WaitingRequest((document, runs), search, len(document)))

    def call(self, function: Callable[[], Any], size: int) -> Future:
        """The same of a call that has to be made in this thread, since it computes with the model."""
        return self._add(WaitingRequest(function, None, size))

    def _add(self, job: WaitingRequest) -> Future:
        if self.is_stopping:
            raise HTTPException(503, STOPPING, {"Retry-After": "10"})
        with self.condition:
            if self.jobs and self.size + job.size > self.most_waiting:
                reason = f"too much waits to be translated ({self.size} sentences); try again"
                raise HTTPException(503, reason, {"Retry-After": "2"})
            self.jobs.append(job)
            self.size += job.size
            self.condition.notify()
        return job.future

    def _work(self) -> None:
        while True:
            jobs = [job for job in self._next() if job.future.set_running_or_notify_cancel()]
            if self.is_stopping:
                for job in jobs:
                    job.future.set_exception(HTTPException(503, STOPPING, {"Retry-After": "10"}))
            elif jobs:
                self._run(jobs)
                self.batches += 1
                self.sentences += sum(job.size for job in jobs)

    def _next(self) -> list[WaitingRequest]:
        """The job that has waited longest, and those that can be done with it."""
        with self.condition:
            self.condition.wait_for(lambda: self.jobs)
            self._gather()
            first, rest = self.jobs.popleft(), deque()
            chosen, size = [first], first.size
            for job in self.jobs:
                if first.search is not None and job.search == first.search and size + job.size <= SENTENCES_AT_ONCE:
                    chosen.append(job)
                    size += job.size
                else:
                    rest.append(job)
            self.jobs = rest
            self.size -= size
        return chosen

    def _gather(self) -> None:
        """Wait while requests arrive: clients that had their answers together send the next ones together.

        Else the first of them would be a batch of its own, and all others wait for it. One client alone does not wait.
        """
        end = time.monotonic() + LONGEST_PAUSE
        arrived = 0
        while self.is_shared and arrived < len(self.jobs) and time.monotonic() < end and not self.is_stopping:
            arrived = len(self.jobs)
            self.condition.wait(PAUSE)  # or until one more is there
        self.is_shared = len(self.jobs) > 1

    def _run(self, jobs: list[WaitingRequest]) -> None:
        """Do the jobs; where they fail together, each by itself, so that it takes no other one with it."""
        first = jobs[0]
        try:
            results = (
                [first.work()] if first.search is None else self.translate([job.work for job in jobs], first.search)
            )
        except BaseException as error:  # noqa: BLE001  # raised again where it is waited for
            if len(jobs) > 1 and isinstance(error, DOCUMENT_ERRORS):
                for job in jobs:
                    self._run([job])
                return
            for job in jobs:
                job.future.set_exception(error)
            return
        for job, result in zip(jobs, results, strict=True):
            job.future.set_result(result)
