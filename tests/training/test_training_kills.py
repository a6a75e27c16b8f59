"""Training runs that are killed and resumed until they end: the files and facts of a run without a break."""

import random
import shutil
from itertools import chain, count
from pathlib import Path

import pytest
from support.killed_processes import killed_at
from support.tiny_run import facts, recipe_mapping

from hf_docmt.training.recipe import parse_recipe
from hf_docmt.training.run import train
from hf_docmt.training.run_folder import FACTS, LOCK, RECIPE

RUN = {"max_steps": 6, "eval_steps": 2, "average": 2}  # a checkpoint every two updates


def mapping(corpus, output, kind):
    """A run with dropout: of windows with accumulated batches, or of documents side by side with their memory."""
    if kind == "concat":
        model = {"past_context": 2, "segment_encoding": "shift", "persistent": True}
        return recipe_mapping(corpus, output, model, **RUN, accumulation=2, max_tokens=400)
    stream = {"documents": 3, "window": 3}
    return recipe_mapping(corpus, output, {"memory_size": 3}, **RUN, stream=stream) | {"architecture": "memory"}


def run(recipe_of_run):
    recipe = parse_recipe(recipe_of_run)
    train(recipe, resume=(Path(recipe.output_dir) / RECIPE).is_file())


def result(folder):
    """The files of a finished run and what its facts say, but for the times they took."""
    files = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file() and file.name != LOCK}
    return {**files, FACTS: facts(folder) | {"seconds": None, "resumed_from_step": None}, RECIPE: None}


def killed_and_resumed(folder, corpus, kind, steps, log):
    """Whether the run was killed at the first of these steps; it is killed at the others until it has ended."""
    is_killed = again = killed_at(next(steps), lambda: run(mapping(corpus, folder, kind)), log)
    while again and not (folder / FACTS).is_file():
        if not (folder / RECIPE).is_file():
            shutil.rmtree(folder, ignore_errors=True)  # as the message says
        again = killed_at(next(steps), lambda: run(mapping(corpus, folder, kind)), log)
    return is_killed


@pytest.fixture
def check(corpus, tmp_path):
    expected = {}

    def check(kind, steps):
        if kind not in expected:
            run(mapping(corpus, tmp_path / "straight", kind))
            expected[kind] = result(tmp_path / "straight")
        folder = tmp_path / kind
        is_killed = killed_and_resumed(folder, corpus, kind, steps, tmp_path / "log")
        found = result(folder)
        names = found.keys() | expected[kind].keys()
        assert [name for name in names if found.get(name) != expected[kind].get(name)] == []
        shutil.rmtree(folder)
        return is_killed

    return check


def test_killed_twice(check):
    """While a checkpoint is written, and when it has its name."""
    assert check("concat", iter([45, 30, 10**6]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["concat", "memory"])
def test_killed_at_every_step(check, kind):
    draw = random.Random(1)
    for step in count(1, 20):
        if not check(kind, chain([step], (draw.randrange(1, 400) for _ in count()))):
            break
    assert step > 60
