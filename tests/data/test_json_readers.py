"""JSON lines and chats."""

import json

from support.reader_checks import CHAT, TWO, fails, jsonl, pairs, read

from hf_docmt.data.documents import check_documents, sentences, write_documents


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
    fails("a.jsonl, line 1", "neither 'translation' nor 'source'", path=write("a.jsonl", '{"id": "a"}\n'))
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
