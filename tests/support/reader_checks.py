"""Small documents in several formats, and how tests of readers read them and check messages."""

import json
from pathlib import Path

import pytest

from hf_docmt.data.documents import sentences
from hf_docmt.data.readers import read_documents
from hf_docmt.files import DataError

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def read(format, source_lang="en", target_lang="de", **files):
    return read_documents(format, source_lang=source_lang, target_lang=target_lang, **files)


def pairs(documents, source="en", target="de"):
    return [list(zip(sentences(row, source), sentences(row, target))) for row in documents]


def ids(documents):
    return list(documents["doc_id"])


def fails(*words, format="auto", **arguments):
    with pytest.raises(DataError) as error:
        read(format, **arguments)
    missing = [word for word in words if word not in str(error.value)]
    assert not missing, f"{missing} not in: {error.value}"


TWO = [[("One.", "Eins."), ("", ""), ("Two. ", " Zwei.")], [("Three.", "Drei.")]]


CHAT = {
    "dlg-1": [
        {"utteranceID": 0, "speaker": "agent", "source": "Hi!", "target": "Hallo!"},
        {"utteranceID": 1, "speaker": "customer", "source": "Ja.", "target": "Yes."},
    ]
}

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

DOCUMENTS = [  # that the tests of the commands translate and score
    {"doc_id": "a", "translation": [{"en": "The lamp is old.", "de": "Die Lampe ist alt."}, {"en": "", "de": ""}]},
    {"doc_id": "b", "translation": [{"en": "It is new.", "de": "Sie ist neu."}]},
]


def jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)
