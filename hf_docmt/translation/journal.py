"""The journal of a job: JSON lines that are on the disk one by one, in a file that one process at a time has open."""

import json
from pathlib import Path

from hf_docmt.store import lock_file, write_durably

MARK = "docmt_translation_job"  # the first key of the first line
VERSION = 1
BEGINNING = json.dumps({MARK: VERSION})[:-1].encode()


class Journal:
    """A file of JSON lines, locked while it is open; `lines` are those that were written whole.

    The first line, the header, has the keys `docmt_translation_job` and `identity`. Raises `ValueError` where another
    process has it open, and for a file that is no journal.
    """

    def __init__(self, path: Path):
        self.path = path
        file = lock_file(path)
        if file is None:
            raise ValueError(f"another job uses {path} now; wait for its end, or choose another output")
        self._file = file
        content = file.read()
        if not content.startswith(BEGINNING) and (b"\n" in content or not BEGINNING.startswith(content)):
            file.close()
            raise ValueError(f"{path} is in the way, which is no journal of a job; move it, or choose another output")
        self.lines: list[dict] = []
        self._ends: list[int] = []  # in bytes, of each line
        self._read(content)

    def _read(self, content: bytes) -> None:
        end = 0
        for line in content.split(b"\n")[:-1]:  # behind the last line end is nothing, or a line that was not finished
            try:
                self.lines.append(json.loads(line))
            except ValueError:  # blocks that were never written before the machine stopped
                break
            end += len(line) + 1
            self._ends.append(end)

    def keep(self, count: int) -> None:
        """Drop all but the first `count` lines, and what is behind them."""
        self.lines, self._ends = self.lines[:count], self._ends[:count]
        self._file.truncate(self._ends[-1] if self._ends else 0)

    def begin(self, identity: dict) -> None:
        """Start anew with a header."""
        self.keep(0)
        self.append({MARK: VERSION, "identity": identity})

    def append(self, line: dict) -> None:
        """Write a line; it is on the disk when this returns."""
        data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        start = self._ends[-1] if self._ends else 0
        self._file.seek(start)
        write_durably(self._file, data)
        self.lines.append(line)
        self._ends.append(start + len(data))

    def delete(self) -> None:
        """Delete the file and unlock it."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Unlock the file."""
        self._file.close()
