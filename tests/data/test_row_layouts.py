"""Rows of JSON lines that are no lists of sentence pairs: running text, rows without ids, pairs of DocHPLT."""

import json

import pytest
from support.reader_checks import fails, jsonl, pairs, read

from hf_docmt.data.documents import sentences
from hf_docmt.data.language_codes import other_spellings
from hf_docmt.data.readers import read_documents
from hf_docmt.data.readers.running_text import join_lines, sentence_splitter, split_lines

TEXT = "Mr. Smith came. He  sat down.\n\nNobody spoke.\n"
DOCHPLT = {
    "src_doc_id": "a1",
    "tgt_doc_id": "b1",
    "lang_pair": "en-de",
    "src_doc": {"ids": ["1", "2", "3", "4"], "sentences": ["One.", "Menu", "Two.", "Three."]},
    "tgt_doc": {"ids": ["1", "2", "3"], "sentences": ["Eins.", "Zwei, drei.", "Ende"]},
    "alignment": [
        {"src": ["1"], "tgt": ["1"], "aligner-score": 0.9, "bicleaner-score": 0.8, "bifixer-score": 0.7},
        {"src": ["3", "4"], "tgt": ["2"], "aligner-score": 0.6, "bicleaner-score": 0.5, "bifixer-score": 0.4},
    ],
}


def test_running_text(write):
    path = write("web.jsonl", jsonl([{"text": TEXT, "url": "x"}, {"id": 7, "text": " \n"}]))
    documents = read("jsonl", target_lang=None, path=path)
    assert documents["doc_id"][:] == ["web-00001", "7"] and documents["url"][:] == ["x", None]
    assert sentences(documents[0], "en") == ["Mr. Smith came.", "He sat down.", "Nobody spoke."]
    assert documents["text_lines"][:] == [[2, 0, 1, 0], [1]] and sentences(documents[1], "en") == [""]


def test_sentences_with_lines_of_their_own(write):
    """As many as there are sentences; of a text they are counted anew, and null is none."""
    rows = [
        {"id": "a", "source": ["One.", "Two."], "text_lines": [0, 2]},
        {"id": "b", "translation": [{"en": "One."}], "text_lines": None},
        {"id": "c", "text": "One.\n\nTwo.\n", "text_lines": [9]},
    ]
    documents = read("jsonl", target_lang=None, path=write("a.jsonl", jsonl(rows)))
    assert documents["text_lines"][:] == [[0, 2], None, [1, 0, 1, 0]]
    for wrong in ([1], [3, -1], [True, 1], 2, "One.\nTwo."):
        path = write("b.jsonl", jsonl([rows[0] | {"text_lines": wrong}]))
        fails("b.jsonl, line 1: document 'a' has 'text_lines' ", ", 2 in all", target_lang=None, path=path)


def test_text_comes_back():
    assert sentence_splitter("deu_Latn")("Am 3. Mai kam er.") == sentence_splitter("de")("Am 3. Mai kam er.")
    found, lines = split_lines(TEXT, sentence_splitter("en"))
    assert join_lines(found, lines) == TEXT.replace("  ", " ")
    assert join_lines(["A\nb.", "", "C."], [3]) == "A b. C."
    assert join_lines(["你好。", "世界。", "(x)"], [3]) == "你好。世界。(x)"
    with pytest.raises(ValueError, match="1 sentences for a text of 2"):
        join_lines(["A."], [2])


@pytest.mark.parametrize(
    "row, words",
    [
        ({"text": 3}, ["must be a string, got int"]),
        ({"text": "\ud800"}, ["'a-00001'", "surrogate"]),
        ({"text": "x", "meta": {"title": "\ud800"}}, ["'a-00001', 'meta'", "surrogate"]),
    ],
)
def test_bad_text(write, row, words):
    path = write("a.jsonl", jsonl([row]))
    fails("a.jsonl, line 1", *words, format="jsonl", target_lang=None, path=path)
    fails("a.jsonl, line 1", "no target side", format="jsonl", path=path)


def test_rows_without_ids_are_numbered_by_line(write):
    row = {"source": ["One."], "target": ["Eins."]}
    assert read("jsonl", path=write("a.b.jsonl", jsonl([row, row])))["doc_id"][:] == ["a-00001", "a-00002"]
    fails("a.jsonl, line 2", "'a-00001' was used before", path=write("a.jsonl", jsonl([row, row | {"id": "a-00001"}])))


@pytest.mark.parametrize("languages", [("en", "de"), ("de", "en")])
def test_dochplt_pairs(write, languages):
    documents = read("auto", *languages, path=write("a.json", jsonl([DOCHPLT])))
    aligned = [("One.", "Eins."), ("Two. Three.", "Zwei, drei.")]
    assert pairs(documents) == [aligned] and documents["doc_id"][:] == ["a1 b1"]
    assert documents[0]["scores"][1] == {"aligner-score": 0.6, "bicleaner-score": 0.5, "bifixer-score": 0.4}


def test_dochplt_source_side_has_all_sentences(write):
    documents = read("jsonl", target_lang=None, path=write("a.jsonl", jsonl([DOCHPLT])))
    assert sentences(documents[0], "en") == DOCHPLT["src_doc"]["sentences"]


@pytest.mark.parametrize(
    "change, words",
    [
        ({"lang_pair": "en-fi"}, ["'lang_pair' is 'en-fi'", "['en', 'de']"]),
        ({"lang_pair": None}, ["'lang_pair' is None"]),
        ({"src_doc_id": ""}, ["'src_doc_id'"]),
        ({"src_doc": ["One."]}, ["'src_doc' must have 'ids' and 'sentences'"]),
        ({"src_doc": {"ids": ["1", "1"], "sentences": ["a", "b"]}}, ["2 sentences with 1 ids"]),
        ({"alignment": []}, ["'alignment', a list"]),
        ({"alignment": [{"src": ["9"], "tgt": ["1"]}]}, ["'src' ['9'], expected ids of 'src_doc'"]),
    ],
)
def test_bad_dochplt_rows(write, change, words):
    path = write("a.jsonl", json.dumps(DOCHPLT | change) + "\n")
    fails("a.jsonl, line 1", *words, format="jsonl", path=path)


@pytest.mark.parametrize(
    "row",
    [
        {"translation": [{"en": "One.", "de": "Eins."}]},
        {"source": ["Eins."], "target": ["One."], "source_lang": "deu", "target_lang": "en_XX"},
    ],
)
def test_languages_spelled_otherwise(write, row):
    path = write("a.jsonl", jsonl([{"doc_id": "a", **row}]))
    documents = read_documents(path=path, source_lang="eng_Latn", target_lang="deu_Latn")
    assert [sentences(documents[0], lang) for lang in ("eng_Latn", "deu_Latn")] == [["One."], ["Eins."]]


def test_languages_of_dochplt_spelled_otherwise(write):
    path = write("a.jsonl", json.dumps(DOCHPLT) + "\n")
    documents = read_documents(path=path, source_lang="deu_Latn", target_lang="eng_Latn")
    assert sentences(documents[0], "deu_Latn") == ["Eins.", "Zwei, drei."]


def test_which_language_is_meant():
    assert other_spellings(["en", "de", "fr"], ["eng_Latn", "de"]) == {"en": "eng_Latn"}
    assert other_spellings(["zh_CN", "zh_TW"], ["zho_Hans"]) == {}  # either
    assert other_spellings(["en", "en_GB"], ["en"]) == {}
