"""The document contract: what is kept, what is refused and what the message says; documents one at a time."""

import json
import random
import tracemalloc

import pytest
from datasets import Dataset, List, Translation
from support.errors import refused
from support.reader_checks import jsonl, read

from hf_docmt.data import documents as document_module
from hf_docmt.data.documents import (
    DocumentIds,
    check_documents,
    checked_rows,
    collect_documents,
    make_documents,
    sentences,
    write_documents,
)
from hf_docmt.data.readers import iterate_documents
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
    refused("_lang", make_documents, [row()], *languages, error=DataError)


def test_check_names_the_fault():
    good = make_documents([row("a"), row("b")], "en", "de")
    refused("column 'doc_id' is missing", check_documents, good.remove_columns("doc_id"), error=DataError)
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
        refused(message, check_documents, Dataset.from_list(rows, features=good.features), error=DataError)


def test_check_looks_at_selected_rows_only():
    features = make_documents([row()], "en", "de").features
    documents = Dataset.from_list([row("a"), row("b", []), row("c")], features=features)
    assert check_documents(documents.select([0, 2])) == ("en", "de")
    refused("'b' is empty", check_documents, documents.select([2, 1]), error=DataError)


def test_empty_documents_where_they_are_allowed():
    rows = [row("a"), row("b", []), row("c")]
    assert [len(made["translation"]) for made in checked_rows(enumerate(rows), ["en", "de"], True)] == [2, 0, 2]
    documents = collect_documents(((str(n), made) for n, made in enumerate(rows)), "en", "de", allow_empty=True)
    assert documents["doc_id"][:] == ["a", "b", "c"] and check_documents(documents, allow_empty=True) == ("en", "de")
    refused("'b' is empty", check_documents, documents, error=DataError)


def test_unknown_language_of_sentences():
    refused(r"document 'a' has no language 'fr', it has \['de', 'en'\]", sentences, row(), "fr", error=DataError)


def test_written_documents(tmp_path):
    path = tmp_path / "out" / "documents.jsonl"
    documents = make_documents([row("ä", [("Line\u2028sep", "Ö \t")], speaker=["x"])], "en", "de")
    write_documents(documents, path)
    written = path.read_bytes()
    assert [json.loads(line) for line in written.decode().split("\n") if line] == list(documents)
    assert "ä".encode() in written


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row("\ud800")], "half of a surrogate pair"),
        ([row(year=2**70)], "column 'year' has values that make no column"),
        ([row(note="\ud800")], "column 'note' has values that make no column"),
        ([row("a", genre="news"), row("b", genre=["x"])], "column 'genre' has values that make no column"),
    ],
)
def test_values_that_cannot_be_kept(rows, message):
    refused(message, make_documents, rows, "en", "de", error=DataError)


def test_other_columns_keep_their_order():
    row = {"doc_id": "a", "zz": 1, "translation": [{"en": "a", "de": "b"}], "bb": 1, "aa": 1}
    assert make_documents([row], "en", "de").column_names == ["doc_id", "translation", "zz", "bb", "aa"]


def rows(count, **columns):
    return [{"doc_id": f"d{n}", "translation": [{"en": "One.", "de": "Eins."}]} | columns for n in range(count)]


def test_rows_are_those_of_documents(write):
    path = write("a.jsonl", jsonl([{"note": n} | row for n, row in enumerate(rows(5))]))
    iterated = list(iterate_documents("jsonl", path=path, source_lang="en", target_lang="de"))
    assert iterated == list(read("jsonl", path=path))
    assert iterated[3] == rows(5)[3] | {"note": 3}


def test_nothing_is_read_ahead(write):
    path = write("a.jsonl", jsonl(rows(2)) + "broken\n")
    iterated = iterate_documents(path=path, source_lang="en")
    assert [next(iterated)["doc_id"], next(iterated)["doc_id"]] == ["d0", "d1"]
    refused("a.jsonl, line 3, column 1: broken JSON", next, iterated, error=DataError)


def test_arguments_are_checked_at_once(write):
    refused("source_lang is missing", iterate_documents, error=DataError, path=write("a.jsonl", ""), source_lang="")
    with pytest.raises(DataError, match="takes no 'source'"):
        iterate_documents("jsonl", source=write("a.jsonl", ""), source_lang="en")


@pytest.mark.parametrize("named, place", [(10, "a.jsonl, line 4;"), (2, "in document 4;")])
def test_repeated_ids(write, monkeypatch, named, place):
    """The first place is the line for the first documents, and then the number of the document."""
    monkeypatch.setattr(document_module, "NAMED_LOCATIONS", named)
    path = write("a.jsonl", jsonl([*rows(9), rows(4)[3]]))
    with pytest.raises(DataError, match="a.jsonl, line 10: document id 'd3' was used before") as error:
        list(iterate_documents(path=path, source_lang="en"))
    assert place in str(error.value)


def test_ids_are_those_of_a_set():
    draw, ids, seen = random.Random(0), DocumentIds(), {}
    for number in range(1, 30_001):
        doc_id = str(draw.randrange(60_000))
        before = ids.add(doc_id, f"place {number}")
        assert (before is None) == (doc_id not in seen)
        seen.setdefault(doc_id, number)


def test_ids_take_little_memory():
    tracemalloc.start()
    ids = DocumentIds()
    for number in range(20_000):
        ids.add(f"a long name of a document {number}", "in a file with a long name")
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 1_000_000  # a dict of the same takes 4.6 MB
