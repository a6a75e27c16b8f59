"""Translation in several processes of one job: started here, or the ranks of `accelerate launch` and torchrun.

Every process loads the model once and serves groups that come over a connection; the first one reads the input and gets
the rows. Results are those of one process with as many threads: sums of floats depend on how threads share them.
"""

import os
import queue
import secrets
import signal
import sys
import traceback
from _thread import interrupt_main
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import connection, get_context
from multiprocessing.connection import Client, Connection, Listener
from threading import Thread

import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from transformers.utils.logging import disable_progress_bar

from hf_docmt.plugins import load_plugins
from hf_docmt.remote_code import is_trusted, trust_remote_code
from hf_docmt.translation.group_translation import GroupTranslator, TranslationSettings
from hf_docmt.translation.job import Engine, Results
from hf_docmt.translation.job_input import Group

STOP_SECONDS = 5  # that a process has to end by itself
AHEAD = 4  # groups for each worker that are taken in before the first of them is given out; bounds the memory
MAX_LOSSES = 3  # workers that one group may end before the job does


def job_engine(settings: TranslationSettings, processes: int = 1) -> Engine:
    """The engine of a job: this process, so many processes, or the ranks of a launcher where it started this one."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        if processes > 1:
            raise ValueError("--processes is for one process that starts others, and a launcher has; leave it out")
        return rank_engine(settings)
    if processes > 1:
        return process_engine(settings, processes)
    translator = GroupTranslator(settings)
    return lambda groups: ((group, translator(group)) for group in groups if group is not None)


def process_engine(settings: TranslationSettings, processes: int) -> Engine:
    """The engine that translates in so many processes of this machine.

    Each has its share of the cores, or with device `cuda` a GPU of its own. Raises `ValueError` for more processes than
    GPUs, and in use what the translators raise, or `ChildProcessError` where all processes, or three of them with the
    same group, were killed. They end with the generator, and with this process.
    """
    devices = process_devices(settings.device, processes)
    return _connected_engine(settings, devices, max(1, torch.get_num_threads() // processes), [])


def _connected_engine(settings: TranslationSettings, devices: list[str], threads: int, ranks: list[Connection]):
    """The engine of new processes on these devices, and of ranks."""

    def translate(groups: Iterable[Group | None]) -> Results:
        with _started(devices, threads) as connections:
            yield from ConnectedProcesses(connections + ranks, settings).translate(groups)

    return translate


def is_first_rank() -> bool:
    """Whether this process is the rank that reads and writes."""
    return int(os.environ.get("RANK", "0")) == 0


def rank_engine(settings: TranslationSettings) -> Engine:
    """The engine of rank 0, where the other ranks call `serve_rank`: a process for each rank, as `process_engine`.

    With device `cuda` each rank has the GPU of its number on its machine.
    """
    state = PartialState(cpu=True)  # a group of processes over gloo, for the address
    is_one_machine = os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"]
    key = secrets.token_bytes(32)
    with Listener(("127.0.0.1" if is_one_machine else "", 0), backlog=state.num_processes, authkey=key) as listener:
        host = "127.0.0.1" if is_one_machine else os.environ["MASTER_ADDR"]
        broadcast_object_list([(host, listener.address[1]), key])
        ranks = [listener.accept() for _ in range(state.num_processes - 1)]
    return _connected_engine(settings, [_rank_device(settings.device)], torch.get_num_threads(), ranks)


def serve_rank() -> None:
    """Translate what rank 0 sends; the process ends when that one has all, or ends."""
    PartialState(cpu=True)
    message: list = [None, None]
    broadcast_object_list(message)
    address, key = message
    serve(Client(address, authkey=key), None, torch.get_num_threads())


def _rank_device(device: str) -> str:
    return f"cuda:{os.environ['LOCAL_RANK']}" if device == "cuda" else device


def process_devices(device: str, processes: int) -> list[str]:
    """The device of each process; `cuda` is a GPU for each, `cuda:0` the same one for all."""
    if processes < 1:
        raise ValueError(f"--processes must be at least 1, got {processes}")
    if device != "cuda":
        return [device] * processes
    if processes > torch.cuda.device_count():
        raise ValueError(
            f"{processes} processes need as many GPUs, found {torch.cuda.device_count()}; give fewer processes, or "
            "name one GPU for all of them, such as cuda:0"
        )
    return [f"cuda:{index}" for index in range(processes)]


class Workers:
    """Workers that translate a group at a time: processes, or the actors of a cluster; `size` at the start."""

    def __init__(self, size: int):
        self.size = size
        self.idle: list = []

    def submit(self, worker, group: Group) -> None:
        """Give a group to a worker that is idle no more."""
        raise NotImplementedError

    def wait(self) -> list[tuple[Group, list[dict] | None]]:
        """Wait for workers; groups with their rows, or with None where the worker was lost before it had them.

        No groups where a worker was only made ready. Raises what a translator raised, and `ChildProcessError` where no
        worker is left.
        """
        raise NotImplementedError

    def translate(self, groups: Iterable[Group | None]) -> Results:
        """The groups and their result rows, in the groups' order; a group goes to whoever is idle.

        None among the groups says that none has arrived yet; what is done is then given out first. A group whose worker
        was lost (killed, out of memory, its machine gone) goes to another one, before all others. Raises
        `ChildProcessError` for a group that lost three workers, what `wait` raises, and at its place what `groups`
        raises.
        """
        waiting: Iterator[Group | None] | None = iter(groups)  # None when all were taken in
        order: deque[Group] = deque()  # that were taken in, and are not given out
        rows_of: dict[int, list[dict]] = {}
        lost: deque[Group] = deque()
        losses: Counter = Counter()
        error: Exception | None = None
        while waiting or order:
            while order and order[0].number in rows_of:
                group = order.popleft()
                yield group, rows_of.pop(group.number)
            while self.idle and (lost or waiting and len(order) < AHEAD * self.size):
                if lost:
                    self.submit(self.idle.pop(), lost.popleft())
                    continue
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
                order.append(group)
                self.submit(self.idle.pop(), group)
            if not order and (self.idle or not waiting):  # no group has arrived
                continue
            for group, rows in self.wait():
                if rows is not None:
                    rows_of[group.number] = rows
                    continue
                first, last = group.rows[0]["doc_id"], group.rows[-1]["doc_id"]
                losses[group.number] += 1
                if losses[group.number] == MAX_LOSSES:
                    raise ChildProcessError(
                        f"{MAX_LOSSES} processes ended while they translated documents {first!r} to {last!r}; look for "
                        "a lack of memory (a smaller --batch-size helps)"
                    )
                print(f"a process was lost; documents {first!r} to {last!r} go to another", file=sys.stderr, flush=True)
                lost.append(group)
        if error is not None:
            raise error


class ConnectedProcesses(Workers):
    """The processes at the other ends of these connections; one that is lost stays lost."""

    def __init__(self, connections: list[Connection], settings: TranslationSettings):
        super().__init__(len(connections))
        self.idle = connections
        self.busy: dict[Connection, Group] = {}
        for process in connections:
            _send(process, (settings, is_trusted()))

    def submit(self, worker: Connection, group: Group) -> None:
        self.busy[worker] = group
        _send(worker, group)

    def wait(self) -> list[tuple[Group, list[dict] | None]]:
        if not self.busy:
            raise ChildProcessError("all processes of the translation were killed; look for a lack of memory")
        results: list[tuple[Group, list[dict] | None]] = []
        for process in connection.wait(list(self.busy)):
            assert isinstance(process, Connection)
            group = self.busy.pop(process)
            try:
                rows = process.recv()
            except (EOFError, OSError):
                results.append((group, None))
                continue
            if isinstance(rows, Exception):
                raise rows
            self.idle.append(process)
            results.append((group, rows))
        return results


def _send(process: Connection, message: object) -> None:
    with suppress(OSError):  # the process is lost, as `wait` will see
        process.send(message)


@contextmanager
def _started(devices: list[str], threads: int) -> Iterator[list[Connection]]:
    """New processes on these devices; at the end of the block they end."""
    context = get_context("spawn")
    processes, connections = [], []
    try:
        for device in devices:
            here, there = context.Pipe()
            process = context.Process(target=serve, args=(there, device, threads), daemon=True)
            process.start()
            there.close()
            processes.append(process)
            connections.append(here)
        yield list(connections)
    finally:
        for here in connections:  # which ends the process at the other end
            here.close()
        for process in processes:
            process.join(STOP_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()


def serve(client: Connection, device: str | None, threads: int) -> None:
    """Translate the groups that come over the connection until its other end closes; then end this process.

    `device` None is the one of the settings, with `cuda` the GPU of this rank.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that reads and writes
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    inbox: queue.SimpleQueue = queue.SimpleQueue()
    Thread(target=_receive, args=(client, inbox), daemon=True).start()
    try:
        if message := inbox.get():
            settings, is_trusted = message
            settings = replace(settings, device=device or _rank_device(settings.device))
            translator = worker_translator(settings, is_trusted, threads)
        while group := inbox.get():
            client.send(translator(group))
    except Exception as error:  # to be raised in the process that reads and writes
        with suppress(OSError):
            client.send(user_error(error) or RuntimeError("".join(traceback.format_exception(error))))
        inbox.get()


def _receive(client: Connection, inbox: queue.SimpleQueue) -> None:
    """Put what arrives into the inbox; where the other end is gone, end this process, whatever it does."""
    try:
        while True:
            inbox.put(client.recv())
    except (EOFError, OSError):
        inbox.put(None)  # which ends the process where it waits,
        interrupt_main(signal.SIGTERM)  # and this where it translates


def worker_translator(settings: TranslationSettings, is_trusted: bool, threads: int | None) -> GroupTranslator:
    """The translator of a worker in a process of its own, with the plugins and the trust of the process of the job."""
    if threads is not None:
        torch.set_num_threads(threads)
    disable_progress_bar()
    load_plugins()
    with trust_remote_code(is_trusted):
        return GroupTranslator(settings)


def user_error(error: BaseException) -> Exception | None:
    """What a translator raised for the user to mend, as an error that every process can unpickle; else None."""
    return next((kind(str(error)) for kind in (ValueError, OSError) if isinstance(error, kind)), None)
