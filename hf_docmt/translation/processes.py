"""Translation in several processes of one job: started here, or the ranks of `accelerate launch` and torchrun.

Every process loads the model once and serves groups that come over a connection. The first process reads the input,
sends groups, and gets rows back; it translates nothing itself. Results are those of one process, and the same bytes
where every process has as many threads as that one had: sums of floats depend on how threads share them.
"""

import os
import queue
import secrets
import signal
import sys
import traceback
from _thread import interrupt_main
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import connection, get_context
from multiprocessing.connection import Client, Connection, Listener
from threading import Thread

import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list

from hf_docmt.remote_code import is_trusted
from hf_docmt.translation.group_translation import GroupTranslator, TranslationSettings
from hf_docmt.translation.groups import Group
from hf_docmt.translation.job import Engine, local_engine
from hf_docmt.translation.workers import report_loss, translate_in_order, user_error, worker_translator

STOP_SECONDS = 5  # that a process has to end by itself


def job_engine(settings: TranslationSettings, processes: int = 1) -> Engine:
    """The engine of a job: this process, so many processes, or the ranks of a launcher where it started this one."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        if processes > 1:
            raise ValueError("--processes is for one process that starts others, and a launcher has; leave it out")
        return rank_engine(settings)
    return local_engine(GroupTranslator(settings)) if processes == 1 else process_engine(settings, processes)


def process_engine(settings: TranslationSettings, processes: int) -> Engine:
    """The engine that translates in so many processes of this machine.

    Each has its share of the cores, or with device `cuda` a GPU of its own. Raises `ValueError` for more processes than
    GPUs, and in use what the translators raise, or `ChildProcessError` where all processes, or three of them with the
    same group, were killed. They end with the generator, and with this process.
    """
    devices = process_devices(settings.device, processes)
    threads = max(1, torch.get_num_threads() // processes)

    def translate(groups: Iterable[Group | None]) -> Iterator[list[dict]]:
        with _started(devices, threads) as connections:
            yield from translate_in_order(groups, ConnectedProcesses(connections, settings))

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

    def translate(groups: Iterable[Group | None]) -> Iterator[list[dict]]:
        with _started([_rank_device(settings.device)], torch.get_num_threads()) as connections:
            yield from translate_in_order(groups, ConnectedProcesses(connections + ranks, settings))

    return translate


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


class ConnectedProcesses:
    """The pool of processes at the other ends of these connections; one that is lost stays lost."""

    def __init__(self, connections: list[Connection], settings: TranslationSettings):
        self.size = len(connections)
        self.idle = connections
        self.busy: dict[Connection, Group] = {}
        for one in connections:
            _send(one, (settings, is_trusted()))

    def has_idle(self) -> bool:
        return bool(self.idle)

    def submit(self, group: Group) -> None:
        process = self.idle.pop()
        self.busy[process] = group
        _send(process, group)

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
                report_loss(group)
                results.append((group, None))
                continue
            if isinstance(rows, Exception):
                raise rows
            self.idle.append(process)
            results.append((group, rows))
        return results


def _send(process: Connection, message: object) -> None:
    try:
        process.send(message)
    except OSError:  # the process is lost, as `wait` will see
        pass


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
