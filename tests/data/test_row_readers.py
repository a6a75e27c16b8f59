"""JSON lines, chats, Parquet, folders and names of the `datasets` library, and the layouts of their rows."""

import json
import sys

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.errors import refused
from support.reader_checks import CHAT, DOCHPLT, TWO, fails, ids, jsonl, pairs, read

from hf_docmt.data.documents import check_documents, make_documents, sentences, write_documents
from hf_docmt.data.language_codes import other_spellings
from hf_docmt.data.readers import iterate_documents
from hf_docmt.data.readers.running_text import join_lines, sentence_splitter, split_lines


def test_jsonl_translation_rows(write):
    rows = [
        {"doc_id": f"d{n}", "translation": [{"en": en, "de": de} for en, de in document], "genre": "x"}
        for n, document in enumerate(TWO)
    ]
    documents = read("jsonl", path=write("a.jsonl", jsonl(rows)))
    assert pairs(documents) == TWO and documents["doc_id"][:] == ["d0", "d1"] and documents["genre"][:] == ["x", "x"]


def test_jsonl_source_and_target_lists(write):
    rows = [{"id": n, "source": [s for s, _ in d], "target": [t for _, t in d]} for n, d in enumerate(TWO)]
    path = write("a.jsonl", jsonl(rows))
    assert pairs(read("jsonl", path=path)) == TWO
    assert read("jsonl", path=path)["doc_id"][:] == ["0", "1"]
    assert check_documents(read("jsonl", target_lang=None, path=path)) == ("en", None)


def test_jsonl_columns_of_any_name(write):
    row = {"id": "a", "source": ["1"], "target": ["2"], "location": "Rome", "languages": 2}
    (document,) = read("jsonl", path=write("a.jsonl", jsonl([row])))
    assert (document["location"], document["languages"]) == ("Rome", 2)


def test_jsonl_fields_of_sentences_are_columns(write):
    pairs = [{"en": "1", "de": "2", "fr": "3", "speaker": "Ana"}, {"en": "4", "de": "5", "speaker": None, "turn_id": 7}]
    (document,) = read("jsonl", path=write("a.jsonl", jsonl([{"id": "a", "translation": pairs}])))
    assert set(document) == {"doc_id", "translation", "speaker", "turn_id"}
    assert (document["speaker"], document["turn_id"]) == (["Ana", None], [None, 7])


def test_jsonl_keys_that_are_not_read_are_columns(write):
    row = {"doc_id": "a", "id": 7, "source": ["1"], "target": ["2"], "target_lang": "de"}
    (document,) = read("jsonl", target_lang=None, path=write("a.jsonl", jsonl([row])))
    assert (document["id"], document["target"], document["target_lang"]) == (7, ["2"], "de")
    (document,) = read("jsonl", path=write("a.jsonl", jsonl([row])))
    assert (set(document), pairs([document])) == ({"doc_id", "translation", "id"}, [[("1", "2")]])


def test_jsonl_languages_in_the_row_decide_the_side(write):
    row = {"id": "a", "source_lang": "en", "target_lang": "de", "source": ["One."], "target": ["Eins."]}
    path = write("a.jsonl", jsonl([row]))
    assert pairs(read("jsonl", "de", "en", path=path), "de", "en") == [[("Eins.", "One.")]]
    assert sentences(read("jsonl", "de", None, path=path)[0], "de") == ["Eins."]
    fails("line 1", "'a'", "no sentences in 'fr'", "['de', 'en']", path=path, target_lang="fr")
    only_target_named = write("b.jsonl", jsonl([{"id": "a", "target_lang": "de", "source": ["1"], "target": ["2"]}]))
    assert pairs(read("jsonl", path=only_target_named)) == [[("1", "2")]]


def test_written_documents_are_read_back(write, tmp_path):
    documents = read("jsonl", path=write("a.jsonl", jsonl([{"id": "a", "source": ["1"], "target": ["2"], "year": 7}])))
    write_documents(documents, tmp_path / "b.jsonl")
    again = read("auto", path=tmp_path / "b.jsonl")
    assert list(again) == list(documents) and again.features == documents.features


def test_chat_turns_are_exchanged(write):
    path = write("chat.json", json.dumps(CHAT, indent=4))
    documents = read("chat", path=path)
    assert pairs(documents) == [[("Hi!", "Hallo!"), ("Yes.", "Ja.")]]
    assert documents["doc_id"][:] == ["dlg-1"] and documents["speaker"][:] == [["agent", "customer"]]
    assert sentences(read("chat", "de", "en", path=path)[0], "de") == ["Hallo!", "Ja."]
    assert sentences(read("chat", "en", None, path=path)[0], "en") == ["Hi!", "Yes."]
    assert sentences(read("chat", "de", None, path=path)[0], "de") == ["Hallo!", "Ja."]
    codes = ("eng_Latn", "deu_Latn")
    assert pairs(read("chat", *codes, path=path), *codes) == [[("Hi!", "Hallo!"), ("Yes.", "Ja.")]]


def test_broken_json(write):
    good = jsonl([{"id": "a", "source": ["1"], "target": ["1"]}])
    fails("a.jsonl, line 2, column 7", "broken JSON", path=write("a.jsonl", good + '{"id" "b"}\n'))
    fails("a.jsonl, line 2", "broken JSON", path=write("a.jsonl", good + good[:20]))
    fails("a.jsonl, line 2", "blank line", path=write("a.jsonl", good + "\n" + good))
    fails("a.jsonl, line 1", "got list", path=write("a.jsonl", "[1]\n"))
    fails(
        "a.jsonl, line 1",
        "got ['id'], expected 'translation', 'source', 'text', or texts of en and de",
        path=write("a.jsonl", '{"id": "a"}\n'),
    )
    fails("a.jsonl, line 1", "'source' must be a list", path=write("a.jsonl", '{"id": "a", "source": "1"}\n'))
    fails("a.json, line 3, column 8", "broken JSON", path=write("a.json", '{\n "a": [\n  {"x" 1}\n ]\n}\n'))
    path = write("x.en", "One.\n")
    files = {"source": path, "target": path}
    fails("i, line 2, column 4", "broken JSON", index=write("i", "[0]\n[1,\n"), **files)
    fails("i, line 1", "list of line numbers", index=write("i", "0\n"), **files)


def test_chat_structure(write):
    turn = {"speaker": "agent", "source": "1", "target": "1"}
    for chat, words in [
        ([], ["conversation id"]),
        ({"a": 1}, ["document 'a'", "list of turns"]),
        ({"a": [turn, {**turn, "speaker": "Agent "}]}, ["document 'a', turn 2", "'Agent '", "is 'agent' meant"]),
        ({"a": [{"speaker": "agent", "source": "1"}]}, ["document 'a', turn 1", "'target' is missing"]),
    ]:
        fails("a.json", *words, format="chat", path=write("a.json", json.dumps(chat)))
    fails("'en'", format="chat", source_lang="fr", path=write("a.json", json.dumps({"a": [turn]})))


TEXT = "Mr. Smith came. He  sat down.\n\nNobody spoke.\n"


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
    split, lines = split_lines(TEXT, sentence_splitter("en"))
    assert join_lines(split, lines) == TEXT.replace("  ", " ")
    assert join_lines(["A\nb.", "", "C."], [3]) == "A b. C."
    assert join_lines(["你好。", "世界。", "(x)"], [3]) == "你好。世界。(x)"
    refused("1 sentences for a text of 2", join_lines, ["A."], [2])


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
        DOCHPLT | {"alignment": DOCHPLT["alignment"][:1]},
    ],
)
def test_languages_spelled_otherwise(write, row):
    path = write("a.jsonl", jsonl([{"doc_id": "a", **row}]))
    documents = read("jsonl", "eng_Latn", "deu_Latn", path=path)
    assert [sentences(documents[0], lang) for lang in ("eng_Latn", "deu_Latn")] == [["One."], ["Eins."]]


def test_which_language_is_meant():
    assert other_spellings(["en", "de", "fr"], ["eng_Latn", "de"]) == {"en": "eng_Latn"}
    assert other_spellings(["zh_CN", "zh_TW"], ["zho_Hans"]) == {}  # either
    assert other_spellings(["en", "en_GB"], ["en"]) == {}


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
    rows = iterate_documents(path=path, source_lang="en")
    assert next(rows)["doc_id"] == "d0" and next(rows)["doc_id"] == "d1"
    refused("a.parquet, row 3: document id 'd0' was used before", next, rows)


def test_bad_parquet(parquet, tmp_path, monkeypatch):
    path = parquet(ROWS)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    fails("a.parquet, after row 0", "broken Parquet", path=path)
    fails(
        "a.parquet, row 1",
        "expected 'translation', 'source'",
        path=parquet([{"doc_id": "a", "translation": None, "x": 1}]),
    )
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


def test_other_folders_are_not_inputs(tmp_path):
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


def test_texts_by_language(write):
    """Rows of WMT25's terminology task: lines are sentences, a document of unequal lines is one segment."""
    rows = [{"en": "A lamp.", "de": "Eine Lampe.", "proper": {"lamp": "Lampe"}, "random": {}}]
    rows.append({"en": "# One\n\nTwo.", "de": "# Eins\n\nZwei.", "proper": {"one": ["eins", "ein"]}, "random": {}})
    rows.append({"en": "Three.\nFour.", "de": "Drei. Vier.", "proper": {}, "random": {}})
    documents = read("auto", path=write("terms.jsonl", jsonl(rows)), source_lang="eng_Latn")
    assert ids(documents) == ["terms-00001", "terms-00002", "terms-00003"]
    assert pairs(documents, "eng_Latn") == [
        [("A lamp.", "Eine Lampe.")],
        [("# One", "# Eins"), ("", ""), ("Two.", "Zwei.")],
        [("Three.\nFour.", "Drei. Vier.")],
    ]
    assert documents["proper"][1] == [{"source": "one", "targets": ["eins", "ein"]}]
    assert len(read("auto", path=write("terms.jsonl", jsonl(rows)), target_lang=None)["translation"][2]) == 2
    bad = write("bad.jsonl", jsonl([rows[0] | {"proper": {"lamp": 3}}]))
    fails("bad.jsonl, line 1: 'proper' must have a text or a list of texts for each term", path=bad)
    fails("bad.jsonl, line 1: got ['de', 'en', ", "texts of en and fr", path=bad, target_lang="fr")
