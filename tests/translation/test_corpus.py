"""Translation of corpora with a scripted model, and what is written for one document, by the reader of the input."""

import json
from datetime import datetime
from decimal import Decimal

import pytest
from support.errors import refused
from support.scripted_model import DOCUMENT, TRANSLATION, WINDOW, Scripted, segment
from support.tiny_models import build, documents_of, word_tokenizer
from transformers import GenerationConfig

from hf_docmt.data.readers import get_reader
from hf_docmt.translation.corpus import translate_corpus, write_translations

RESULT = {"doc_id": "a", "source": ["A.", "B."], "translation": ["X.", "Y\ny."], "repairs": [], "search": {"beams": 1}}
ROW = {"doc_id": "a", "translation": [{"en": "A."}, {"en": "B."}]}


@pytest.fixture
def rows():
    """Those of the examples in the docstrings: a document with blank lines, and one that is repaired."""
    corpus = documents_of((DOCUMENT, DOCUMENT), (["w6", "w7"], ["", ""]))
    model = Scripted({tuple(segment("w6", "w7")): segment("w18 w19")}, **WINDOW)
    return translate_corpus(model, word_tokenizer(), corpus, batch_size=2)


def test_rows(rows):
    assert [row["source"] for row in rows] == [DOCUMENT, ["w6", "w7"]]
    assert [row["translation"] for row in rows] == [TRANSLATION, ["w18", "w19"]]
    assert [list(row) for row in rows] == [["doc_id", "source", "translation", "repairs", "search"]] * 2
    assert [row["search"] for row in rows] == [{"strategy": "sliding", "beams": 1}] * 2
    assert rows[0]["repairs"] == []
    assert rows[1]["repairs"] == [
        {"sentence": 1, "kind": "separators", "detail": "1 sentences for 2: translated again by strategy sentence"}
    ]


def test_a_glossary(tmp_path):
    """A file, a mapping or pairs; the model alone, as on the Hub, names the package."""
    model, tokenizer = build(past_context=1), word_tokenizer()
    corpus, path = documents_of((["w6 w7", "w9"], ["", ""])), tmp_path / "terms.tsv"
    path.write_text("w6\tw20\n")
    made = [
        translate_corpus(model, tokenizer, corpus, glossary=given, max_new_tokens=8)[0]
        for given in (path, str(path), {"w6": "w20"}, [("w6", "w20")])
    ]
    assert "w20" in made[0]["translation"][0].split() and made[0]["score"][0] < 0 and len(set(map(str, made))) == 1
    refused("hf_docmt.translate_corpus", model.translate_documents, [["w6"]], tokenizer, glossary={"w6": "w20"})


def test_json_lines(rows, tmp_path, capsys):
    write_translations(rows, tmp_path / "rows.jsonl")
    assert [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()] == rows
    write_translations(rows, "-")
    assert capsys.readouterr().out == (tmp_path / "rows.jsonl").read_text()


def test_one_plain_line_per_sentence(rows, tmp_path):
    rows[1]["translation"][0] = "two\nlines"
    write_translations(rows, tmp_path / "rows.txt", plain=True)
    assert (tmp_path / "rows.txt").read_text().split("\n") == [*TRANSLATION, "two lines", "w19", ""]


def test_search_of_rows():
    """What was set is told, of the configuration, too; without repairs there may be other lines than sentences."""
    corpus, faults = documents_of((["w6", "w7"], ["", ""])), {tuple(segment("w6", "w7")): segment("w18", "w19", "w20")}
    model = Scripted(faults, **WINDOW, decoding_past_context=1)
    model.generation_config.num_beams = 4
    settings = {"strategy": "full", "repairs": "none"}
    (row,) = translate_corpus(model, word_tokenizer(), corpus, **settings)
    assert row["translation"] == ["w18", "w19", "w20"] and row["search"] == settings | {"beams": 4}
    (row,) = translate_corpus(model, word_tokenizer(), corpus, strategy="sequential", num_beams=2)
    assert row["search"] == {"strategy": "sequential", "beams": 2, "past_context": 1}
    plain = GenerationConfig(max_new_tokens=9)  # of beams it says nothing
    (row,) = translate_corpus(model, word_tokenizer(), corpus, strategy="sentence", generation_config=plain)
    assert row["search"] == {"strategy": "sentence", "beams": 4}
    (row,) = translate_corpus(model, word_tokenizer(), corpus, strategy="sequential", past_context=0)
    assert row["search"] == {"strategy": "sequential", "beams": 4, "past_context": 0}


def test_json_rows_and_plain_lines():
    assert json.loads(get_reader("tsv").render(ROW, RESULT)) == RESULT
    assert get_reader("lines").render(ROW, RESULT) == "X.\nY y.\n"


def test_failed_documents():
    failed = RESULT | {"translation": ["", ""], "error": "no memory"}
    assert get_reader("lines").render(ROW, failed) == "\n\n"
    assert json.loads(get_reader("jsonl").render(ROW, failed))["error"] == "no memory"


@pytest.mark.parametrize("lines, text", [([2], "X. Y y."), ([1, 0, 1, 0], "X.\n\nY y.\n")])
def test_running_text(lines, text):
    """A row of text is written with its columns, and with its lines as they were."""
    row = json.loads(get_reader("jsonl").render(ROW | {"url": "x", "text_lines": lines}, RESULT))
    assert row == {"url": "x", "text": text, "doc_id": "a", "repairs": [], "search": {"beams": 1}}


def test_columns_that_json_does_not_have():
    row = {"date": datetime(2020, 1, 31, 12), "price": Decimal("1.50"), "text_lines": [2]}
    row = json.loads(get_reader("parquet").render(ROW | row, RESULT))
    assert (row["date"], row["price"]) == ("2020-01-31 12:00:00", "1.50")


def test_text_without_repairs():
    result = RESULT | {"translation": ["X.", "Y.", "Z."]}
    row = json.loads(get_reader("jsonl").render(ROW | {"text_lines": [1, 1]}, result))
    assert row["text"] == "X. Y. Z."
    get_reader("jsonl").check_repairs("none")
