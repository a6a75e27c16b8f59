"""Reading and writing of files: UTF-8, LF or CRLF, plain or gzip, standard input; written whole or not at all."""

import gzip
import io
import json
import os
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

STDIN = "-"
BOM = b"\xef\xbb\xbf"


class DataError(ValueError):
    """Document data that cannot be used as it is; the message says where, what and the remedy."""


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """(line number from 1, text) of every line; the text is kept as it is, without its LF or CRLF.

    A byte order mark at the start is dropped. No other character ends a line. DataError if the file is missing, has no
    bytes, or is not UTF-8 (with the byte offset of the bad byte, counted from 0 in the uncompressed file).
    """
    offset, number = 0, 0
    with open_bytes(path) as file:
        for number, raw in enumerate(file, 1):
            body = raw.removeprefix(BOM) if number == 1 else raw
            try:
                text = body.decode("utf-8")
            except UnicodeDecodeError as error:
                at = offset + len(raw) - len(body) + error.start
                raise DataError(
                    f"{shown(path)}, line {number}: not UTF-8, byte 0x{body[error.start]:02x} at byte offset {at} "
                    f"({error.reason}); convert the file to UTF-8"
                ) from error
            offset += len(raw)
            yield number, text.removesuffix("\n").removesuffix("\r")
    if number == 0:
        raise DataError(f"{shown(path)}: the file is empty; it needs at least one line")


def parse_json(text: str, path: str | Path, line: int = 1):
    """The value of a JSON text that begins in this line; DataError names file, line and column where it breaks.

    A key that is repeated in one object is an error too: one of the two values would be lost.
    """

    def without_repeats(pairs: list[tuple]) -> dict:
        result = dict(pairs)
        if len(result) != len(pairs):
            keys = [key for key, _ in pairs]
            repeated = next(key for number, key in enumerate(keys) if key in keys[:number])
            raise DataError(f"{shown(path)}, line {line} or after: key {repeated!r} is repeated; keep one of them")
        return result

    try:
        return json.loads(text, object_pairs_hook=without_repeats)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{shown(path)}, line {line + error.lineno - 1}, column {error.colno}: broken JSON ({error.msg}); "
            "repair or remove what stands there"
        ) from error
    except (RecursionError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{shown(path)}, line {line}: JSON that cannot be read ({error}); simplify it") from error


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """The file's bytes; `-` is standard input, `.gz` is unpacked."""
    if str(path) == STDIN:
        yield sys.stdin.buffer
        return
    path = Path(path)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path}: the file {what}; check the path (relative paths start at {Path.cwd()})")
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        try:
            yield file
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DataError(f"{path}: broken or truncated gzip file ({error}); fetch it again") from error


def shown(path: str | Path) -> str:
    """The path for messages."""
    return "<standard input>" if str(path) == STDIN else str(path)


def stem(path: str | Path) -> str:
    """The file's name without folder and endings, from which document ids are made."""
    return "stdin" if str(path) == STDIN else Path(path).name.removesuffix(".gz").split(".")[0] or Path(path).name


def write_lines(lines: Iterable[str], path: str | os.PathLike) -> None:
    """Write lines to a file that appears when it is complete; a pipe or device gets them as they come. `OSError`.

    A file whose name ends in `.gz` is packed.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(line + "\n" for line in lines)
        return
    path = path.resolve()  # a link stays, what it points to is replaced
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as raw:
            packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else raw
            with io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as file:
                file.writelines(line + "\n" for line in lines)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_output(path: str | Path) -> None:
    """Raise `ValueError` before hours of work where the file could not be written."""
    folder = Path(path).parent
    if str(path) == "-":
        return
    if Path(path).is_dir():
        raise ValueError(f"cannot write {path}: it is a folder; give the name of a file in it")
    if not Path(path).exists() and not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise ValueError(f"cannot write {path}: {folder} is no folder that can be written to; make it first")
