"""The document contract: what is kept, what is refused and what the message says."""

import json

import pytest
from datasets import Dataset, List, Translation

from hf_docmt.data.documents import (
    check_documents,
    collect_documents,
    make_documents,
    make_row,
    sentences,
    write_documents,
)
from hf_docmt.files import DataError


def row(doc_id="a", pairs=(("One.", "Eins."), ("", "")), **columns):
    return {"doc_id": doc_id, "translation": [{"en": en, "de": de} for en, de in pairs], **columns}


def test_rows_become_documents_in_order():
    documents = make_documents([row("b"), row("a", [("Two.", "Zwei.")])], "en", "de")
    assert documents["doc_id"][:] == ["b", "a"]
    assert documents.features["translation"] == List(Translation(["en", "de"]))
    assert check_documents(documents) == ("en", "de")
    assert sentences(documents[0], "en") == ["One.", ""]
    assert sentences(documents[0], "de") == ["Eins.", ""]


def test_direction_is_that_of_the_arguments():
    assert check_documents(make_documents([row()], "de", "en")) == ("de", "en")


def test_source_side_only():
    documents = make_documents([row()], "en")
    assert check_documents(documents) == ("en", None)
    assert documents[0]["translation"] == [{"en": "One."}, {"en": ""}]


def test_more_rows_than_one_table():
    documents = make_documents((row(f"d{n}") for n in range(2500)), "en", "de")
    assert documents["doc_id"][:] == [f"d{n}" for n in range(2500)]
    assert check_documents(documents) == ("en", "de")


def test_other_columns_are_kept_and_filled():
    documents = make_documents([row("a"), row("b", speaker=["x", "y"]), row("c")], "en", "de")
    assert documents["speaker"][:] == [None, ["x", "y"], None]


def test_column_of_mixed_types():
    with pytest.raises(DataError, match="column 'genre' has values that make no column"):
        make_documents([row("a", genre="news"), row("b", genre=["x"])], "en", "de")


@pytest.mark.parametrize(
    "rows, words",
    [
        ([row(), {"translation": [{"en": "x", "de": "y"}]}], ["document 2", "id is missing", "None"]),
        ([row(""), row()], ["document 1", "id is missing"]),
        ([row("a"), row("b"), row("a")], ["document 3", "'a'", "used before", "document 1"]),
        ([row("a"), row("b", [])], ["document 2", "'b' is empty"]),
        ([{"doc_id": "a"}], ["document 1", "'translation'"]),
        ([row("a", [("x", None)])], ["'a'", "sentence 1 of 1", "'de'"]),
        ([{"doc_id": "a", "translation": [{"en": "x", "fr": "y"}]}], ["'a'", "no text in 'de'", "['en', 'fr']"]),
        ([{"doc_id": "a", "translation": ["x"]}], ["'a'", "sentence 1", "'en'"]),
        ([row("a", [("x", "\ud83d")])], ["'a'", "sentence 1 (de)", "surrogate"]),
        ([], ["no documents"]),
    ],
)
def test_bad_rows(rows, words):
    with pytest.raises(DataError) as error:
        make_documents(rows, "en", "de")
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize("languages", [(None, "de"), ("", "de"), ("en", ""), ("en", "en")])
def test_bad_languages(languages):
    with pytest.raises(DataError, match="_lang"):
        make_documents([row()], *languages)


def test_location_of_reader_is_named():
    with pytest.raises(DataError, match=r"a\.jsonl, line 7: document 'a' is empty"):
        collect_documents([("a.jsonl, line 7", row("a", []))], "en", "de")


def test_sides_of_different_length():
    with pytest.raises(DataError, match=r"x\.tsv: document 'a' has 2 source sentences \(en\) but 1 target"):
        make_row("x.tsv", "a", ["1", "2"], ["1"], ["en", "de"])


def test_check_names_what_is_wrong():
    good = make_documents([row("a"), row("b")], "en", "de")
    with pytest.raises(DataError, match="column 'doc_id' is missing"):
        check_documents(good.remove_columns("doc_id"))
    with pytest.raises(DataError, match="List\\(Translation"):
        check_documents(Dataset.from_list([{"doc_id": "a", "translation": ["x"]}]))
    three = {"doc_id": "a", "translation": [{"en": "x", "de": "y", "fr": "z"}]}
    feature = {**good.features, "translation": List(Translation(["en", "de", "fr"]))}
    with pytest.raises(DataError, match="at most one target"):
        check_documents(Dataset.from_list([three], features=type(good.features)(feature)))
    bad = {
        "'a' is used more than once": [row("a"), row("b"), row("a")],
        "'b' is empty": [row("a"), row("b", [])],
        "'de' is null": [row("a", [("x", None)])],
        "id is missing": [row(None)],
    }
    for message, rows in bad.items():
        with pytest.raises(DataError, match=message):
            check_documents(Dataset.from_list(rows, features=good.features))


def test_check_looks_at_selected_rows_only():
    features = make_documents([row()], "en", "de").features
    documents = Dataset.from_list([row("a"), row("b", []), row("c")], features=features)
    assert check_documents(documents.select([0, 2])) == ("en", "de")
    with pytest.raises(DataError, match="'b' is empty"):
        check_documents(documents.select([2, 1]))


def test_unknown_language_of_sentences():
    with pytest.raises(DataError, match=r"document 'a' has no language 'fr', it has \['de', 'en'\]"):
        sentences(row(), "fr")


def test_write_is_atomic(tmp_path):
    path = tmp_path / "out" / "documents.jsonl"
    documents = make_documents([row("ä", [("Line\u2028sep", "Ö \t")], speaker=["x"])], "en", "de")
    write_documents(documents, path)
    written = path.read_bytes()
    assert [json.loads(line) for line in written.decode().split("\n") if line] == list(documents)
    assert "ä".encode() in written

    def breaks():
        yield row("b")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_documents(breaks(), path)
    assert path.read_bytes() == written
    assert [file.name for file in path.parent.iterdir()] == ["documents.jsonl"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"doc_id": "\ud800"}, "half of a surrogate pair"),
        ({"doc_id": "a", "year": 2**70}, "column 'year' has values that make no column"),
        ({"doc_id": "a", "note": "\ud800"}, "column 'note' has values that make no column"),
    ],
)
def test_values_that_cannot_be_kept(row, message):
    with pytest.raises(DataError, match=message):
        make_documents([{"translation": [{"en": "a", "de": "b"}]} | row], "en", "de")


def test_other_columns_keep_their_order():
    row = {"doc_id": "a", "zz": 1, "translation": [{"en": "a", "de": "b"}], "bb": 1, "aa": 1}
    assert make_documents([row], "en", "de").column_names == ["doc_id", "translation", "zz", "bb", "aa"]
