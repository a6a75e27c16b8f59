"""Forms of address: which sentences are translated again, behind what, and what is refused."""

import pytest
from support.errors import refused
from support.tiny_models import build, word_tokenizer

from hf_docmt.modeling.text_splitting import Sentence
from hf_docmt.systems import DocMTSystem
from hf_docmt.systems.register import Formality


@pytest.mark.parametrize(
    ("source", "translation", "forms"),
    [
        ("Do you have time?", "Hast du Zeit?", {"informal"}),
        ("Do you have time?", "Haben Sie Zeit?", {"formal"}),
        ("You are right.", "Sie haben recht.", {"formal"}),
        ("They are right.", "Sie haben recht.", set()),
        ("She sees you.", "Sie sieht dich.", {"informal"}),
        ("Your house is red.", "Ihr Haus ist rot.", {"formal"}),
        ("Her house is red.", "Ihr Haus ist rot.", set()),
        ("I thank you.", "Ich danke Ihnen.", {"formal"}),
        ("Take your time, you have it.", "Nimm dir Zeit, Sie haben sie.", {"formal", "informal"}),
        ("The lamp is old.", "Die Lampe ist alt.", set()),
    ],
)
def test_forms(source, translation, forms):
    assert Formality("formal", "en", "de_DE").forms(source, translation) == forms


def test_other_register_is_translated_again():
    """Behind one pair, then two; all others known. What stays is reported, and known sentences are left alone."""
    calls = []

    def translate(documents):
        calls.append(documents)
        stubborn = {"Go, you!": "Geh du!"}
        lines = [[each.target or stubborn.get(each, "Haben Sie Zeit?") for each in document] for document in documents]
        return lines, [[{"sentence": 1, "kind": "length", "detail": "new"}] for _ in documents]

    known = Sentence("You know.", "Du weißt es.")
    documents = [["The lamp.", "Do you have time?", known, "Go, you!"], ["No one."]]
    first = [["Die Lampe.", "Hast du Zeit?", "Du weißt es.", "Geh du!"], ["Niemand."]]
    repairs = [[{"sentence": n, "kind": "length", "detail": "old"} for n in (0, 1)], []]
    lines, found = Formality("formal", "en", "de").corrected(documents, (first, repairs), translate)
    assert lines == [["Die Lampe.", "Haben Sie Zeit?", "Du weißt es.", "Geh du!"], ["Niemand."]]
    assert [[(each["kind"], each["sentence"]) for each in own] for own in found][0][-1] == ("register", 3)
    assert [each["detail"] for each in found[0] if each["kind"] == "length"][:2] == ["old", "new"] and found[1] == []
    assert [[(text.target, len(text.context)) for text in document] for (document,) in calls] == [
        [("Die Lampe.", 0), (None, 1), ("Du weißt es.", 0), (None, 1)],
        [("Die Lampe.", 0), ("Haben Sie Zeit?", 0), ("Du weißt es.", 0), (None, 2)],
    ]


def test_models_without_target_context(monkeypatch):
    """The sentence is searched again without the pronouns of the other register; the others are known."""
    calls = []

    def translate(self, documents, **options):
        calls.append((documents, options))
        lines = [["Hast du Zeit?", "Die Lampe."], ["Haben Sie Zeit?", "Die Lampe."]][len(calls) - 1]
        return [lines], [[]]

    monkeypatch.setattr(DocMTSystem, "translate_once", translate)
    tokenizer = word_tokenizer()
    monkeypatch.setattr(type(tokenizer), "__call__", lambda self, text_target, **_: {"input_ids": [len(text_target)]})
    for model, options in ((build(), {}), (build(past_context=2), {"strategy": "sentence"})):
        calls.clear()
        system = DocMTSystem(model, tokenizer, formality="formal", **options)
        assert system.translate([["Do you have time?", "The lamp."]]) == [["Haben Sie Zeit?", "Die Lampe."]]
        (_, first), (again, second) = calls
        assert first == {} and set(map(tuple, second["bad_words_ids"])) == {(2,), (3,), (4,), (5,), (6,)}
        assert [(text.target, text.context) for text in again[0]] == [(None, ()), ("Die Lampe.", ())]


def test_refusals():
    window = build(past_context=2)
    system = DocMTSystem(window, word_tokenizer(), formality="formal")
    assert system.search["formality"] == "formal" and system.translate([["w7 w8"], []])[1] == []
    refused("formal or informal, got 'polite'", DocMTSystem, window, word_tokenizer(), formality="polite")
    refused("omit repairs", DocMTSystem, window, word_tokenizer(), formality="formal", repairs="none", strategy="full")
    refused("from en into de, got 'de' to 'en'", Formality, "formal", "de", "en")
