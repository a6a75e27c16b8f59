"""Checkpoints that were damaged, cut off or half deleted: named, and the one before is used; other data are refused."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from support.errors import refused
from support.tiny_run import facts, recipe_mapping, train_until, write_corpus_files
from support.tiny_trainer import Stop, losses, make_trainer

from hf_docmt.data.documents import write_documents
from hf_docmt.data.synthetic.corpus import make_corpus
from hf_docmt.store import SEAL as COMPLETE
from hf_docmt.store import DamagedError
from hf_docmt.training.checkpoints import (
    Manifest,
    average_weights,
    check_checkpoint,
    checkpoint_steps,
    last_usable_checkpoint,
    read_manifest,
    remove_checkpoint,
    remove_unneeded,
    write_manifest,
)
from hf_docmt.training.recipe import parse_recipe
from hf_docmt.training.run import train

torch.set_num_threads(1)
FROZEN = Path(__file__).parent.parent / "frozen" / "training" / "run" / "checkpoints"
FILES = "model.safetensors optimizer.pt scheduler.pt rng_state.pth trainer_state.json training_args.bin config.json"
FILES = (
    *FILES.split(),
    *"generation_config.json tokenizer.json tokenizer_config.json modeling_concat.py".split(),
    COMPLETE,
)


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    """One bit in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def make_unreadable(path):
    """As for a user without permission, also where the tests run as root."""
    path.unlink()
    path.symlink_to(path)


DAMAGE = {
    "truncated": truncate,
    "empty": lambda path: path.write_bytes(b""),
    "flipped": flip,
    "removed": Path.unlink,
    "unreadable": make_unreadable,
    "garbage": lambda path: path.write_bytes(b"\x00\xff{ garbage" * 7),
}


@pytest.fixture(scope="module")
def two_checkpoints(data, tmp_path_factory):
    """Folder of a run that stopped after checkpoints 2 and 4, and its trainer; not to be changed."""
    folder = tmp_path_factory.mktemp("run")
    trainer = make_trainer(data, folder, [Stop(5)])
    with pytest.raises(InterruptedError):
        trainer.train()
    assert checkpoint_steps(folder) == [2, 4]
    return folder, trainer


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("name", FILES)
def test_the_one_before_is_used(two_checkpoints, tmp_path, capsys, name, kind):
    original, trainer = two_checkpoints
    folder = shutil.copytree(original, tmp_path / "run")
    others = {file.name for file in (folder / "checkpoint-4").iterdir()} - set(FILES)
    assert all(other.endswith(".py") or other == "README.md" for other in others)  # code and card
    assert last_usable_checkpoint(folder, trainer.checkpoint_files) == folder / "checkpoint-4"
    DAMAGE[kind](folder / "checkpoint-4" / name)
    assert last_usable_checkpoint(folder, trainer.checkpoint_files) == folder / "checkpoint-2"
    message = capsys.readouterr().err
    is_unmarked = name == COMPLETE and kind == "removed"
    if is_unmarked:
        assert message == ""  # as a kill while saving leaves it
    else:
        assert message.startswith(f"damaged checkpoint: {folder / 'checkpoint-4' / name} ")
        assert message.endswith(f"; going on from {folder / 'checkpoint-2'}\n")
    DAMAGE[kind](folder / "checkpoint-2" / name)
    if not is_unmarked:
        with pytest.raises(ValueError, match="no usable checkpoint in .*checkpoint-4.*checkpoint-2.*or delete .*run"):
            last_usable_checkpoint(folder, trainer.checkpoint_files)


def test_a_checkpoint_of_the_model_alone_is_not_damaged(data, tmp_path):
    """It was saved so; nobody is told to delete it."""
    trainer = make_trainer(data, tmp_path / "run", save_only_model=True)
    trainer.train()
    with pytest.raises(
        ValueError, match=r"checkpoint-\d was saved without .*save_only_model.* its weights are whole"
    ) as error:
        make_trainer(data, tmp_path / "run").train(resume_from_checkpoint=True)
    assert "delete" not in str(error.value)
    assert checkpoint_steps(tmp_path / "run")


def test_bytes_of_the_manifest(two_checkpoints, tmp_path):
    """Changed, it is found to be damaged or says the same as before."""
    folder = shutil.copytree(two_checkpoints[0] / "checkpoint-4", tmp_path / "checkpoint-4")
    whole, expected = (folder / COMPLETE).read_bytes(), read_manifest(folder)
    assert expected.processes == expected.batch_processes == expected.accumulation == 1
    assert expected.files.keys() == {file.name for file in folder.iterdir()} - {COMPLETE}
    same = 0
    for place in range(0, len(whole), 7):
        (folder / COMPLETE).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert read_manifest(folder) == expected
            same += 1
        except DamagedError as error:
            assert COMPLETE in str(error)
    assert same < len(whole) / 70  # blanks


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("name", FILES[:5])
def test_checkpoints_of_version_0_1_0(two_checkpoints, tmp_path, name, kind):
    """They have no checksums: what can be known from their files is."""
    folder = shutil.copytree(FROZEN / "checkpoint-4", tmp_path / "checkpoint-4")
    needed = two_checkpoints[1].checkpoint_files
    assert check_checkpoint(folder, needed) == Manifest(processes=1, batch_processes=1)
    DAMAGE[kind](folder / name)
    if kind == "flipped" and name not in ("optimizer.pt", "rng_state.pth"):
        return  # may be between the parts of a file, or a digit of a number
    with pytest.raises(DamagedError, match=name):
        check_checkpoint(folder, needed)


def test_resumed_from_the_one_before(data, two_checkpoints, tmp_path, capsys):
    """Equal to training without a break; the damaged checkpoint is written anew."""
    straight = make_trainer(data, tmp_path / "straight")
    straight.train()
    folder = shutil.copytree(two_checkpoints[0], tmp_path / "run")
    flip(folder / "checkpoint-4" / "optimizer.pt")
    resumed = make_trainer(data, folder)
    resumed.train(resume_from_checkpoint=True)
    assert "optimizer.pt is not as it was written (its CRC-32 differs); going on from" in capsys.readouterr().err
    assert losses(resumed) == losses(straight)
    for trainer in (straight, resumed):
        check_checkpoint(Path(trainer.args.output_dir) / "checkpoint-8")
    with pytest.raises(ValueError, match="checkpoint-2.*optimizer.pt is missing"):
        (two_checkpoints[0] / "checkpoint-2").rename(tmp_path / "checkpoint-2")
        (tmp_path / "checkpoint-2" / "optimizer.pt").unlink()
        try:
            make_trainer(data, folder).train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
        finally:
            shutil.copytree(folder / "checkpoint-8", two_checkpoints[0] / "checkpoint-2")


def test_what_is_kept_and_half_deleted(tmp_path, monkeypatch):
    def make(*steps):
        for step in steps:
            folder = tmp_path / f"checkpoint-{step}"
            folder.mkdir()
            (folder / "file").write_text("x")
            write_manifest(folder, Manifest(1, 1))

    make(2, 4, 6, 8, 10)
    (tmp_path / "checkpoint-best").mkdir()  # of somebody else
    (tmp_path / "checkpoint-best" / COMPLETE).write_text("1")
    remove_unneeded(tmp_path, best=2, following=1)
    assert checkpoint_steps(tmp_path) == [2, 4, 8, 10]
    remove_unneeded(tmp_path, best=10, following=1)
    assert checkpoint_steps(tmp_path) == [8, 10]  # the one before the last stays

    def kill(folder):
        (Path(folder) / "file").unlink()
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", kill)
        with pytest.raises(InterruptedError):
            remove_checkpoint(tmp_path / "checkpoint-8")
    assert checkpoint_steps(tmp_path) == [10] and (tmp_path / "deleted-checkpoint-8").is_dir()
    remove_unneeded(tmp_path, best=10, following=1)
    assert not (tmp_path / "deleted-checkpoint-8").exists()


def test_damage_is_found_before_averaging(two_checkpoints, tmp_path):
    """The way out that the message names works: the others are averaged."""
    folder = shutil.copytree(two_checkpoints[0], tmp_path / "run")
    flip(folder / "checkpoint-2" / "model.safetensors")
    flip(folder / "checkpoint-4" / "optimizer.pt")  # not needed for this
    checkpoints = [folder / f"checkpoint-{step}" for step in (2, 4)]
    refused("checkpoint-2/model.safetensors is not as .* or delete .*checkpoint-2 and", average_weights, checkpoints)
    assert average_weights(checkpoints[1:])


def test_damaged_best_checkpoint_of_a_run(tmp_path, monkeypatch):
    corpus = write_corpus_files(tmp_path)
    recipe = parse_recipe(recipe_mapping(corpus, tmp_path / "run", average=4, max_steps=9))
    train(recipe)
    steps = checkpoint_steps(tmp_path / "run" / "checkpoints")
    (tmp_path / "run" / "training.json").unlink()  # as if killed before the end
    best = tmp_path / "run" / "checkpoints" / f"checkpoint-{steps[0]}"
    state = json.loads((best.parent / f"checkpoint-{steps[-1]}" / "trainer_state.json").read_text())
    state["best_global_step"], state["best_model_checkpoint"] = steps[0], "/somewhere/else"
    (best.parent / f"checkpoint-{steps[-1]}" / "trainer_state.json").write_text(json.dumps(state))
    (best.parent / f"checkpoint-{steps[-1]}" / COMPLETE).write_text("1")  # as of 0.1.0
    truncate(best / "model.safetensors")
    refused("bytes were written|were written; restore", train, recipe, resume=True)
    shutil.rmtree(best)
    train(recipe, resume=True)
    assert facts(tmp_path / "run")["averaged_steps"] == steps[1:]


def test_other_data_are_refused(tmp_path):
    corpus = write_corpus_files(tmp_path)
    recipe = parse_recipe(recipe_mapping(corpus, tmp_path / "run"))
    train_until(recipe, batches=4)
    original = (corpus / "train.jsonl").read_bytes()
    write_documents(make_corpus(seed=2, train=12, validation=1, test=0)["train"], corpus / "train.jsonl")
    refused(r"data.train \(.*train.jsonl\): not the training data of .*checkpoint-3", train, recipe, resume=True)
    (corpus / "train.jsonl").write_bytes(original)
    original = (corpus / "validation.jsonl").read_bytes()
    write_documents(make_corpus(seed=2, train=1, validation=3, test=0)["validation"], corpus / "validation.jsonl")
    refused("^not the validation data of .*checkpoint-3 .fingerprint .*restore the files", train, recipe, resume=True)
    (corpus / "validation.jsonl").write_bytes(original)
    assert facts(train(recipe, resume=True))["resumed_from_step"] == 3
