"""Checkpoints of a run: which are complete, which are kept, and the mean of their weights.

A checkpoint is what transformers' Trainer saves. It gets its name when all of its files are on the disk, and is deleted
beginning with `trainer_state.json`, which the Trainer writes last: with that file it is complete.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from transformers import PreTrainedModel
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_callback import TrainerState

from hf_docmt.files import move_durably
from hf_docmt.loading.adapters import ADAPTER_WEIGHTS

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
UNFINISHED = "model.unfinished"  # folder in which the model of a run is saved
SAVED_RUN = "docmt_run"  # among the states of callbacks that the Trainer saves
MARK = ".complete"  # file of 0.1.0 and 0.2.0 with what a `SavedRun` says
KEPT = 2  # last checkpoints that are kept for resuming


@dataclass(frozen=True)
class SavedRun:
    """The run that saved a checkpoint. An update takes `batch_processes` x `accumulation` batches."""

    processes: int  # each with a random state of its own
    batch_processes: int  # that the batches were made for; others where a run went on with another number
    accumulation: int | None = None  # None: not written by 0.1.0
    data: str | None = None  # fingerprint of the training data, of data that have one
    validation: str | None = None  # fingerprint of the validation data


def saved_state(checkpoint: str | Path) -> TrainerState:
    """The trainer's state when it saved a checkpoint."""
    return TrainerState.load_from_json(str(Path(checkpoint) / TRAINER_STATE_NAME))


def saved_run(checkpoint: str | Path) -> SavedRun:
    """The run that saved a checkpoint; one process where nothing says so."""
    facts = saved_state(checkpoint).stateful_callbacks.get(SAVED_RUN)
    mark = Path(checkpoint) / MARK
    if facts is None:
        facts = json.loads(mark.read_text(encoding="utf-8")) if mark.is_file() else 1
    if isinstance(facts, int):  # of 0.1.0
        facts = {"processes": facts, "batch_processes": facts}
    return SavedRun(**{field.name: facts.get(field.name) for field in fields(SavedRun)})


def checkpoint_steps(folder: str | Path) -> list[int]:
    """Updates after which a complete checkpoint was saved in `folder`, in order."""
    return sorted(step for step, path in _checkpoints(folder) if (path / TRAINER_STATE_NAME).is_file())


def _checkpoints(folder: str | Path) -> Iterator[tuple[int, Path]]:
    """The updates and folders of checkpoints, complete or not."""
    for path in Path(folder).glob("checkpoint-*"):
        if (number := path.name.removeprefix("checkpoint-")).isdecimal():
            yield int(number), path


def checkpoint_path(folder: str | Path, step: int) -> Path:
    """The folder of one checkpoint, named as transformers names it."""
    return Path(folder) / f"checkpoint-{step}"


def complete_checkpoint(unfinished: Path, checkpoint: Path) -> None:
    """Give a checkpoint its name, replacing one of an earlier run, when all of it is on the disk."""
    remove_checkpoint(checkpoint)
    move_durably(unfinished, checkpoint)


def steps_to_average(steps: Sequence[int], best: int | None, following: int) -> list[int]:
    """The best checkpoint and the `following` ones after it, as many as there are; without a best one the last."""
    if best is None:
        return list(steps[-1:])
    return [step for step in steps if step >= best][: following + 1]


def remove_unneeded(folder: str | Path, best: int | None, following: int) -> None:
    """Delete the checkpoints that neither averaging nor resuming needs: all but those to average and the last two.

    What a kill has left of others goes, too.
    """
    steps = checkpoint_steps(folder)
    needed = {*steps_to_average(steps, best, following), *steps[-KEPT:]}
    for step, path in list(_checkpoints(folder)):
        if step not in needed:
            remove_checkpoint(path)


def remove_checkpoint(checkpoint: Path) -> None:
    """Delete a checkpoint, if it exists; it is invalid for readers from the first deleted file on."""
    (checkpoint / TRAINER_STATE_NAME).unlink(missing_ok=True)
    shutil.rmtree(checkpoint, ignore_errors=True)


@contextmanager
def explain_write_errors(folder: str | Path) -> Iterator[None]:
    """A context in which every failure to write is an `OSError` that says what to do."""
    try:
        yield
    except (OSError, SafetensorError, RuntimeError) as error:  # RuntimeError: how torch.save reports a full disk
        raise OSError(
            f"{folder} could not be written ({error}); complete checkpoints are intact: free space or correct the "
            "permissions, then resume the run"
        ) from error


def save_whole(model: PreTrainedModel, folder: str | Path) -> None:
    """Save a model in a folder that may have other files; each of its files is whole and on the disk, or not there."""
    unfinished = Path(folder) / UNFINISHED
    with explain_write_errors(folder):
        if unfinished.exists():
            shutil.rmtree(unfinished)
        model.save_pretrained(unfinished)
        for file in sorted(unfinished.iterdir()):
            move_durably(file, Path(folder) / file.name)
        unfinished.rmdir()


def read_weights(folder: str | Path) -> dict[str, torch.Tensor]:
    """All tensors of a saved model by name, from one safetensors file or several with an index, or of an adapter.

    Raises `ValueError` for a folder without weights and for a corrupt or truncated file.
    """
    folder = Path(folder)
    names = [ADAPTER_WEIGHTS if (folder / ADAPTER_WEIGHTS).is_file() else WEIGHTS]
    if (folder / INDEX).is_file():
        names = sorted(set(json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values()))
    weights = {}
    for name in names:
        if not (folder / name).is_file():
            raise ValueError(f"{folder}: no {name} there; expected the folder of a saved model, copy it again")
        try:
            weights.update(load_file(folder / name))
        except SafetensorError as error:
            raise ValueError(
                f"{folder / name}: corrupt or truncated safetensors file ({error}); copy or download it again, "
                "or use another checkpoint"
            ) from error
    return weights


def average_weights(folders: Iterable[str | Path]) -> dict[str, torch.Tensor]:
    """Mean of the weights of several checkpoints (Vaswani et al. 2017, section 6.1), summed in double precision.

    One checkpoint at a time is in memory. Returns tensors by name, in the precision of the first checkpoint; those that
    are not floating point are its own. Raises `ValueError` where checkpoints do not hold the same tensors.
    """
    folders = [Path(folder) for folder in folders]
    if not folders:
        raise ValueError("no checkpoint to average; train at least until the first validation")
    first = read_weights(folders[0])
    shapes = {name: tensor.shape for name, tensor in first.items()}
    total = {name: tensor.double() for name, tensor in first.items() if tensor.is_floating_point()}
    for folder in folders[1:]:
        weights = read_weights(folder)
        if {name: tensor.shape for name, tensor in weights.items()} != shapes:
            raise ValueError(f"{folder}: not the same tensors as in {folders[0]}; average checkpoints of one run only")
        for name, tensor in total.items():
            tensor += weights[name]
    return first | {name: (tensor / len(folders)).to(first[name].dtype) for name, tensor in total.items()}
