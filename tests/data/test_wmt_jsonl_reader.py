"""Test sets in JSON lines as WMT has them since 2025: what is read, and the lines of hypotheses that are written."""

import json

import pytest
from support.reader_checks import fails, ids, jsonl, pairs, read

from hf_docmt.data.documents import sentences
from hf_docmt.data.readers import get_reader, iterate_documents

TEXT = "One here. Two there.\n\nThree."


def row(doc_id="a", tgt_lang="de_DE", src_lang="en", **columns):
    fields = {"collection_id": "general", "dataset_id": "wmttest2025", "domain": "news", "prompt_instruction": "x"}
    refs = {"refA": {"ref": "Eins hier. Zwei da.\n\nDrei."}}
    pair = {"src_lang": src_lang, "tgt_lang": tgt_lang}
    return fields | pair | {"doc_id": doc_id, "src_text": TEXT, "refs": refs} | columns


SET = [row(), row("b", "cs_CZ"), row("c", "zh_CN"), row("d", src_lang="cs")]


@pytest.mark.parametrize("code", ["de_DE", "de"])
def test_source_side(write, code):
    path = write("set.jsonl", jsonl(SET))
    documents = read("auto", target_lang=None, path=path, tgt_lang=code)
    assert documents["doc_id"][:] == ["a"] and documents["tgt_lang"][:] == ["de_DE"]
    assert sentences(documents[0], "en") == ["One here.", "Two there.", "Three."]


def test_references_are_read_line_by_line(write):
    documents = read("auto", path=write("set.jsonl", jsonl(SET)))
    assert pairs(documents) == [[("One here. Two there.", "Eins hier. Zwei da."), ("", ""), ("Three.", "Drei.")]]
    refs = {"refA": "Eins.\n\nDrei.", "refB": "Zwei.\n\nVier."}
    path = write("two.jsonl", jsonl([row(refs=refs)]))
    assert pairs(read("wmt_jsonl", path=path, translator="refB"))[0][0][1] == "Zwei."
    fails("two.jsonl, line 1", "'refA', 'refB'", "translator=", path=path)


@pytest.mark.parametrize("ends", [("\n", ""), ("", "\n"), ("\r\n", "\n")])
def test_line_ends_at_the_end_begin_no_line(write, ends):
    refs = {"refA": {"ref": "Eins.\n\nZwei." + ends[1]}}
    path = write("set.jsonl", jsonl([row(src_text="One.\n\nTwo." + ends[0], refs=refs)]))
    assert pairs(read("auto", path=path)) == [[("One.", "Eins."), ("", ""), ("Two.", "Zwei.")]]
    path = write("lost.jsonl", jsonl([row(src_text="One.\n\nTwo." + ends[0], refs={"refA": "Eins.\nZwei."})]))
    assert pairs(read("auto", path=path)) == [[("One.\n\nTwo.", "Eins.\nZwei.")]]  # one segment


def test_documents_without_references_are_skipped(write, caplog):
    rows = [row("a", refs={}), row("b"), row("c", refs={})]
    assert ids(read("auto", path=write("set.jsonl", jsonl(rows)))) == ["b"]
    assert "set.jsonl: 2 documents with refs {} skipped" in caplog.text
    assert len(read("auto", path=write("set.jsonl", jsonl(rows)), target_lang=None, tgt_lang="de")) == 3
    fails("set.jsonl: no document for de_DE has a reference", path=write("set.jsonl", jsonl(rows[:1])))


def test_blind_set_of_2026(write):
    """Without a source language, and with another name of the text."""
    rows = [{"doc_id": "a", "source_doc": TEXT, "tgt_lang": "deu_Latn"}]
    (document,) = read("auto", target_lang=None, path=write("set.jsonl", jsonl(rows)))
    assert len(sentences(document, "en")) == 3 and document["tgt_lang"] == "deu_Latn"


def test_hypotheses(write):
    reader = get_reader("wmt_jsonl")
    (document,) = iterate_documents(path=write("set.jsonl", jsonl(SET)), source_lang="en", tgt_lang="de")
    result = {"doc_id": "a", "source": ["", "", ""], "translation": ["Eins.", "Zwei.", "Drei."], "repairs": []}
    written = json.loads(reader.render(document, result))
    assert written.pop("hypothesis") == "Eins. Zwei.\n\nDrei."
    assert written == {
        "doc_id": "a",
        "collection_id": "general",
        "dataset_id": "wmttest2025",
        "src_lang": "en",
        "tgt_lang": "de_DE",
        "domain": "news",
    }
    failed = json.loads(reader.render(document, result | {"translation": ["", "", ""], "error": "no memory"}))
    assert (failed["hypothesis"], failed["error"]) == ("\n\n", "no memory")


@pytest.mark.parametrize(
    "rows, words",
    [
        (SET, ["line 2", "'de_DE' and 'cs_CZ'", "tgt_lang="]),
        ([row(src_lang="fr")], ["set.jsonl: no documents for en", "fr-de_DE"]),
        ([row(src_text=3)], ["line 1", "'src_text' is missing or no string, got 3"]),
        ([row(doc_id=None)], ["line 1", "'doc_id'"]),
        ([row(tgt_lang=["de"])], ["line 1", "'tgt_lang'"]),
        ([row(src_text="\ud800")], ["line 1", "surrogate"]),
        ([row(domain="\ud800")], ["line 1", "surrogate"]),
        ([3], ["line 1", "object"]),
        ([row(), row()], ["line 2", "'a' was used before"]),
    ],
)
def test_bad_rows(write, rows, words):
    fails("set.jsonl", *words, format="wmt_jsonl", target_lang=None, path=write("set.jsonl", jsonl(rows)))


@pytest.mark.parametrize("refs", [None, [], {"refA": {"text": "x"}}, {"refA": 3}])
def test_bad_references(write, refs):
    fails("line 1", "'a' has the references", "translator", path=write("set.jsonl", jsonl([row(refs=refs)])))
