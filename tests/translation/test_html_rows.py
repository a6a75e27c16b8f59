"""HTML in rows and lines: the model reads it without tags, which stand in the output as in a page."""

import json
from types import SimpleNamespace

import pytest
from support.reader_checks import jsonl

from hf_docmt.data.readers.running_text import is_html
from hf_docmt.formats.document_file import given_runs
from hf_docmt.formats.html import HtmlFormat
from hf_docmt.modeling.opaque_runs import Finder, carry
from hf_docmt.translation.html_rows import translated_html
from hf_docmt.translation.job_input import JobInput

SYSTEM = SimpleNamespace(word_fits=lambda *_: None)  # tags are placed by position


def translated(path, read=None, **options):
    """What is written of a file in capitals; `read` gets the sentences that the model does."""
    documents = JobInput(str(path), "auto", "en", **options)
    rows, read = list(documents.rows()), [] if read is None else read
    sources = [[pair["en"] for pair in row["translation"]] for row in rows]

    def translate(texts):
        read.extend(text for document in texts for text in document)
        return [[text.upper() for text in document] for document in texts]

    written, carried = carry(translate, sources, Finder(), list(map(given_runs, rows)))
    results = [
        translated_html(SYSTEM, row, {"doc_id": row["doc_id"], "source": source, "translation": lines}, own)
        for row, source, lines, own in zip(rows, sources, written, carried)
    ]
    return "".join(map(documents.reader.render, rows, results)), results


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The <b>old lamp</b> &amp; <i>keys</i>.", "THE <b>OLD LAMP</b> &amp; <i>KEYS</i>."),
        ("It is <code>x.y</code>.<br>", "IT IS <code>x.y</code>.<br>"),
        ("<p>One.</p><p>Two.</p>", "<p>ONE.</p><p>TWO.</p>"),
        ("3 < 5 & a <name> <b>", "3 < 5 & A <name> <b>"),  # no HTML
        ("", ""),
    ],
)
def test_sentences(write, text, expected):
    """Of plain lines and of lists in JSON lines, whose fields that are not read stay."""
    assert translated(write("a.txt", f"{text}\nw\n"))[0] == f"{expected}\nW\n"
    line, _ = translated(write("a.jsonl", jsonl([{"id": "a", "source": [text, "w"], "note": {"x": 1}}])))
    assert json.loads(line) == {"doc_id": "a", "source": [text, "w"], "translation": [expected, "W"], "note": {"x": 1}}


TEXT = '<p>The <b>old lamp</b> is.\nIt is. See\n<a href="a\nb">it</a>.</p>\n\n<pre>a\nb</pre><p>One.<br>Two.</p>\n'
UPPER = '<p>THE <b>OLD LAMP</b> IS.\nIT IS. SEE\n<a href="a\nb">IT</a>.</p>\n\n<pre>a\nb</pre><p>ONE.<br>TWO.</p>\n'
READ = ["The old lamp is.", "It is.", "See", "it.", "One.", "Two."]


def test_texts(write):
    """Of JSON lines and of WMT's rows; each line stays a line, and code is not read."""
    read = []
    line, _ = translated(write("a.jsonl", jsonl([{"id": "a", "text": TEXT, "markup": "mine"}])), read)
    assert json.loads(line) == {"doc_id": "a", "text": UPPER, "markup": "mine"} and read == READ
    row = {"doc_id": "a", "src_lang": "en", "tgt_lang": "de_DE", "src_text": TEXT}
    line, _ = translated(write("wmt.jsonl", jsonl([row])), target_lang="de")
    assert json.loads(line)["hypothesis"] == UPPER
    line, _ = translated(write("a.jsonl", jsonl([{"id": "a", "text": TEXT}])), reads_html=False)
    assert "<B>" not in line and "</PRE>" not in line and json.loads(line)["text"] != UPPER  # carried, cut by lines


def test_json_in_a_fence(write):
    text = '```json\n{\n  "a.b": "The <b>lamp</b> of {{name}}.",\n  "c": [1, "Two,]"%s]%s\n}\n```'
    rows = [{"id": "a", "text": text % (",", " , ")}, {"id": "b", "text": "```json\n{w\n```"}]  # the second is none
    first, second = translated(write("a.jsonl", jsonl(rows)))[0].splitlines()
    expected = (
        (text % ("", "  ")).replace("The", "THE").replace("lamp", "LAMP").replace("of", "OF").replace("Two", "TWO")
    )
    assert json.loads(first)["text"] == expected and json.loads(second)["text"] == "```JSON\n{W\n```"


def test_problems_and_failures(write, monkeypatch):
    path = write("a.jsonl", jsonl([{"id": "a", "text": TEXT}]))
    documents = JobInput(str(path), "auto", "en")
    (row,) = documents.rows()
    failed = {"doc_id": "a", "source": READ, "translation": [""] * len(READ), "error": "no memory"}
    assert json.loads(documents.reader.render(row, failed))["text"] == "\n" * TEXT.count("\n")
    monkeypatch.setattr(HtmlFormat, "write", lambda *_: b"<p>w7</p>")
    line, (result,) = translated(path)
    assert "a: " in result["problems"][0] and json.loads(line)["text"] == "<p>w7</p>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a<br>b", True),
        ("<p class='x'>a", True),
        ("<B>a</b>", True),
        ("<b>a", False),
        ("List<String> </String>", False),
    ],
)
def test_detection_of_html(text, expected):
    assert is_html(text) is expected
