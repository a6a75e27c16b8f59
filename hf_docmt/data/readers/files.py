"""Text files as documents come in: UTF-8, LF or CRLF, plain or gzip, or standard input."""

import gzip
import json
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..documents import DataError

STDIN = "-"
BOM = b"\xef\xbb\xbf"


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
