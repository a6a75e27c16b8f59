"""Files of what was found for every item, as JSON lines: texts, scores or translations, verdicts."""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hf_docmt import __version__
from hf_docmt.files import STDOUT, check_writable_file, location_of, parse_json
from hf_docmt.reports.signature import Signature

START = b'{"item": '  # of every line
CHUNK = 500  # items that are scored, and written, together


class DetailsFile:
    """JSON lines, one an item, in the order of the suites; items of lines that are there are not scored again.

    A file that is there is continued after its last whole chunk, so that it ends as that of a run without interruption.
    Every line has the `signature` of its suite and condition: system, options, items. Without a `path` nothing is read
    or written. ValueError: a path that cannot be written, a file with lines of another run.
    """

    def __init__(self, path: str | Path | None = None):
        if str(path) == STDOUT:
            raise ValueError("details go to a file, from which an interrupted run can go on; give its name")
        self.path = None if path is None else check_writable_file(path)
        self.lines: list[dict] = []  # those of the file
        self.ends: list[int] = []  # the byte behind each
        self.used = 0  # lines that belong to the parts so far
        self.reading = self.path is not None and self.path.is_file()
        if self.reading:
            self._read()

    def records(
        self,
        items: Sequence[Any],
        find: Callable[[Sequence], list[dict]],
        facts: Callable[[], dict],
        chunk: int = CHUNK,
    ) -> list[dict]:
        """The records of the items of one part: those of the file, then those that `find` gives for chunks of items.

        Items have an `item_id` and a `location`. `facts` gives what records depend on besides the items.
        """
        found: list[dict] = []
        if self.path is not None:
            signature = Signature.of(
                {**facts(), "items": hash_of([replace(item, location="") for item in items]), "version": __version__}
            )
            found = self._kept(items, signature, chunk)
        for start in range(len(found), len(items), chunk):
            part = items[start : start + chunk]
            records = [{"item": one.item_id, **record} for one, record in zip(part, find(part), strict=True)]
            if self.path is not None:
                self._append([{**record, "signature": str(signature)} for record in records])
            found += records
        return found

    def finish(self) -> None:
        """ValueError where the file has lines behind the last item of this run."""
        if self.used < len(self.lines):
            raise ValueError(
                f"{location_of(self.path, self.used + 1)}: item {self.lines[self.used].get('item')!r}, but this run "
                "ends before it; give another file, or the same suites, items and conditions"
            )

    def _read(self) -> None:
        end, (*lines, rest) = 0, self.path.read_bytes().split(b"\n")  # `rest`: a line that was not written to its end
        if rest and not rest.startswith(START[: len(rest)]):
            raise ValueError(f"{self.path}: no file of details of items, which would be overwritten; give another file")
        for number, raw in enumerate(lines, 1):
            end += len(raw) + 1
            try:
                record = parse_json(raw.decode("utf-8"), self.path, number)
            except UnicodeDecodeError as error:
                raise ValueError(f"{location_of(self.path, number)}: not UTF-8; give another file") from error
            if not isinstance(record, dict):
                raise ValueError(f"{location_of(self.path, number)}: no details of an item; give another file")
            self.lines.append(record)
            self.ends.append(end)

    def _kept(self, items: Sequence[Any], signature: Signature, chunk: int) -> list[dict]:
        """The records that the file has of these items; the rest of a chunk that is not whole is cut off the file."""
        found = self.lines[self.used : self.used + len(items)]
        for number, (record, item) in enumerate(zip(found, items), self.used + 1):
            _check(record, item, signature, location_of(self.path, number))
        if len(found) < len(items) and self.reading:
            found = found[: len(found) // chunk * chunk]
            kept = self.used + len(found)
            os.truncate(self.path, self.ends[kept - 1] if kept else 0)
            self.lines, self.reading = self.lines[:kept], False
        self.used += len(found)
        return [{key: value for key, value in record.items() if key != "signature"} for record in found]

    def _append(self, records: list[dict]) -> None:
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        with self.path.open("ab") as file:
            file.write(lines.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())


def hash_of(values: Sequence[Any]) -> str:
    """A short hash of values by their `repr`."""
    found = hashlib.sha256()
    for value in values:
        found.update(repr(value).encode("utf-8"))
    return found.hexdigest()[:12]


def _check(record: dict, item: Any, signature: Signature, where: str) -> None:
    remedy = "give another file, or go on with what that run was given"
    found = Signature.parse(str(record.get("signature")))
    for key in dict.fromkeys((*signature, *found)):
        if found.get(key) != signature.get(key):
            raise ValueError(
                f"{where}: of another run, {key} is {found.get(key)} there and {signature.get(key)} here; {remedy}"
            )
    if record.get("item") != item.item_id:
        raise ValueError(f"{where}: item {record.get('item')!r}, expected {item.item_id!r}; {remedy}")
