"""A measurement in a process of its own, so that its peak memory is its own."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping


def measure_in_subprocess(module: str, case: Mapping, time_limit: float) -> dict:
    """What `python -m module` measures of a case; {"skipped": reason} where it fails or takes over `time_limit` s."""
    command = [sys.executable, "-m", module]
    try:
        done = subprocess.run(command, input=json.dumps(case), capture_output=True, text=True, timeout=time_limit)
    except subprocess.TimeoutExpired:
        return {"skipped": f"not done after {time_limit:g} s"}
    if done.returncode < 0:
        return {"skipped": f"its process was ended by {signal.Signals(-done.returncode).name}"}
    if done.returncode:
        return {"skipped": (done.stderr.strip() or "no message").splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def answer_case(measure: Callable[[Mapping], dict]) -> None:
    """The other end of `measure_in_subprocess`: read a case as JSON, measure it, print the numbers as JSON."""
    print(json.dumps(measure(json.load(sys.stdin))))
