"""Jobs on many machines: documents in many files, translated to a folder of shards with a manifest.

Both stand on any file system that fsspec knows.
"""

import hashlib
import json
import re
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from hf_docmt.data.document_ids import DocumentIds
from hf_docmt.data.readers import iterate_documents
from hf_docmt.files import DataError, open_bytes
from hf_docmt.translation.corpus import json_line
from hf_docmt.translation.job_input import Group
from hf_docmt.translation.job_output import JobOutput, changes
from hf_docmt.translation.progress import JobSummary

ENDINGS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".parquet")
NAMED_IDS = 100  # so many ids that are repeated in another file are named
SHARD_SENTENCES = 1 << 14  # a shard ends with the group that reaches so many
KEPT_GROUP = re.compile(r"\.shard-(\d{6,})\.group-(\d{6,})\.[0-9a-f]{16}")  # see `kept_name`
MANIFEST, MARK, VERSION = "manifest.json", "docmt_translation_shards", 1


@dataclass
class InputFile:
    """One file of the input; the counts are of the documents that were read so far."""

    path: str
    bytes: int
    documents: int = 0
    sentences: int = 0


class PartitionedInput:
    """The documents of the files at a URL: a folder (with folders in it), a pattern with `*`, or one file.

    Files come in the order of their paths; of a folder those whose names end as JSON lines or Parquet do and begin
    neither with `_` nor with `.`. A file of another file system is copied to a temporary one while it is read. An id
    may be used once in a file; `repeated_ids` are those that another file has, too. Raises `DataError`.
    """

    format = "auto"
    is_pipe = False

    def __init__(self, url: str, source_lang: str):
        self.source_lang = source_lang
        self.fs, root = url_to_fs(url)
        paths = self.fs.glob(root) if "*" in root else self.fs.find(root)
        if root not in paths and "*" not in root:
            paths = [path for path in paths if _is_input(Path(path).name)]
        self.parts = [InputFile(path, self.fs.size(path)) for path in sorted(paths) if self.fs.isfile(path)]
        self.repeated, self.repeated_ids = 0, []
        if not self.parts:
            raise DataError(f"{url}: no files that end in {', '.join(ENDINGS)}; give their folder, or a pattern with *")

    def identity(self) -> dict[str, int]:
        """The size that each file has now by its path."""
        return {part.path: self.fs.size(part.path) for part in self.parts}

    def size(self) -> None:
        """Not known before all is read."""

    def rows(self) -> Iterator[dict]:
        """The documents of all files, one row at a time."""
        ids = DocumentIds()
        for part in self.parts:
            part.documents = part.sentences = 0
            with self._local(part) as path:
                if _is_empty(path):
                    continue
                for row in iterate_documents(path=path, source_lang=self.source_lang, allow_empty=True):
                    part.documents += 1
                    part.sentences += len(row["translation"])
                    if ids.add(row["doc_id"], part.path):
                        self.repeated += 1
                        self.repeated_ids = [*self.repeated_ids, row["doc_id"]][:NAMED_IDS]
                    yield row

    @contextmanager
    def _local(self, part: InputFile) -> Iterator[str]:
        """A local path of the file while it is read."""
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


@dataclass
class Shard:
    """Consecutive groups that are written to one file, and the result rows of those that are done, by their numbers."""

    number: int
    groups: list[Group] = field(default_factory=list)
    results: dict[int, list[dict]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"shard-{self.number:06}.jsonl"

    @property
    def documents(self) -> list[dict]:
        return [row for group in self.groups for row in group.rows]

    @property
    def rows(self) -> list[dict]:
        """The result rows in the order of the documents."""
        return [row for number in sorted(self.results) for row in self.results[number]]


def shards_of(groups: Iterable[Group], sentences: int) -> Iterator[Shard]:
    """Consecutive groups in shards of that many sentences or a few more; they follow from the groups alone."""
    shard = Shard(0)
    for group in groups:
        shard.groups.append(group)
        if sum(group.sentences for group in shard.groups) >= sentences:
            yield shard
            shard = Shard(shard.number + 1)
    if shard.groups:
        yield shard


class ShardFolder(JobOutput):
    """A folder of shards of JSON lines, rows as of `translate_corpus`.

    Shards hold the documents in the order of the input, each once, and appear whole. `manifest.json` beside them says
    what they hold; it has `"complete": true` when all are there. Of a shard that is not whole each group has a hidden
    file, named by its content's digest. With `resume` only what is missing or damaged is made.
    """

    def __init__(self, url: str, identity: dict[str, Any], documents: PartitionedInput, resume: bool = False):
        """Raises `ValueError` for a folder with something else in it, and for `resume` where it is not possible."""
        super().__init__()
        self.url, self.identity, self.documents, self.resume = url, identity, documents, resume
        self.fs, self.path = url_to_fs(url)
        self.facts: dict[str, dict] = {}  # of the shards that are whole, by name
        self._waiting: deque[Shard] = deque()  # those whose groups are being translated
        self._checksums: dict[str, str] = {}  # by the manifest of a finished job
        self._kept: dict[tuple[int, int], str] = {}  # files of groups, by shard and group
        manifest = self._manifest()
        if manifest is None:
            if self.fs.exists(self.path) and self.fs.ls(self.path):
                raise ValueError(f"{url} holds files, and no {MANIFEST} of a job; give a folder that is new or empty")
            if resume:
                raise ValueError(f"{url} holds no {MANIFEST}, so there is nothing to resume; leave --resume out")
            self.fs.makedirs(self.path, exist_ok=True)
            self._write_manifest(complete=False)
            return
        if not resume:
            raise ValueError(f"{url} holds the shards of a job; go on with it by --resume, or give another folder")
        if changed := changes(manifest["identity"], identity):
            raise ValueError(
                f"the job in {url} cannot be resumed, since something else is asked for now ({changed}): give what was "
                "given then, or another folder"
            )
        self._checksums = {shard["file"]: shard["sha256"] for shard in manifest.get("shards", [])}
        names = [path.rsplit("/", 1)[-1] for path in self.fs.ls(self.path, detail=False)]
        kept = {name: KEPT_GROUP.fullmatch(name) for name in names}
        self._kept = {(int(match[1]), int(match[2])): name for name, match in kept.items() if match}

    @property
    def holds_work(self) -> bool:
        return self.resume or bool(self.facts) or bool(self._kept)

    def missing(self, groups: Iterable[Group | None]) -> Iterator[Group | None]:
        for shard in shards_of(filter(None, groups), SHARD_SENTENCES):
            if self.resume and self._is_there(shard):
                continue
            kept = {group.number: self._kept_rows(shard, group) for group in shard.groups}
            shard.results = {number: rows for number, rows in kept.items() if rows}
            self.summary.add(JobSummary.of(shard.rows))
            if len(shard.results) == len(shard.groups):
                self._write_shard(shard)
            else:
                self._waiting.append(shard)
                yield from (group for group in shard.groups if group.number not in shard.results)

    def _is_there(self, shard: Shard) -> bool:
        """Whether a shard has the result rows of its documents, and is what the manifest says; it is then noted."""
        if not self.fs.exists(f"{self.path}/{shard.name}"):
            return False
        data = self.fs.cat_file(f"{self.path}/{shard.name}")
        rows = self._rows_of(data, shard.documents)
        if rows is None or self._checksums.get(shard.name, sha256(data)) != sha256(data):
            return False
        self._add(shard.name, data, rows)
        self.summary.add(JobSummary.of(rows))
        return True

    def _kept_rows(self, shard: Shard, group: Group) -> list[dict] | None:
        """The result rows of a group that a job before has kept; None where it has not, or they are damaged."""
        name = self._kept.get((shard.number, group.number))
        data = self.fs.cat_file(f"{self.path}/{name}") if name else b""
        return self._rows_of(data, group.rows) if name == kept_name(shard, group, data) else None

    def _rows_of(self, data: bytes, documents: list[dict]) -> list[dict] | None:
        """Result rows as JSON lines; None where they are not those of the documents."""
        try:
            rows = [json.loads(line) for line in data.splitlines()]
        except ValueError:
            return None
        lang = self.documents.source_lang
        expected = [(row["doc_id"], [pair[lang] for pair in row["translation"]]) for row in documents]
        return rows if [(row.get("doc_id"), row.get("source")) for row in rows] == expected else None

    def write(self, group: Group, rows: list[dict]) -> None:
        """Add the rows of a group to its shard, which is written with the last of them."""
        shard = self._waiting[0]
        shard.results[group.number] = rows
        self.summary.add(JobSummary.of(rows))
        if len(shard.results) == len(shard.groups):
            self._waiting.popleft()
            self._write_shard(shard)
        else:
            data = "".join(map(json_line, rows)).encode()
            self._kept[shard.number, group.number] = name = kept_name(shard, group, data)
            self._put(name, data)

    def _write_shard(self, shard: Shard) -> None:
        data = "".join(map(json_line, shard.rows)).encode()
        self._put(shard.name, data)
        self._add(shard.name, data, shard.rows)
        self._forget(shard.number)

    def _forget(self, shard: int | None = None) -> None:
        """Remove the files of the groups of a shard, or of all."""
        for key in [key for key in self._kept if shard in (None, key[0])]:
            self.fs.rm_file(f"{self.path}/{self._kept.pop(key)}")

    def finish(self) -> None:
        self._forget()
        shards = [self.facts[name] for name in sorted(self.facts)]
        self._write_manifest(
            complete=True,
            **{name: sum(shard[name] for shard in shards) for name in ("documents", "sentences", "failed")},
            repeated_ids={"count": self.documents.repeated, "first": self.documents.repeated_ids},
            parts=[asdict(part) for part in self.documents.parts],
            shards=shards,
        )

    def way_on(self) -> str:
        return f"--resume goes on behind {len(self.facts)} shards, with {len(self._kept)} groups of others"

    def _add(self, name: str, data: bytes, rows: list[dict]) -> None:
        """Note what the manifest says of a shard with these bytes and rows."""
        summary = JobSummary.of(rows)
        self.facts[name] = {
            "file": name,
            "bytes": len(data),
            "sha256": sha256(data),
            **{name: getattr(summary, name) for name in ("documents", "sentences", "repairs", "failed")},
        }

    def _manifest(self) -> dict[str, Any] | None:
        path = f"{self.path}/{MANIFEST}"
        if not self.fs.exists(path):
            return None
        try:
            manifest = json.loads(self.fs.cat_file(path))
            if manifest[MARK] == VERSION:
                return manifest
        except (ValueError, KeyError, TypeError):
            pass
        raise ValueError(f"{self.url}/{MANIFEST} is not that of a job of this version; give another folder")

    def _write_manifest(self, **facts: Any) -> None:
        self._put(MANIFEST, json.dumps({MARK: VERSION, "identity": self.identity} | facts, indent=1).encode() + b"\n")

    def _put(self, name: str, data: bytes) -> None:
        """Write a file under another name first, so that it appears whole."""
        temporary, path = f"{self.path}/.{name}.temporary", f"{self.path}/{name}"
        self.fs.pipe_file(temporary, data)
        self.fs.mv(temporary, path)


def kept_name(shard: Shard, group: Group, data: bytes) -> str:
    """The file of a group's result rows, which tells whether they are whole."""
    return f".shard-{shard.number:06}.group-{group.number:06}.{sha256(data)[:16]}"


def sha256(data: bytes) -> str:
    """The SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _is_input(name: str) -> bool:
    return name.endswith(ENDINGS) and not name.startswith(("_", "."))


def _is_empty(path: str) -> bool:
    """Whether a file has no documents, as the last ones of a partition often do."""
    if path.endswith(".parquet"):
        return Path(path).stat().st_size == 0 or pq.read_metadata(path).num_rows == 0
    with open_bytes(path) as file:
        return not file.read(1)
