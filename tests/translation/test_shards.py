"""Partitioned input and shards: each document once and in order, what is missing or damaged is made again."""

import gzip
import json

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.errors import refused
from support.scripted_model import Scripted
from support.tiny_models import WORDS, word_tokenizer

from hf_docmt.files import DataError
from hf_docmt.translation import job as jobs
from hf_docmt.translation import shards
from hf_docmt.translation.group_translation import GroupTranslator, TranslationSettings
from hf_docmt.translation.interruption import Interruption
from hf_docmt.translation.job import TranslationJob
from hf_docmt.translation.job_input import document_groups
from hf_docmt.translation.shards import MANIFEST, PartitionedInput, ShardFolder


def row(doc_id, sentences):
    return {"doc_id": doc_id, "translation": [{"en": WORDS[k]} for k in range(sentences)]}


PARTS = {
    "part-0.jsonl": [row("a", 3), row("b", 2)],
    "part-1.jsonl": [],
    "part-2.parquet": [row("c", 4)],
    "part-3.parquet": [],
    "sub/part-4.jsonl": [row("a", 1), row("d", 5)],
}
IDS = ["a", "b", "c", "a", "d"]


@pytest.fixture(params=["file", "memory"])
def url(request, tmp_path):
    """A folder with the parts on the disk, or on a file system that is none of the machine's."""
    root = str(tmp_path) if request.param == "file" else f"memory://{tmp_path}"
    fs, path = fsspec.core.url_to_fs(root)
    fs.makedirs(f"{path}/in/sub")
    for name, rows in PARTS.items():
        if name.endswith("parquet"):
            schema = pa.Table.from_pylist([row("x", 1)]).schema
            with fs.open(f"{path}/in/{name}", "wb") as file:
                pq.write_table(pa.Table.from_pylist(rows, schema=schema), file)
        else:
            fs.pipe_file(f"{path}/in/{name}", "".join(json.dumps(document) + "\n" for document in rows).encode())
    for ignored in ("_SUCCESS", "notes.txt", ".part-0.jsonl"):
        fs.pipe_file(f"{path}/in/{ignored}", b"nothing")
    yield root
    if request.param == "memory":
        fs.rm(path, recursive=True)


@pytest.fixture
def job(monkeypatch, url):
    """A run of the job with shards of four sentences; `translated` lists the documents that it has translated."""
    model = Scripted(past_context=1, source_lang="en")
    model.to = lambda **_: model
    monkeypatch.setattr("hf_docmt.systems.system.kind_of", lambda *_: "docmt")
    monkeypatch.setattr("hf_docmt.registry.load_model", lambda *_: (model, word_tokenizer()))
    monkeypatch.setattr(shards, "SHARD_SENTENCES", 4)
    monkeypatch.setattr(jobs, "document_groups", lambda rows, batch_size: document_groups(rows, 3))
    settings = TranslationSettings("folder", "en")
    translator = GroupTranslator(settings)

    def run(output="out", resume=False, fail_at=None, **changes):
        translated = []

        def translate(group):
            translated.extend(row["doc_id"] for row in group.rows)
            if fail_at == len(translated):
                raise OSError("killed")
            return translator(group)

        run.translated = translated
        used = TranslationSettings("folder", "en", **changes)
        documents = PartitionedInput(f"{url}/in", "en")
        sharded = TranslationJob(
            used,
            documents,
            make_engine=lambda settings: lambda groups: ((group, translate(group)) for group in groups),
            open_output=lambda identity: ShardFolder(f"{url}/{output}", identity, documents, resume),
        )
        return sharded.run(Interruption())

    return run


def content(url):
    fs, path = fsspec.core.url_to_fs(url)
    return {name.rsplit("/", 1)[-1]: fs.cat_file(name) for name in fs.find(path)}


def rows_of(files):
    texts = [data for name, data in sorted(files.items()) if name.startswith("shard")]
    return [json.loads(line) for data in texts for line in data.splitlines()]


def test_shards_and_manifest(job, url):
    summary = job()
    files = content(f"{url}/out")
    assert sorted(files) == [MANIFEST, *(f"shard-00000{number}.jsonl" for number in range(3))]
    manifest = json.loads(files[MANIFEST])
    assert [document["doc_id"] for document in rows_of(files)] == IDS == job.translated
    assert all(len(document["translation"]) == len(document["source"]) for document in rows_of(files))
    assert manifest["complete"] and manifest["documents"] == 5 == summary.documents
    assert [(part["documents"], part["sentences"]) for part in manifest["parts"]] == [
        (2, 5),
        (0, 0),
        (1, 4),
        (0, 0),
        (2, 6),
    ]
    assert [(shard["documents"], shard["sentences"]) for shard in manifest["shards"]] == [(2, 5), (1, 4), (2, 6)]
    assert all(shard["sha256"] == shards.sha256(files[shard["file"]]) for shard in manifest["shards"])
    assert manifest["repeated_ids"] == {"count": 1, "first": ["a"]}
    assert manifest["sentences"] == 15 and manifest["failed"] == 0


@pytest.mark.parametrize("fail_at", range(1, 6))
def test_a_job_that_ended_anywhere_goes_on(job, url, fail_at):
    job("whole")
    with pytest.raises(OSError, match="killed"):
        job(fail_at=fail_at)
    assert not json.loads(content(f"{url}/out")[MANIFEST])["complete"]
    refused("go on with it by --resume", job)
    job(resume=True)
    assert content(f"{url}/out") == content(f"{url}/whole")
    assert job.translated == IDS[fail_at - 1 :]  # groups of one document, which are kept one by one


@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: data.replace(b'"w', b'"v'), lambda data: b""])
def test_a_kept_group_that_is_damaged_is_made_again(job, url, damage):
    job("whole")
    with pytest.raises(OSError, match="killed"):
        job(fail_at=5)
    fs, path = fsspec.core.url_to_fs(f"{url}/out")
    (kept,) = (name for name in fs.find(path) if ".group-" in name)
    fs.pipe_file(kept, damage(fs.cat_file(kept)))
    job(resume=True)
    assert content(f"{url}/out") == content(f"{url}/whole") and job.translated == IDS[3:]


def test_a_job_that_ended_before_its_shard(job, url):
    """All groups of a shard are kept, and the shard is not there yet; or it is, and they are there still."""
    job("whole")
    whole = content(f"{url}/whole")
    for fail_at in (2, 3):
        with pytest.raises(OSError, match="killed"):
            job(f"out-{fail_at}", fail_at=fail_at)
        fs, path = fsspec.core.url_to_fs(f"{url}/out-{fail_at}")
        rows = whole["shard-000000.jsonl"].splitlines(keepends=True)
        for number, data in enumerate(rows):
            name = f".shard-000000.group-{number:06}.{shards.sha256(data)[:16]}"
            assert fail_at == 3 or (name in content(f"{url}/out-2")) is (number == 0)
            fs.pipe_file(f"{path}/{name}", data)
        job(f"out-{fail_at}", resume=True)
        assert content(f"{url}/out-{fail_at}") == whole and job.translated == IDS[2:]


def test_only_missing_and_damaged_shards_are_made_again(job, url):
    job()
    before = content(f"{url}/out")
    fs, path = fsspec.core.url_to_fs(f"{url}/out")
    fs.rm_file(f"{path}/shard-000001.jsonl")
    job(resume=True)
    assert job.translated == ["c"] and content(f"{url}/out") == before
    fs.pipe_file(f"{path}/shard-000000.jsonl", before["shard-000000.jsonl"].replace(b'"w', b'"v'))
    fs.pipe_file(f"{path}/shard-000002.jsonl", before["shard-000002.jsonl"][:-20])
    job(resume=True)
    assert job.translated == ["a", "b", "a", "d"] and content(f"{url}/out") == before


def test_folders_that_are_not_the_jobs(job, url):
    fs, path = fsspec.core.url_to_fs(url)
    refused("holds no manifest.json, so there is nothing to resume", job, resume=True)
    refused("in holds files, and no manifest.json of a job", job, "in")
    job()
    refused("something else is asked for now .*batch_size was 16, is 3", job, resume=True, batch_size=3)
    fs.pipe_file(f"{path}/in/part-9.jsonl", json.dumps(row("e", 1)).encode())
    refused("part-9.jsonl was None, is", job, resume=True)
    fs.pipe_file(f"{path}/out/{MANIFEST}", b"[]")
    refused("manifest.json is not that of a job of this version", job, resume=True)


def test_inputs_that_cannot_be_read(url):
    fs, path = fsspec.core.url_to_fs(url)
    assert len(PartitionedInput(f"{url}/in/part-*", "en").parts) == 4
    with pytest.raises(DataError, match="no files that end in .jsonl"):
        PartitionedInput(f"{url}/nothing", "en")
    documents = list(PartitionedInput(f"{url}/in", "en").rows())
    fs.pipe_file(f"{path}/in/part-9.jsonl.gz", gzip.compress(b""))
    assert list(PartitionedInput(f"{url}/in", "en").rows()) == documents, "a part without documents"
    fs.pipe_file(f"{path}/in/part-0.jsonl", b'{"doc_id": 3}\n')
    with pytest.raises(DataError, match="/in/part-0.jsonl, line 1"):
        list(PartitionedInput(f"{url}/in", "en").rows())
