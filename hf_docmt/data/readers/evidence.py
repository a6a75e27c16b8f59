"""What input files show of themselves before they are read, and how much that says about their format."""

import sys
from enum import IntEnum
from functools import cached_property
from pathlib import Path

from hf_docmt.files import BOM, STDIN, open_bytes

HEAD_BYTES = 4096


class Evidence(IntEnum):
    """How sure a reader is that input files are of its format; the surest reader is chosen."""

    NONE = 0
    GUESS = 1  # first characters that are common in the format
    FIRST_BYTES = 2  # a tag or mark of the format
    NAME = 3  # the file's ending
    NAME_AND_BYTES = 4
    ARGUMENTS = 5  # a file that only this format takes


class Sample:
    """Input files as a reader sees them to recognize its format.

    `arguments` are the names of the files given, `argument` that of the first one (`source` or `path`, None without
    these), `path` the first one itself, None where there are several.
    """

    def __init__(self, files: dict):
        self.arguments = set(files)
        self.argument = next((name for name in ("source", "path") if name in files), None)
        path = files.get(self.argument)
        self.path: str | Path | None = path if isinstance(path, str | Path) else None

    @property
    def is_stdin(self) -> bool:
        return str(self.path) == STDIN

    @property
    def ending(self) -> str:
        """The ending of the file's name without `.gz`, such as `.tsv`."""
        return "" if self.path is None else Path(str(self.path).removesuffix(".gz")).suffix

    @property
    def file_name(self) -> str:
        return "" if self.path is None else Path(self.path).name

    @cached_property
    def head(self) -> bytes:
        """The first bytes, unpacked, without a byte order mark; they stay readable on standard input."""
        if self.path is None or Path(self.path).is_dir():
            return b""
        if self.is_stdin:
            head = sys.stdin.buffer.peek(HEAD_BYTES)  # type: ignore[union-attr]  # a BufferedReader
            return head[:HEAD_BYTES].removeprefix(BOM)
        with open_bytes(self.path) as file:
            return file.read(HEAD_BYTES).removeprefix(BOM)

    @cached_property
    def first_line(self) -> str:
        """The first line without its end; of standard input only what stands in `head`."""
        line = self.head.split(b"\n")[0]
        if len(line) == len(self.head) > 0 and self.path is not None and not self.is_stdin:
            with open_bytes(self.path) as file:
                line = file.readline().removeprefix(BOM)
        return line.decode("utf-8", errors="replace").rstrip("\r\n")
