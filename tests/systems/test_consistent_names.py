"""Consistent names: which words are names, which sentences are translated again, what is refused."""

from support.errors import refused
from support.tiny_models import build, word_tokenizer

from hf_docmt.data.glossary import Glossary
from hf_docmt.modeling.text_splitting import Sentence
from hf_docmt.systems import DocMTSystem
from hf_docmt.systems.consistent_names import ConsistentNames

SOURCE = ["So Mary ran", "So Mary sat", "So Mary came", "So Mary left", "So Tom left"]
LINES = ["Da lief Maria", "Da sass Maria", "Da kam Maria", "Da ging Marie", "Da ging Tom"]


class Aligned:
    document_languages, glossary, word_fits = ("en", "de"), None, lambda *_: [[2, 1, 0.9]]


def test_names():
    for source, lines, expected in (
        (SOURCE, LINES, ([("Mary", "Maria")], {3})),
        (SOURCE, [*LINES[:3], "Da ging sie", LINES[4]], ([], set())),  # no name
        (SOURCE[2:4], LINES[2:4], ([], set())),  # too few
        (SOURCE, [*LINES[:2], "Da kam Marie", *LINES[3:]], ([], set())),  # no majority
        ([*SOURCE, "to mary"], [*LINES, "x"], ([], set())),  # a word that is also written small
        ([*SOURCE[:3], Sentence(SOURCE[3], LINES[3])], LINES[:4], ([("Mary", "Maria")], set())),  # known
    ):
        assert ConsistentNames(Aligned()).entries(source, lines) == expected
    aligned = Aligned()
    for source, kept in (("Mary", set()), ("Tom", {3})):  # a sentence with a term of the user's glossary stays
        aligned.glossary = Glossary([(source, "Maria")], "en", "de")
        assert ConsistentNames(aligned).entries(SOURCE, LINES)[1] == kept


def test_search_and_refusals(monkeypatch):
    monkeypatch.setattr(ConsistentNames, "entries", lambda *_: ([("w6", "w20")], {1}))
    plain, names = (DocMTSystem(build(), word_tokenizer(), num_beams=2, consistent=each) for each in (False, True))
    (before,), (after,) = (system.translate([["w6 w7", "w8 w6", "w6"]]) for system in (plain, names))
    assert "w20" in after[1].split() and "w20" not in before[1].split() and after[::2] == before[::2]
    assert names.search["consistent"] and "consistent" not in plain.search
    for message, fields, options in (
        ("omit repairs", {}, {"repairs": "none"}),
        ("got 'pl'", {"target_lang": "pl"}, {}),
    ):
        refused(message, DocMTSystem, build(**fields), word_tokenizer(), consistent=True, **options)
