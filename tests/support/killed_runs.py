"""Training runs that are killed at random moments and resumed until they are finished, in forked processes.

    python -m support.killed_runs FOLDER --kills 250

prints a table of the moments at which they were killed, and fails where a run does not end like one without a break.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import torch

from hf_docmt.training.checkpoints import DELETED, checkpoint_steps
from hf_docmt.training.recipe import parse_recipe
from hf_docmt.training.run import train
from hf_docmt.training.run_folder import FACTS, RECIPE
from support.tiny_run import facts, recipe_mapping, write_corpus_files

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


def start(recipe_of_run: dict, log: Path) -> int:
    """Start the run, or resume it, in a process of its own; its number."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        with log.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            recipe = parse_recipe(recipe_of_run)
            train(recipe, resume=(Path(recipe.output_dir) / RECIPE).is_file())
            status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def run_until_killed(recipe_of_run: dict, log: Path, seconds: float, later: float | None = None) -> bool:
    """Whether the run was killed after so many seconds, and had not finished before. RuntimeError: it failed.

    With `later` it is killed so many seconds after a checkpoint is written or deleted next, or training ends.
    """
    process, end = start(recipe_of_run, log), time.monotonic() + seconds
    while time.monotonic() < end or later is not None:
        if later is not None and time.monotonic() > end and moment(Path(recipe_of_run["output_dir"])) in MOMENTS[3:]:
            end, later = time.monotonic() + later, None
        done, status = os.waitpid(process, os.WNOHANG)
        if done and status:
            raise RuntimeError(f"the run failed:\n{log.read_text()[-4000:]}")
        if done:
            return False
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    return bool(status)


def moment(output: Path) -> str:
    """In what a run was killed, from what it has left."""
    if not (output / RECIPE).is_file():
        return MOMENTS[0]
    checkpoints = output / "checkpoints"
    steps = checkpoint_steps(checkpoints)
    if list(checkpoints.glob(f"{DELETED}*")):
        return MOMENTS[4]
    if len(steps) < len(list(checkpoints.glob("checkpoint-*"))):
        return MOMENTS[3]
    if steps and steps[-1] == RUN["max_steps"]:
        return MOMENTS[5]
    return MOMENTS[2] if steps else MOMENTS[1]


def difference(one: Path, other: Path) -> str | None:
    """The file or fact in which two finished runs differ; not the times they took."""
    kept = {file.name for file in one.iterdir() if file.is_file()} - {FACTS, RECIPE}
    if kept != {file.name for file in other.iterdir() if file.is_file()} - {FACTS, RECIPE}:
        return "names of files"
    for name in sorted(kept):
        if (one / name).read_bytes() != (other / name).read_bytes():
            return name
    here, there = (
        {name: value for name, value in facts(folder).items() if name not in ("seconds", "resumed_from_step")}
        for folder in (one, other)
    )
    return None if here == there else f"{FACTS}: {here} {there}"


def aim(choices: random.Random) -> float | None:
    """Every second kill is aimed at what is short."""
    return choices.uniform(0, 0.04) if choices.random() < 0.5 else None


def kill_runs(folder: Path, kills: int, seed: int) -> Counter:
    """Kill runs until so many kills are done and the last run is finished; how often at which moment."""
    corpus, choices, counts = write_corpus_files(folder), random.Random(seed), Counter()
    while sum(counts.values()) < kills:
        for kind in ("concat", "memory"):
            straight, output, log = folder / f"{kind}-straight", folder / kind, folder / f"{kind}.log"
            if not straight.exists():
                begin = time.monotonic()
                run_until_killed(mapping(corpus, straight, kind), log, seconds=600)
                longest = 0.6 * (time.monotonic() - begin)
            while run_until_killed(mapping(corpus, output, kind), log, choices.uniform(0, longest), aim(choices)):
                counts[moment(output)] += 1
                if not (output / RECIPE).is_file():
                    shutil.rmtree(output, ignore_errors=True)  # as the message says
            if problem := difference(straight, output):
                raise RuntimeError(f"the {kind} run does not end like the one without a break: {problem}")
            shutil.rmtree(output)
            print(f"{kind}: equal after {sum(counts.values())} kills", file=sys.stderr, flush=True)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    counts = kill_runs(options.folder, options.kills, options.seed)
    for name in MOMENTS:
        print(f"{counts[name]:6} {name}")
    print(f"{sum(counts.values()):6} kills")


if __name__ == "__main__":
    main()
