"""Files of what was found for every item, as JSON lines: texts, scores or translations, verdicts."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from hf_docmt.files import STDOUT, check_writable_file, location_of
from hf_docmt.journal import Journal
from hf_docmt.messages import __version__
from hf_docmt.reports.signature import Signature

START = b'{"item": '  # of every record
CHUNK = 500  # items that are scored, and written, together
REMEDY = "give another file, or continue with the inputs of that run"


class ItemRecords:
    """A journal of records, one an item, in the order of the suites; items that have one are not scored again.

    A file that is there is continued after its last whole chunk, so that it ends as that of a run without interruption.
    Every record has the `signature` of its suite and condition: system, options, items. Without a `path` nothing is
    read or written. ValueError: a path that cannot be written, a file with records of another run or that are damaged.
    """

    def __init__(self, path: str | Path | None = None):
        if str(path) == STDOUT:
            raise ValueError("details go to a file that an interrupted run continues from; give its name")
        self.used = 0  # records that belong to the parts so far
        self.journal = None if path is None else Journal(check_writable_file(path), START)
        if self.journal and self.journal.damage:
            raise ValueError(f"{self.journal.damage}; give another file")

    def records(
        self, items: Sequence[Any], find: Callable[[Sequence], list[dict]], system=None, chunk: int = CHUNK, **facts
    ) -> list[dict]:
        """The records of the items of one part: those of the file, then those that `find` gives for chunks of items.

        Each begins with the item, the `context` among the facts, document and source. Items have an `item_id` and a
        `location`. `facts` are the inputs that records depend on in addition to items and system.
        """
        signature, records = None, []
        if self.journal is not None:
            model = {} if system is None else {"model": system.fingerprint()}
            digest = hash_of([replace(item, location="") for item in items])
            signature = Signature.of({**model, **facts, "items": digest, "version": __version__})
            records = self._kept(self.journal, items, signature, chunk)
        context = {"context": facts["context"]} if "context" in facts else {}
        for start in range(len(records), len(items), chunk):
            some = items[start : start + chunk]
            new = [
                {"item": item.item_id, **context, "document": item.group, "source": list(item.source), **record}
                for item, record in zip(some, find(some), strict=True)
            ]
            if self.journal is not None:
                self.journal.append(*({**record, "signature": str(signature)} for record in new))
                self.used += len(new)
            records += new
        return records

    def finish(self) -> None:
        """ValueError where the file has records after the last item of this run."""
        if self.journal is not None and self.used < self.journal.count:
            item = next(self.journal.rows(self.used)).get("item")
            raise ValueError(
                f"{location_of(self.journal.path, self.used + 1)}: item {item!r}, but this run ends before it; give "
                "another file, or the same suites, items and conditions"
            )

    def _kept(self, journal: Journal, items: Sequence[Any], signature: Signature, chunk: int) -> list[dict]:
        """The records that the file has of these items; the rest of a chunk that is not whole is cut off the file."""
        kept = list(islice(journal.rows(self.used), len(items)))
        for number, (record, item) in enumerate(zip(kept, items), self.used + 1):
            _check(record, item, signature, location_of(journal.path, number))
        if 0 < len(kept) < len(items):
            kept = kept[: len(kept) // chunk * chunk]
            journal.keep(self.used + len(kept))
        self.used += len(kept)
        return [{key: value for key, value in record.items() if key != "signature"} for record in kept]


def write_item_records(path: str | Path | None, items: Sequence[Any], records: list[dict], **facts) -> None:
    """A file of records from those of all its items."""
    file = ItemRecords(path)
    file.records(items, lambda _: records, chunk=len(items), **facts)
    file.finish()


def hash_of(values: Sequence[Any]) -> str:
    """A short hash of values by their `repr`."""
    return hashlib.sha256("".join(map(repr, values)).encode("utf-8")).hexdigest()[:12]


def _check(record: dict, item: Any, signature: Signature, location: str) -> None:
    before = Signature.parse(str(record.get("signature")))
    for key in dict.fromkeys((*signature, *before)):
        if before.get(key) != signature.get(key):
            raise ValueError(
                f"{location}: of another run, {key} is {before.get(key)} there and {signature.get(key)} here; {REMEDY}"
            )
    if record.get("item") != item.item_id:
        raise ValueError(f"{location}: item {record.get('item')!r}, expected {item.item_id!r}; {REMEDY}")
