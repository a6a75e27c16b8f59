"""Terms of a glossary in translations: which sentences are translated again, how they begin, what is refused."""

import pytest
from support.errors import refused
from support.tiny_models import build, word_tokenizer

from hf_docmt.data.glossary import Glossary, Term
from hf_docmt.modeling.text_splitting import Sentence
from hf_docmt.systems import DocMTSystem
from hf_docmt.systems.terms import TermSearch, beginnings

DOCUMENTS = [["w6 w7 w8", "w9 w10", "", "w11 w12"], ["w6 w13"]]
MODELS = [
    ({}, "sentence"),
    ({"past_context": 2}, "sliding"),
    ({"past_context": 2}, "sequential"),
    ({"past_context": 1, "future_context": 1}, "full"),
]


def test_beginnings():
    assert [after for _, after in beginnings("Das ist X-Y gut.", Term("a", ("rot",)))] == [
        "Rot", "Das rot", "Das ist rot", "Das ist X-Y rot", "Das ist X-Y gut rot"
    ]  # fmt: skip
    assert beginnings("", Term("a", ("rot",))) == [("", "Rot")]


@pytest.mark.parametrize(("fields", "strategy"), MODELS)
@pytest.mark.parametrize("nbest", [None, 2])
def test_terms_come_into_translations(fields, strategy, nbest):
    """Those of the source alone; other sentences stay, and what is missing in the end is a repair."""
    options = {"strategy": strategy, "num_beams": 2, **({"nbest": nbest} if nbest else {})}
    entries = [("w6", "w20"), ("w12", "w21 w22"), ("w12", "w23"), ("w10", "w29", True)]
    model = build(**fields)
    plain = DocMTSystem(model, word_tokenizer(), **options).translate(DOCUMENTS)
    system = DocMTSystem(model, word_tokenizer(), glossary=entries, **options)
    lines, repairs, *candidates = system.translate_with_repairs(DOCUMENTS)
    assert "w20" in lines[0][0].split() and "w20" in lines[1][0].split() and "w21 w22" in lines[0][3]
    assert lines[0][1:3] == plain[0][1:3] and not [one for own in repairs for one in own if one["kind"] == "term"]
    assert all(line in found for line, found in zip(lines[0], candidates[0][0])) if nbest else not candidates
    assert len(system.search["glossary"]) == 12


def test_missing_and_known_terms():
    """A term that the model does not write is reported with its place; a known translation stays."""

    class Stubborn:
        past_context, decoding, tokenizer, carries_state = 0, {"strategy": "sentence"}, word_tokenizer(), False

        def translate_once(self, documents):
            return [["w7" for _ in document] for document in documents], [[] for _ in documents]

        def word_fits(self, source, translation):
            return [[0, 1, 1.0]]

        def next_texts(self, items, count):
            return [[[" w20", "x"]]]

        def token_log_probabilities(self, items):
            return [[[-1.0, -1.0] for _ in item.candidates] for item in items]

    glossary = Glossary([("w6", "w20"), ("w9", "w7", True)], "en", "de")
    documents = [["a w6", Sentence("w6", "w8"), "w9"]]
    results = [["w7", "w8", "w7"]], [[{"sentence": 0, "kind": "length", "detail": "x"}]]
    lines, repairs = TermSearch(glossary, Stubborn()).corrected(documents, results)
    assert lines == results[0] and [(one["sentence"], one["kind"], one["detail"]) for one in repairs[0]] == [
        (0, "length", "x"),
        (0, "term", "'w6' at characters 3-4: expected 'w20'"),
        (2, "term", "'w9' at characters 1-2: expected other than 'w7'"),
    ]


def test_refusals():
    glossary = [("w6", "w20")]
    refused("omit repairs", DocMTSystem, build(past_context=2), word_tokenizer(), glossary=glossary, repairs="none")
    refused("translation, got", DocMTSystem, build(), word_tokenizer(), glossary=[("w6", " ")])
