"""Jobs of a study in processes: so many at a time, each with its share of the cores and a log."""

import io
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from multiprocessing import connection, get_all_start_methods, get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

from hf_docmt.studies.jobs import Job, StudyPlan

RunCommand = Callable[[Sequence[str]], None]
PRELOADED = ["hf_docmt.training.run", "hf_docmt.evaluation.contrast", "hf_docmt.translation.corpus"]


@dataclass
class Running:
    """A job in a process that has one of the places: a share of the cores, and a GPU where there are some."""

    job: Job
    process: BaseProcess
    place: int
    started: float


def run_jobs(
    plan: StudyPlan,
    jobs: Sequence[Job],
    run_command: RunCommand,
    processes: int,
    finished: Callable[[Job, float], None],
    failed: Callable[[Job], None],
) -> list[Job]:
    """Run jobs in their order as far as their needs allow, `processes` at a time; returns those that failed.

    What needs a failed job is left out. `run_command(arguments)` runs one command of a job, in a new process with its
    standard output and error in the job's log. `finished(job, seconds)` and `failed(job)` are called in this process.
    An interruption, or the end of this process, ends them all; what was not finished is done again, or goes on, the
    next time.
    """
    order = {job.name: number for number, job in enumerate(jobs)}
    graph = TopologicalSorter({job.name: [name for name in job.needs if name in order] for job in jobs})
    graph.prepare()
    method = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
    context = get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(PRELOADED)  # type: ignore[attr-defined]
    devices = torch.cuda.device_count()
    ready: list[str] = []
    running: list[Running] = []
    lost: list[Job] = []
    try:
        while graph.is_active():
            ready = sorted([*ready, *graph.get_ready()], key=order.__getitem__)
            while ready and len(running) < processes:
                job = plan.jobs[ready.pop(0)]
                place = min(set(range(processes)) - {one.place for one in running})
                device = visible_device(place % devices) if devices else None
                threads = max(1, torch.get_num_threads() // processes)  # as OMP_NUM_THREADS and taskset leave them
                arguments = (run_command, plan.prepare(job), plan.log_file(job), threads, device)
                process = context.Process(target=run_in_process, args=arguments, name=job.name)  # type: ignore[attr-defined]
                process.start()
                running.append(Running(job, process, place, time.monotonic()))
            if not running:
                break  # all that is left needs a job that failed
            connection.wait([one.process.sentinel for one in running])
            for one in [one for one in running if not one.process.is_alive()]:
                one.process.join()
                running.remove(one)
                if one.process.exitcode == 0:
                    plan.finish(one.job)
                    finished(one.job, time.monotonic() - one.started)
                    graph.done(one.job.name)
                else:
                    if one.process.exitcode < 0:
                        note_signal(-one.process.exitcode, plan.log_file(one.job))
                    lost.append(one.job)
                    failed(one.job)
    finally:
        for one in running:
            one.process.terminate()
        for one in running:
            one.process.join()
    return lost


def run_in_process(
    run_command: RunCommand, commands: Sequence[Sequence[str]], log: Path, threads: int, device: str | None
) -> None:
    """Run the commands of a job in a process of its own, with so many threads, and the GPU of that name alone."""
    if device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    form = {"encoding": "utf-8", "errors": "backslashreplace", "line_buffering": True}
    sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False), **form)
    sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), **form)
    threading.Thread(target=end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    for command in commands:
        print(f"docmt {shlex.join(command)}", flush=True)
        run_command(command)


def end_with_parent() -> None:
    """Wait for the end of the process that started this one, however it ends, and end this one, too."""
    connection.wait([parent_process().sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


def visible_device(number: int) -> str:
    """The name of a device among those that this process sees."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    return given.split(",")[number] if given else str(number)


def note_signal(number: int, log: Path) -> None:
    """Write into the log of a job which signal ended it."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"\nended by {signal.Signals(number).name}; where memory runs out, the system sends SIGKILL\n")


def last_lines(log: Path, count: int = 3) -> str:
    """The end of a log, for a message."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.exists() else []
    return "\n".join(f"    {line}" for line in lines[-count:])
