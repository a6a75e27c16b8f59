"""The classes of the README, suite, metric and system, in files from outside the package, run by the command."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from support.errors import refused
from support.reader_checks import jsonl
from support.systems import DOCUMENTS

from hf_docmt import evaluation
from hf_docmt.evaluation.metrics import Metric, TranslatedDocuments, metric_classes
from hf_docmt.evaluation.metrics.metric import METRICS
from hf_docmt.evaluation.suites import Suite, read_suite
from hf_docmt.evaluation.suites.suite import SUITES, suite_classes
from hf_docmt.systems import System, load_system, system_classes
from hf_docmt.systems.system import SYSTEMS

README = (Path(evaluation.__file__).parent / "README.md").read_text(encoding="utf-8")
CODE = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", README, re.DOTALL))
LINES = (
    "Der Hund schläft\tDer Hund\tdie Katze\tnie\timmer und nie\n",
    "Das Haus\tHaus\tdie Katze\thier und dort\there\n",
)


@pytest.fixture(autouse=True)
def plugins(write, monkeypatch):
    monkeypatch.setenv("HF_DOCMT_PLUGINS", ",".join(str(write(name, code)) for name, code in CODE.items()))
    registered = dict(suite_classes()), dict(system_classes()), dict(metric_classes())
    yield
    for registry, before in zip((SUITES, SYSTEMS, METRICS), registered):
        registry.clear()
        registry.update(before)


@pytest.fixture
def suite(write):
    return write("mine.tabs", "".join(LINES))


@pytest.mark.parametrize("format", ["auto", "tabs"])
def test_a_file_of_scores(run, write, suite, format):
    scores = write("scores.txt", "1\n2\n3\n2\n")
    code, out, err = run("contrast", "other", suite, "--scores", scores, "--format", format, "--json")
    assert code == 0, err
    (result,) = json.loads(out)["results"]
    assert (result["value"], result["n"], result["dataset"]) == (50.0, 2, "mine")
    assert result["details"]["format"] == "tabs" and "counts" not in result["details"]
    assert result["breakdown"]["phenomenon=pronoun"]["value"] == 50.0
    assert "|ties:wrong|" in result["signature"] and result["details"]["statistics"]["unit"] == "item"


def test_a_model(run, suite, tmp_path, marian, tokenizer):
    marian.save_pretrained(tmp_path / "marian")
    tokenizer.save_pretrained(tmp_path / "marian")
    code, out, err = run("contrast", tmp_path / "marian", suite, "--context", 1, "--conditions", "true,empty", "--json")
    assert code == 0, err
    true, empty = json.loads(out)["results"]
    assert "past:1" in true["signature"] and "context:empty" in empty["signature"] and true["n"] == 2


def test_a_system(run, write, suite, tmp_path):
    folder = write("config.json", '{"model_type": "shortest"}').parent
    code, out, err = run("contrast", folder, suite, "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["results"][0]["value"] == 50.0 and report["model"]["architecture"] == "shortest"
    system = load_system(folder)
    assert system.translate(DOCUMENTS) == DOCUMENTS
    assert (system.context.past, system.languages, system.decoding["beams"]) == (0, (None, None), None)


def test_a_system_without_options(run, write, tmp_path):
    """Commands that translate give it no size of batches; what it does not know it is not given."""
    folder = write("config.json", '{"model_type": "shortest"}').parent
    sets = write("set.json", json.dumps([]))
    pairs = [{"segment": f"{n}", "src segment": "It barks.", "ref segment": "Er bellt."} for n in range(2)]
    voita = write("voita.jsonl", "".join(json.dumps(pair) + "\n" for pair in pairs))
    for arguments in (("ctxpro", folder, sets), ("translate-suite", folder, voita)):
        _, _, err = run(*arguments)
        assert "Traceback" not in err and "batch_size" not in err
        code, _, err = run(*arguments, "--beams", 2)
        assert code == 1 and "unknown option 'num_beams' of a shortest system" in err
    refused("unknown option 'zzz' of a shortest system", load_system, folder, zzz=1)


def test_messages(run, write, suite):
    code, _, err = run("contrast", "other", write("bad.tabs", "a\tb\n"), "--scores", suite)
    assert code == 1 and "bad.tabs, line 1: 2 fields, expected 5; separate them by tabs" in err
    code, _, err = run("contrast", "other", suite, "--scores", suite, "--format", "tab")
    assert code == 1 and "expected auto, bawden, contrapro, lopes, voita, tabs; did you mean 'tabs'?" in err
    code, _, err = run("contrast", "other", suite, "--scores", suite, "--records", suite)
    assert code == 1 and f"records is {suite}, but" in err and "has no use for it" in err


def test_context_and_counts(run, write, suite):
    run("contrast", "other", suite, "--scores", write("scores.txt", "1\n2\n1\n2\n"))  # imports the plugin
    with_context, alone = (read_suite(suite, context=context)[0] for context in (3, 0))
    assert with_context.source == ("Der Hund schläft", "die Katze") and with_context.index is None
    assert (alone.source, alone.target_context, alone.index) == (("die Katze",), (), 1)
    shorter = write("mine.tabs", LINES[0])
    code, out, _ = run("contrast", "other", shorter, "--scores", write("scores.txt", "1\n2\n"))
    assert code == 0 and "mine: other counts than published: items 1 (published 2)" in out


def test_a_name_is_taken_once():
    for part, field, name in ((Suite, "format", "voita"), (System, "kind", "docmt"), (Metric, "name", "TER")):
        words = f"two {part.__name__.lower()}s have the name '{name}': .*; give one another name"
        refused(words, type, "Other", (part,), {field: name})


HYPOTHESES = {"a": ["ein Hund", "er schläft"], "b": ["ja"], "c": ["das ist gut so"]}
REFERENCES = {"a": ["ein Hund", "er schläft nicht"], "b": ["ja ja"], "c": ["gut so"]}


def test_a_metric_is_scored_and_compared(run, write, tmp_path):
    """Of translations, and of others that are twice as long."""
    pairs = {name: [{"en": "x", "de": text} for text in texts] for name, texts in REFERENCES.items()}
    reference = write("ref.jsonl", jsonl({"doc_id": name, "translation": side} for name, side in pairs.items()))
    languages = ("--source-lang", "en", "--target-lang", "de")
    for name, times in (("one", 1), ("two", 2)):
        rows = [{"doc_id": d, "translation": [" ".join([s] * times) for s in some]} for d, some in HYPOTHESES.items()]
        options = ("--discourse", "wordiness", "--by", "index", "-o", tmp_path / f"{name}.json")
        code, _, err = run("evaluate", write(f"{name}.jsonl", jsonl(rows)), reference, *languages, *options)
        assert code == 0, err
    results = json.loads((tmp_path / "one.json").read_text("utf-8"))["results"]
    assert [result["metric"] for result in results] == ["s-BLEU", "d-BLEU", "chrF", "TER", "wordiness"]
    ratio = results[-1]
    assert (ratio["value"], ratio["n"], ratio["dataset"]) == (100 * 9 / 9, 4, "ref")
    assert ratio["breakdown"]["index=2"]["value"] == pytest.approx(100 * 2 / 3)
    assert ratio["details"]["statistics"]["rows"] == [[4, 5], [1, 2], [4, 2]]
    low, high = ratio["details"]["interval"]
    assert low < 100 < high and ratio["signature"].startswith("segments:sentence|version:")
    reports = (tmp_path / "one.json", tmp_path / "two.json")
    code, out, err = run("compare", *reports, "--baseline", "one", "--format", "json")
    assert code == 0, err
    (row,) = [row for row in json.loads(out)["rows"] if row["metric"] == "wordiness"]
    assert row["figures"]["two"]["test"]["delta"] == 100


SHAPES = {  # statistics of two documents of two sentences and one, and what is said of them
    "[[[1, 2]]]": "expected [document][sentence][column], 2 rows for document 1; got 1",
    "[[1, 2], [3]]": "expected [document][sentence][column], rows of finite numbers, all of one length; got 1",
    "[[[1, 2]], [[1, 2]]]": "2 rows for document 1; got 1",
    "[3, 4]": "2 rows for document 1; got 3",
    "[[[1, 2], [1]], [[1, 2]]]": "all of one length; got [1]",
    "[[[1, 2], [1, float('nan')]], [[1, 2]]]": "rows of finite numbers, all of one length; got [1, nan]",
    "[[[1], [1]], [[1]]]": "1 columns, expected 2 (a ratio: [right, n]) or 3",
}


@pytest.mark.parametrize("statistics", SHAPES)
def test_shapes_of_a_metric(statistics):
    """The class is named, and what it gave."""
    methods = {"name": statistics, "segment_statistics": lambda self, documents: eval(statistics)}
    metric, documents = type("Wordy", (Metric,), methods)(), TranslatedDocuments([["a", "b"], ["c"]])
    refused(re.escape(SHAPES[statistics]), metric.score, documents)


def test_a_metric_without_its_methods():
    documents = TranslatedDocuments([["a"]])
    lone = type("Lone", (Metric,), {"name": "lone"})()
    refused(
        "Lone has no segment_statistics; write that method, or measure",
        lone.score,
        documents,
        error=NotImplementedError,
    )
    methods = {"name": "wide", "segment_statistics": lambda *_: [[[1] * 4]], "score_from_sums": staticmethod(np.sum)}
    wide = type("Wide", (Metric,), methods)()
    refused(r"Wide.score_from_sums: .*got the shape \(\) for \(1, 4\)", wide.score, documents)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source": "a b"}, "Odd gives source='a b', expected a tuple of sentences, the current one last"),
        ({"target_context": ("a", "b")}, "expected a tuple of 1 sentence"),
        ({"candidates": ("a",)}, "a tuple of two translations or more"),
        ({"correct": 2}, "of which number 2 is right"),
        (None, "Odd reads no JSON; write json_fields, or items"),
    ],
)
def test_shapes_of_a_suite(write, fields, message):
    good = {"source": ("a", "b"), "target_context": ("c",), "candidates": ("d", "e"), "phenomenon": "x"}
    methods = {"items": lambda self: iter([self.item(1, **good | fields)])} if fields else {}
    odd = type("Odd", (Suite,), methods | {"format": "odd"})
    error = ValueError if fields else NotImplementedError
    refused(re.escape(message), odd(write("odd.json", '[{"a": 1}]')).read, error=error)
