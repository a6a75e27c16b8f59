"""Translation jobs and training runs in forks of this process, killed at random moments and resumed until they end."""

import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hf_docmt import cli
from hf_docmt.training.checkpoints import checkpoint_steps
from hf_docmt.training.durable_trainer import UNFINISHED
from hf_docmt.training.recipe import parse_recipe
from hf_docmt.training.run import train
from hf_docmt.training.run_folder import FACTS, RECIPE
from hf_docmt.translation import job as jobs
from hf_docmt.translation.job_input import document_groups
from support.reader_checks import jsonl
from support.tiny_models import WORDS, source_rows, write_model
from support.tiny_run import facts, recipe_mapping, write_corpus_files

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


# Translation jobs

GROUP = 24  # sentences, so that a short job has many groups
SIGNALS = (signal.SIGKILL,) * 6 + tuple(EXIT_CODES)


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


def kill_and_resume(command: list, output: Path, seconds: float, kills: int, draw: random.Random) -> Counter:
    """Run a command that writes this output in so many seconds; kill it and resume it so many times; let it end.

    Returns the kills by signal. One that came after the end counts as none, and the job is started anew.
    """
    counts: Counter = Counter()
    log, journal = output.with_name("log"), output.with_name(f"{output.name}.journal")
    while True:
        process = start(*command, "-o", output, *["--resume"] * journal.exists(), log=log)
        if counts.total() >= kills:
            assert wait(process) == 0, log.read_text()
            return counts
        number = draw.choice(SIGNALS)
        time.sleep(draw.uniform(0, seconds))
        os.kill(process, number)
        code = wait(process)
        if code == 0:
            output.unlink()
        else:
            assert code in (-number, EXIT_CODES.get(number)), (code, log.read_text())
            counts[number.name] += 1


def kill_jobs(folder: Path, kind: str, kills: int, documents: int = 60) -> Counter:
    """Kill jobs so many times in all, one to five times each; all end with the output of one that is left alone.

    `kind` is jsonl, gz or plain. Sentences are translated by themselves, so that plain lines have many groups, too.
    """
    draw, model, files = random.Random(0), write_model(folder / "model"), write_input(folder, documents)
    source, ending = files["plain" if kind == "plain" else "jsonl"], {"gz": "jsonl.gz", "plain": "txt"}.get(kind, kind)
    expected, output = folder / f"expected.{ending}", folder / f"out.{ending}"
    command = ["translate", model, source, "--strategy", "sentence"]
    assert call(*command, "-o", expected) == 0  # in this process, which imports what the others need
    begun = time.monotonic()
    assert wait(start(*command, "-o", folder / "timed", log=folder / "log")) == 0, (folder / "log").read_text()
    counts, seconds = Counter(), time.monotonic() - begun
    while counts.total() < kills:
        times = min(draw.randint(1, 5), kills - counts.total())
        counts += kill_and_resume(command, output, seconds, times, draw)
        assert output.read_bytes() == expected.read_bytes()
        assert [path for path in folder.iterdir() if path.name.startswith(output.name)] == [output]
        output.unlink()
    return counts


# Training runs

RUN = {"max_steps": 30, "eval_steps": 2, "average": 2}  # a checkpoint every two updates
MOMENTS = (
    "before the recipe was saved",
    "before the first checkpoint",
    "between two checkpoints",
    "while a checkpoint was written",
    "while a checkpoint was deleted",
    "after training, before the end",
)


def mapping(corpus: Path, output: Path, kind: str) -> dict:
    """A run with dropout: of windows with accumulated batches, or of documents side by side with their memory."""
    if kind == "concat":
        model = {"past_context": 2, "segment_encoding": "shift", "persistent": True}
        return recipe_mapping(corpus, output, model, **RUN, accumulation=2, max_tokens=400)
    stream = {"documents": 3, "window": 3}
    return recipe_mapping(corpus, output, {"memory_size": 3}, **RUN, stream=stream) | {"architecture": "memory"}


def run_until_killed(recipe_of_run: dict, log: Path, seconds: float, later: float | None = None) -> bool:
    """Whether the run was killed after so many seconds, and had not finished before.

    With `later` it is killed so many seconds after a checkpoint is written or deleted next, or training ends.
    """

    def run() -> None:
        recipe = parse_recipe(recipe_of_run)
        train(recipe, resume=(Path(recipe.output_dir) / RECIPE).is_file())

    log.unlink(missing_ok=True)
    process, end = fork(run, log), time.monotonic() + seconds
    while time.monotonic() < end or later is not None:
        if later is not None and time.monotonic() > end and moment(Path(recipe_of_run["output_dir"])) in MOMENTS[3:]:
            end, later = time.monotonic() + later, None
        done, status = os.waitpid(process, os.WNOHANG)
        assert not (done and status), log.read_text()[-4000:]
        if done:
            return False
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    return bool(wait(process))


def moment(output: Path) -> str:
    """In what a run was killed, from what it has left."""
    if not (output / RECIPE).is_file():
        return MOMENTS[0]
    checkpoints = output / "checkpoints"
    steps = checkpoint_steps(checkpoints)
    if (checkpoints / UNFINISHED).exists():
        return MOMENTS[3]
    if len(steps) < len(list(checkpoints.glob("checkpoint-*"))):
        return MOMENTS[4]
    if steps and steps[-1] == RUN["max_steps"]:
        return MOMENTS[5]
    return MOMENTS[2] if steps else MOMENTS[1]


def result(folder: Path) -> dict:
    """The files of a finished run and what its facts say, but for the times they took."""
    files = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    return {**files, FACTS: facts(folder) | {"seconds": None, "resumed_from_step": None}, RECIPE: None}


def kill_runs(folder: Path, kills: int) -> Counter:
    """Kill runs until so many kills are done and the last run is finished; how often at which moment.

    Every run ends with the files and facts of one without a break.
    """
    corpus, draw, counts, longest = write_corpus_files(folder), random.Random(1), Counter(), {}
    while counts.total() < kills:
        for kind in ("concat", "memory"):
            straight, output, log = folder / f"{kind}-straight", folder / kind, folder / f"{kind}.log"
            if kind not in longest:
                begin = time.monotonic()
                run_until_killed(mapping(corpus, straight, kind), log, seconds=600)
                longest[kind] = 0.6 * (time.monotonic() - begin)
            while run_until_killed(mapping(corpus, output, kind), log, draw.uniform(0, longest[kind]), aim(draw)):
                counts[moment(output)] += 1
                if not (output / RECIPE).is_file():
                    shutil.rmtree(output, ignore_errors=True)  # as the message says
            ours, expected = result(output), result(straight)
            assert [name for name in ours.keys() | expected.keys() if ours.get(name) != expected.get(name)] == []
            shutil.rmtree(output)
    return counts


def aim(draw: random.Random) -> float | None:
    """Every second kill is aimed at what is short."""
    return draw.uniform(0, 0.04) if draw.random() < 0.5 else None
