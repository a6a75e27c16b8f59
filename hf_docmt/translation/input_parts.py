"""Documents in many files, JSON lines or Parquet, on any file system that fsspec knows: input of jobs on clusters."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from hf_docmt.data.documents import checked_rows
from hf_docmt.data.readers import detect_format, get_reader
from hf_docmt.files import DataError, open_bytes
from hf_docmt.translation.html_rows import html_rows

ENDINGS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".parquet")


class InputParts:
    """The documents of the files at a URL: a folder (with folders in it), a pattern with `*`, or one file.

    Files come in the order of their paths; of a folder those whose names end as JSON lines or Parquet do and begin
    neither with `_` nor with `.`. A file of another file system is copied to a temporary one while it is read. An id
    may be used once in a file. Raises `DataError`.
    """

    format, is_pipe = "auto", False

    def __init__(self, url: str, source_lang: str, reads_html: bool = True):
        self.source_lang, self.reader, self.reads_html = source_lang, get_reader("jsonl"), reads_html
        self.fs, root = url_to_fs(url)
        paths = self.fs.glob(root) if "*" in root else self.fs.find(root)
        if root not in paths and "*" not in root:
            paths = [path for path in paths if _is_part(Path(path).name)]
        self.paths = [path for path in sorted(paths) if self.fs.isfile(path)]
        if not self.paths:
            raise DataError(f"{url}: no files that end in {', '.join(ENDINGS)}; give their folder, or a pattern with *")

    def identity(self) -> dict[str, int]:
        """The size that each file has now by its path."""
        return {path: self.fs.size(path) for path in self.paths}

    def renderer(self) -> Callable[[dict, dict], str]:
        """The function that returns the text of a document."""
        return self.reader.render

    def size(self) -> None:
        """Not known before all is read."""

    def rows(self) -> Iterator[dict]:
        """The documents of all files, one row at a time."""
        for part in self.paths:
            with self._local(part) as path:
                if not _is_empty(path):
                    located = get_reader(detect_format({"path": path})).read([self.source_lang], path=path)
                    located = html_rows(located, (self.source_lang, None)) if self.reads_html else located
                    yield from checked_rows(located, [self.source_lang], allow_empty=True)

    @contextmanager
    def _local(self, part: str) -> Iterator[str]:
        """A local path of the file while it is read."""
        if isinstance(self.fs, LocalFileSystem):
            yield part
            return
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / Path(part).name)
            self.fs.get_file(part, path)
            try:
                yield path
            except DataError as error:
                raise DataError(str(error).replace(path, part)) from error


def has_parts(text: str) -> bool:
    """Whether an input is a URL or a pattern, or a folder with JSON lines or Parquet in it."""
    is_folder = Path(text).is_dir()
    return "://" in text or "*" in text or is_folder and any(_is_part(path.name) for path in Path(text).rglob("*"))


def _is_part(name: str) -> bool:
    return name.endswith(ENDINGS) and not name.startswith(("_", "."))


def _is_empty(path: str) -> bool:
    """Whether a file has no documents, as the last ones of a partition often do."""
    if path.endswith(".parquet"):
        return Path(path).stat().st_size == 0 or pq.read_metadata(path).num_rows == 0
    with open_bytes(path) as file:
        return not file.read(1)
