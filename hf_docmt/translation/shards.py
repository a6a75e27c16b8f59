"""Jobs whose output is a folder of shards with a manifest, on any file system that fsspec knows."""

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fsspec.core import url_to_fs

from hf_docmt.translation.corpus import json_line
from hf_docmt.translation.group_translation import TranslationSettings
from hf_docmt.translation.groups import Group, document_groups
from hf_docmt.translation.interruption import Interrupted, Interruption
from hf_docmt.translation.job import Engine, check_first_documents, with_results
from hf_docmt.translation.job_identity import changes, job_identity
from hf_docmt.translation.job_summary import JobSummary
from hf_docmt.translation.parts import PartitionedInput
from hf_docmt.translation.progress import job_progress

SHARD_SENTENCES = 1 << 14  # a shard ends with the group that reaches so many
MANIFEST = "manifest.json"
VERSION = 1


@dataclass
class Shard:
    """Consecutive groups that are written to one file, and the result rows of the first ones."""

    number: int
    groups: list[Group]
    results: list[list[dict]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"shard-{self.number:06}.jsonl"

    @property
    def rows(self) -> list[dict]:
        return [row for rows in self.results for row in rows]

    def matches(self, rows: list[dict], lang: str) -> bool:
        """Whether these are result rows of its documents."""
        sources = [source for group in self.groups for source in group.sources(lang)]
        ids = [row["doc_id"] for group in self.groups for row in group.rows]
        return [row.get("doc_id") for row in rows] == ids and [row.get("source") for row in rows] == sources


def shards_of(groups: Iterable[Group], sentences: int = SHARD_SENTENCES) -> Iterator[Shard]:
    """Consecutive groups in shards of that many sentences or a few more; they follow from the groups alone."""
    number, collected, count = 0, [], 0
    for group in groups:
        collected.append(group)
        count += group.sentences
        if count >= sentences:
            yield Shard(number, collected)
            number, collected, count = number + 1, [], 0
    if collected:
        yield Shard(number, collected)


@dataclass(frozen=True)
class ShardedJob:
    """Documents of a partitioned input that are translated to shards of JSON lines, rows as of `translate_corpus`.

    Shards hold the documents in the order of the input, each once, and appear whole. `manifest.json` beside them says
    what they hold; it has `"complete": true` when all are there. With `resume` only missing or damaged shards are made.
    """

    settings: TranslationSettings
    input: PartitionedInput
    output: str
    make_engine: Callable[[TranslationSettings], Engine]
    resume: bool = False

    def run(self, interruption: Interruption) -> JobSummary:
        """Translate all documents. Raises `ValueError`, `OSError` and `Interrupted`."""
        identity = job_identity(self.settings, None) | {"input": self.input.identity()}
        folder = ShardFolder(self.output, identity, self.resume)
        engine = self.make_engine(self.settings)
        summary, facts = JobSummary(), {}
        progress = job_progress(None, summary)
        waiting: deque[Shard] = deque()
        results = with_results(self._missing_groups(folder, waiting, facts, summary), engine)
        try:
            for _, rows in results if self.resume else check_first_documents(results):
                shard = waiting[0]
                shard.results.append(rows)
                summary.add(JobSummary.of(rows))
                if len(shard.results) == len(shard.groups):
                    facts[shard.number] = folder.write(waiting.popleft())
                progress.update(summary)
                interruption.check()
            folder.finish([facts[number] for number in sorted(facts)], self.input)
        except Interrupted as stopped:
            raise Interrupted(stopped.number, f"--resume goes on behind {len(facts)} shards") from stopped
        finally:
            progress.close()
            results.close()  # ends the workers of an engine
        return summary

    def _missing_groups(
        self, folder: "ShardFolder", waiting: deque[Shard], facts: dict[int, dict], summary: JobSummary
    ) -> Iterator[Group]:
        """The groups of shards that the folder does not have; these wait. The facts of the others are noted."""
        for shard in shards_of(document_groups(self.input.rows(), batch_size=self.settings.batch_size)):
            data = folder.read(shard.name) if self.resume else None
            rows = _parse(data)
            if data is not None and shard.matches(rows, self.input.source_lang):
                facts[shard.number] = shard_facts(shard.name, data, rows)
                summary.add(JobSummary.of(rows))
                continue
            waiting.append(shard)
            yield from shard.groups


class ShardFolder:
    """The folder of a sharded job: `read` and `write` shards, `finish` the manifest.

    Raises `ValueError` for a folder with something else in it, and where `resume` was not asked for or is not possible.
    """

    def __init__(self, url: str, identity: dict[str, Any], resume: bool):
        self.url, self.identity = url, identity
        self.fs, self.path = url_to_fs(url)
        self._known: dict[str, str] = {}  # checksums by the manifest of a finished job
        manifest = self._manifest()
        if manifest is None:
            if self.fs.exists(self.path) and self.fs.ls(self.path):
                raise ValueError(f"{url} holds files, and no {MANIFEST} of a job; give a folder that is new or empty")
            if resume:
                raise ValueError(f"{url} holds no {MANIFEST}, so there is nothing to resume; leave --resume out")
            self.fs.makedirs(self.path, exist_ok=True)
            self._put(MANIFEST, self._manifest_bytes(complete=False))
            return
        if not resume:
            raise ValueError(f"{url} holds the shards of a job; go on with it by --resume, or give another folder")
        if changed := changes(manifest["identity"], identity):
            raise ValueError(
                f"the job in {url} cannot be resumed, since something else is asked for now ({changed}): give what was "
                "given then, or another folder"
            )
        self._known = {shard["file"]: shard["sha256"] for shard in manifest.get("shards", [])}

    def read(self, name: str) -> bytes | None:
        """The bytes of a shard; None for one that is missing, or is not what the manifest says."""
        path = f"{self.path}/{name}"
        if not self.fs.exists(path):
            return None
        data = self.fs.cat_file(path)
        return data if self._known.get(name, sha256(data)) == sha256(data) else None

    def write(self, shard: Shard) -> dict[str, Any]:
        """Write a shard whose results are complete, as a file that appears whole; what the manifest says of it."""
        data = "".join(map(json_line, shard.rows)).encode()
        self._put(shard.name, data)
        return shard_facts(shard.name, data, shard.rows)

    def finish(self, shards: list[dict[str, Any]], documents: PartitionedInput) -> None:
        """Write the manifest of a job that is done."""
        facts = {
            "documents": sum(shard["documents"] for shard in shards),
            "sentences": sum(shard["sentences"] for shard in shards),
            "failed": sum(shard["failed"] for shard in shards),
            "repeated_ids": {"count": documents.repeated, "first": documents.repeated_ids},
            "parts": documents.to_json(),
            "shards": shards,
        }
        self._put(MANIFEST, self._manifest_bytes(complete=True, **facts))

    def _manifest(self) -> dict[str, Any] | None:
        path = f"{self.path}/{MANIFEST}"
        if not self.fs.exists(path):
            return None
        try:
            manifest = json.loads(self.fs.cat_file(path))
            if manifest["docmt_translation_shards"] == VERSION:
                return manifest
        except (ValueError, KeyError, TypeError):
            pass
        raise ValueError(f"{self.url}/{MANIFEST} is not that of a job of this version; give another folder")

    def _manifest_bytes(self, **facts: Any) -> bytes:
        text = json.dumps({"docmt_translation_shards": VERSION, "identity": self.identity} | facts, indent=1)
        return text.encode() + b"\n"

    def _put(self, name: str, data: bytes) -> None:
        """Write a file under another name first, so that it appears whole."""
        temporary, path = f"{self.path}/.{name}.temporary", f"{self.path}/{name}"
        self.fs.pipe_file(temporary, data)
        self.fs.mv(temporary, path)


def shard_facts(name: str, data: bytes, rows: list[dict]) -> dict[str, Any]:
    """What the manifest says of a shard with these bytes and rows."""
    summary = JobSummary.of(rows)
    return {
        "file": name,
        "bytes": len(data),
        "sha256": sha256(data),
        "documents": summary.documents,
        "sentences": summary.sentences,
        "repairs": dict(summary.repairs),
        "failed": summary.failed,
    }


def sha256(data: bytes) -> str:
    """The SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _parse(data: bytes | None) -> list[dict]:
    """The rows of a shard; none for one that is damaged."""
    try:
        return [json.loads(line) for line in (data or b"").splitlines()]
    except ValueError:
        return []
