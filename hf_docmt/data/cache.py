"""A folder of what takes long to make: every entry under a key that says what it was made from, made by one process."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hf_docmt.data.digests import text_digest
from hf_docmt.files import atomic_folder, check_writable_folder, lock_file, write_text

ENTRY = "entry.json"  # in every entry: its key, the sizes of its files
SECONDS_BETWEEN_LOOKS = 0.2  # at what another process is making


class Cache:
    """Entries `KIND-DIGEST`, folders that appear when they are complete.

    An entry is taken for its key only, and where its files have the sizes that they were written with; otherwise it is
    made again. Several processes and runs may share a cache: one makes an entry, the others wait for it. It may be
    deleted whenever no run uses it. ValueError for a folder that cannot be written.

        cache = Cache("runs/.docmt_cache")
        folder = cache.entry("greeting", {"text": "Hello."}, lambda folder: (folder / "a.txt").write_text("Hello."))
    """

    def __init__(self, folder: str | Path):
        self.folder = check_writable_folder(folder)

    def entry(self, kind: str, key: dict, make: Callable[[Path], object]) -> Path:
        """The folder of that kind and key; where there is none, `make` fills a new one."""
        return self._made(f"{kind}-{text_digest(json.dumps(key, sort_keys=True))[:32]}", key, make)

    def entry_by_content(self, kind: str, make: Callable[[Path], str]) -> Path:
        """The folder that `make` fills now, named by the digest it returns; an equal one that was there is kept."""
        self.folder.mkdir(parents=True, exist_ok=True)
        new = self.folder / f".{kind}-new"
        with locked(self.folder / f".{kind}.lock"):
            shutil.rmtree(new, ignore_errors=True)  # of a process that was killed
            new.mkdir()
            try:
                digest = make(new)
                return self._made(f"{kind}-{digest[:32]}", {"digest": digest}, lambda folder: _move_files(new, folder))
            finally:
                shutil.rmtree(new)

    def _made(self, name: str, key: dict, make: Callable[[Path], object]) -> Path:
        path = self.folder / name
        if is_whole(path):
            return path
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder / f".{name}.lock"):
            if is_whole(path):
                return path
            for leftover in (path, *self.folder.glob(f".{name}.*/")):  # damaged, or of a process that was killed
                shutil.rmtree(leftover, ignore_errors=True)
            with atomic_folder(path) as folder:
                make(folder)
                sizes = {file.name: file.stat().st_size for file in sorted(folder.iterdir())}
                write_text(json.dumps({"key": key, "sizes": sizes}, indent=1), folder / ENTRY)
        return path


def is_whole(entry: Path) -> bool:
    """Whether all files of an entry are there, with their sizes."""
    try:
        sizes = json.loads((entry / ENTRY).read_text(encoding="utf-8"))["sizes"]
        return all((entry / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """A context that one process at a time is in; the others wait. The lock ends with its process, however it ends.

    Raises `OSError` on a file system without locks.
    """
    try:
        while (file := lock_file(path)) is None:
            time.sleep(SECONDS_BETWEEN_LOOKS)
    except OSError as error:
        raise OSError(
            f"{path} cannot be locked ({error}); choose a cache on another disk, data.cache in a recipe"
        ) from error
    try:
        yield
    finally:
        path.unlink()
        file.close()


def _move_files(source: Path, target: Path) -> None:
    for file in source.iterdir():
        file.rename(target / file.name)
