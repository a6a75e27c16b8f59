"""Translations of several systems beside each other: from files and reports, scores, context, files that do not fit."""

import pytest
from sacrebleu.metrics import BLEU, CHRF
from support.errors import refused
from support.reader_checks import jsonl

from hf_docmt.evaluation.comparison import side_by_side
from hf_docmt.evaluation.translation_scores import evaluate_files
from hf_docmt.files import DataError

LANGUAGES = {"source_lang": "en", "target_lang": "de"}
SOURCES = {"d1": ["The lamp is old .", "It is red .", "Look !"], "d2": ["Hello ."]}
REFERENCES = {"d1": ["Die Lampe ist alt .", "Sie ist rot .", "Schau !"], "d2": ["Hallo ."]}
OTHERS = {
    "a": {"d1": ["Die Lampe ist alt .", "Er ist rot .", "Schau !"], "d2": ["Hallo ."]},
    "b": {"d1": ["Die Lampe ist alt .", "Sie ist rot .", "Schau !"], "d2": ["Hallo du ."]},
}


@pytest.fixture
def files(tmp_path):
    """reference.jsonl, and a.jsonl and b.jsonl with documents in another order."""
    rows = [
        {"doc_id": name, "translation": [{"en": s, "de": t} for s, t in zip(SOURCES[name], REFERENCES[name])]}
        for name in SOURCES
    ]
    write(tmp_path / "reference.jsonl", rows)
    for name, documents in OTHERS.items():
        write(tmp_path / f"{name}.jsonl", [{"doc_id": d, "translation": documents[d]} for d in reversed(documents)])
    return tmp_path


def write(path, rows):
    path.write_text(jsonl(rows), "utf-8")
    return path


def test_files(files):
    found = side_by_side([files / "a.jsonl", files / "b.jsonl"], files / "reference.jsonl", **LANGUAGES)
    assert (found.systems, found.baseline, found.target_lang) == (("a", "b"), "a", "de")
    assert [(one.doc_id, one.number, one.source) for one in found.sentences] == [
        (name, number, text) for name in SOURCES for number, text in enumerate(SOURCES[name], 1)
    ]
    assert [one.context for one in found.sentences] == [
        (),
        ("The lamp is old .",),
        ("The lamp is old .", "It is red ."),
        (),
    ]
    metric = CHRF()
    for one in found.sentences:
        for system, text in one.translations.items():
            assert text == OTHERS[system][one.doc_id][one.number - 1]
            assert one.scores[system] == metric.sentence_score(text, list(one.references)).score
    assert found.signature == f"chrF2|{metric.get_signature()}"
    assert found.sentences[1].delta("b", "a") > 0 > found.sentences[3].delta("b", "a")
    references = [[text for document in REFERENCES.values() for text in document]]
    for name, scorer in (("BLEU", BLEU()), ("chrF", metric)):
        for system, documents in OTHERS.items():
            lines = [text for name in SOURCES for text in documents[name]]
            assert found.scores[name][system] == scorer.corpus_score(lines, references).score


def test_options(files):
    paths = [files / "a.jsonl", files / "b.jsonl"]
    found = side_by_side(paths, files / "reference.jsonl", **LANGUAGES, names=["x", "y"], baseline="y", context=0)
    assert (found.systems, found.baseline) == (("x", "y"), "y") and not any(one.context for one in found.sentences)
    (files / "c").mkdir()
    again = write(files / "c" / "a.jsonl", [{"doc_id": d, "translation": OTHERS["a"][d]} for d in OTHERS["a"]])
    found = side_by_side([paths[0], again], files / "reference.jsonl", **LANGUAGES)
    assert found.systems == (f"a ({files.name}/a)", "a (c/a)") and found.select().sentences == ()


def test_references_of_a_wmt_set_and_documents_that_failed(files, caplog):
    """Translators choose among references; a document with an error is blank, and warned of."""
    lines = {name: "\n".join(REFERENCES[name]) for name in REFERENCES}
    rows = [
        {"doc_id": name, "src_lang": "en", "tgt_lang": "de_DE", "src_text": "\n".join(SOURCES[name])}
        | {"refs": {"A": lines[name], "B": lines[name].upper()}}
        for name in SOURCES
    ]
    known = write(files / "set.jsonl", rows)
    paths = [files / "a.jsonl", files / "b.jsonl"]
    refused(r"references 'A', 'B'.*--translator", side_by_side, paths, known, error=DataError, **LANGUAGES)
    assert not caplog.records
    failed = {"doc_id": "d2", "translation": [""], "error": "too long"}
    write(paths[1], [{"doc_id": "d1", "translation": OTHERS["b"]["d1"]}, failed])
    found = side_by_side(paths, known, **LANGUAGES, translators=["B", "A"])
    assert found.sentences[3].references == ("HALLO .", "Hallo .") and found.sentences[3].translations["b"] == ""
    assert [record.getMessage() for record in caplog.records if "could not be translated" in record.getMessage()]


def test_reports_name_their_files(files, monkeypatch, tmp_path_factory):
    """Beside them, or in the working folder; other names in the reports are those of the systems."""
    for name in "ab":
        report = evaluate_files(files / f"{name}.jsonl", files / "reference.jsonl", **LANGUAGES, name=f"system {name}")
        assert report.data == {"translations": f"{name}.jsonl", "reference": "reference.jsonl", "documents": 2}
        report.write(files / f"{name}.json")
    reports = [files / "a.json", files / "b.json"]
    found = side_by_side(reports, **LANGUAGES)
    assert found.systems == ("system a", "system b")
    mixed = side_by_side([files / "a.json", files / "b.jsonl"], **LANGUAGES)
    assert mixed.systems == ("system a", "b")
    folder = tmp_path_factory.mktemp("elsewhere")
    moved = [path.rename(folder / path.name) for path in reports]
    monkeypatch.chdir(files)
    assert side_by_side(moved, **LANGUAGES).sentences == found.sentences
    monkeypatch.chdir(folder)
    with pytest.raises(ValueError, match=r"a\.json names 'a\.jsonl', which is neither next to it nor in the working"):
        side_by_side(moved, **LANGUAGES)


def test_lines_as_they_were_written(files):
    """Of FSD without repair: line by line, as they are scored."""
    rows = [{"doc_id": "d1", "translation": ["Eins .", "Zwei ."]}, {"doc_id": "d2", "translation": ["A", "B", "C"]}]
    raw = write(files / "raw.jsonl", [row | {"search": {"strategy": "full", "repairs": "none"}} for row in rows])
    found = side_by_side([files / "a.jsonl", raw], files / "reference.jsonl", **LANGUAGES)
    assert [one.translations["raw"] for one in found.sentences] == ["Eins .", "Zwei .", "", "A B C"]


def test_several_references_are_not_needed_and_plain_lines_do(files):
    (files / "plain.ref").write_text("Die Lampe ist alt .\nSie ist rot .\n", "utf-8")
    for name in ("one", "two"):
        (files / f"{name}.txt").write_text("Die Lampe ist alt .\nEr ist rot .\n", "utf-8")
    found = side_by_side([files / "one.txt", files / "two.txt"], files / "plain.ref")
    assert [one.source for one in found.sentences] == [None, None] and found.sentences[1].context == ()


def test_files_that_do_not_fit(files):
    paths = [files / "a.jsonl", files / "b.jsonl"]
    reference = files / "reference.jsonl"
    short = write(files / "short.jsonl", [{"doc_id": d, "translation": OTHERS["a"][d][:1]} for d in OTHERS["a"]])
    with pytest.raises(ValueError, match=r"short\.jsonl: document 'd1' has 1 sentence as its translation, .* 3; only"):
        side_by_side([paths[0], short], reference, **LANGUAGES)
    refused("documents that were translated; give them by --reference", side_by_side, paths, **LANGUAGES)
    refused("languages of the reference are needed", side_by_side, paths, reference)
    refused("unknown baseline 'c': the systems are a, b", side_by_side, paths, reference, **LANGUAGES, baseline="c")
    refused("1 names for 2", side_by_side, paths, reference, **LANGUAGES, names=["one"])
    refused("context is -1, expected 0 or more", side_by_side, paths, reference, **LANGUAGES, context=-1)
    old = evaluate_files(paths[0], reference, **LANGUAGES)
    del old.data["translations"]
    old.write(files / "old.json")
    with pytest.raises(ValueError, match=r"old\.json names no file of its translations: an earlier version or another"):
        side_by_side([files / "old.json"], reference, **LANGUAGES)
