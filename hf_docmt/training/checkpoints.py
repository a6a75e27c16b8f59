"""Checkpoints of a run: which are complete and whole, which are kept, and the mean of their weights.

A complete checkpoint is a sealed folder (`hf_docmt.store.seal`). One of version 0.1.0 has a mark without checksums: of
it is checked that its files are there and can be read, by the checks that their formats have.
"""

import json
import os
import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from transformers import PreTrainedModel

from hf_docmt.adapters import ADAPTER_WEIGHTS
from hf_docmt.store import SEAL, DamagedError, check_files, read_seal, seal, sync

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARDED_WEIGHTS = "pytorch_model_fsdp.bin"  # of FSDP, gathered
UNFINISHED = "model.unfinished"  # folder in which the model of a run is saved
DELETED = "deleted-"  # before the name of a checkpoint that is being deleted
KEPT = 2  # last checkpoints that are kept for resuming: where the last is damaged, the one before it is used


@dataclass(frozen=True)
class Manifest:
    """What is known of a complete checkpoint. An update takes `batch_processes` x `accumulation` batches."""

    processes: int  # that saved it, each with a random state of its own
    batch_processes: int  # that the batches were made for; others where a run went on with another number
    accumulation: int | None = None  # None: not written by 0.1.0
    data: str | None = None  # fingerprint of the training data, of data that have one
    files: dict[str, dict[str, Any]] = field(default_factory=dict)  # name -> bytes, crc32; {}: not written by 0.1.0
    validation: str | None = None  # fingerprint of the validation data


def write_manifest(folder: str | Path, manifest: Manifest) -> None:
    """Mark a checkpoint as complete when everything in it is on the disk."""
    seal(Path(folder), asdict(manifest))


def read_manifest(folder: str | Path) -> Manifest:
    """The manifest of a complete checkpoint. Raises `DamagedError`."""
    mark = Path(folder) / SEAL
    if mark.is_file() and re.fullmatch(rb"[1-9][0-9]*", text := mark.read_bytes().strip()):  # of 0.1.0
        return Manifest(processes=int(text), batch_processes=int(text))
    return Manifest(**read_seal(Path(folder)))


def check_checkpoint(
    folder: str | Path, needed: Callable[[int], Collection[Collection[str]]] = lambda processes: ()
) -> Manifest:
    """The manifest of a checkpoint all of whose files are as they were written.

    `needed`: from the number of processes that saved it to the names of files that must be there, one of each
    collection. Raises `DamagedError`, which names the file and what is wrong with it, and a plain `ValueError` for a
    checkpoint that never had such a file.
    """
    folder, manifest = Path(folder), read_manifest(folder)
    for names in needed(manifest.processes):
        if manifest.files and not any(name in manifest.files for name in names):
            raise ValueError(
                f"{folder} was saved without {next(iter(names))} (save_only_model): training cannot go on from it, but "
                "its weights are whole; begin a new run with them"
            )
        if not any((folder / name).exists() for name in names):
            raise DamagedError(f"{folder / next(iter(names))} is missing")
    check_files(folder, manifest.files)
    if not manifest.files:
        for path in filter(Path.is_file, folder.rglob("*")):
            _check_format(path)
    return manifest


def _check_format(path: Path) -> None:
    """Read a file without known CRC-32: sizes of safetensors, the CRC-32 of every tensor of torch, JSON."""
    try:
        if path.suffix == ".safetensors":
            with safe_open(path, framework="numpy"):
                pass
        elif path.suffix in (".pt", ".pth", ".bin"):
            with zipfile.ZipFile(path) as archive:
                if (broken := archive.testzip()) is not None:
                    raise zipfile.BadZipFile(f"the CRC-32 of {broken} differs")
        elif path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SafetensorError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise DamagedError(f"{path} is damaged ({error})") from error


def checkpoint_steps(folder: str | Path) -> list[int]:
    """Updates after which a complete checkpoint was saved in `folder`, in order."""
    names = [path.name for path in Path(folder).glob("checkpoint-*") if os.path.lexists(path / SEAL)]
    return sorted(int(name.removeprefix("checkpoint-")) for name in names if re.fullmatch(r"checkpoint-\d+", name))


def checkpoint_path(folder: str | Path, step: int) -> Path:
    """The folder of one checkpoint, named as transformers names it."""
    return Path(folder) / f"checkpoint-{step}"


def last_usable_checkpoint(folder: str | Path, needed: Callable[[int], Collection[Collection[str]]]) -> Path | None:
    """The last complete checkpoint that is as it was written; None where no checkpoint is complete.

    Damaged ones after it are named on standard error. `needed`: see `check_checkpoint`. Raises `ValueError` where there
    are complete checkpoints and all are damaged.
    """
    damage = []
    for step in reversed(checkpoint_steps(folder)):
        checkpoint = checkpoint_path(folder, step)
        try:
            check_checkpoint(checkpoint, needed)
        except DamagedError as error:
            damage.append(str(error))
            continue
        for problem in damage:
            print(f"damaged checkpoint: {problem}; going on from {checkpoint}", file=sys.stderr)
        return checkpoint
    if damage:
        raise ValueError(
            f"no usable checkpoint in {folder}: {'; '.join(damage)}; restore one from a copy, or delete {folder} and "
            "resume: training then starts from the beginning"
        )
    return None


def steps_to_average(steps: Sequence[int], best: int | None, following: int) -> list[int]:
    """The best checkpoint and the `following` ones after it, as many as there are; without a best one the last."""
    if best is None:
        return list(steps[-1:])
    return [step for step in steps if step >= best][: following + 1]


def remove_unneeded(folder: str | Path, best: int | None, following: int) -> None:
    """Delete the checkpoints that neither averaging nor resuming needs: all but those to average and the last two."""
    steps = checkpoint_steps(folder)
    needed = {*steps_to_average(steps, best, following), *steps[-KEPT:]}
    for step in steps:
        if step not in needed:
            remove_checkpoint(checkpoint_path(folder, step))
    remove_half_deleted(folder)


def remove_half_deleted(folder: str | Path) -> None:
    """Delete what a kill has left of checkpoints that were being deleted."""
    for interrupted in Path(folder).glob(f"{DELETED}checkpoint-*"):
        shutil.rmtree(interrupted)


def remove_checkpoint(checkpoint: Path) -> None:
    """Delete a checkpoint, if it is there, renamed first: what a kill leaves of it is no checkpoint for any reader."""
    deleted = checkpoint.with_name(DELETED + checkpoint.name)
    if deleted.exists():
        shutil.rmtree(deleted)
    if checkpoint.exists():
        os.replace(checkpoint, deleted)
        shutil.rmtree(deleted)


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
            sync(file)
            os.replace(file, Path(folder) / file.name)
        unfinished.rmdir()
        sync(folder)


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


def require_weights(folder: str | Path) -> None:
    """Check the files of weights of a checkpoint that is to be averaged, if it is complete.

    Raises `ValueError` with the ways out.
    """
    try:
        files = read_manifest(folder).files if (Path(folder) / SEAL).exists() else {}
        is_weights = re.compile(r".*\.safetensors|pytorch_model").match
        check_files(Path(folder), {name: facts for name, facts in files.items() if is_weights(name)})
    except DamagedError as error:
        raise ValueError(
            f"{error}; restore the checkpoint from a copy, or delete {folder} and resume: the mean is then that of the "
            "others"
        ) from error


def average_weights(folders: Iterable[str | Path]) -> dict[str, torch.Tensor]:
    """Mean of the weights of several checkpoints (Vaswani et al. 2017, section 6.1), summed in double precision.

    One checkpoint at a time is in memory. Returns tensors by name, in the precision of the first checkpoint; those that
    are not floating point are its own. Raises `ValueError` where checkpoints do not hold the same tensors, and for one
    whose weights are not as they were written.
    """
    folders = [Path(folder) for folder in folders]
    if not folders:
        raise ValueError("no checkpoint to average; train at least until the first validation")
    for folder in folders:
        require_weights(folder)
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
