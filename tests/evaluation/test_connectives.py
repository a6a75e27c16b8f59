"""Connectives: word borders with and without blanks, case, phrases, the table, against a second counting, bad input."""

import numpy as np
import pytest

from hf_docmt.evaluation.metrics.connectives import Connectives, connective_table, count_connectives
from hf_docmt.evaluation.metrics.metric import TranslatedDocuments
from hf_docmt.reports.result import PartScore
from hf_docmt.reports.statistics import score_function


def connective_result(hypotheses, references, *, dataset, split, doc_ids=(), beams=None, **options):
    documents = TranslatedDocuments(hypotheses, references, None, doc_ids, dataset, split, beams=beams)
    (result,) = Connectives(**options).score(documents)
    return result


def count(text, *connectives):
    return list(count_connectives([[text]], connectives).values())


@pytest.mark.parametrize(
    ("text", "connectives", "expected"),
    [
        ("And he came, and left; and so on.", ["and", "so"], [3, 1]),
        ("AND", ["And"], [1]),
        ("Andy and Sandy understand", ["and"], [1]),
        ("sand and-", ["and"], [1]),
        ("and/or (but) “so”", ["and", "or", "but", "so"], [1, 1, 1, 1]),
        ("a so-called rock-and-roll, and -- so", ["so", "and"], [1, 1]),
        ("so2 so_ so", ["so"], [1]),
        ("so that it works, so it works", ["so", "so that"], [1, 1]),
        ("so that it works, so it works", ["so"], [2]),
        ("so that it works, so it works", ["so that"], [1]),
        ("So \u00a0 that  it works", ["so that"], [1]),
        ("in order that so", ["order that", "in order", "so"], [0, 1, 1]),  # found first from the left
        ("STRASSE", ["straße"], [1]),
        ("tha\u0302t", ["thât"], [1]),  # composed or not
        ("the\u0301 th\u00e9", ["the"], [0]),
        ("वह और मैं, औरत", ["और"], [1]),  # vowel signs belong to words
        ("Lorsqu'il dort, d'alors", ["lorsqu'", "alors"], [1, 1]),
        ("а потому и но", ["но", "потому"], [1, 1]),
        ("因为音乐可以帮他，但是他不知道。", ["因为", "但是"], [1, 1]),
        ("但他说,但是", ["但", "但是"], [1, 1]),
        ("因为 音乐 因为", ["因为"], [2]),
        ("だからそれで", ["だから"], [1]),
        ("เพราะฉันรัก", ["เพราะ"], [1]),
        ("因为so that因为", ["so that"], [0]),  # a letter stands beside it
        ("", ["and"], [0]),
    ],
)
def test_by_hand(text, connectives, expected):
    assert count(text, *connectives) == expected


def test_a_phrase_stays_within_a_sentence():
    assert count_connectives([["so", "that"], ["so that"]], ["so that"]) == {"so that": 1}


HYPOTHESES = [["and but", "so"], ["and"]]
REFERENCES = [["and and", "so yet"], ["then then"]]


def test_table():
    systems = {"reference": REFERENCES, "ours": HYPOTHESES, "none": [["", ""], [""]]}
    assert connective_table(systems, ["And", "then", "or"]) == {
        "and": {"reference": 2, "ours": 2, "none": 0},
        "then": {"reference": 2, "ours": 0, "none": 0},
        "or": {"reference": 0, "ours": 0, "none": 0},
    }


def test_result_by_hand():
    found = connective_result(HYPOTHESES, REFERENCES, dataset="d", split="s", doc_ids=["a", "b"], beams=4)
    assert found.value == pytest.approx(100 * 4 / 6) and (found.n, found.task) == (6, "discourse")
    assert found.breakdown == {
        "connective=and": PartScore(100, 2),
        "connective=so": PartScore(100, 1),
        "connective=yet": PartScore(0, 1),
        "connective=then": PartScore(0, 2),
    }
    assert found.details["table"]["but"] == {"reference": 0, "hypothesis": 1}
    assert found.details["table"]["then"] == {"reference": 2, "hypothesis": 0}
    statistics = found.details["statistics"]
    assert statistics == {"unit": "document", "ids": ["a", "b"], "rows": [[3, 4], [1, 2]]}
    sums = np.array(statistics["rows"]).sum(0, keepdims=True)
    assert score_function(found.metric, 2)(sums)[0] == pytest.approx(found.value)
    assert str(found.signature).startswith(
        "count:and+but+or+because+so+yet+then|unit:percent-of-reference|case:folded|match:whole-word,longest-first|version:"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"connectives": []}, r"connectives: got \[\], expected a list of at least one"),
        ({"connectives": "and"}, "connectives: got 'and', expected a list"),
        ({"connectives": ["and", " "]}, "connectives: got ' ', expected a word or phrase"),
        ({"connectives": ["so  that", "So that"]}, "'So that' and 'so  that' differ only in case"),
        ({"connectives": ["or"]}, "the references have none of the connectives or"),
    ],
)
def test_bad_input(changes, message):
    given = {"hypotheses": HYPOTHESES, "references": REFERENCES, "doc_ids": ["a", "b"], "dataset": "d", "split": "s"}
    with pytest.raises(ValueError, match=message):
        connective_result(**given | changes)
