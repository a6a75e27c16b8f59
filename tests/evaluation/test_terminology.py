"""Term success rates by hand, by the rules of WMT25's and WMT26's terminology tasks."""

import json

import pytest
from support.errors import refused
from support.reader_checks import jsonl

from hf_docmt.data.glossary import Span
from hf_docmt.evaluation.metrics import TranslatedDocuments, metric_class
from hf_docmt.evaluation.metrics.terminology import most_exclusive
from hf_docmt.evaluation.translation_files import holds_translations
from hf_docmt.evaluation.translation_scores import Evaluation, evaluate_files

pytest.importorskip("simplemma")
LANGUAGES = {"source_lang": "en", "target_lang": "de"}
TABLE = {"klappen": "klappe", "rote": "rot", "roten": "rot", "lampen": "lampe"}
KLAPPE, RED = {"source": "flap", "targets": ["Klappe"]}, {"source": "red lamp", "targets": ["rote Lampe", "Rotlicht"]}


def counts(name, source, hypothesis, *entries, reference="x"):
    """[found, wanted] of one document."""
    documents = TranslatedDocuments(
        [[hypothesis]], [[reference]], [[source]], ["a"], **LANGUAGES, terms={"a": [*entries]}
    )
    metric = metric_class(name)(lemma=lambda word: TABLE.get(word.lower(), word.lower()))
    return metric.measure(documents).statistics[0][0]


@pytest.mark.parametrize(
    ("source", "hypothesis", "found"),
    [
        ("Two flaps", "Zwei KLAPPEN", [1, 1]),
        ("Two flaps", "Zwei Deckel", [0, 1]),
        ("A flapper", "Der Klappensitz", [1, 1]),  # no edges of words
        ("The red lamp of a flap", "Das Rotlicht der Klappe", [2, 2]),
        ("A red lamp", "Die roten Lampen", [1, 1]),
        ("A flap and a flap", "Die Klappe", [1, 1]),  # once
    ],
)
def test_sentences_of_wmt25(source, hypothesis, found):
    assert counts("term success", source, hypothesis, KLAPPE, RED) == found


def test_documents_of_wmt25():
    """As often as in the source, if the reference has a target."""
    found = counts("d-term success", "Flap, flap, red lamp.", "Die Klappe", KLAPPE, RED, reference="klappe")
    assert found == [0.5, 1]
    assert counts("d-term success", "A red lamp", "Rotlicht, rotlicht", RED, KLAPPE, reference="Rotlicht") == [1, 1]


@pytest.mark.parametrize(
    ("hypothesis", "entries", "found"),
    [
        ("Die KLAPPE", [KLAPPE], 1),
        ("Die Klappen", [KLAPPE], 1),
        ("Der Klappensitz", [KLAPPE], 0),
        ("Der Klappe-Sitz", [KLAPPE], 1),
        ("Die Klappen", [KLAPPE, KLAPPE], 1),  # the form and its lemma are one stretch
        ("Klappe und Klappen", [KLAPPE, KLAPPE], 2),
        ("Die roten Lampen", [RED], 1),
        ("Die rote Lampe", [RED, {"source": "lamp", "targets": ["Lampe"]}], 1),
        ("Lampe, rote Lampe", [{"source": "lamp", "targets": ["Lampe"]}, RED], 2),  # the first one is not taken twice
        ("Das Rote", [KLAPPE | {"inflected": "Rote"}], 1),
    ],
)
def test_occurrences_of_wmt26(hypothesis, entries, found):
    annotated = [entry | {"sentence": 0} for entry in entries]
    annotated.append(KLAPPE | {"sentence": 1})  # of another sentence
    assert counts("exclusive term success", "not read", hypothesis, *annotated) == [found, len(entries)]


def test_the_largest_number_counts():
    """Where the first place would be wrong, and none would do."""
    first, second, third = (0, 5), (6, 9), (4, 7)
    kinds = [frozenset(Span(*place) for place in places) for places in ([first, second], [first], [third], [])]
    assert [most_exclusive(kinds[:number]) for number in range(5)] == [0, 1, 2, 2, 2]


def test_occurrences_of_a_glossary_are_found_in_the_source():
    assert counts("exclusive term success", "The flaps and red lamps", "Die Klappen", KLAPPE, RED) == [1, 2]


def marked(name, **others):
    """A set of WMT26 of one document with three paragraphs, of which the second has no reference."""
    term = {"source": "flap", "target": "Klappe", name: ["Klappe", "Deckel"]}
    texts = [("The flap.", "Die Klappen.", [term | {"target_inflected": "Klappen"}]), ("A flap.", "", [term]),
             ("Flaps, a flap.", "Deckel,\neine Klappe.", [term, term])]  # fmt: skip
    paragraphs = [{"source": source, "reference": reference, "segments": [{"terms": terms}]}
                  for source, reference, terms in texts]  # fmt: skip
    document = {"document_id": "a", "paragraphs": paragraphs}
    data = {"source_lang": "en", "target_lang": "de", "paragraph_delimiter": "\n\n", "documents": [document, document]}
    data["documents"][1] = document | {"document_id": "b"}
    return json.dumps(data | others)


OUTPUTS = ["Die Klappen.\n\nEin Deckel.\n\nKlappe", "Der Deckel.\n\nx\n\nDeckel,\neine Klappe."]


@pytest.mark.parametrize("name", ["targets", "glossary_targets"])
def test_sets_of_wmt26(write, name):
    """Texts are divided as the set says; a paragraph without a reference does not count (BLEU: sacrebleu's)."""
    known, output = write("set.json", marked(name)), write("out.json", json.dumps(OUTPUTS))
    assert [holds_translations(path) for path in (known, output)] == [False, True]
    bleu, *_, result = evaluate_files(output, known, **LANGUAGES, metrics=["bleu"], glossary="terms").results
    assert (result.n, result.value, bleu.value) == (6, pytest.approx(500 / 6), pytest.approx(60.252861))
    assert result.details["missed"] == []  # the third occurrence of the first document has no place of its own


@pytest.mark.parametrize(
    ("known", "output", "message"),
    [
        ({}, OUTPUTS[:1], "a list of 1, expected a list of 2 texts"),
        ({}, {"a": "b"}, "a dict, expected a list of 2 texts"),
        ({}, ["Die Klappe.\n\nx", OUTPUTS[1]], "document 'a' has 2 paragraphs between "),
        ({"target_lang": "pl"}, OUTPUTS, "target_lang is 'pl', got 'de'; name the file's language"),
        ({"documents": [{"document_id": "a"}]}, OUTPUTS, "not a set of WMT26's terminology task .KeyError..paragraphs"),
        ({"documents": 3}, OUTPUTS, "not a set of WMT26's terminology task"),
    ],
)
def test_sets_of_wmt26_that_do_not_fit(write, known, output, message):
    files = write("out.json", json.dumps(output)), write("set.json", marked("targets", **known))
    refused(message, evaluate_files, *files, **LANGUAGES, metrics=["chrf"], glossary="terms")


def test_glossaries_of_a_file_and_of_documents(write):
    """The three rates follow the metrics; the terms of a column are those of each document."""
    rows = [{"en": "The flap.", "de": "Die Klappe.", "proper": {"flap": "Klappe"}, "none": {}}]
    rows.append({"en": "A flap.", "de": "Eine Tür.", "proper": {"flap": ["Tür"]}, "none": {}})
    known, glossary = write("set.jsonl", jsonl(rows)), write("terms.tsv", "flap\tKlappe\n")
    outputs = write("out.jsonl", jsonl([{"en": row["en"], "de": "Die Klappe."} for row in rows]))
    options = LANGUAGES | {"metrics": ["chrf"]}
    names, values = {}, {}
    for terms in (str(glossary), "proper"):
        chrf, *results = evaluate_files(outputs, known, **options, glossary=terms).results
        names[terms], values[terms] = [result.metric for result in results], [result.value for result in results]
    assert set(map(tuple, names.values())) == {("term success", "d-term success", "exclusive term success")}
    assert values == {str(glossary): [100, 100, 100], "proper": [50, 50, 50]}
    assert results[0].details["missed"] == [{"document": "set-00002", "sentence": 1, "term": "flap", "wanted": ["Tür"]}]
    plain = write("plain.txt", "Die Klappe.\nDie Klappe.\n")
    assert evaluate_files(plain, known, **options, glossary="proper").results[1].value == 50
    for terms, message in (
        ("random", "the glossary 'random' is neither a file nor a column of the references, which are proper, none"),
        (write("bad.tsv", "flap\n"), "bad.tsv, line 1: 'flap', expected a source term and its translation"),
    ):
        refused(message, evaluate_files, outputs, known, **options, glossary=str(terms))
    wrong = write("wrong.jsonl", jsonl([row | {"source_terms": [1]} for row in rows]))
    refused("'source_terms' must list `source`", evaluate_files, outputs, wrong, **options, glossary="source_terms")
    assert len(evaluate_files(outputs, known, **options, glossary="none").results) == 1  # undefined without terms
    refused(
        "term success needs a glossary",
        metric_class("term success")().score,
        TranslatedDocuments([["a"]], [["b"]], [["c"]]),
    )
    assert Evaluation(glossary="x").metrics_for("en", "de")[1]
