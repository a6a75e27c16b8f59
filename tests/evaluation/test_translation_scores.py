"""Reports of translations in memory: equal to those from files, in any order, with everything that files take."""

import subprocess
import sys

import pytest
from support.errors import refused
from support.reader_checks import jsonl

from hf_docmt.data.readers import read_documents
from hf_docmt.evaluation.comparison import compare
from hf_docmt.evaluation.translation_scores import evaluate, evaluate_files

DOCUMENTS = {"a": [("The dog", "Der Hund"), ("It sleeps .", "Er schläft .")], "b": [("And so on", "und so weiter")]}
ROWS = [
    {"doc_id": "b", "source": ["And so on"], "translation": ["und so fort"], "repairs": [{"kind": "padded"}]},
    {"doc_id": "a", "source": ["The dog", "It sleeps ."], "translation": ["Der Hund", "Sie schläft ."]},
]
LANGUAGES = {"source_lang": "en", "target_lang": "de"}


@pytest.fixture
def reference(write):
    rows = [
        {"doc_id": doc_id, "translation": [{"en": source, "de": target} for source, target in pairs]}
        for doc_id, pairs in DOCUMENTS.items()
    ]
    return write("reference.jsonl", jsonl(rows))


def test_equals_files(reference, write):
    translations = write("ours.jsonl", jsonl(ROWS))
    options = {"by": ("index",), "strategy": "sliding", "beams": 4}
    from_files = evaluate_files(translations, reference, **LANGUAGES, **options)
    documents = read_documents(path=reference, **LANGUAGES)
    found = evaluate(ROWS, documents, name="ours", dataset="reference", **options)
    assert found.results == from_files.results and found.name == from_files.name == "ours"
    assert [result.metric for result in found.results] == ["s-BLEU", "d-BLEU", "chrF", "TER"]
    assert found.results[0].details["repairs"] == {"padded": 1}
    assert "s-BLEU" in str(found) and str(found).startswith("ours\n")


def test_sources_of_the_documents(reference, caplog):
    """Rows without sources: metrics that need them take those of the documents. An undefined one is left out."""
    documents = read_documents(path=reference, **LANGUAGES)
    rows = [{"doc_id": row["doc_id"], "translation": row["translation"]} for row in ROWS]
    found = evaluate(rows, documents, discourse=("terms",))
    assert [result.metric for result in found.results] == ["s-BLEU", "d-BLEU", "chrF", "TER"]
    assert "term consistency is undefined here and skipped: no document repeats a term" in caplog.text


def test_blank_sentences_are_reported(reference, caplog):
    """Where the reference has text; a zero-width space is blank, too."""
    documents, rows = read_documents(path=reference, **LANGUAGES), [ROWS[0], ROWS[1] | {"translation": ["", "\u200b"]}]
    report = evaluate(rows, documents, name="ours")
    assert {str(result.details["blank"]) for result in report.results} == {"{'sentences': 2, 'documents': 1}"}
    assert "ours: 2 blank sentences in 1 document, the first in 'a', where the reference has text" in caplog.text
    other = evaluate(ROWS, documents, name="other")
    assert not any("blank" in result.details for result in other.results)
    assert "2 sentences of ours blank where the reference has text." in compare([other, report]).notes


def test_a_corrected_reference_is_other_data(reference):
    """The same name and ids, one sentence corrected: no common row and no test."""
    documents = read_documents(path=reference, **LANGUAGES)
    corrected = reference.read_text("utf-8").replace("Der Hund", "Ein Hund")
    reference.write_text(corrected, "utf-8")
    reports = [
        evaluate(ROWS, read, name=name)
        for name, read in (("a", documents), ("b", read_documents(path=reference, **LANGUAGES)))
    ]
    found = compare(reports)
    assert all(len(row.figures) == 1 for row in found.rows) and len(found.rows) == 8
    assert found.notes[0].startswith("Rows apart because of different references or sources (data): documents s-BLEU")


def test_compare_knows_the_scores_of_the_metrics(reference):
    """In a process that has not imported the metrics, as a notebook that only compares."""
    documents = read_documents(path=reference, **LANGUAGES)
    for name in ("one", "two"):
        evaluate(ROWS, documents, name=name).write(reference.parent / f"{name}.json")
    code = (
        "from hf_docmt.evaluation.comparison import compare\n"
        "print([row.figures['two'].test.delta for row in compare(['one.json', 'two.json'], baseline='one').rows])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=reference.parent, capture_output=True, text=True)
    assert done.stdout.split() == ["[0.0,", "0.0,", "0.0,", "0.0]"], done.stderr


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (ROWS[:1], {}, "system has 1 document, documents 2; not translated: a; not in the reference: none"),
        ([*ROWS, ROWS[0] | {"doc_id": "c"}], {}, "system has 3 documents, documents 2; .*; not in the reference: c"),
        ([*ROWS, ROWS[0]], {}, "document 'b' was translated twice; give one translation for each document"),
        (ROWS, {"discourse": ("metaphors",)}, "unknown discourse measure 'metaphors': expected some of"),
        (ROWS, {"scorer_window": (3, None)}, "scorer_window needs scorer_input"),
        (ROWS, {"domains": "([a-z]+)", "by": ["index"]}, "add domain to `by`"),
    ],
)
def test_bad_input(reference, rows, options, message):
    refused(message, evaluate, rows, read_documents(path=reference, **LANGUAGES), **options)


@pytest.mark.parametrize("wrong", [{"search": "beam 4"}, {"repairs": ["a"]}, {"repairs": [{"sentence": 1}]}])
def test_rows_with_search_or_repairs_of_another_kind(reference, write, wrong):
    rows = [row | wrong for row in ROWS]
    with pytest.raises(ValueError, match="ours.jsonl, line 1: `search` must be an object and `repairs` a list of"):
        evaluate_files(write("ours.jsonl", jsonl(rows)), reference, **LANGUAGES)


def test_rows_of_two_searches_with_other_names_of_ids(reference, write):
    rows = [{"id": row["doc_id"], "translation": row["translation"]} for row in ROWS]
    rows = [row | {"search": {"beams": number}} for number, row in enumerate(rows)]
    message = "document 'b' was translated by .*; score translations of one search"
    refused(message, evaluate_files, write("ours.jsonl", jsonl(rows)), reference, **LANGUAGES)


# Lines as they were written

RAW = {"strategy": "full", "beams": 12, "repairs": "none"}
LINES = [
    {"doc_id": "a", "translation": ["Der Hund", "Er", "", "schläft ."], "search": RAW},
    {"doc_id": "b", "translation": [], "search": RAW, "repairs": [{"kind": "misaligned"}]},
]


def test_lines_as_written(reference, write):
    """Line j for sentence j: what is missing is empty, what is beyond the last sentence is joined with it."""
    documents = read_documents(path=reference, **LANGUAGES)
    found = evaluate(LINES, documents, name="raw", dataset="reference")
    padded = [LINES[0] | {"translation": ["Der Hund", "Er schläft ."]}, LINES[1] | {"translation": [""]}]
    assert found.results == evaluate(padded, documents, dataset="reference").results
    assert {(result.strategy, result.beams) for result in found.results} == {("full", 12)}
    assert found.results[0].details["repairs"] == {"misaligned": 1}
    assert found.model == {"name": "raw", "config": {"repairs": "none"}}
    path = write("raw.jsonl", jsonl(LINES))
    from_file = evaluate_files(path, reference, **LANGUAGES)
    assert (from_file.model, from_file.results) == (found.model, found.results)
    shorter = [row | {"search": {}} for row in LINES]
    refused("'a': 4 translated sentences for 2 reference sentences", evaluate, shorter, documents)
    assert evaluate(shorter, documents, repairs="none").results[0].value == found.results[0].value
    refused("repairs is 'all', expected none", evaluate, LINES, documents, repairs="all")


def test_documents_that_could_not_be_translated(reference, write, caplog):
    """Their empty sentences are scored, with a warning and their number in the details of every result."""
    rows = [ROWS[0] | {"translation": [""], "error": "scores that are not finite"}, ROWS[1]]
    translations = write("ours.jsonl", jsonl(rows))
    report = evaluate_files(translations, reference, **LANGUAGES)
    assert [result.details["untranslated"] for result in report.results] == [1, 1, 1, 1]
    assert "ours.jsonl: 1 of 2 documents could not be translated, the first is 'b'; their empty" in caplog.text
    caplog.clear()
    in_memory = evaluate(rows, read_documents(path=reference, **LANGUAGES), name="ours", dataset="reference")
    assert in_memory.results == report.results and "ours: 1 of 2 documents" in caplog.text
    caplog.clear()
    whole = evaluate(ROWS, read_documents(path=reference, **LANGUAGES))
    assert not caplog.records and all("untranslated" not in result.details for result in whole.results)
