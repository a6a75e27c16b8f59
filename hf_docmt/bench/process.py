"""Work in a process of its own: its peak memory is its own, it can be stopped, and its end leaves the others alone."""

import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout, suppress
from functools import partial
from pkgutil import resolve_name
from typing import TextIO

if sys.platform == "linux":
    import resource

GIB = 2**30
NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "MemoryError", "bad_alloc")  # in what torch says
COMMAND = (sys.executable, "-m", "hf_docmt.bench.process")


class ProcessError(Exception):
    """Work that a process has not finished, and why."""


def messages_of(work: str, case: Mapping, time_limit: float | None = None) -> Iterator[dict]:
    """What `module:function(case, send)` sends and at last returns in a new process, as soon as it is there.

    A case may have a `memory_limit`, the bytes that the process may take for data (on Linux). `ProcessError` where it
    fails or takes over `time_limit` s.
    """
    limit, started = case.get("memory_limit"), time.monotonic()
    set_limit = None  # further bytes of data are an error of allocation
    if limit is not None and sys.platform == "linux":
        set_limit = partial(resource.setrlimit, resource.RLIMIT_DATA, (limit, limit))
    with tempfile.TemporaryFile("w+") as errors:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
        with subprocess.Popen([*COMMAND, work], text=True, preexec_fn=set_limit, **pipes) as process:
            timer = threading.Timer(time_limit or threading.TIMEOUT_MAX, process.kill)
            timer.daemon = True
            timer.start()
            with suppress(BrokenPipeError):  # it has ended: its exit code says why
                process.stdin.write(json.dumps(case))
                process.stdin.close()
            yield from map(json.loads, process.stdout)
        timer.cancel()
        errors.seek(0)
        if process.returncode and time_limit is not None and time.monotonic() - started >= time_limit:
            raise ProcessError(f"not done after {time_limit:g} s")
        if process.returncode:
            problem = problem_of(process.returncode, errors.read())
            out_of_memory = set_limit is not None and any(text in problem for text in NO_MEMORY)
            raise ProcessError(f"needs more than the {limit / GIB:.1f} GiB that are free" if out_of_memory else problem)


def measure_in_subprocess(work: str, case: Mapping, time_limit: float) -> dict:
    """What `module:function(case, send)` returns in a new process; {"skipped": reason} where it does not finish."""
    try:
        return list(messages_of(work, case, time_limit))[-1]
    except ProcessError as problem:
        return {"skipped": str(problem)}


def problem_of(code: int, errors: str) -> str:
    """Why a process ended with this exit code; `errors` is what it wrote to standard error."""
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return (errors.strip() or f"exit code {code} without a message").splitlines()[-1]


def answer(work: str, messages: TextIO) -> None:
    """The other end: read a case from standard input, write what the function sends and returns as JSON lines."""
    case = json.load(sys.stdin)

    def send(message: Mapping) -> None:
        print(json.dumps(message), file=messages, flush=True)

    with redirect_stdout(sys.stderr):  # what libraries print is no message
        send(resolve_name(work)(case, send))


if __name__ == "__main__":
    answer(sys.argv[1], sys.stdout)
