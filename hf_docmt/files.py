"""Files: reading (UTF-8, gzip, JSON), atomic writing, checks before long work."""

import errno
import gzip
import io
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

STDIN = "-"
STDOUT = "-"
IS_WINDOWS = sys.platform == "win32"  # which moves and deletes no file that is open
LINE_LIMIT_VARIABLE = "HF_DOCMT_MAX_LINE_MIB"
MAX_LINE_MIB = 64  # unless the variable of the environment says otherwise
MAX_PACKING_RATIO, MIN_PACKING_BYTES = 200, 1 << 22  # beyond both, a gzip file is taken for a bomb; text packs 3 to 30
HUB_NAME = re.compile(r"(\w[\w.-]*/)?\w[\w.-]*")
BOM = b"\xef\xbb\xbf"


class DataError(ValueError):
    """Document data that cannot be used; the message gives place, problem and remedy."""


def read_lines(path: str | Path, keep_mark: bool = False) -> Iterator[tuple[int, str]]:
    """(line number from 1, text) of every line; the text is unchanged, without its LF or CRLF.

    A byte order mark at the start is dropped, unless `keep_mark`. No other character ends a line. `-` is standard
    input, `.gz` is unpacked.
    DataError if the file is missing, has no bytes, or is not UTF-8 (with the byte offset of the bad byte, counted from
    0 in the uncompressed file), for a line of more than 64 MiB (or HF_DOCMT_MAX_LINE_MIB), and for a gzip
    file that cannot be unpacked to text (see `open_bytes`).
    """
    offset, number, limit = 0, 0, line_limit()
    with open_bytes(path) as file:
        for number, raw in enumerate(iter(lambda: file.readline(limit + 1), b""), 1):
            if len(raw) > limit:
                raise DataError(
                    f"{location_of(path, number)}: the line has more than {limit >> 20} MiB; break it up, or raise the "
                    f"limit by the variable {LINE_LIMIT_VARIABLE} of the environment"
                )
            body = raw.removeprefix(BOM) if number == 1 and not keep_mark else raw
            try:
                text = body.decode("utf-8")
            except UnicodeDecodeError as error:
                at = offset + len(raw) - len(body) + error.start
                raise DataError(
                    f"{location_of(path, number)}: not UTF-8, byte 0x{body[error.start]:02x} at byte offset "
                    f"{at} ({error.reason}); convert the file to UTF-8"
                ) from error
            offset += len(raw)
            yield number, text.removesuffix("\n").removesuffix("\r")
    if number == 0:
        raise DataError(f"{display_path(path)}: the file is empty; it needs at least one line")


def line_limit() -> int:
    """The largest number of bytes of a line; ValueError if the environment variable is not a whole number."""
    limit = os.environ.get(LINE_LIMIT_VARIABLE, str(MAX_LINE_MIB))
    if not limit.isdecimal() or int(limit) < 1:
        raise ValueError(f"{LINE_LIMIT_VARIABLE} is {limit!r}, expected a number of MiB such as {MAX_LINE_MIB}")
    return int(limit) << 20


def parse_json(text: str, path: str | Path, line: int = 1):
    """The value of a JSON text that begins in this line; DataError names file, line and column where it breaks.

    A key that is repeated in one object is an error too: one of the two values would be lost.
    """

    def without_repeats(pairs: list[tuple]) -> dict:
        result = dict(pairs)
        if len(result) != len(pairs):
            seen: set[str] = set()
            repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise DataError(f"{location_of(path, line)} or after: key {repeated!r} is repeated; keep one of them")
        return result

    try:
        return json.loads(text, object_pairs_hook=without_repeats)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{location_of(path, line + error.lineno - 1)}, column {error.colno}: broken JSON ({error.msg}); "
            "repair or remove it"
        ) from error
    except (RecursionError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{location_of(path, line)}: JSON that cannot be read ({error}); simplify it") from error


def read_json(path: str | Path):
    """The JSON value of a file; DataError names file, line and column."""
    return parse_json("\n".join(line for _, line in read_lines(path)), path)


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """The file's bytes; `-` is standard input, `.gz` is unpacked.

    DataError for a missing file, for broken gzip, and where more than 4 MiB were unpacked from less than a 200th of it.
    """
    if str(path) == STDIN:
        yield sys.stdin.buffer
        return
    path = check_file(path)
    with path.open("rb") as file:
        try:
            yield cast(BinaryIO, io.BufferedReader(_UnpackedFile(file))) if path.suffix == ".gz" else file
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DataError(f"{path}: broken or truncated gzip file ({error}); fetch it again") from error


def check_file(path: str | Path) -> Path:
    """The path of an existing file; DataError for a folder, a pipe or a missing file."""
    path = Path(path)
    if not path.is_file():
        if path.exists() and not path.is_dir():
            raise DataError(f"{path}: a pipe or device can be read only once; give a file, or standard input as -")
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path}: the file {problem}; check the path (relative paths start at {Path.cwd()})")
    return path


def is_address(name: str | Path) -> bool:
    """Whether the name of a model is the address of an endpoint."""
    return str(name).startswith(("http://", "https://"))


def check_hub_name(path: str | Path, what: str) -> None:
    """DataError for the path of a folder that does not exist, before a request to the Hub.

    A name on the Hub is `name` or `owner/name`. `what` is the kind of object, such as "model".
    """
    name, path = str(path), Path(path)  # a Path has lost ./
    in_a_folder = path.parent != Path() and path.parent.is_dir()
    if not path.exists() and (in_a_folder or not HUB_NAME.fullmatch(name)):
        raise DataError(
            f"{name}: no such folder, and so no {what}; check the path (relative paths start at {Path.cwd()}), or give "
            "a name on the Hub, owner/name"
        )


class _UnpackedFile(io.RawIOBase):
    """The bytes of a gzip file; DataError where they are too many for those that they were unpacked from."""

    def __init__(self, packed: BinaryIO):
        self.packed, self.file, self.count = packed, gzip.GzipFile(fileobj=packed), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        count = self.file.readinto(buffer)
        self.count += count
        if self.count > max(MIN_PACKING_BYTES, MAX_PACKING_RATIO * self.packed.tell()):
            raise DataError(
                f"{self.packed.name}: the gzip file unpacks to more than {MAX_PACKING_RATIO} times its size, as no "
                "text does; check its source, or unpack it yourself"
            )
        return count


def display_path(path: str | Path) -> str:
    """The path as messages name it."""
    return "<standard input>" if str(path) == STDIN else str(path)


def location_of(path: str | Path, line: int) -> str:
    """A line of a file as messages name it."""
    return f"{display_path(path)}, line {line}"


def file_stem(path: str | Path) -> str:
    """The file's name without folder and endings, from which document ids are made."""
    return "stdin" if str(path) == STDIN else Path(path).name.removesuffix(".gz").split(".")[0] or Path(path).name


def data_name(path: str | Path) -> str:
    """The file's name without folder and last ending, `.gz` aside: that of the data in it, or of who wrote them."""
    return Path(str(path).removesuffix(".gz")).stem


def write_lines(lines: Iterable[str], path: str | os.PathLike) -> None:
    """Write lines, each ended by LF, to a file that appears when it is complete (see `write_text`)."""
    write_parts((line + "\n" for line in lines), path)


def write_text(text: str, path: str | os.PathLike) -> None:
    """Write a file of UTF-8 text that appears when it is complete; an existing file stays whole until then.

    A file whose name ends in `.gz` is packed. A symbolic link stays, the file it points to is replaced. The mode is
    that of the file before, or of a new one (0o666 without the umask). A pipe or device gets the text as it comes.
    Raises `OSError`.
    """
    write_parts([text], path)


@contextmanager
def atomic_folder(path: str | os.PathLike) -> Iterator[Path]:
    """A new, empty folder to write into, which becomes `path` at the end of the block; after an error nothing is left.

    It is next to `path` until then; missing parents are made. The mode is that of a new folder (0o777 without the
    umask). Raises `ValueError` as `check_new_folder` does.

        with atomic_folder("export") as folder:
            (folder / "README.md").write_text("...")
    """
    path = check_new_folder(path).resolve()  # a link stays, what it points to is replaced
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        move_durably(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def write_parts(parts: Iterable[str], path: str | os.PathLike, temporary: Path | None = None) -> None:
    """Write texts one after the other to a file that appears when it is complete (see `write_text`).

    `temporary`: see `replaced_file`.
    """
    path = Path(path)
    if path.exists() and not path.is_file():  # a pipe or device
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(parts)
        return
    with replaced_file(path, temporary) as raw:
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else raw
        with io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as file:
            file.writelines(parts)


@contextmanager
def replaced_file(path: Path, temporary: Path | None = None) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path`, with its mode, when the block ends without an error.

    Until then it has a name that no other file has, or is `temporary`, written over: a kill leaves one at most.
    """
    path = path.resolve()
    if temporary is None:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
    else:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(handle, "wb") as raw:
            yield raw
        move_durably(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def move_durably(temporary: Path, path: Path) -> None:
    """Put a new file or folder, all of which is on the disk before, in its place, with the mode of the file there."""
    for file in (temporary, *temporary.rglob("*")):
        sync(file)
    if temporary.is_file():
        os.chmod(temporary, mode_of_file(path))
    os.replace(temporary, path)
    sync(path.parent)


def sync(path: str | os.PathLike) -> None:
    """Put on the disk what a file holds, or which files a folder has: new and renamed ones then survive a power cut.

    Windows writes through files that may be written, and no folders.
    """
    if IS_WINDOWS and os.path.isdir(path):
        return
    handle = os.open(path, os.O_RDWR if IS_WINDOWS else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def mode_of_file(path: Path) -> int:
    """The mode of the file, or that of a new one: 0o666 without the umask."""
    return stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# Checks before hours of work


def check_writable_file(path: str | os.PathLike, inputs: Iterable[str | os.PathLike | None] = ()) -> Path:
    """The path of a file that can be written (`-` is standard output), or ValueError before hours of work.

    It must differ from the `inputs`, under any name.
    """
    path = Path(path)
    if str(path) == STDOUT:
        return path
    check_no_link_loop(path)
    for other in inputs:
        if other is not None and path.exists() and Path(other).exists() and os.path.samefile(path, other):
            raise ValueError(f"the output {path} is the input {other}; give the output another name")
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder; give the name of a file in it")
    if not path.exists() and not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise ValueError(f"cannot write {path}: {path.parent} is not a writable folder; create it first")
    return path


def check_no_link_loop(path: Path) -> None:
    """ValueError for a path that is, or goes over, symbolic links that lead to themselves."""
    try:
        os.stat(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError(f"cannot write {path}: it is a symbolic link that leads to itself; remove it") from error


def check_writable_folder(path: str | os.PathLike) -> Path:
    """The path of a folder that exists or can be made, or ValueError before hours of work."""
    path = Path(path)
    check_no_link_loop(path)
    existing = next(folder for folder in (path, *path.resolve().parents) if folder.exists())
    if not existing.is_dir():
        raise ValueError(f"{path} cannot be a folder: {existing} is a file; choose another name")
    if not os.access(existing, os.W_OK):
        raise ValueError(f"cannot write {path}: {existing} is not a writable folder; choose another one")
    return path


def check_new_folder(path: str | os.PathLike) -> Path:
    """The path of a folder that can be made or is empty, or ValueError before hours of work."""
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(f"{path} exists and is not an empty folder; choose another name or remove it first")
    return check_writable_folder(path)
