"""Numbers of a data table, against counts by hand."""

import json
import math

import pytest

from hf_docmt.data.documents import make_documents
from hf_docmt.data.statistics import document_statistics, lengths_of, out_of_reach, reading_notes, table_column
from hf_docmt.files import DataError

ROWS = [
    {
        "doc_id": "a",
        "translation": [{"en": "One two  three.", "de": "Eins zwei drei."}, {"en": "", "de": "\u3000"}],
        "phenomena": ["pronoun-2", "greeting"],
    },
    {"doc_id": "b", "translation": [{"en": "It -- is", "de": "Es"}], "phenomena": ["pronoun-4"]},
    {"doc_id": "c", "translation": [{"en": "a b c d e", "de": "f"}], "phenomena": None},
]


def test_counts_by_hand():
    statistics = document_statistics(make_documents(ROWS, "en", "de"))
    assert [statistics[name] for name in ("documents", "sentences")] == [3, 4]
    assert statistics["document_length"]["mean"] == 4 / 3 and "out_of_reach" not in statistics
    english, german = statistics["sides"]["en"], statistics["sides"]["de"]
    assert [side[name] for side in (english, german) for name in ("words", "empty_sentences")] == [11, 1, 5, 1]
    assert english["sentence_length"]["mean"] == 11 / 4  # 3, 0, 3, 5
    assert english["sentence_length"]["deviation"] == math.sqrt(sum((n - 11 / 4) ** 2 for n in (3, 0, 3, 5)) / 4)
    assert list(english["sentence_length"]["quantiles"].values()) == [0, 0, 3, 3, 5, 5]
    assert list(english["document_length"]["quantiles"].values()) == [3, 3, 3, 5, 5, 5]
    assert statistics["phenomena"] == {"pronoun": {2: 1, 4: 1}}
    assert [out_of_reach(statistics["phenomena"], context)["pronoun"] for context in (1, 2, 3, 4)] == [2, 1, 1, 0]


def test_quantiles_are_lengths_that_occur():
    """The least length that so many per cent of all do not pass."""
    values = [7, 1, 9, 4, 4, 30, 12]
    quantiles = lengths_of(values)["quantiles"]
    for per_cent, length in zip((5, 25, 50, 75, 95, 100), quantiles.values()):
        assert length == min(v for v in values if sum(w <= v for w in values) >= per_cent / 100 * len(values))


def test_source_side_alone():
    documents = make_documents([{"doc_id": "a", "translation": [{"en": "x y"}]}], "en")
    statistics = document_statistics(documents, context=2)
    assert list(statistics["sides"]) == ["en"] and not statistics["phenomena"]
    assert "words, en" in table_column(statistics) and statistics["out_of_reach"] == {}


def test_rows_and_numbers():
    documents = make_documents(ROWS, "en", "de")
    rows = table_column(document_statistics(documents, context=3))
    assert rows["words per sentence, en"] == "2.8 ± 1.8"
    assert rows["pronoun, by distance"] == "2:1 4:1" and rows["pronoun, further than 3"] == "1"
    assert "pronoun, further than 3" not in table_column(document_statistics(documents))
    assert json.loads(json.dumps(document_statistics(documents, 3)))["out_of_reach"] == {"pronoun": 1}


def test_languages_without_blanks_are_reported():
    assert len(reading_notes(["en", "de"])) == 2
    notes = [note.split()[0] for note in reading_notes(["zh_CN", "cmn_Hans", "ja", "mya-x", "myv"])[2:]]
    assert notes == ["zh_CN", "cmn_Hans", "ja", "mya-x"]


def test_labels_that_are_not_those_of_the_sentences():
    rows = [{**ROWS[0], "phenomena": ["pronoun-1"]}]
    with pytest.raises(DataError, match="document 'a' has 1 labels of 'phenomena' but 2 sentences; it needs one"):
        document_statistics(make_documents(rows, "en", "de"))
