"""Readers: every format, detection, bad input with place and remedy, and the real files where they are at hand."""

import gzip
import io
import json
import sys
from pathlib import Path

import pytest

from hf_docmt.data.documents import check_documents, sentences, write_documents
from hf_docmt.data.readers import get_reader, read_documents, readers
from hf_docmt.files import DataError

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def read(format, source_lang="en", target_lang="de", **files):
    return read_documents(format, source_lang=source_lang, target_lang=target_lang, **files)


def pairs(documents, source="en", target="de"):
    return [list(zip(sentences(row, source), sentences(row, target))) for row in documents]


def fails(*words, format="auto", **arguments):
    with pytest.raises(DataError) as error:
        read(format, **arguments)
    missing = [word for word in words if word not in str(error.value)]
    assert not missing, f"{missing} not in: {error.value}"


TWO = [[("One.", "Eins."), ("", ""), ("Two. ", " Zwei.")], [("Three.", "Drei.")]]


def jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


# ---------------------------------------------------------------- formats


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


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_dtag(write, end):
    sides = ["".join(f"<d>{end}" + "".join(pair[side] + end for pair in doc) for doc in TWO) for side in (0, 1)]
    documents = read("dtag", source=write("talks.en.txt", sides[0]), target=write("talks.de.txt", sides[1]))
    assert pairs(documents) == TWO and documents["doc_id"][:] == ["talks-00001", "talks-00002"]


def test_blank(write):
    source, target = write("a.en", "One.\nTwo. \n\nThree.\n"), write("a.de", "Eins.\r\nZwei.\r\n\r\nDrei.\r\n\r\n")
    assert pairs(read("blank", source=source, target=target)) == [
        [("One.", "Eins."), ("Two. ", "Zwei.")],
        [("Three.", "Drei.")],
    ]


@pytest.mark.parametrize("header", ["", "doc_id\tsource\ttarget\n", "id\tsource\ttarget\n"])
def test_tsv(write, header):
    lines = "".join(f"d{n}\t{s}\t{t}\n" for n, document in enumerate(TWO) for s, t in document)
    path = write("a.tsv", header + lines)
    documents = read("tsv", path=path)
    assert pairs(documents) == TWO and documents["doc_id"][:] == ["d0", "d1"]
    assert sentences(read("tsv", target_lang=None, path=path)[0], "en") == ["One.", "", "Two. "]


def test_tsv_columns_by_name_and_source_only(write):
    path = write("a.tsv", 'target\tn\tsource\tdoc_id\nEins "x\t1\tOne\td\n')
    assert pairs(read("tsv", path=path)) == [[("One", 'Eins "x')]]
    assert sentences(read("tsv", target_lang=None, path=write("b.tsv", "d\tOne\nd\t\n"))[0], "en") == ["One", ""]


CHAT = {
    "dlg-1": [
        {"utteranceID": 0, "speaker": "agent", "source": "Hi!", "target": "Hallo!"},
        {"utteranceID": 1, "speaker": "customer", "source": "Ja.", "target": "Yes."},
    ]
}


def test_chat_turns_are_turned_round(write):
    path = write("chat.json", json.dumps(CHAT, indent=4))
    documents = read("chat", path=path)
    assert pairs(documents) == [[("Hi!", "Hallo!"), ("Yes.", "Ja.")]]
    assert documents["doc_id"][:] == ["dlg-1"] and documents["speaker"][:] == [["agent", "customer"]]
    assert sentences(read("chat", "de", "en", path=path)[0], "de") == ["Hallo!", "Ja."]
    assert sentences(read("chat", "en", None, path=path)[0], "en") == ["Hi!", "Yes."]
    assert sentences(read("chat", "de", None, path=path)[0], "de") == ["Hallo!", "Ja."]


def test_dialogue(write):
    source, target = write("english_dev.txt", "One.\r\n\r\nTwo.\r\n"), write("german_dev.txt", "Eins.\r\n\r\nZwei.\r\n")
    index = write("index.txt", "[0, 1]\r\n[2]\r\n")
    documents = read("dialogue", source=source, target=target, index=index)
    assert pairs(documents) == [[("One.", "Eins."), ("", "")], [("Two.", "Zwei.")]]
    assert documents["doc_id"][:] == ["english_dev-00001", "english_dev-00002"]
    alone = read("dialogue", target_lang=None, source=source, index=index)
    assert [sentences(row, "en") for row in alone] == [["One.", ""], ["Two."]]


def test_voita(write):
    source = write("a.src", "One . _eos Two . _eos  _eos Four_eos .\nFive _eos Six _eos _eos\n")
    target = write("a.dst", "1 _eos 2 _eos _eos 4\n5 _eos 6 _eos  _eos \n")
    assert pairs(read("voita", source=source, target=target)) == [
        [("One .", "1"), ("Two .", "2"), ("", ""), ("Four_eos .", "4")],
        [("Five", "5"), ("Six", "6"), ("", ""), ("", "")],
    ]


def test_lines_stay_line_for_line(write):
    path = write("story.txt", "One.\n\n  Two \u2028 \x0b \x85 still two.\r\n\n")
    documents = read("lines", target_lang=None, path=path)
    assert documents["doc_id"][:] == ["story"]
    assert sentences(documents[0], "en") == ["One.", "", "  Two \u2028 \x0b \x85 still two.", ""]
    both = read("lines", target_lang=None, path=[path, write("b.txt", "Three")])
    assert [len(row["translation"]) for row in both] == [4, 1]


def test_text_is_split_into_sentences(write):
    pytest.importorskip("sentencex")
    text = 'Dr. Smith came on\nJan. 5. He said:  "Hello!" Then\the left.\n\nA title\n\nLast one.\n'
    documents = read("text", target_lang=None, path=write("a.txt", text))
    assert sentences(documents[0], "en") == [
        "Dr. Smith came on Jan. 5.",
        'He said: "Hello!"',
        "Then he left.",
        "A title",
        "Last one.",
    ]
    chinese = read("text", "zh", None, path=write("b.txt", "你好。我很好！"))
    assert sentences(chinese[0], "zh") == ["你好。", "我很好！"]


def test_text_without_the_splitter_says_how_to_install_it(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    fails("pip install 'hf-docmt[text]'", "'lines'", format="text", target_lang=None, path=write("a.txt", "One. Two."))


def test_gzip_and_byte_order_mark(write):
    path = write("a.txt.gz", gzip.compress(b"\xef\xbb\xbfOne.\nTwo \xef\xbb\xbf.\n"))
    assert sentences(read("auto", target_lang=None, path=path)[0], "en") == ["One.", "Two \ufeff."]
    fails("a.gz", "gzip", format="lines", target_lang=None, path=write("a.gz", gzip.compress(b"One.\n" * 99)[:-12]))


@pytest.mark.parametrize("format", ["auto", "named"])
def test_standard_input(monkeypatch, format):
    for name, text in {"jsonl": jsonl([{"id": "a", "source": ["One.", ""]}]), "lines": "One.\n\n"}.items():
        stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode())))
        monkeypatch.setattr(sys, "stdin", stream)
        documents = read(name if format == "named" else "auto", target_lang=None, path="-")
        assert sentences(documents[0], "en") == ["One.", ""]
    assert documents["doc_id"][:] == ["stdin"]


# ---------------------------------------------------------------- detection


def test_detection(write):
    row = jsonl([{"id": "a", "source": ["One."], "target": ["Eins."]}])
    for name, text in {
        "a.jsonl": row,
        "a.json": row,
        "a.txt": row,
        "chat.json": json.dumps(CHAT, indent=1),
        "line.json": json.dumps(CHAT),
        "a.tsv": "d\tOne.\tEins.\n",
    }.items():
        assert len(read("auto", path=write(name, text))) == 1, name
    for text in ("<d>\nOne.\n<d>\nTwo.\n", "One. _eos 2\nThree _eos 4\n", "One.\n\nTwo.\n"):
        path = write("a.en", text)
        assert len(read("auto", target_lang=None, source=path)) == 2, text
        assert len(read("auto", source=path, target=path)) == 2, text
    path = write("a.en", "One.\nTwo.\n")
    assert len(read("auto", source=path, target=path, index=write("i", "[0]\n[1]\n"))) == 2
    assert read("auto", target_lang=None, path=write("b.txt", "{laughs} One.\n"))["doc_id"][:] == ["b"]
    assert len(read("auto", target_lang=None, path=[path])) == 1
    fails("a.en", "format='blank'", source=path, target=path)
    fails("d.txt", "'<d>'", "'dtag'", target_lang=None, path=write("d.txt", "<d>\nOne.\n"))
    fails("v.txt", "'_eos'", "'voita'", target_lang=None, path=write("v.txt", "One _eos Two\n"))


def test_unknown_format_and_files(write):
    path = write("a.jsonl", jsonl([{"id": "a", "source": ["1"]}]))
    fails("unknown format 'jsnol'", "did you mean 'jsonl'", ", ".join(readers()), format="jsnol", path=path)
    fails("'jsonl' takes no 'paht'", "did you mean 'path'", format="jsonl", paht=path)
    fails("'dialogue' needs the file 'index'", format="dialogue", source=path, target=path)
    fails("no input file")


# ---------------------------------------------------------------- bad input


def test_missing_file_and_language(write, tmp_path):
    for format in ("jsonl", "tsv", "chat"):
        fails("nope.x", "does not exist", "check the path", format=format, path=tmp_path / "nope.x")
    fails("nope.x", "does not exist", format="lines", target_lang=None, path=tmp_path / "nope.x")
    fails("is a folder", format="jsonl", path=tmp_path)
    fails("source_lang is missing", format="jsonl", source_lang=None, path=tmp_path)
    path = write("a.en", "One.\n")
    fails("a.en", "'de'", "target=", format="blank", source=path)
    fails("a.en", "target_lang", format="blank", target_lang=None, source=path, target=path)
    fails("a.en", "target_lang", format="dialogue", target_lang=None, source=path, target=path, index=path)
    fails("'lines'", "'de'", format="lines", path=path)


@pytest.mark.parametrize("format", sorted(readers()))
def test_empty_file(write, format):
    path, full = write("empty", b""), write("full", "<d>\nOne.\n")
    names = {
        "dialogue": ("source", "target", "index"),
        "moses": ("source", "target", "ids"),
        "lines": ("path",),
        "text": ("path",),
    }
    if "source" in get_reader(format).arguments():
        fails("empty: the file is empty", format=format, **dict.fromkeys(names.get(format, ("source", "target")), path))
        if format == "dtag":
            fails("empty: the file is empty", format=format, source=full, target=path)
    else:
        if format == "wmt":
            pytest.importorskip("defusedxml")
        target_lang = None if format in names else "de"
        if format == "text":
            pytest.importorskip("sentencex")
            fails("blank: document 'blank' is empty", format="text", target_lang=None, path=write("blank", " \n\n"))
        fails("empty: the file is empty", format=format, target_lang=target_lang, path=path)


def test_empty_document(write):
    fails(
        "a.jsonl, line 2",
        "'b' is empty",
        path=write("a.jsonl", jsonl([{"id": "a", "source": ["1"], "target": ["1"]}, {"id": "b", "translation": []}])),
    )
    path = write("d.en", "<d>\nOne.\n<d>\n<d>\nTwo.\n")
    fails("d.en, line 3", "'d-00002' is empty", source=path, target=path)
    for text, line, number in (("One.\n\n\nTwo.\n", 3, 2), ("\nOne.\n", 1, 1), ("One.\n\n\n", 3, 2)):
        path = write("b.en", text)
        fails(f"b.en, line {line}", f"document {number} is empty", format="blank", source=path, target=path)
    path = write("v.src", "One. _eos Two.\n\n")
    fails("v.src, line 2", "document 2 is empty", format="voita", source=path, target=path)
    path = write("x.en", "One.\n")
    fails("i, line 1", "'x-00001' is empty", format="dialogue", source=path, target=path, index=write("i", "[]\n[0]\n"))
    fails("c.json", "'dlg-1' is empty", path=write("c.json", '{"dlg-1": []}'))
    fails("h.tsv", "no sentences", path=write("h.tsv", "doc_id\tsource\ttarget\n"))


def test_sides_of_different_length(write):
    row = {"id": "a", "source": ["1", "2"], "target": ["1"]}
    fails("a.jsonl, line 1", "'a'", "2 source", "1 target", path=write("a.jsonl", jsonl([row])))
    files = {"source": write("a.en", "<d>\n1\n2\n<d>\n3\n"), "target": write("a.de", "<d>\n1\n<d>\n3\n4\n")}
    fails("a.en, line 1", "a.de, line 1", "'a-00001' has 2 source sentences (en) but 1 target", format="dtag", **files)
    files = {"source": write("b.en", "1\n2\n\n3\n"), "target": write("b.de", "1\n\n2\n\n3\n")}
    fails("b.en has 2 documents (3 sent", "b.de has 3 (3 sent", "document 1, with 2", format="blank", **files)
    files = {"source": write("v.src", "1 _eos 2\n3 _eos 4\n"), "target": write("v.dst", "1 _eos 2\n3\n")}
    fails("v.src, line 2", "'v-00002'", "2 source", "1 target", format="voita", **files)
    files["target"] = write("v.dst", "1 _eos 2\n")
    fails("v.src has 2 documents", "v.dst has 1", "the first 1 agree", format="voita", **files)
    files = {"source": write("x.en", "1\n2\n"), "target": write("x.de", "1\n"), "index": write("i", "[0, 1]\n")}
    fails("x.en has 2 lines", "x.de has 1", format="dialogue", **files)


def test_document_ids(write):
    rows = [{"id": "a", "source": ["1"], "target": ["1"]}, {"source": ["1"], "target": ["1"]}]
    fails("a.jsonl, line 2", "id is missing", path=write("a.jsonl", jsonl(rows)))
    fails("a.jsonl, line 2", "'a' was used before", "line 1", path=write("a.jsonl", jsonl(rows[:1] * 2)))
    fails("a.tsv, line 2", "id is missing", path=write("a.tsv", "d\t1\t1\n \t2\t2\n"))
    fails("a.tsv, line 3", "'d' begins again after 'e'", path=write("a.tsv", "d\t1\t1\ne\t2\t2\nd\t3\t3\n"))
    fails("no column 'doc_id'", "'docid' meant", path=write("a.tsv", "docid\tsource\ttarget\nd\t2\t2\n"))
    chat = '{"a": [{"speaker": "agent", "source": "1", "target": "1"}], "a": []}'
    fails("a.json", "'a' is repeated", path=write("a.json", chat))
    fails("'b' was used before", target_lang=None, format="lines", path=[write("b.txt", "1"), write("b.en", "1")])


def test_tsv_columns(write):
    fails("a.tsv, line 2", "2 columns, expected 3", path=write("a.tsv", "d\t1\t1\nd\t2\n"))
    fails("a.tsv, line 1", "4 columns, expected 3", path=write("a.tsv", "d\t1\t1\t1\n"))
    fails("a.tsv, line 1", "2 columns, expected 3", path=write("a.tsv", "d\t1\n"))


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_invalid_utf8(write, bom):
    good = bom + "Größe.\n".encode()
    for format, target_lang in (("lines", None), ("tsv", "de"), ("jsonl", "de")):
        path = write("a.txt", good + b"Gr\xf6\xdfe.\n")
        if format == "lines":
            words = ["a.txt, line 2", "0xf6", f"byte offset {len(good) + 2}", "convert"]
            fails(*words, format=format, target_lang=target_lang, path=path)
        path = write("b.txt", bom + b"\xff")
        fails("b.txt, line 1", f"byte offset {len(bom)}", format=format, target_lang=target_lang, path=path)


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


def test_dialogue_index(write):
    path = write("x.en", "1\n2\n3\n")
    files = {"format": "dialogue", "source": path, "target": path}
    fails("i, line 2", "number 2 where 1 is due", index=write("i", "[0]\n[2]\n"), **files)
    fails("i, line 1", "number 1 where 0 is due", index=write("i", "[1, 2, 3]\n"), **files)
    fails("i, line 1", "goes to line number 3", "3 lines", index=write("i", "[0, 1, 2, 3]\n"), **files)
    fails("i takes 2 lines", "x.en has 3", index=write("i", "[0, 1]\n"), **files)


# ---------------------------------------------------------------- real files


def maruf(name, split):
    folder = DATA / "maruf2019" / name
    return {
        side: folder / f"concatenated_en2de_{split}_{lang}.txt" for side, lang in (("source", "en"), ("target", "de"))
    }


def msctd(split):
    folder = DATA / "msctd_ende"
    return {
        "source": folder / f"english_{split}.txt",
        "target": folder / f"german_{split}.txt",
        "index": folder / f"image_index_{split}.txt",
    }


def voita(name):
    folder = DATA / "voita2019" / "scoring_data"
    return {"source": folder / f"{name}.src", "target": folder / f"{name}.dst"}


# format, files, target language, documents, sentence pairs, source tokens, target tokens
REAL = {
    "iwslt-dev": ("dtag", maruf("IWSLT2017", "dev"), "de", 93, 8967, 150702, 142820),
    "iwslt-test": ("dtag", maruf("IWSLT2017", "test"), "de", 23, 2271, 38058, 33795),
    "nc-dev": ("dtag", maruf("NC-2016", "dev"), "de", 81, 2169, 40771, 38160),
    "nc-test": ("dtag", maruf("NC-2016", "test"), "de", 155, 2999, 56789, 53944),
    "europarl-dev": ("dtag", maruf("Europarl7", "dev"), "de", 240, 3587, 91048, 84811),
    "chat-train": ("chat", {"path": DATA / "bcontrast" / "train.json"}, "de", 550, 13845, 111685, 109741),
    "chat-dev": ("chat", {"path": DATA / "bcontrast" / "dev.json"}, "de", 78, 1902, 15374, 15197),
    "msctd-train": ("dialogue", msctd("train"), "de", 2066, 20240, 130840, 135603),
    "msctd-dev": ("dialogue", msctd("dev"), "de", 504, 5063, 31949, 32896),
    "deixis": ("voita", voita("deixis_dev"), "ru", 964, 3856, None, None),
    "lex": ("voita", voita("lex_cohesion_dev"), "ru", 887, 3548, None, None),
    "ellipsis": ("voita", voita("ellipsis_infl"), "ru", 2484, 9936, None, None),
    "ende-train": ("jsonl", {"path": DATA / "ende_docs" / "train.jsonl"}, "de", 3030, 48808, 525046, 511135),
    "ende-valid": ("jsonl", {"path": DATA / "ende_docs" / "validation.jsonl"}, "de", 582, 6965, 47323, 48093),
    "ende-test": ("jsonl", {"path": DATA / "ende_docs" / "test.jsonl"}, "de", 178, 5270, 94847, 87739),
    "enfr-train": ("jsonl", {"path": DATA / "enfr_docs" / "train.jsonl"}, "fr", 6463, 25852, 241306, 228182),
    "enfr-valid": ("jsonl", {"path": DATA / "enfr_docs" / "validation.jsonl"}, "fr", 493, 1972, 19195, 18365),
}


@pytest.mark.parametrize("name", REAL)
def test_real_files(name):
    format, files, lang, documents, count, source_tokens, target_tokens = REAL[name]
    if not all(path.exists() for path in files.values()):
        pytest.skip("development data is not here")
    read_named = read(format, target_lang=lang, **files)
    assert list(read("auto", target_lang=lang, **files)) == list(read_named)
    assert check_documents(read_named) == ("en", lang)
    assert len(read_named) == documents
    assert sum(len(row["translation"]) for row in read_named) == count
    for side, tokens in (("en", source_tokens), (lang, target_tokens)):
        if tokens is not None:
            assert sum(len(text.split()) for row in read_named for text in sentences(row, side)) == tokens
