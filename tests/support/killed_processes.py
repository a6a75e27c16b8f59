"""Forks of this process: `docmt` in one of them, and work that is killed at a step that changes a file."""

import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing.resource_tracker import _resource_tracker as tracker
from pathlib import Path

import torch

from hf_docmt import cli
from hf_docmt.translation import job as jobs
from hf_docmt.translation.job_input import document_groups
from support.reader_checks import jsonl
from support.tiny_models import WORDS, source_rows

EXIT_CODES = {signal.SIGTERM: 143, signal.SIGINT: 130}


def fork(work: Callable[[], int | None], log: Path, stdin: int = 0, stdout: int | None = None) -> int:
    """The id of a new process that does this work and ends with the exit code it returns; it writes to a log."""
    if process := os.fork():
        return process
    code = 70
    try:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number, to in enumerate((stdin, handle if stdout is None else stdout, handle)):
            os.dup2(to, number)
        os.closerange(3, 256)
        tracker._fd = tracker._pid = None  # of a pipe that is closed now; a pool of processes starts one of its own
        sys.stdin = open(0, closefd=False)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
        code = work() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def wait(process: int) -> int:
    """The exit code of a process, or the signal that ended it as a negative number."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def killed_at(step: int, work: Callable[[], int | None], log: Path) -> bool:
    """Whether work in a process of its own was killed (-9) at its n-th call that changes a file, before its end."""

    def dying() -> int | None:
        left = step

        def watched(function):
            def call(*arguments, **options):
                nonlocal left
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments, **options)

            return call

        for name in ("replace", "unlink", "chmod", "fsync", "open", "mkdir", "rmdir"):
            setattr(os, name, watched(getattr(os, name)))
        torch.save = watched(torch.save)
        return work()

    code = wait(fork(dying, log))
    assert code in (0, -signal.SIGKILL), log.read_text()
    return code != 0


GROUP = 24  # sentences, so that a short job has many groups


def write_input(folder: Path, documents: int, seed: int = 0) -> dict[str, Path]:
    """Random documents of one to six sentences as JSON lines, and the sentences of one document as plain lines."""
    draw = random.Random(seed)
    texts = [
        [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(draw.randint(1, 6))]
        for _ in range(documents)
    ]
    (folder / "in.txt").write_text("".join(text + "\n" for some in texts for text in some))
    (folder / "in.jsonl").write_text(jsonl(source_rows(*texts)))
    return {"jsonl": folder / "in.jsonl", "plain": folder / "in.txt"}


def start(*arguments, **streams) -> int:
    """The id of a new process that runs `docmt` with these arguments, with small groups."""

    def job() -> int:
        for number in EXIT_CODES:  # outside the job, which sets its own handlers
            signal.signal(number, signal.SIG_IGN)
        return call(*arguments)

    return fork(job, **streams)


def call(*arguments) -> int:
    """The exit code of `docmt` with these arguments, called in this process."""
    before = sys.argv, jobs.document_groups
    sys.argv = ["docmt", *map(str, arguments)]
    jobs.document_groups = lambda rows, batch_size: document_groups(rows, max_sentences=GROUP)
    try:
        cli.main()
        return 0
    except SystemExit as end:
        return end.code or 0
    finally:
        sys.argv, jobs.document_groups = before
