"""Python programs in processes of their own, forked from one that has torch and transformers loaded.

A new interpreter takes seconds to import them. What must be seen from the start (what `import` finds, limits of memory,
variables that huggingface_hub reads when it is imported) needs `subprocess.run`.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

FORKS = multiprocessing.get_context("forkserver")
IMPORTED = ["hf_docmt.cli", "hf_docmt.training.run", "hf_docmt.translation.job", "hf_docmt.evaluation.metrics"]
FORKS.set_forkserver_preload(IMPORTED)


class InThisProcess:
    """In place of a pool of processes."""

    map = staticmethod(map)

    def __init__(self, *_, **__): ...

    def __enter__(self):
        return self

    def __exit__(self, *_): ...


def run_python(
    *arguments: object,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    input: str = "",
    timeout: float = 600,
) -> subprocess.CompletedProcess:
    """What `python *arguments` prints, and its exit code: `-c CODE`, `-m MODULE` or a script, and its arguments."""
    command = [str(argument) for argument in arguments]
    with TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("input", "output", "errors")]
        files[0].write_text(input, "utf-8")
        process = FORKS.Process(target=_run, args=(command, cwd, dict(env or os.environ), files))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(command, timeout)
        texts = [file.read_text("utf-8") for file in files[1:]]
    return subprocess.CompletedProcess([sys.executable, *command], process.exitcode, *texts)


def run_in_two(*arguments: object, port: int, **variables: str) -> str:
    """What two processes that torch starts print; both run `python *arguments` in tests/."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", port]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""} | variables
    options = {"cwd": Path(__file__).parent.parent, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run([str(part) for part in (*launcher, *arguments)], **options, timeout=900)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _run(command: Sequence[str], cwd: str | Path | None, environment: dict[str, str], files: Sequence[Path]) -> None:
    """The child: standard streams are the files; it ends with the exit code that the interpreter would have."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd or os.getcwd())
    for number, (path, flags) in enumerate(zip(files, (os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT] * 2))):
        os.dup2(os.open(path, flags), number)
    streams = [open(number, mode, encoding="utf-8") for number, mode in enumerate("rww")]  # open until the end
    sys.stdin, sys.stdout, sys.stderr = streams
    option, *rest = command
    try:
        if option == "-c":
            sys.argv, sys.path[:0] = ["-c", *rest[1:]], [""]
            exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
        elif option == "-m":
            sys.argv, sys.path[:0] = rest, [os.getcwd()]
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv, sys.path[:0] = command, [str(Path(option).parent)]
            runpy.run_path(option, run_name="__main__")
    except SystemExit:
        raise
    except BaseException:
        traceback.print_exc()
        raise SystemExit(1) from None
