"""Documents one at a time: the checks of `read_documents`, no line read before it is needed, ids in little memory."""

import random
import tracemalloc

import pytest
from support.reader_checks import jsonl, read

from hf_docmt.data import document_ids
from hf_docmt.data.document_ids import DocumentIds
from hf_docmt.data.documents import checked_rows
from hf_docmt.data.readers import iterate_documents
from hf_docmt.files import DataError


def rows(count, **columns):
    return [{"doc_id": f"d{n}", "translation": [{"en": "One.", "de": "Eins."}]} | columns for n in range(count)]


def test_rows_are_those_of_documents(write):
    path = write("a.jsonl", jsonl([{"note": n} | row for n, row in enumerate(rows(5))]))
    found = list(iterate_documents("jsonl", path=path, source_lang="en", target_lang="de"))
    assert found == list(read("jsonl", path=path))
    assert found[3] == rows(5)[3] | {"note": 3}


def test_nothing_is_read_ahead(write):
    path = write("a.jsonl", jsonl(rows(2)) + "broken\n")
    found = iterate_documents(path=path, source_lang="en")
    assert [next(found)["doc_id"], next(found)["doc_id"]] == ["d0", "d1"]
    with pytest.raises(DataError, match="a.jsonl, line 3, column 1: broken JSON"):
        next(found)


def test_arguments_are_checked_at_once(write):
    with pytest.raises(DataError, match="source_lang is missing"):
        iterate_documents(path=write("a.jsonl", ""), source_lang="")
    with pytest.raises(DataError, match="takes no 'source'"):
        iterate_documents("jsonl", source=write("a.jsonl", ""), source_lang="en")


def test_no_documents():
    with pytest.raises(DataError, match="no documents"):
        next(checked_rows(iter([]), ["en"]))


@pytest.mark.parametrize("named, place", [(10, "a.jsonl, line 4;"), (2, "in document 4;")])
def test_repeated_ids(write, monkeypatch, named, place):
    """The first place is the line for the first documents, and then the number of the document."""
    monkeypatch.setattr(document_ids, "NAMED_LOCATIONS", named)
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
    for number in range(100_000):
        ids.add(f"a long name of a document {number}", "in a file with a long name")
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 5_000_000  # a dict of the same takes 23 MB
