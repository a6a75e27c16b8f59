"""Translation jobs in processes of their own that are killed at random moments, and resumed until they end."""

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from hf_docmt import cli
from hf_docmt.translation import job_input
from hf_docmt.translation.job_input import document_groups
from support.tiny_models import WORDS, build, word_tokenizer

GROUP = 24  # sentences, so that a short job has many groups
SIGNALS = (signal.SIGKILL,) * 6 + (signal.SIGTERM, signal.SIGINT)
EXIT_CODES = {signal.SIGTERM: 143, signal.SIGINT: 130}


def write_model(folder: Path) -> Path:
    """A tiny random model of windows and its tokenizer."""
    model, tokenizer = build(past_context=1), word_tokenizer()
    model.generation_config.max_new_tokens = 4
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_input(folder: Path, documents: int, seed: int = 0) -> dict[str, Path]:
    """Random documents of one to six sentences as JSON lines, and the sentences of one document as plain lines."""
    draw = random.Random(seed)
    texts = [
        [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(draw.randint(1, 6))]
        for _ in range(documents)
    ]
    rows = [
        {"doc_id": f"d{number}", "translation": [{"en": text} for text in some]} for number, some in enumerate(texts)
    ]
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "in.txt").write_text("".join(text + "\n" for some in texts for text in some))
    return {"jsonl": folder / "in.jsonl", "plain": folder / "in.txt"}


def start(*arguments, log: Path, stdin: int = 0, stdout: int | None = None) -> int:
    """The id of a new process that runs `docmt` with these arguments, with small groups; it writes to a log."""
    if pid := os.fork():
        return pid
    code = 70
    try:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number, to in enumerate((stdin, handle if stdout is None else stdout, handle)):
            os.dup2(to, number)
        os.closerange(3, 256)
        sys.stdin = open(0, closefd=False)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1) for number in (1, 2))
        for number in EXIT_CODES:  # outside the job, which sets its own handlers
            signal.signal(number, signal.SIG_IGN)
        code = call(*arguments)
    finally:
        os._exit(code)


def call(*arguments) -> int:
    """The exit code of `docmt` with these arguments, called in this process."""
    before = sys.argv, job_input.document_groups
    sys.argv = ["docmt", *map(str, arguments)]
    job_input.document_groups = lambda rows, batch_size: document_groups(rows, max_sentences=GROUP)
    try:
        cli.main()
        return 0
    except SystemExit as end:
        return end.code or 0
    finally:
        sys.argv, job_input.document_groups = before


def wait(pid: int) -> int:
    """The exit code of a process, or the signal that ended it as a negative number."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill_and_resume(command: list, output: Path, seconds: float, kills: int, draw: random.Random) -> Counter:
    """Run a command that writes this output in so many seconds; kill it and resume it so many times; let it end.

    Returns the kills by signal. One that came after the end counts as none, and the job is started anew.
    """
    counts: Counter = Counter()
    log, journal = output.with_name("log"), output.with_name(f"{output.name}.journal")
    while True:
        pid = start(*command, "-o", output, *["--resume"] * journal.exists(), log=log)
        if counts.total() >= kills:
            assert wait(pid) == 0, log.read_text()
            return counts
        number = draw.choice(SIGNALS)
        time.sleep(draw.uniform(0, seconds))
        os.kill(pid, number)
        code = wait(pid)
        if code == 0:
            output.unlink()
        else:
            assert code in (-number, EXIT_CODES.get(number)), (code, log.read_text())
            counts[number.name] += 1


@dataclass
class KilledJobs:
    """Jobs of one kind of output: how often they were killed, how many there were, how many ended as they should."""

    kills: Counter
    jobs: int
    identical: int
    seconds: float  # that a job takes which is left alone


def kill_jobs(folder: Path, kind: str, kills: int, draw: random.Random, documents: int = 60) -> KilledJobs:
    """Kill jobs so many times in all, one to five times each; `kind` is jsonl, gz or plain.

    Sentences are translated by themselves, so that plain lines have many groups, too.
    """
    model, files = write_model(folder / "model"), write_input(folder, documents)
    source, ending = files["plain" if kind == "plain" else "jsonl"], {"gz": "jsonl.gz", "plain": "txt"}.get(kind, kind)
    expected, output = folder / f"expected.{ending}", folder / f"out.{ending}"
    command = ["translate", model, source, "--strategy", "sentence"]
    assert call(*command, "-o", expected) == 0  # in this process, which imports what the others need
    begun = time.monotonic()
    assert wait(start(*command, "-o", folder / "timed", log=folder / "log")) == 0, (folder / "log").read_text()
    found = KilledJobs(Counter(), 0, 0, time.monotonic() - begun)
    while found.kills.total() < kills:
        times = min(draw.randint(1, 5), kills - found.kills.total())
        found.kills += kill_and_resume(command, output, found.seconds, times, draw)
        found.jobs += 1
        found.identical += output.read_bytes() == expected.read_bytes()
        left = sorted(path.name for path in folder.iterdir() if path.name.startswith(output.name))
        assert left == [output.name], left
        output.unlink()
    return found


def main(folder: Path, kills: int, seed: int = 0) -> None:
    """Print the table of so many kills of each kind of output."""
    for kind in ("jsonl", "gz", "plain"):
        (folder / kind).mkdir(parents=True)
        print(kind, kill_jobs(folder / kind, kind, kills, random.Random(seed)), flush=True)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    main(Path(sys.argv[1]), int(sys.argv[2]), *map(int, sys.argv[3:]))
