"""Partitioned input: documents in many files of JSON lines or Parquet, on any file system that fsspec knows."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from hf_docmt.data.document_ids import DocumentIds
from hf_docmt.data.readers import iterate_documents
from hf_docmt.files import DataError, open_bytes

ENDINGS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".parquet")
NAMED_IDS = 100  # so many ids that are repeated in another part are named


@dataclass
class Part:
    """One file; the counts are of the documents that were read so far."""

    path: str
    bytes: int
    documents: int = 0
    sentences: int = 0


class PartitionedInput:
    """The documents of the parts at a URL: a folder (with folders in it), a pattern with `*`, or one file.

    Parts come in the order of their paths; of a folder those whose names end as JSON lines or Parquet do and begin
    neither with `_` nor with `.`. A part of another file system is copied to a local folder for temporary files while
    it is read. An id may be used once in a part; ids that another part has, too, are noted in `repeated_ids`.

    Raises `DataError` where nothing is found, and for broken parts.
    """

    def __init__(self, url: str, source_lang: str):
        self.source_lang = source_lang
        self.fs, root = url_to_fs(url)
        paths = self.fs.glob(root) if "*" in root else self.fs.find(root)
        if root not in paths and "*" not in root:
            paths = [path for path in paths if _is_part(path)]
        self.parts = [Part(path, self.fs.size(path)) for path in sorted(paths) if self.fs.isfile(path)]
        self.repeated, self.repeated_ids = 0, []
        if not self.parts:
            raise DataError(f"{url}: no files that end in {', '.join(ENDINGS)}; give their folder, or a pattern with *")

    def identity(self) -> dict[str, int]:
        """The parts as JSON values: the size of each by its path."""
        return {part.path: part.bytes for part in self.parts}

    def to_json(self) -> list[dict[str, Any]]:
        """The parts with their counts as JSON values."""
        return [asdict(part) for part in self.parts]

    def rows(self) -> Iterator[dict]:
        """The documents of all parts, one row at a time."""
        ids = DocumentIds()
        for part in self.parts:
            part.documents = part.sentences = 0
            with self._local(part) as path:
                if _is_empty(path):
                    continue
                for row in iterate_documents(path=path, source_lang=self.source_lang):
                    part.documents += 1
                    part.sentences += len(row["translation"])
                    if ids.add(row["doc_id"], part.path):
                        self.repeated += 1
                        self.repeated_ids = [*self.repeated_ids, row["doc_id"]][:NAMED_IDS]
                    yield row

    @contextmanager
    def _local(self, part: Part) -> Iterator[str]:
        """A local path of the part while it is read."""
        if isinstance(self.fs, LocalFileSystem):
            yield part.path
            return
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / Path(part.path).name)
            self.fs.get_file(part.path, path)
            try:
                yield path
            except DataError as error:
                raise DataError(str(error).replace(path, part.path)) from error


def _is_part(path: str) -> bool:
    name = Path(path).name
    return name.endswith(ENDINGS) and not name.startswith(("_", "."))


def _is_empty(path: str) -> bool:
    """Whether a part has no documents, as the last ones of a partition often do."""
    if path.endswith(".parquet"):
        return Path(path).stat().st_size == 0 or pq.read_metadata(path).num_rows == 0
    with open_bytes(path) as file:
        return not file.read(1)
