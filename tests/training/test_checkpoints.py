"""Checkpoints that are complete or not, of earlier versions, not needed; other data are refused."""

import os
import shutil
from pathlib import Path

import pytest
import torch
from support.errors import refused
from support.tiny_run import facts, recipe_mapping, train_until, write_corpus_files
from support.tiny_trainer import Stop, losses, make_trainer

from hf_docmt.data.documents import write_documents
from hf_docmt.data.synthetic.corpus import make_corpus
from hf_docmt.training.checkpoints import (
    SavedRun,
    average_weights,
    checkpoint_steps,
    remove_checkpoint,
    remove_unneeded,
    saved_run,
)
from hf_docmt.training.recipe import parse_recipe
from hf_docmt.training.run import train

torch.set_num_threads(1)
FROZEN = Path(__file__).parent.parent / "frozen" / "training" / "run" / "checkpoints"
NEEDED = "model.safetensors optimizer.pt scheduler.pt rng_state.pth".split()


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.fixture(scope="module")
def two_checkpoints(data, tmp_path_factory):
    """Folder of a run that stopped after checkpoints 2 and 4, and its trainer; not to be changed."""
    folder = tmp_path_factory.mktemp("run")
    trainer = make_trainer(data, folder, [Stop(5)])
    with pytest.raises(InterruptedError):
        trainer.train()
    assert checkpoint_steps(folder) == [2, 4]
    return folder, trainer


def test_a_checkpoint_of_the_model_alone(data, tmp_path):
    """It was saved so; nobody is told to delete it."""
    make_trainer(data, tmp_path / "run", save_only_model=True).train()
    with pytest.raises(ValueError, match=r"-\d was saved without .*save_only_model.*weights are whole") as error:
        make_trainer(data, tmp_path / "run").train(resume_from_checkpoint=True)
    assert "delete" not in str(error.value)


def test_order_of_writing(data, tmp_path, monkeypatch):
    """Every file is on the disk before the checkpoint has its name; a kill before that leaves the one before."""
    events, sync, replace = [], os.fsync, os.replace

    def log_sync(descriptor):
        events.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        sync(descriptor)

    def log_replace(old, new):
        if Path(new).name == "checkpoint-4":
            assert {*NEEDED, "trainer_state.json", "checkpoint-4"} <= set(events)
            assert checkpoint_steps(tmp_path) == [2]
            raise InterruptedError
        events.clear()
        replace(old, new)

    monkeypatch.setattr(os, "fsync", log_sync)
    monkeypatch.setattr(os, "replace", log_replace)
    with pytest.raises((InterruptedError, OSError)):
        make_trainer(data, tmp_path).train()
    assert checkpoint_steps(tmp_path) == [2] and (tmp_path / "unfinished").is_dir()
    monkeypatch.setattr(os, "replace", replace)
    straight, resumed = make_trainer(data, tmp_path / "straight"), make_trainer(data, tmp_path)
    straight.train()
    resumed.train(resume_from_checkpoint=True)
    assert losses(resumed) == losses(straight) and not (tmp_path / "unfinished").exists()


def test_checkpoints_of_earlier_versions():
    """What they say of their run lies in a file of its own."""
    assert saved_run(FROZEN / "checkpoint-4") == SavedRun(processes=1, batch_processes=1)
    mark = '{"processes": 2, "batch_processes": 4, "accumulation": 3, "data": "d", "files": {}, "validation": null}'
    expected = SavedRun(processes=2, batch_processes=4, accumulation=3, data="d")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_text", lambda *_, **__: mark)
        assert saved_run(FROZEN / "checkpoint-4") == expected


def test_kept_and_half_deleted_checkpoints(tmp_path, monkeypatch):
    for step in (2, 4, 6, 8, 10):
        (tmp_path / f"checkpoint-{step}").mkdir()
        (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text("{}")
    (tmp_path / "checkpoint-best").mkdir()  # of somebody else
    (tmp_path / "checkpoint-best" / "trainer_state.json").write_text("{}")
    remove_unneeded(tmp_path, best=2, following=1)
    assert checkpoint_steps(tmp_path) == [2, 4, 8, 10]
    remove_unneeded(tmp_path, best=10, following=1)
    assert checkpoint_steps(tmp_path) == [8, 10]  # the one before the last stays
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # as a kill leaves it
        remove_checkpoint(tmp_path / "checkpoint-8")
    assert checkpoint_steps(tmp_path) == [10] and (tmp_path / "checkpoint-8").is_dir()
    remove_unneeded(tmp_path, best=10, following=1)
    assert not (tmp_path / "checkpoint-8").exists() and (tmp_path / "checkpoint-best").is_dir()


def test_damage_is_found_before_averaging(two_checkpoints, tmp_path):
    folder = shutil.copytree(two_checkpoints[0], tmp_path / "run")
    truncate(folder / "checkpoint-2" / "model.safetensors")
    checkpoints = [folder / f"checkpoint-{step}" for step in (2, 4)]
    refused("checkpoint-2/model.safetensors: corrupt or truncated", average_weights, checkpoints)
    assert average_weights(checkpoints[1:])


def test_other_data_are_refused(tmp_path):
    corpus = write_corpus_files(tmp_path)
    recipe = parse_recipe(recipe_mapping(corpus, tmp_path / "run"))
    train_until(recipe, batches=4)
    original = (corpus / "train.jsonl").read_bytes()
    write_documents(make_corpus(seed=2, train=12, validation=1, test=0)["train"], corpus / "train.jsonl")
    refused(r"data.train \(.*train.jsonl\): the training data changed since .*checkpoint-3", train, recipe, resume=True)
    (corpus / "train.jsonl").write_bytes(original)
    original = (corpus / "validation.jsonl").read_bytes()
    write_documents(make_corpus(seed=2, train=1, validation=3, test=0)["validation"], corpus / "validation.jsonl")
    refused("^the validation data changed since .*checkpoint-3 .fing.*restore it", train, recipe, resume=True)
    (corpus / "validation.jsonl").write_bytes(original)
    assert facts(train(recipe, resume=True))["resumed_from_step"] == 3
