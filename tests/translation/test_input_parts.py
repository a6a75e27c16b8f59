"""Documents in many files: their order, parts without documents, other file systems, errors."""

import gzip
import json

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.tiny_models import WORDS

from hf_docmt.files import DataError
from hf_docmt.translation.input_parts import InputParts, has_parts


def row(doc_id, sentences):
    return {"doc_id": doc_id, "translation": [{"en": WORDS[k]} for k in range(sentences)]}


PARTS = {
    "part-0.jsonl": [row("a", 3), row("b", 2)],
    "part-1.jsonl": [],
    "part-2.parquet": [row("c", 4)],
    "part-3.parquet": [],
    "sub/part-4.jsonl": [row("a", 1), row("d", 5)],
}


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


def test_rows_and_identity(url):
    parts = InputParts(f"{url}/in", "en")
    assert [row["doc_id"] for row in parts.rows()] == ["a", "b", "c", "a", "d"]
    before = parts.identity()
    fs, path = fsspec.core.url_to_fs(url)
    fs.pipe_file(f"{path}/in/part-9.jsonl", json.dumps(row("e", 1)).encode())
    assert InputParts(f"{url}/in", "en").identity().items() > before.items()
    assert has_parts(f"{url}/in") and has_parts(f"{url}/*.jsonl") and not has_parts(f"{path}/in/part-0.jsonl")


def test_inputs_that_cannot_be_read(url):
    fs, path = fsspec.core.url_to_fs(url)
    assert len(InputParts(f"{url}/in/part-*", "en").paths) == 4
    with pytest.raises(DataError, match="no files that end in .jsonl"):
        InputParts(f"{url}/nothing", "en")
    documents = list(InputParts(f"{url}/in", "en").rows())
    fs.pipe_file(f"{path}/in/part-9.jsonl.gz", gzip.compress(b""))
    assert list(InputParts(f"{url}/in", "en").rows()) == documents, "a part without documents"
    fs.pipe_file(f"{path}/in/part-0.jsonl", b'{"doc_id": 3}\n')
    with pytest.raises(DataError, match="/in/part-0.jsonl, line 1"):
        list(InputParts(f"{url}/in", "en").rows())
