"""Reading in every format: detection, standard input, bad input with its location and remedy, and real files."""

import gzip
import io
import json
import sys

import pytest
from support.reader_checks import CHAT, DATA, fails, jsonl, read

from hf_docmt.data.documents import check_documents, sentences
from hf_docmt.data.readers import get_reader, readers


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


OTHERS = {  # file -> its first bytes, what it is
    "a.md": ("# Title\n", "Markdown by its name"),
    "a.html": ("<p>One.</p>\n", "HTML by its name"),
    "a.HTM.gz": ("One.\n", "HTML by its name"),
    "a.yaml": ("a: One.\n", "YAML, TOML or properties by its name"),
    "a.csv": ("One.,Eins.\n", "a table by its name"),
    "a.ass": ("Title: One.\n", "ASS subtitles by its name"),
    "a.docx": ("PK\x03\x04", "a zip archive or office document by its name"),
    "b.txt": ("PK\x03\x04", "a zip archive or office document by its first bytes"),
    "c.txt": ("\ufeff<?xml version='1.0'?>\n<tmx/>\n", "XML by its first bytes"),
    "d.txt": ("\n<!DOCTYPE html>\n", "HTML by its first bytes"),
    "e.txt": ("---\ntitle: One\n---\n", "Markdown by its first bytes"),
    "f.txt": ("[Script Info]\n", "ASS subtitles by its first bytes"),
    "h.de": ("%PDF-1.7\n", "PDF by its first bytes"),
    **dict.fromkeys(
        ("j.rst", "j.org", "j.typ"), ("Title\n", "TeX, reStructuredText, AsciiDoc, Org or a wiki by its name")
    ),
    **dict.fromkeys(("a.jsonc", "a.json5"), ("{}\n", "JSON by its name")),
    **dict.fromkeys(("a.fodt", "a.stringsdict"), ("One.\n", "XML by its name")),
    **dict.fromkeys(("a.html5", "a.shtml"), ("One.\n", "HTML by its name")),
    **dict.fromkeys(("a.qmd", "a.Rmd", "a.mdx"), ("One.\n", "Markdown by its name")),
    "a.mo": ("One.\n", "a compiled catalog by its name"),
    "k.ts": ("<!DOCTYPE TS><TS/>\n", "XML by its first bytes"),
    "l.sub": ("One.\n", "subtitles by its name"),
    "m.txt": ("{1}{20}One.\n", "subtitles by its first bytes"),
    "n.txt": ("[00:01.00]One.\n", "subtitles by its first bytes"),
    "o.txt": ("0:00:01.000,0:00:02.000\nOne.\n", "subtitles by its first bytes"),
    "i": ("{\\rtf1 One.}\n", "RTF by its first bytes"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_files_of_other_formats_are_not_lines(write, name):
    """But where it is said that they are."""
    text, format = OTHERS[name]
    path = write(name, gzip.compress(text.encode()) if name.endswith(".gz") else text)
    for argument in ("path", "source"):
        fails(name, f"this is {format}", "'lines' if every line is a sentence", target_lang=None, **{argument: path})
    assert len(read("lines", target_lang=None, path=path)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "--- One.\n",
        "<One> said two.\n",
        "msgid the thing\n",
        "[One] Two.\n",
        "---\nNote: one.\n",
        "<head of state> One.\n",
        "{One}\n",
        "PK\n",
    ],
)
def test_lines_that_look_like_markup(write, text):
    assert read("auto", target_lang=None, path=write("a.arb", text))["doc_id"][:] == ["a"]


def test_unknown_format_and_files(write):
    path = write("a.jsonl", jsonl([{"id": "a", "source": ["1"]}]))
    fails("unknown format 'jsnol'", "did you mean 'jsonl'", ", ".join(readers()), format="jsnol", path=path)
    fails("'jsonl' takes no 'paht'", "did you mean 'path'", format="jsonl", paht=path)
    fails("'dialogue' needs the file 'index'", format="dialogue", source=path, target=path)
    fails("no input file")


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


@pytest.mark.parametrize("format", sorted(readers().keys() - {"datasets"}))  # that is a folder
def test_empty_file(write, format):
    path, full = write("empty", b""), write("full", "<d>\nOne.\n")
    names = {
        "dialogue": ("source", "target", "index"),
        "moses": ("source", "target", "ids"),
        "lines": ("path",),
        "text": ("path",),
        "subtitles": ("path",),
    }
    if "source" in get_reader(format).arguments():
        fails("empty: the file is empty", format=format, **dict.fromkeys(names.get(format, ("source", "target")), path))
        if format == "dtag":
            fails("empty: the file is empty", format=format, source=full, target=path)
    else:
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
    fails("x.de ends after line 1, but ", "x.en goes on", format="dialogue", **files)


def test_document_ids(write):
    rows = [{"id": "a", "source": ["1"], "target": ["1"]}, {"id": None, "source": ["1"], "target": ["1"]}]
    fails("a.jsonl, line 2", "id is missing", path=write("a.jsonl", jsonl(rows)))
    fails("a.jsonl, line 2", "'a' was used before", "line 1", path=write("a.jsonl", jsonl(rows[:1] * 2)))
    fails("a.tsv, line 2", "id is missing", path=write("a.tsv", "d\t1\t1\n \t2\t2\n"))
    fails("a.tsv, line 3", "'d' begins again after 'e'", path=write("a.tsv", "d\t1\t1\ne\t2\t2\nd\t3\t3\n"))
    fails("no column 'doc_id'", "'docid' meant", path=write("a.tsv", "docid\tsource\ttarget\nd\t2\t2\n"))
    chat = '{"a": [{"speaker": "agent", "source": "1", "target": "1"}], "a": []}'
    fails("a.json", "'a' is repeated", path=write("a.json", chat))
    fails("'b' was used before", target_lang=None, format="lines", path=[write("b.txt", "1"), write("b.en", "1")])


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


REAL = {
    "iwslt-dev": ("dtag", maruf("IWSLT2017", "dev"), "de", 93, 8967, 150702, 142820),
    "iwslt-test": ("dtag", maruf("IWSLT2017", "test"), "de", 23, 2271, 38058, 33795),
    "nc-dev": ("dtag", maruf("NC-2016", "dev"), "de", 81, 2169, 40771, 38160),
    "nc-test": ("dtag", maruf("NC-2016", "test"), "de", 155, 2999, 56789, 53944),
    "europarl-dev": ("dtag", maruf("Europarl7", "dev"), "de", 240, 3587, 91048, 84811),
    "chat-dev": ("chat", {"path": DATA / "bcontrast" / "dev.json"}, "de", 78, 1902, 15374, 15197),
    "msctd-dev": ("dialogue", msctd("dev"), "de", 504, 5063, 31949, 32896),
    "deixis": ("voita", voita("deixis_dev"), "ru", 964, 3856, None, None),
    "lex": ("voita", voita("lex_cohesion_dev"), "ru", 887, 3548, None, None),
    "ellipsis": ("voita", voita("ellipsis_infl"), "ru", 2484, 9936, None, None),
    "ende-valid": ("jsonl", {"path": DATA / "ende_docs" / "validation.jsonl"}, "de", 582, 6965, 47323, 48093),
    "ende-test": ("jsonl", {"path": DATA / "ende_docs" / "test.jsonl"}, "de", 178, 5270, 94847, 87739),
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
