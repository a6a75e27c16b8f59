"""What is done: whole, and made from these inputs by these settings.

Four things, of which every long job of the package needs some: digests that name inputs and settings, locks, records
that are added to a file one by one, and folders that are sealed when all of their files are on the disk. All of them
survive a kill at any moment, and all tell damage.
"""

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from hf_docmt.files import location_of

try:
    import fcntl
except ImportError:  # on Windows, which locks nothing here, and moves and deletes no file that is open
    fcntl = None  # type: ignore[assignment]

CHECKSUM = b', "crc32": "'  # before the last value of a record
SEAL = ".complete"  # written last: a folder without it is not whole
BLOCK = 1 << 20  # bytes read at a time


class DamagedError(ValueError):
    """A file that is missing or is not as it was written."""


# Digests: SHA-256 in hexadecimal digits


def text_digest(text: str) -> str:
    """Digest of a text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def value_digest(value: Any) -> str:
    """Digest of a value of JSON, whatever the order of its keys."""
    return text_digest(json.dumps(value, sort_keys=True))


def file_digest(path: Path) -> str:
    """Digest of the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_digest(files: Iterable[Path]) -> str:
    """Digest of names and bytes of files, in this order."""
    return text_digest("".join(f"{path.name} {file_digest(path)}\n" for path in files))


def differences(before: Any, now: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """What differs in two values of JSON: the keys that lead to it, the value before, the value now."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in before | now:
            yield from differences(before.get(key), now.get(key), *names, key)
    elif before != now:
        yield names, before, now


# Writing through to the disk


def write_durably(file: BinaryIO, data: bytes) -> None:
    """Write bytes to a file without buffer; they are on the disk when this returns. Raises `OSError`."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    os.fsync(file.fileno())


def sync(path: str | os.PathLike) -> None:
    """Put on the disk what a file holds, or which files a folder has: new and renamed ones then survive a power cut.

    Windows writes through files that may be written, and no folders.
    """
    if fcntl is None and os.path.isdir(path):
        return
    handle = os.open(path, os.O_RDWR if fcntl is None else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Locks


def lock_file(path: Path) -> BinaryIO | None:
    """A file, made if missing for its owner alone, open without buffer to be read and written; None where it is locked.

    The lock ends when the file is closed, and with the process, however it ends. Windows has none of this kind.
    """
    while True:
        file = open_private(path)
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except BlockingIOError:
            file.close()
            return None
        file.close()  # deleted by another process between the two steps


def open_private(path: Path) -> BinaryIO:
    """A file, made if missing for its owner alone, open without buffer to be read and written."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    return cast(BinaryIO, os.fdopen(handle, "r+b", buffering=0))


def delete_locked(path: Path, file: "BinaryIO | Records") -> None:
    """Delete a file that `lock_file` opened, then unlock it: nobody else takes what is about to be gone."""
    if fcntl is None:
        file.close()
    path.unlink(missing_ok=True)
    file.close()


# Records that are added one by one


class Records:
    """A file of JSON objects, one a line, of which the last key, `crc32`, is the CRC-32 of the line without it.

    `items` are the records without that key, up to the first damaged line, which `damage` describes (None: there is
    none); one that `is_record` does not take at its number, from 0, is damaged, too. A line without its end was cut off
    by a kill; it is no damage, and is written over.

    >>> records = Records(Path("done.jsonl"))
    >>> records.append({"item": 1}, {"item": 2})
    >>> Records(Path("done.jsonl")).items
    [{'item': 1}, {'item': 2}]
    """

    def __init__(
        self, path: Path, file: BinaryIO | None = None, is_record: Callable[[int, dict], bool] = lambda *_: True
    ):
        """`file` is the file of this path as `lock_file` gives it; without it, it is opened for the first record."""
        self.path, self._file = path, file
        self.items: list[dict] = []
        self.damage: str | None = None
        self._ends = [0]  # the byte behind each record
        content = file.read() if file is not None else path.read_bytes() if path.is_file() else b""
        for number, line in enumerate(content.split(b"\n")[:-1]):
            body, _, checksum = line.rpartition(CHECKSUM)
            is_whole = checksum == b'%08x"}' % zlib.crc32(body + b"}")
            record = json.loads(body + b"}") if is_whole else {}
            if not is_whole or not is_record(number, record):
                problem = " that can stand here" if is_whole else ", or not as it was written (its CRC-32 differs)"
                self.damage = f"{location_of(path, number + 1)}: no record{problem}"
                break
            self.items.append(record)
            self._ends.append(self._ends[-1] + len(line) + 1)

    def append(self, *records: dict) -> None:
        """Write records behind the others; they are on the disk when this returns. Raises `OSError`."""
        lines = [json.dumps(record, ensure_ascii=False).encode()[:-1] + b"}" for record in records]
        lines = [line[:-1] + CHECKSUM + b'%08x"}\n' % zlib.crc32(line) for line in lines]
        self.keep(len(self.items))
        write_durably(self._open(), b"".join(lines))
        self.items += records
        for line in lines:
            self._ends.append(self._ends[-1] + len(line))

    def keep(self, count: int) -> None:
        """Drop all but the first `count` records, and what is behind them."""
        del self.items[count:], self._ends[count + 1 :]
        self._open().truncate(self._ends[-1])
        self._open().seek(self._ends[-1])

    def delete(self) -> None:
        """Delete the file, and unlock it."""
        delete_locked(self.path, self)

    def close(self) -> None:
        """Close the file, which unlocks it."""
        if self._file is not None:
            self._file.close()

    def _open(self) -> BinaryIO:
        if self._file is None:
            self._file = cast(BinaryIO, open(self.path, "r+b" if self.path.is_file() else "x+b", buffering=0))
        return self._file


# Folders that are sealed


def seal(folder: Path, facts: dict[str, Any]) -> None:
    """Say that a folder is whole: all files and folders are written through, then the seal appears.

    It is `.complete`, a JSON object of these facts, the size and CRC-32 of every file (`files`), and its own CRC-32.
    """
    paths = dict(_files(folder))
    files = {name: {"bytes": path.stat().st_size, "crc32": _crc32(path)} for name, path in paths.items()}
    for path in (*paths.values(), *{path.parent for path in paths.values()}, folder, *folder.absolute().parents[:2]):
        sync(path)
    facts = facts | {"files": files}
    unfinished = folder / f"{SEAL}.new"
    with unfinished.open("wb", buffering=0) as file:
        write_durably(file, json.dumps(facts | {"crc32": _crc32_of(facts)}, indent=1).encode() + b"\n")
    os.replace(unfinished, folder / SEAL)
    sync(folder)


def read_seal(folder: Path) -> dict[str, Any]:
    """The facts of a sealed folder, with its `files`. Raises `DamagedError`."""
    path = folder / SEAL
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        is_whole = facts.pop("crc32") == _crc32_of(facts)
    except FileNotFoundError as error:
        raise DamagedError(f"{path} is missing: {folder.name} was interrupted while being saved") from error
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise DamagedError(f"{path} cannot be read ({error})") from error
    if not is_whole:
        raise DamagedError(f"{path} is not as it was written (its CRC-32 differs)")
    return facts


def check_files(folder: Path, files: dict[str, dict[str, Any]]) -> None:
    """Check that files of a sealed folder are as they were written. Raises `DamagedError`."""
    for name, facts in files.items():
        path = folder / name
        try:
            size = path.stat().st_size
            if size != facts["bytes"]:
                raise DamagedError(f"{path} has {size} bytes, {facts['bytes']} were written")
            if _crc32(path) != facts["crc32"]:
                raise DamagedError(f"{path} is not as it was written (its CRC-32 differs)")
        except FileNotFoundError as error:
            raise DamagedError(f"{path} is missing") from error
        except OSError as error:
            raise DamagedError(f"{path} cannot be read ({error})") from error


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Names, relative to the folder, and paths of its files, without the seal."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith(SEAL):
            yield path.relative_to(folder).as_posix(), path


def _crc32(path: Path) -> str:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            checksum = zlib.crc32(block, checksum)
    return f"{checksum:08x}"


def _crc32_of(facts: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(facts, sort_keys=True).encode()):08x}"
