"""The journal of a job: its finished rows, which survive a kill at any byte, made from these inputs by these settings.

Further tools of long jobs: digests that name inputs and settings, their differences, and locks.
"""

import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from filelock import FileLock, Timeout

from hf_docmt.files import location_of

CHECKSUM = b', "crc32": "'  # before the last value of a row


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
    """Differences between two values of JSON: the keys that lead to one, the old and the new value."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in before | now:
            yield from differences(before.get(key), now.get(key), *names, key)
    elif before != now:
        yield names, before, now


def try_lock(path: Path) -> FileLock | None:
    """A lock on a file of this name, made for its owner alone; None where another process has it.

    It ends with the process, however that ends. Raises `OSError` on a file system without locks.
    """
    lock = FileLock(path, mode=0o600, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    return lock


def unlock(lock: FileLock) -> None:
    """Delete the file of a lock while it is held, so that no other process takes it; then release the lock."""
    try:
        os.unlink(lock.lock_file)
    except OSError:  # Windows deletes no file that is open
        lock.release()
        with suppress(OSError):
            os.unlink(lock.lock_file)
    lock.release()


class Journal:
    """A file of finished rows, one JSON object per line; the last key of each, `crc32`, is that of the line without it.

    `count` rows are whole; `damage` describes the first damaged line (None without one); lines after it are not read. A
    row with an `index` that is not its number, from 0, is damage, too. A line without its end was cut off by a kill; it
    does not count as damage, and is overwritten. The file is made with the first row, for its owner alone if `private`.

    >>> journal = Journal(Path("done.jsonl"))
    >>> journal.append({"item": 1}, {"item": 2})
    >>> list(Journal(Path("done.jsonl")).rows())
    [{'item': 1}, {'item': 2}]
    """

    def __init__(self, path: Path, start: bytes = b"{", private: bool = False):
        """`start` is how each first line begins; ValueError for a file of something else, which is not touched."""
        self.path, self.damage, self.mode = path, None, 0o600 if private else 0o666
        self._file: BinaryIO | None = None
        self._ends = [0]  # the byte after each row
        if not path.is_file():
            return
        with path.open("rb") as file:
            for line in file:
                if self.count == 0 and line[: len(start)] != start[: len(line)]:
                    problem = "is in the way, which is something else, or of another version of docmt"
                    raise ValueError(f"{path} {problem}; move it, finish it with that version, or give another name")
                if not line.endswith(b"\n"):
                    break
                row = _parse(line)
                if row is None or row.get("index", self.count) != self.count:
                    problem = ", or it was changed (its CRC-32 differs)" if row is None else " that belongs here"
                    self.damage = f"{location_of(path, self.count + 1)}: no row{problem}"
                    break
                self._ends.append(self._ends[-1] + len(line))

    @property
    def count(self) -> int:
        return len(self._ends) - 1

    def rows(self, start: int = 0) -> Iterator[dict]:
        """The whole rows from this one on, one at a time."""
        if start < self.count:
            with self.path.open("rb") as file:
                file.seek(self._ends[start])
                for _ in range(start, self.count):
                    yield cast(dict, _parse(file.readline()))

    def append(self, *rows: dict) -> None:
        """Write rows after the others; they are on the disk when this returns. Raises `OSError`."""
        lines = [json.dumps(row, ensure_ascii=False).encode()[:-1] for row in rows]
        lines = [line + CHECKSUM + b'%08x"}\n' % zlib.crc32(line + b"}") for line in lines]
        self.keep(self.count)
        rest = memoryview(b"".join(lines))
        while rest:
            rest = rest[self._open().write(rest) :]
        os.fsync(self._open().fileno())
        for line in lines:
            self._ends.append(self._ends[-1] + len(line))

    def keep(self, count: int) -> None:
        """Drop all but the first `count` rows, and what is after them."""
        del self._ends[count + 1 :]
        self._open().truncate(self._ends[-1])
        self._open().seek(self._ends[-1])

    def close(self) -> None:
        """Close the file; the next row opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def delete(self) -> None:
        """Delete the file."""
        self.close()
        self.path.unlink(missing_ok=True)

    def _open(self) -> BinaryIO:
        if self._file is None:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), self.mode)
            self._file = cast(BinaryIO, os.fdopen(handle, "r+b", buffering=0))
        return self._file


def _parse(line: bytes) -> dict | None:
    """The row of a line; None if it was changed."""
    body, _, checksum = line.rpartition(CHECKSUM)
    return json.loads(body + b"}") if checksum == b'%08x"}\n' % zlib.crc32(body + b"}") else None
