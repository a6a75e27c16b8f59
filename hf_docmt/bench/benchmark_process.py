"""A run of a benchmark in a process of its own, whose end, however it comes, leaves the other runs alone."""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import TextIO

import torch

from hf_docmt.bench.benchmark import load_benchmarks
from hf_docmt.bench.report import BenchmarkRun
from hf_docmt.bench.results import Row
from hf_docmt.plugins import load_plugins

COMMAND = (sys.executable, "-m", "hf_docmt.bench.benchmark_process")


def run_in_process(run: BenchmarkRun) -> Iterator[dict]:
    """Fill the run, as measured in a new process with as many threads as this one has; yields each row at once."""
    case = {"benchmark": run.benchmark, "options": dict(run.options), "threads": torch.get_num_threads()}
    started, rows = time.monotonic(), []
    with tempfile.TemporaryFile("w+") as errors:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
        with subprocess.Popen(COMMAND, text=True, **pipes) as process:
            process.stdin.write(json.dumps(case))
            process.stdin.close()
            for line in process.stdout:
                message = json.loads(line)
                run.seconds = time.monotonic() - started
                if "row" in message:
                    rows.append(message["row"])
                    run.rows = list({(row["case"], row["unit"]): row for row in rows}.values())
                    yield message["row"]
                else:
                    run.rows, run.checks, run.setting = (message[name] for name in ("rows", "checks", "setting"))
                    run.problem = None
        errors.seek(0)
        if process.returncode:
            run.problem = problem_of(process.returncode, errors.read())


def problem_of(code: int, errors: str) -> str:
    """Why a process ended with this exit code; `errors` is what it wrote to standard error."""
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return (errors.strip() or f"exit code {code} without a message").splitlines()[-1]


def answer_run(messages: TextIO) -> None:
    """The other end: run the benchmark that standard input names, and write its rows and its result as JSON lines."""
    case = json.load(sys.stdin)
    torch.set_num_threads(case["threads"])
    load_plugins()
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in case["options"].items()}

    def send_row(row: Row) -> None:
        print(json.dumps({"row": row.to_json()}), file=messages, flush=True)

    with redirect_stdout(sys.stderr):
        result = load_benchmarks()[case["benchmark"]](**options).run(send_row)
    print(json.dumps(result.to_json()), file=messages, flush=True)


if __name__ == "__main__":
    answer_run(sys.stdout)
