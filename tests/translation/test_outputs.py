"""What is written for one document, by the reader of the input."""

import json
from datetime import datetime
from decimal import Decimal

import pytest

from hf_docmt.data.readers import get_reader
from hf_docmt.translation.corpus import check_repairs, renderer

RESULT = {"doc_id": "a", "source": ["A.", "B."], "translation": ["X.", "Y\ny."], "repairs": [], "search": {"beams": 1}}
DOCUMENT = {"doc_id": "a", "translation": [{"en": "A."}, {"en": "B."}]}


def test_json_rows_and_plain_lines():
    assert json.loads(renderer(get_reader("tsv"))(DOCUMENT, RESULT)) == RESULT
    assert renderer(get_reader("lines"))(DOCUMENT, RESULT) == renderer(get_reader("text"))(DOCUMENT, RESULT)
    assert renderer(get_reader("lines"))(DOCUMENT, RESULT) == "X.\nY y.\n"


def test_failed_documents():
    failed = RESULT | {"translation": ["", ""], "error": "no memory"}
    assert renderer(get_reader("lines"))(DOCUMENT, failed) == "\n\n"
    assert json.loads(renderer(get_reader("jsonl"))(DOCUMENT, failed))["error"] == "no memory"


@pytest.mark.parametrize("lines, text", [([2], "X. Y y."), ([1, 0, 1, 0], "X.\n\nY y.\n")])
def test_running_text(lines, text):
    """A row of text is written with its columns, and with its lines as they were."""
    row = json.loads(renderer(get_reader("jsonl"))(DOCUMENT | {"url": "x", "text_lines": lines}, RESULT))
    assert row == {"url": "x", "text": text, "doc_id": "a", "repairs": [], "search": {"beams": 1}}


def test_columns_that_json_does_not_have():
    row = {"date": datetime(2020, 1, 31, 12), "price": Decimal("1.50"), "text_lines": [2]}
    row = json.loads(renderer(get_reader("parquet"))(DOCUMENT | row, RESULT))
    assert (row["date"], row["price"]) == ("2020-01-31 12:00:00", "1.50")


def test_text_without_repairs():
    result = RESULT | {"translation": ["X.", "Y.", "Z."]}
    row = json.loads(renderer(get_reader("jsonl"))(DOCUMENT | {"text_lines": [1, 1]}, result))
    assert row["text"] == "X. Y. Z."
    check_repairs(get_reader("jsonl"), "none")
