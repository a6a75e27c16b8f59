"""The folder of a training run: in use or not, resumable or not, and the files that say so."""

import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from hf_docmt.files import write_text
from hf_docmt.journal import differences, try_lock, unlock
from hf_docmt.training.recipe import Recipe, load_recipe

RECIPE, FACTS = "recipe.yaml", "training.json"  # the latter is written last: with it the run is finished
LOCK = "run.lock"  # there while a run trains, and after one that was killed
MAY_CHANGE = ("output_dir", "data.cache", "data.num_proc")  # when a run is resumed, elsewhere: they change no batch


@contextmanager
def run_folder(output: Path, recipe: Recipe, resume: bool) -> Iterator[ExitStack]:
    """The output folder, locked while the block runs: made, or checked that the run in it can go on with this recipe.

    A new run that fails leaves nothing, so that the next one can start, unless the block has emptied the stack
    that it gets (`pop_all`): it does so when there is something to keep.

    Raises `ValueError` for a folder in use, and for one without a run that `resume` could go on with.
    """
    if output.exists() and not output.is_dir():
        raise ValueError(f"output_dir: {output} exists and is not an empty folder; choose another one")
    missing = [folder for folder in (output, *output.parents) if not folder.exists()]
    if not resume:
        output.mkdir(parents=True, exist_ok=True)
    elif not output.is_dir():
        raise ValueError(
            f"output_dir: {output} has no run to resume ({RECIPE} is missing); start without resume, or give "
            "output_dir=FOLDER if it was moved"
        )
    with folder_lock(output):
        if resume:
            _check_resumable(output, recipe)
        else:
            _check_empty(output)
        with ExitStack() as removal:
            if not resume:
                removal.callback(_remove, output, missing)
            yield removal
            removal.pop_all()


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """A lock on a folder while the block runs, the file `run.lock`. Raises `ValueError` while another process has it.

    The system releases it when the process ends, however it ends.
    """
    path = folder / LOCK
    try:
        lock = try_lock(path)
    except OSError as error:
        raise ValueError(f"output_dir: {folder} cannot be locked ({error}); choose another folder") from error
    if lock is None:
        raise ValueError(
            f"output_dir: {folder} is in use: {path.read_text(encoding='utf-8') or 'another process'} trains in it; "
            "wait for it or stop it, or choose another folder"
        )
    try:
        with suppress(OSError):  # Windows writes to no file that is locked
            path.write_text(f"process {os.getpid()} on {socket.gethostname()}", encoding="utf-8")
        yield
    finally:
        unlock(lock)


def _check_empty(output: Path) -> None:
    others = [entry for entry in output.iterdir() if entry.name != LOCK]
    if others:
        way_out = "or resume the run in it" if (output / RECIPE).is_file() else "it has no run that can be resumed"
        raise ValueError(
            f"output_dir: {output} exists and is not an empty folder; choose another one, delete it, {way_out}"
        )


def _remove(output: Path, made: list[Path]) -> None:
    """Delete what is in the folder, and it and those around it if they are among these; one that is in use stays."""
    for entry in output.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != LOCK:
            entry.unlink()
    with suppress(OSError):  # not empty: the cache of the run; on Windows the lock, which is open
        if output in made:
            (output / LOCK).unlink()
        for folder in made:
            folder.rmdir()


def _check_resumable(output: Path, recipe: Recipe) -> None:
    if (output / FACTS).exists():
        raise ValueError(f"output_dir: the run in {output} is finished; choose another folder for a new one")
    if not (output / RECIPE).is_file():
        raise ValueError(
            f"output_dir: {output} has no run to resume ({RECIPE} is missing): if one was interrupted there before "
            "training began, delete the folder and start without resume"
        )
    there, here = load_recipe(output / RECIPE).to_dict(), recipe.to_dict()
    changed = [(".".join(names), old, new) for names, old, new in differences(there, here)]
    changed = [f"{key} is {old!r} there, {new!r} here" for key, old, new in changed if key not in MAY_CHANGE]
    if changed:
        raise ValueError(
            f"output_dir: the run in {output} has another recipe: {'; '.join(changed)}; resume with {output / RECIPE}"
        )
    if there != here:  # the folder was moved, for example
        recipe.save(output / RECIPE)
    for unfinished in [*output.glob(f".{RECIPE}.*"), *output.glob(f".{FACTS}.*")]:
        unfinished.unlink()  # left by a kill


def write_facts(output: Path, facts: dict[str, Any]) -> None:
    """Write `training.json`, one fact a line."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in facts.items())
    write_text(f"{{\n{lines}\n}}\n", output / FACTS)
