"""A metric from outside the package: one class in one file, run through the command."""

import json
import os

import pytest
from support.processes import run_python

PLUGIN = """
from hf_docmt.evaluation.metrics import Metric


class LengthRatio(Metric):
    name = "length ratio"
    choice = "length"

    def segment_statistics(self, documents):
        pairs = zip(documents.hypotheses, documents.references)
        return [[[len(h.split()), len(r.split())] for h, r in zip(*pair)] for pair in pairs]
"""
HYPOTHESES = {"a": ["ein Hund", "er schläft"], "b": ["ja"], "c": ["das ist gut so"]}
REFERENCES = {"a": ["ein Hund", "er schläft nicht"], "b": ["ja ja"], "c": ["gut so"]}


@pytest.fixture
def docmt(tmp_path):
    """Runs the command with the plugin, in a process of its own."""
    (tmp_path / "length_ratio.py").write_text(PLUGIN)

    def docmt(*arguments, plugin=True):
        environment = {**os.environ, "HF_DOCMT_PLUGINS": "length_ratio.py" if plugin else ""}
        return run_python("-m", "hf_docmt", *arguments, cwd=tmp_path, env=environment)

    return docmt


@pytest.fixture
def files(tmp_path):
    """Translations of two systems, the second one twice as long, and the reference."""
    for name, times in (("one", 1), ("two", 2)):
        rows = [{"doc_id": d, "translation": [" ".join([s] * times) for s in some]} for d, some in HYPOTHESES.items()]
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    rows = [
        {"doc_id": d, "translation": [{"en": "x", "de": sentence} for sentence in some]}
        for d, some in REFERENCES.items()
    ]
    (tmp_path / "reference.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return "reference.jsonl", "--source-lang", "en", "--target-lang", "de"


def test_a_metric_of_a_plugin_is_scored_and_compared(docmt, files, tmp_path):
    for name in ("one", "two"):
        options = ("--discourse", "length", "--by", "index", "-o", f"{name}.json")
        done = docmt("evaluate", f"{name}.jsonl", *files, *options)
        assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "one.json").read_text("utf-8"))["results"]
    assert [result["metric"] for result in results] == ["s-BLEU", "d-BLEU", "chrF", "TER", "length ratio"]
    ratio = results[-1]
    assert (ratio["value"], ratio["n"], ratio["dataset"]) == (100 * 9 / 9, 4, "reference")
    assert ratio["breakdown"]["index=2"]["value"] == pytest.approx(100 * 2 / 3)
    assert ratio["details"]["statistics"]["rows"] == [[4, 5], [1, 2], [4, 2]]
    low, high = ratio["details"]["interval"]
    assert low < 100 < high and ratio["signature"].startswith("segments:sentence|version:")
    done = docmt("compare", "one.json", "two.json", "--baseline", "one", "--format", "json")
    assert done.returncode == 0, done.stderr
    (row,) = [row for row in json.loads(done.stdout)["rows"] if row["metric"] == "length ratio"]
    assert row["figures"]["two"]["test"]["delta"] == 100


def test_without_the_plugin_it_is_unknown(docmt, files):
    done = docmt("evaluate", "one.jsonl", *files, "--discourse", "length", plugin=False)
    assert done.returncode == 1
    assert done.stderr.startswith("docmt: unknown discourse measure 'length': expected some of connectives, pronouns")
