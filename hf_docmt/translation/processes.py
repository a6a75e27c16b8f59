"""Translation in several processes of this machine, and the function that they and the tasks of a Ray cluster run.

The process that starts the job reads the input and writes the output; each of the others loads the model once. Results
are those of one process with this number of threads: sums of floats depend on how threads share them.
"""

import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.queues import SimpleQueue
from threading import Thread

from hf_docmt.data.registration import load_plugins
from hf_docmt.translation.group_translation import GroupTranslator, TranslationSettings
from hf_docmt.translation.job import Engine, Results
from hf_docmt.translation.job_input import Group

AHEAD = 4  # groups for each process that are taken in before the first of them is given out; bounds the memory
MAX_LOSSES = 3  # processes that end one after the other without a finished group


@dataclass(frozen=True)
class Worker:
    """Settings that let a process translate groups as the job's own process would; `threads` None: all that it has."""

    settings: TranslationSettings
    is_trusted: bool
    threads: int | None

    def load(self) -> GroupTranslator:
        """Load plugins and the model."""
        import torch
        from transformers.utils.logging import disable_progress_bar

        from hf_docmt.loading.remote_code import trust_remote_code

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        disable_progress_bar()
        load_plugins()
        with trust_remote_code(self.is_trusted):
            return GroupTranslator(replace(self.settings, device=_own_device or self.settings.device))


_own_device: str | None = None  # of this process, where each has one of its own
_loaded: tuple[Worker, GroupTranslator] | None = None  # once in a process


def translate_group(worker: Worker, group: Group) -> list[dict]:
    """The result rows of a group; the first call in a process loads the model. Any process can read its errors."""
    global _loaded
    try:
        if _loaded is None or _loaded[0] != worker:
            _loaded = worker, worker.load()
        return _loaded[1](group)
    except Exception as error:
        raise user_error(error) or RuntimeError("".join(traceback.format_exception(error))) from None


def user_error(error: BaseException) -> Exception | None:
    """An error of a translator that the user can fix, in a form that every process can unpickle; otherwise None."""
    return next((kind(str(error)) for kind in (ValueError, OSError) if isinstance(error, kind)), None)


def _begin(devices: SimpleQueue, job: Connection) -> None:
    """Take a device; end this process, whatever it does, when the process of the job ends or closes the connection."""
    global _own_device
    _own_device = devices.get()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that reads and writes

    def end() -> None:
        job.poll(None)  # nothing is ever sent
        os._exit(0)

    Thread(target=end, daemon=True).start()


# In the process of the job


def job_engine(settings: TranslationSettings, processes: int = 1) -> Engine:
    """The engine of a job: this process, or several others of this machine.

    Each has its share of the cores, or with device `cuda` its own GPU. `ValueError`: more processes than GPUs, or a
    process of torchrun; `ChildProcessError`: three were killed one after the other. They end with the generator.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError("docmt translate starts its processes itself: give --processes, and no torchrun or accelerate")
    if processes == 1:
        translator = GroupTranslator(settings)
        return lambda groups: ((group, translator(group)) for group in groups if group is not None)
    import torch

    from hf_docmt.loading.remote_code import is_trusted

    devices = process_devices(settings.device, processes)
    worker = Worker(settings, is_trusted(), max(1, torch.get_num_threads() // processes))

    def translate(groups: Iterable[Group | None]) -> Results:
        with _pool(worker, devices) as submit:
            yield from in_order(groups, submit, AHEAD * processes)

    return translate


def process_devices(device: str, processes: int) -> list[str]:
    """The device of each process; `cuda` is a GPU for each, `cuda:0` the same one for all."""
    if processes < 1:
        raise ValueError(f"--processes must be at least 1, got {processes}")
    if device != "cuda":
        return [device] * processes
    import torch

    if processes > torch.cuda.device_count():
        raise ValueError(
            f"{processes} processes need {processes} GPUs, found {torch.cuda.device_count()}; give fewer processes, or "
            "name one GPU for all of them, such as cuda:0"
        )
    return [f"cuda:{index}" for index in range(processes)]


Submit = Callable[[Group], Future[list[dict]]]


@contextmanager
def _pool(worker: Worker, devices: list[str]) -> Iterator[Submit]:
    """A function that gives a group to new processes on these devices; they are started again where one was killed."""
    pools: list[tuple[ProcessPoolExecutor, Connection]] = []

    def start() -> ProcessPoolExecutor:
        context = get_context("spawn")
        queue, (there, here) = context.SimpleQueue(), context.Pipe(duplex=False)
        for device in devices:
            queue.put(device)
        pools.append((ProcessPoolExecutor(len(devices), context, _begin, (queue, there)), here))
        return pools[-1][0]

    def stop() -> None:
        executor, here = pools.pop()
        here.close()  # which ends the processes
        executor.shutdown(cancel_futures=True)

    def submit(group: Group) -> Future[list[dict]]:
        try:
            return pools[-1][0].submit(translate_group, worker, group)
        except BrokenExecutor:
            stop()
            return start().submit(translate_group, worker, group)

    start()
    try:
        yield submit
    finally:
        stop()


def in_order(groups: Iterable[Group | None], submit: Submit, ahead: int) -> Results:
    """The groups and their result rows, in the groups' order; up to `ahead` groups are read before the first result.

    At None, no group has arrived yet, and finished ones are returned first. Groups whose process was lost (killed, out
    of memory) are submitted again. Raises `ChildProcessError` as `job_engine`, and at its place what `groups` raises.
    """
    waiting: Iterator[Group | None] | None = iter(groups)  # None when all were taken in
    taken: deque[tuple[Group, Future[list[dict]]]] = deque()
    losses, error = 0, None
    while waiting or taken:
        while waiting and len(taken) < ahead and not (taken and taken[0][1].done()):
            try:
                group = next(waiting)
            except StopIteration:
                waiting = None
                break
            except Exception as reading:
                waiting, error = None, reading
                break
            if group is None:
                break
            taken.append((group, submit(group)))
        if not taken:  # no group has arrived
            continue
        group, future = taken[0]
        try:
            rows = future.result()
        except BrokenExecutor:
            losses += 1
            first, last = group.rows[0]["doc_id"], taken[-1][0].rows[-1]["doc_id"]
            if losses == MAX_LOSSES:
                raise ChildProcessError(
                    f"{MAX_LOSSES} processes ended while documents {first!r} to {last!r} were translated; look for a "
                    "lack of memory (a smaller --batch-size helps)"
                ) from None
            print(f"a process was lost; documents from {first!r} on are translated again", file=sys.stderr, flush=True)
            taken = deque((group, submit(group) if _is_lost(future) else future) for group, future in taken)
            continue
        losses = 0
        taken.popleft()
        yield group, rows
    if error is not None:
        raise error


def _is_lost(future: Future) -> bool:
    return future.done() and isinstance(future.exception(), BrokenExecutor)
