"""Documents in Parquet and in folders and names of the `datasets` library."""

import sys

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.reader_checks import TWO, fails, ids, pairs, read

from hf_docmt.data.documents import make_documents, sentences
from hf_docmt.data.readers import iterate_documents

ROWS = [{"doc_id": f"d{n}", "translation": [{"en": en, "de": de} for en, de in two]} for n, two in enumerate(TWO)]


@pytest.fixture
def parquet(tmp_path):
    def write(rows, name="a.parquet", **options):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name, **options)
        return tmp_path / name

    return write


@pytest.mark.parametrize("format", ["auto", "parquet"])
def test_parquet(parquet, format):
    path = parquet([row | {"genre": "x"} for row in ROWS])
    documents = read(format, path=path)
    assert pairs(documents) == TWO and ids(documents) == ["d0", "d1"] and documents["genre"][:] == ["x", "x"]


def test_parquet_by_its_first_bytes(parquet):
    assert pairs(read("auto", path=parquet(ROWS, name="data"))) == TWO


def test_parquet_of_lists_texts_and_no_ids(parquet):
    rows = [{"source": [en for en, _ in two], "target": [de for _, de in two]} for two in TWO]
    documents = read("auto", path=parquet(rows))
    assert pairs(documents) == TWO and ids(documents) == ["a-00001", "a-00002"]
    documents = read("auto", target_lang=None, path=parquet([{"id": 3, "text": "One. Two."}]))
    assert sentences(documents[0], "en") == ["One.", "Two."] and ids(documents) == ["3"]


def test_row_groups_are_read_when_their_turn_comes(parquet):
    path = parquet(ROWS * 500, row_group_size=100)
    found = iterate_documents(path=path, source_lang="en")
    assert next(found)["doc_id"] == "d0" and next(found)["doc_id"] == "d1"
    with pytest.raises(ValueError, match="a.parquet, row 3: document id 'd0' was used before"):
        next(found)


def test_bad_parquet(parquet, tmp_path, monkeypatch):
    path = parquet(ROWS)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    fails("a.parquet, after row 0", "broken Parquet", path=path)
    fails("a.parquet, row 1", "neither 'translation'", path=parquet([{"doc_id": "a", "translation": None, "x": 1}]))
    fails("a.parquet, row 1", "'a'", "needs 'translation'", path=parquet([{"doc_id": "a", "translation": "x"}]))
    fails("b.parquet", "does not exist", path=tmp_path / "b.parquet")
    fails("standard input", format="parquet", path="-")


def test_folder(tmp_path):
    make_documents(ROWS, "en", "de").save_to_disk(tmp_path / "saved")
    for format in ("auto", "datasets"):
        assert pairs(read(format, path=tmp_path / "saved")) == TWO
    fails("saved", "has no splits, got split 'train'", path=tmp_path / "saved", split="train")
    fails("saved", "only data sets on the Hub have a config", path=tmp_path / "saved", config="x")


def test_folder_of_splits(tmp_path):
    parts = {"train": make_documents(ROWS, "en", "de"), "test": make_documents(ROWS[:1], "en", "de")}
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "saved")
    assert pairs(read("auto", path=tmp_path / "saved", split="test")) == TWO[:1]
    fails("the splits train, test, got None", path=tmp_path / "saved")


def test_damaged_folder(tmp_path):
    make_documents(ROWS, "en", "de").save_to_disk(tmp_path / "saved")
    (tmp_path / "saved" / "state.json").write_text("{")
    fails("saved", "no data set that can be read", path=tmp_path / "saved")


def test_other_folders_are_no_input(tmp_path):
    fails(str(tmp_path), "is a folder", path=tmp_path, target_lang=None)
    fails(str(tmp_path), "no data set that can be read", format="datasets", path=tmp_path)


@pytest.mark.parametrize("name", ["./none", "../../none", "/no/where", "~/none", "a/b/c", "none/", "tests/data/none"])
def test_folders_that_are_missing_are_not_asked_of_the_hub(name, monkeypatch):
    monkeypatch.setattr(datasets, "load_dataset", None)
    fails(f"{name}: no such folder", format="datasets", path=name, split="train")


def test_hub_names(monkeypatch):
    calls = []

    def load_dataset(*arguments, **options):
        calls.append((arguments, options))
        return iter(ROWS)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    fails("owner/corpus", "needs the name of a split", format="datasets", path="owner/corpus")
    assert pairs(read("datasets", path="owner/corpus", split="train", config="en-de")) == TWO
    assert calls == [(("owner/corpus", "en-de"), {"split": "train", "streaming": True})]


def test_hub_without_a_network(monkeypatch):
    def load_dataset(*arguments, **options):
        raise ConnectionError("Couldn't reach 'owner/corpus' on the Hub")

    monkeypatch.setattr(sys.modules["datasets"], "load_dataset", load_dataset)
    fails("owner/corpus", "Couldn't reach", "save_to_disk", format="datasets", path="owner/corpus", split="train")
