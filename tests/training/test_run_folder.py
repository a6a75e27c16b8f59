"""The folder of a run: locked while it trains, and a way out of every state that a kill or a move leaves."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
import torch
from support.errors import refused
from support.tiny_run import facts, recipe_mapping, train_until

from hf_docmt.training.checkpoints import checkpoint_steps
from hf_docmt.training.recipe import load_recipe, parse_recipe
from hf_docmt.training.run import train
from hf_docmt.training.run_folder import LOCK, folder_lock

torch.set_num_threads(1)


@pytest.fixture
def interrupted(corpus, tmp_path):
    """Recipe of a run that stopped after checkpoint 3."""
    recipe = parse_recipe(recipe_mapping(corpus, tmp_path / "run", max_steps=6, average=4))
    train_until(recipe, batches=4)
    assert not (tmp_path / "run" / LOCK).exists()
    return recipe


def test_one_run_at_a_time(interrupted, tmp_path):
    folder = tmp_path / "run"
    ready, tell = os.pipe()
    if not (holder := os.fork()):
        with folder_lock(folder):
            os.write(tell, b"1")
            time.sleep(60)
    try:
        os.read(ready, 1)
        for resume in (True, False):
            with pytest.raises(ValueError, match=f"run is in use: process {holder} on .* trains in it; wait for it"):
                train(interrupted, resume=resume)
    finally:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
    assert (folder / LOCK).exists()  # left by the kill, but locked no more
    assert facts(train(interrupted, resume=True))["resumed_from_step"] == 3
    assert not (folder / LOCK).exists()


def test_the_lock_of_a_killed_run_does_not_stay_with_its_workers(tmp_path):
    """A forked process lives on when the run is killed."""
    go_on, wait = os.pipe()
    with folder_lock(tmp_path):
        worker = os.fork()
        if not worker:
            os.close(wait)
            os.read(go_on, 1)
            os._exit(0)
    with folder_lock(tmp_path):  # the worker lives
        pass
    os.close(wait)
    os.waitpid(worker, 0)


def test_killed_before_the_recipe_was_saved(corpus, tmp_path):
    """The messages name the way out, and it works."""
    recipe = parse_recipe(recipe_mapping(corpus, tmp_path / "run", max_steps=1))
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / LOCK).write_text("process 1 on other")
    (folder / "tokenizer.json").write_text("{")
    refused("no run to resume .* delete the folder and start without resume", train, recipe, resume=True)
    refused("not an empty folder; choose another one, delete it, it has no run that can", train, recipe)
    (folder / "tokenizer.json").unlink()
    assert facts(train(recipe))["steps"] == 1  # what is left of a lock is no obstacle


FAILING = {
    "no file": ("data.validation.path=nowhere.jsonl", "nowhere.jsonl"),
    "no model": ("init_from=nowhere", "nowhere has no config.json"),
    "late": ("decoding.strategy=stream", "decoding.strategy"),
}


@pytest.mark.parametrize(("override", "message"), FAILING.values(), ids=FAILING)
def test_nothing_is_left_of_a_run_that_did_not_begin(corpus, tmp_path, override, message):
    """Neither of folders that this call made, nor in one that was there."""
    options = [override, *(["tokenizer=null"] if "init_from" in override else [])]
    (tmp_path / "there").mkdir()
    for folder in (tmp_path / "new" / "run", tmp_path / "there"):
        mapping = recipe_mapping(corpus, folder, max_steps=1)
        mapping["data"]["cache"] = str(tmp_path / "cache")
        with pytest.raises(ValueError, match=message):
            train(parse_recipe(mapping, options))
        assert list((tmp_path / "there").iterdir()) == [] and not (tmp_path / "new").exists()
    assert facts(train(parse_recipe(mapping)))["steps"] == 1


@pytest.mark.parametrize("updates", [0, 1])
def test_a_run_is_kept_from_its_first_update_on(corpus, tmp_path, updates):
    recipe = parse_recipe(recipe_mapping(corpus, tmp_path / "run", max_steps=2))
    train_until(recipe, batches=updates)
    assert (tmp_path / "run").exists() == bool(updates)
    assert facts(train(recipe, resume=bool(updates)))["steps"] == 2


def test_moved_folder(interrupted, tmp_path):
    """It is resumed under its new name, with the best checkpoint of its own."""
    with pytest.raises(ValueError, match="has no run to resume .* or give output_dir=FOLDER if it was moved"):
        (tmp_path / "run").rename(tmp_path / "moved")
        train(interrupted, resume=True)
    moved = load_recipe(tmp_path / "moved" / "recipe.yaml", [f"output_dir={tmp_path}/moved"])
    assert facts(train(moved, resume=True))["resumed_from_step"] == 3
    assert load_recipe(tmp_path / "moved" / "recipe.yaml").output_dir == str(tmp_path / "moved")
    for checkpoint in (tmp_path / "moved" / "checkpoints").glob("checkpoint-[6-9]"):
        state = json.loads((checkpoint / "trainer_state.json").read_text())
        assert Path(state["best_model_checkpoint"]).parent == tmp_path / "moved" / "checkpoints"


def test_resumed_with_another_cache(interrupted, tmp_path):
    recipe = load_recipe(tmp_path / "run" / "recipe.yaml", [f"data.cache={tmp_path}/other", "data.num_proc=1"])
    assert facts(train(recipe, resume=True))["resumed_from_step"] == 3
    assert load_recipe(tmp_path / "run" / "recipe.yaml") == recipe


def test_no_checkpoint_is_whole(interrupted, tmp_path):
    checkpoints = tmp_path / "run" / "checkpoints"
    (checkpoints / "checkpoint-3" / "optimizer.pt").unlink()
    refused("checkpoint-3 was saved without optimizer.pt", train, interrupted, resume=True)
    shutil.rmtree(checkpoints)
    assert facts(train(interrupted, resume=True))["resumed_from_step"] is None


def test_killed_while_the_model_was_saved(interrupted, tmp_path, monkeypatch):
    """Every file of the folder is whole: what is needed to resume is read from it."""
    folder, replace = tmp_path / "run", os.replace

    def killed(old, new):
        if str(new).endswith("modeling_concat.py") and "unfinished" in str(old):
            raise KeyboardInterrupt
        replace(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            train(interrupted, resume=True)
    assert (folder / "config.json").exists() and not (folder / "model.safetensors").read_bytes() == b""
    (folder / "model.unfinished" / "config.json").write_text("{")
    (folder / ".training.json.abc").write_text("{")
    assert facts(train(interrupted, resume=True))["resumed_from_step"] == 6
    assert not list(folder.glob("*unfinished")) and not list(folder.glob(".training.json*"))
    assert checkpoint_steps(folder / "checkpoints") == [3, 6]
