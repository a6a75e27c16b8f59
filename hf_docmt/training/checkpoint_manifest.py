"""The mark of a complete checkpoint: a manifest of its files, from which damage is found before the checkpoint is used.

A checkpoint of version 0.1.0 has a mark without one. Of such a checkpoint it is checked that its files are there and
can be read, by the checks that their formats have.
"""

import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from hf_docmt.files import sync, write_durably

COMPLETE = ".complete"  # written last: a checkpoint without it was interrupted while being saved
BLOCK = 1 << 20  # bytes read at a time


class DamagedCheckpointError(ValueError):
    """A checkpoint that lacks a file, or has one that is not as it was written."""


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
    """Mark a checkpoint as complete when everything in it is on the disk.

    All files and the folder are written through (fsync), then the manifest with the size and the CRC-32 of each file.
    """
    folder = Path(folder)
    files = {name: {"bytes": path.stat().st_size, "crc32": _crc32(path)} for name, path in _files(folder)}
    for _, path in _files(folder):
        sync(path)
    for place in {path.parent for _, path in _files(folder)} | {folder, *folder.absolute().parents[:2]}:
        sync(place)
    values = asdict(manifest) | {"files": files}
    unfinished = folder / f"{COMPLETE}.new"
    with unfinished.open("wb", buffering=0) as file:
        write_durably(file, json.dumps(values | {"crc32": _crc32_of(values)}, indent=1).encode() + b"\n")
    os.replace(unfinished, folder / COMPLETE)
    sync(folder)


def read_manifest(folder: str | Path) -> Manifest:
    """The manifest of a complete checkpoint. Raises `DamagedCheckpointError`."""
    mark = Path(folder) / COMPLETE
    try:
        text = mark.read_text(encoding="utf-8")
        if re.fullmatch(r"[1-9][0-9]*", text.strip()):  # of 0.1.0: the number of processes
            return Manifest(processes=int(text), batch_processes=int(text))
        values = json.loads(text)
        intact = values.pop("crc32") == _crc32_of(values)
    except FileNotFoundError as error:
        raise DamagedCheckpointError(f"{mark} is missing: the checkpoint was interrupted while being saved") from error
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise DamagedCheckpointError(f"{mark} cannot be read ({error})") from error
    if not intact:
        raise DamagedCheckpointError(f"{mark} is not as it was written (its CRC-32 differs)")
    return Manifest(**values)


def check_checkpoint(
    folder: str | Path, needed: Callable[[int], Collection[Collection[str]]] = lambda processes: ()
) -> Manifest:
    """The manifest of a checkpoint all of whose files are as they were written.

    `needed`: from the number of processes that saved it to the names of files that must be there, one of each
    collection. Raises `DamagedCheckpointError`, which names the file and what is wrong with it, and a plain
    `ValueError` for a checkpoint that never had such a file.
    """
    folder, manifest = Path(folder), read_manifest(folder)
    for names in needed(manifest.processes):
        if manifest.files and not any(name in manifest.files for name in names):
            raise ValueError(
                f"{folder} was saved without {next(iter(names))} (save_only_model): training cannot go on from it, but "
                "its weights are whole; begin a new run with them"
            )
        if not any((folder / name).exists() for name in names):
            raise DamagedCheckpointError(f"{folder / next(iter(names))} is missing")
    for name, facts in manifest.files.items():
        _check_file(folder / name, **facts)
    if not manifest.files:
        for _, path in _files(folder):
            _check_format(path)
    return manifest


def check_weights(folder: str | Path) -> None:
    """Check the files of weights of a saved model that is a complete checkpoint. Raises `DamagedCheckpointError`."""
    folder = Path(folder)
    if not (folder / COMPLETE).exists():
        return
    for name, facts in read_manifest(folder).files.items():
        if ".safetensors" in name or name.startswith("pytorch_model"):
            _check_file(folder / name, **facts)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Names, relative to the folder, and paths of the files of a checkpoint, without its mark."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith(COMPLETE):
            yield path.relative_to(folder).as_posix(), path


def _check_file(path: Path, bytes: int, crc32: str) -> None:
    try:
        size = path.stat().st_size
        if size != bytes:
            raise DamagedCheckpointError(f"{path} has {size} bytes, {bytes} were written")
        if _crc32(path) != crc32:
            raise DamagedCheckpointError(f"{path} is not as it was written (its CRC-32 differs)")
    except FileNotFoundError as error:
        raise DamagedCheckpointError(f"{path} is missing") from error
    except OSError as error:
        raise DamagedCheckpointError(f"{path} cannot be read ({error})") from error


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
        raise DamagedCheckpointError(f"{path} is damaged ({error})") from error


def _crc32(path: Path) -> str:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            checksum = zlib.crc32(block, checksum)
    return f"{checksum:08x}"


def _crc32_of(values: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(values, sort_keys=True).encode()):08x}"
