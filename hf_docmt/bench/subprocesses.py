"""A measurement in a process of its own, so that its peak memory is its own and it can be stopped."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial

if sys.platform == "linux":
    import resource


GIB = 2**30
NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "MemoryError", "bad_alloc")  # in what torch says


def measure_in_subprocess(module: str, case: Mapping, time_limit: float) -> dict:
    """What `python -m module` measures of a case; {"skipped": reason} where it fails or takes over `time_limit` s.

    A case may have a `memory_limit`, the bytes that its process may take for data (on Linux).
    """
    command, limit = [sys.executable, "-m", module], case.get("memory_limit")
    set_limit = None if limit is None or sys.platform != "linux" else partial(limit_data, limit)
    try:
        done = subprocess.run(
            command, input=json.dumps(case), capture_output=True, text=True, timeout=time_limit, preexec_fn=set_limit
        )
    except subprocess.TimeoutExpired:
        return {"skipped": f"not done after {time_limit:g} s"}
    if done.returncode < 0:
        return {"skipped": f"its process was ended by {signal.Signals(-done.returncode).name}"}
    if done.returncode:
        message = (done.stderr.strip() or "no message").splitlines()[-1]
        if set_limit and any(text in message for text in NO_MEMORY):
            message = f"needs more than the {limit / GIB:.1f} GiB that are free"
        return {"skipped": message}
    return json.loads(done.stdout.splitlines()[-1])


def limit_data(size: int) -> None:
    """From now on refuse this process more than so many bytes of data; further ones are an error of allocation."""
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def answer_case(measure: Callable[[Mapping], dict]) -> None:
    """The other end of `measure_in_subprocess`: read a case as JSON, measure it, print the numbers as JSON."""
    print(json.dumps(measure(json.load(sys.stdin))))
