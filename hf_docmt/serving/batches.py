"""The threads that translate, one at a time: documents that wait together share batches, long ones give way."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException

from hf_docmt.modeling.opaque_runs import CarriedSentence, Span
from hf_docmt.translation.group_translation import DOCUMENT_ERRORS

SENTENCES_AT_ONCE = 256  # of several requests; more only of one
SMALL, LARGE, OPEN = "small", "large", "open"  # kinds of turns: new groups, and those that have begun
SMALL_SENTENCES, SMALL_CHARACTERS = 16, 4000  # most of a small request
SLICES = {SMALL: 0.5, LARGE: 0.03}  # seconds of a turn, if others wait
MOST_OPEN = {SMALL: 4, LARGE: 1}  # groups at once that a client takes part in
THREADS = 32  # and so the most groups that have begun
PAUSE, LONGEST_PAUSE = 0.01, 0.1  # seconds without a further request, and at most, for which a batch is waited with
STOPPING = HTTPException(503, "the server is stopping; try again", {"Retry-After": "10"})
CLIENT: ContextVar[str] = ContextVar("client", default="")  # key or address of the one whose request it is
Terms = tuple[tuple[str, str, bool], ...]  # of a glossary: source, target, whether it is forbidden
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
    glossary: Terms = ()


@dataclass(eq=False)
class WaitingRequest:
    """A waiting document with its search, or a separate call, with its number of sentences."""

    work: Any
    search: Query | None
    size: int
    kind: str
    client: str = field(default_factory=CLIENT.get)
    future: Future = field(default_factory=Future)  # cancelled when its client is gone

    def answer(self, result: Any = None, error: BaseException | None = None) -> None:
        with suppress(InvalidStateError):  # its client is gone
            self.future.set_exception(error) if error else self.future.set_result(result)


@dataclass(eq=False)
class Group:
    """Requests that are done together, in a thread of their own that computes in its turns alone."""

    jobs: list[WaitingRequest]
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    start: float = 0.0  # of the turn
    has_begun: bool = False


class Batches:
    """A queue of at most `most_waiting` sentences (one job may be larger), and the threads that work it off.

    New small groups, new large ones and those that have begun take turns. The next requests of a group are one of each
    client, then a second one of each. A request that is cancelled leaves the queue, and ends if it has begun.
    """

    def __init__(self, translate: Callable[[list[tuple[list[str], Runs]], Query], list[Translated]], most_waiting: int):
        self.translate, self.most_waiting = translate, most_waiting
        self.jobs: deque[WaitingRequest] = deque()
        self.open: deque[Group] = deque()  # have begun, and wait for their next turn
        self.kinds = [SMALL, LARGE, OPEN]  # in the order of their turns
        self.condition = threading.Condition()
        self.given_back, self.own = threading.Semaphore(0), threading.local()
        self.size = self.batches = self.sentences = 0  # waiting; made; translated
        self.is_shared = False  # several jobs waited together last time
        self.is_stopping = False  # set by a signal, which must not wait for the lock
        self.threads = ThreadPoolExecutor(THREADS)
        threading.Thread(target=self._work, daemon=True).start()

    def submit(self, document: list[str], search: Query, runs: Runs) -> Future:
        """The result of a document: `Translated`. HTTPException: 503 if too many wait, or the server stops."""
        is_small = len(document) <= SMALL_SENTENCES and sum(map(len, document)) <= SMALL_CHARACTERS
        return self._add(WaitingRequest((document, runs), search, len(document), SMALL if is_small else LARGE))

    def call(self, function: Callable[[], Any], size: int) -> Future:
        """The result of a call that waits for its turn, since it computes with the model. Raises as `submit`."""
        return self._add(WaitingRequest(function, None, size, SMALL if size <= SMALL_SENTENCES else LARGE))

    def check_room(self, size: int, in_sessions: int = 0) -> None:
        """HTTPException: 503 if these sentences would be too many, or the server stops."""
        waiting = self.size + in_sessions
        if self.is_stopping:
            raise STOPPING
        if waiting and waiting + size > self.most_waiting:
            reason = f"too much waits to be translated ({waiting} sentences); try again"
            raise HTTPException(503, reason, {"Retry-After": "2"})

    def give_way(self) -> None:
        """Let other jobs have their turn in the middle of a computation. CancelledError: the client is gone."""
        if (group := getattr(self.own, "group", None)) is None:
            return
        if time.monotonic() - group.start > SLICES[group.jobs[0].kind] and (self.jobs or self.open):
            self.open.append(group)
            self.given_back.release()
            group.turn.acquire()
        if all(job.future.cancelled() for job in group.jobs):
            raise CancelledError

    def _add(self, job: WaitingRequest) -> Future:
        with self.condition:
            self.check_room(job.size)
            self.jobs.append(job)
            self.size += job.size
            self.condition.notify()
        job.future.add_done_callback(lambda future: self._take([job]) if future.cancelled() else None)
        return job.future

    def _take(self, jobs: list[WaitingRequest]) -> None:
        """Take those from the queue that are in it."""
        with self.condition:
            taken = {id(job) for job in jobs}
            self.jobs = deque(job for job in self.jobs if id(job) not in taken)
            self.size = sum(job.size for job in self.jobs)

    def _work(self) -> None:
        while True:
            group = self._next()
            group.start = time.monotonic()
            if group.has_begun:
                group.turn.release()
            else:
                group.has_begun = True
                self.threads.submit(self._run_group, group)
            self.given_back.acquire()

    def _next(self) -> Group:
        """The group whose turn it is; kinds that there are take turns."""
        with self.condition:
            while True:
                if not self.open:
                    self.condition.wait_for(lambda: self.jobs)
                    self._gather()
                if self.is_stopping:
                    for job in self.jobs:
                        job.answer(error=STOPPING)
                    self._take(list(self.jobs))
                for kind in self.kinds:
                    group = self.open.popleft() if kind == OPEN and self.open else self._new_group(kind)
                    if group:
                        self.kinds.remove(kind)
                        self.kinds.append(kind)
                        return group

    def _new_group(self, kind: str) -> Group | None:
        """The request that has waited longest, and those of this kind that can be done with it."""
        parts = [{job.client for job in group.jobs} for group in self.open if group.jobs[0].kind == kind]
        at_work, ranks = Counter(client for clients in parts for client in clients), Counter[str]()
        ranked: list[tuple[int, WaitingRequest]] = []  # with how many of its client come before
        for job in self.jobs:
            if job.kind == kind and at_work[job.client] < MOST_OPEN[kind]:
                ranked.append((ranks[job.client], job))
                ranks[job.client] += 1
        if not ranked or len(self.open) >= THREADS:
            return None
        (_, first), *others = sorted(ranked, key=lambda pair: pair[0])
        chosen, size = [first], first.size
        for _, job in others:
            if first.search is not None and job.search == first.search and size + job.size <= SENTENCES_AT_ONCE:
                chosen.append(job)
                size += job.size
        self._take(chosen)
        return Group(chosen)

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

    def _run_group(self, group: Group) -> None:
        self.own.group = group
        try:
            self._run(group.jobs)
        finally:
            self.batches += 1
            self.sentences += sum(job.size for job in group.jobs)
            self.given_back.release()

    def _run(self, jobs: list[WaitingRequest]) -> None:
        """Run the jobs; if they fail together, run each alone, so that one failure does not affect the others."""
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
                job.answer(error=error)
            return
        for job, result in zip(jobs, results, strict=True):
            job.answer(result)
