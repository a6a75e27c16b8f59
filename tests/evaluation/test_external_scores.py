"""Scores of other programs: means, parts and tests by hand, input that is read again, windows, bad files."""

import json

import pytest
from support.errors import refused
from support.reader_checks import jsonl

from hf_docmt.evaluation.comparison import compare
from hf_docmt.evaluation.metrics.external import ExternalScore, write_scorer_input
from hf_docmt.evaluation.metrics.metric import TranslatedDocuments
from hf_docmt.evaluation.translation_scores import evaluate_files
from hf_docmt.files import DataError

SIDES = [["x1", "x2", "", "x4"], ["y1"]]
DOCUMENTS = TranslatedDocuments(
    [["a1", "a2", "", "a4"], ["b1"]], [["r1", "r2", "", "r4"], ["s1"]], SIDES, doc_ids=["a", "b"]
)


@pytest.fixture
def reference(write):
    rows = [
        {"doc_id": doc_id, "translation": [{"en": s, "de": r} for s, r in zip(source, side)]}
        for doc_id, source, side in zip("ab", SIDES, DOCUMENTS.references)
    ]
    return write("reference.jsonl", jsonl(rows))


@pytest.fixture
def outputs(write):
    sides = zip("ab", SIDES, DOCUMENTS.hypotheses)
    rows = [{"doc_id": doc_id, "source": source, "translation": side} for doc_id, source, side in sides]
    return write("out.jsonl", jsonl(rows))


def score(path):
    (result,) = ExternalScore("MetricX", path).score(DOCUMENTS)
    return result


def test_a_number_a_line(write):
    sentences = score(write("a.txt", "1\n2\n0\n4.5\n-3e0\n"))
    assert sentences.value == pytest.approx(4.5 / 5) and sentences.n == 5
    assert sentences.details["statistics"]["rows"] == [[7.5, 4], [-3, 1]]
    documents = score(write("b.txt", "7\n1\n"))
    assert (documents.value, documents.n) == (4, 2) and str(documents.signature).endswith("segments:document")
    assert documents.details["interval"] == [1, 7]


def test_json_lines_by_id(write):
    """In any order; a sentence that is blank on both sides needs no score, and counts for nothing."""
    rows = [{"doc_id": "b", "sentence": 1, "prediction": 5}]
    rows += [{"doc_id": "a", "sentence": n, "prediction": n} for n in (4, 2, 1)]
    found = score(write("a.jsonl", jsonl(rows)))
    assert found.value == 12 / 4 and found.n == 4 and found.details["statistics"]["rows"] == [[7, 3], [5, 1]]
    windows = [{"doc_id": d, "sentence": 1, "sentences": 2, "score": s} for d, s in (("a", 1), ("b", 2), ("a", 6))]
    found = score(write("b.jsonl", jsonl(windows)))
    assert found.value == 3 and found.details["statistics"]["rows"] == [[7, 2], [2, 1]]


def test_direction_of_external_scores(write):
    """More, but for counts of errors; the name may say it, and so does the signature."""
    path = write("a.txt", "1\n2\n")
    directions = {}
    for name in ("ESA", "MetricX", "MQM", "x:lower", "MetricX:higher"):
        (result,) = ExternalScore(name, path).score(DOCUMENTS)
        directions[name] = (result.metric, result.signature.get("better"))
    assert directions == {
        "ESA": ("ESA", "higher"),
        "MetricX": ("MetricX", "lower"),
        "MQM": ("MQM", "lower"),
        "x:lower": ("x", "lower"),
        "MetricX:higher": ("MetricX", "higher"),
    }
    (penalties,) = ExternalScore("MQM", write("b.txt", "-1\n-2\n")).score(DOCUMENTS)
    assert penalties.signature.get("better") == "higher"
    (no_errors,) = ExternalScore("MQM", write("c.txt", "0\n0\n")).score(DOCUMENTS)
    assert no_errors.signature.get("better") == "lower"
    refused("'less' is better, expected NAME:lower or NAME:higher", ExternalScore, "x:less", path)


def test_documents_without_scores(write):
    """Blank documents need none; those without a sentence may have some, which count for nothing."""
    documents = TranslatedDocuments(
        [["a"], [""]], [["r"], [""]], [["x"], [""]], doc_ids=["a", "b"], without_sentences={"c"}
    )
    for rows in ([{"doc_id": "a", "score": 3}], [{"doc_id": "a", "sentence": 1, "score": 3}]):
        rows += [{"doc_id": "c", "score": 9}] if "sentence" not in rows[0] else []
        (result,) = ExternalScore("ESA", write("a.jsonl", jsonl(rows))).score(documents)
        assert (result.value, result.n) == (3, 1)
    documents = TranslatedDocuments([["a", "b", "c"], ["d"]], [["r"] * 3, ["s"]], without_sentences={"3", "4"})
    with pytest.raises(DataError, match="4 scores, as many as sentences and as documents; give JSON lines with doc_id"):
        ExternalScore("ESA", write("b.txt", "1\n2\n3\n4\n")).score(documents)


@pytest.mark.parametrize("format", ["metricx", "comet"])
def test_input_and_output_formats_of_programs(write, tmp_path, outputs, reference, format):
    path, languages = tmp_path / "input.jsonl", {"source_lang": "en", "target_lang": "de"}
    evaluate_files(outputs, reference, **languages, scorer_input=(format, path), metrics=["bleu"])
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    keys = ("source", "hypothesis", "reference") if format == "metricx" else ("src", "mt", "ref")
    assert [row["sentence"] for row in rows] == [1, 2, 4, 1]
    assert [[row[key] for key in keys] for row in rows][2] == ["x4", "a4", "r4"]
    scored = write("scored.jsonl", jsonl([row | {"prediction": n} for n, row in enumerate(rows)]))
    reports = []
    for name in ("MetricX", "MetricX"):
        reports.append(evaluate_files(outputs, reference, **languages, external=[(name, scored)], metrics=["bleu"]))
    assert reports[0].results[-1].value == 1.5 and reports[0].results[-1].metric == "MetricX"
    row = compare(reports, names=["x", "y"]).rows[-1]
    assert row.metric == "MetricX" and row.figures["y"].test.p_value == 1


def test_windows(tmp_path):
    """Of so many visible sentences each, the last one reaching the end of the document."""
    hypotheses = [[f"h{n}" for n in range(7)], ["k"]]
    documents = TranslatedDocuments(hypotheses, hypotheses, hypotheses)
    for window, stride, expected in (
        (3, None, ["h0 h1 h2", "h3 h4 h5", "h4 h5 h6", "k"]),
        (3, 1, ["h0 h1 h2", "h1 h2 h3", "h2 h3 h4", "h3 h4 h5", "h4 h5 h6", "k"]),
        (9, None, ["h0 h1 h2 h3 h4 h5 h6", "k"]),
    ):
        write_scorer_input(tmp_path / "w", documents, "comet", window, stride)
        rows = [json.loads(line) for line in (tmp_path / "w").read_text().splitlines()]
        assert [row["mt"] for row in rows] == expected
        assert [row["sentences"] for row in rows] == [len(text.split()) for text in expected]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n2\n3\n", "3 scores for 5 sentences in 2 documents; give one for each sentence, or for each document"),
        ("1\nx\n", "line 2: 'x' is not a finite number"),
        ("1\nnan\n", "line 2: 'nan' is not a finite number"),
        ('{"doc_id": "c", "score": 1}\n', "`doc_id` is 'c', which is not a document of the reference"),
        ('{"doc_id": "a", "sentence": 5, "score": 1}\n', "`sentence` is 5, expected each of 1 to 4 once for 'a'"),
        ('{"doc_id": "a", "sentence": 1, "score": true}\n', "line 1: True is not a finite number"),
        ('{"doc_id": "a", "sentence": true, "score": 1}\n', "`sentence` is True, expected each of 1 to 4 once"),
        ('{"doc_id": "a", "sentence": 1}\n', "line 1: None is not a finite number"),
        ('{"doc_id": "a", "sentence": 1, "score": 1}\n', "3 scores missing, the first of document 'a', sentence 2"),
        ('{"doc_id": "a", "score": 1}\n', "1 score missing, the first of document 'b'"),
        ('{"doc_id": "a", "score": 1}\n{"doc_id": "a", "sentence": 1, "score": 1}\n', "give one kind"),
    ],
)
def test_bad_files(write, text, message):
    refused(message, score, write("scores", text), error=DataError)


def test_bad_options(write, outputs, reference):
    refused("external scores are called 'TER', expected a name of their own", ExternalScore, "TER", "x")
    refused("unknown format of scorers 'bleurt': expected one of", write_scorer_input, "x", DOCUMENTS, "bleurt")
    refused("windows of 0 sentences, every 0; expected 1 or more", write_scorer_input, "x", DOCUMENTS, "comet", 0)
    with pytest.raises(DataError, match="document '1' has no source"):
        write_scorer_input("x", TranslatedDocuments([["a"]], [["b"]]), "comet")


def test_options_of_the_command(run, outputs, reference, tmp_path):
    base = ("evaluate", outputs, reference, "-l", "en-de")
    scores = tmp_path / "scores.txt"
    scores.write_text("1\n2\n")
    code, out, err = run(*base, "--external", f"ESA={scores}", "--scorer-input", f"metricx={tmp_path / 'in'}", "--json")
    assert code == 0 and json.loads(out)["results"][-1]["value"] == 1.5 and (tmp_path / "in").exists(), err
    for options, message in (
        (("--external", "ESA"), "got 'ESA', expected NAME=FILE"),
        (("--external", f"A={scores}", "--external", f"A:lower={scores}"), "external scores are called 'A' twice"),
        (("--scorer-window", "x"), "--scorer-window is 'x', expected N or N:STRIDE"),
        (("--external", f"ESA={scores}", "--baseline", outputs), "--external and --scorer-input are for one system"),
        (("--scorer-input", f"comet={reference}"), f"the output {reference} is the input"),
        (("--scorer-input", "comet=x", "-o", "x"), "x is given both as report and as scorer input; give two files"),
        (("--external", f"ESA={scores}", "-o", scores), f"the output {scores} is the input {scores}"),
    ):
        code, _, err = run(*base, *options)
        assert code == 1 and message in err, err
    code, _, err = run("evaluate", outputs, outputs, reference, "-l", "en-de", "--external", f"ESA={scores}")
    assert code == 1 and "are of one system; evaluate the systems one by one" in err
