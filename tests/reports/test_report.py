"""The report format: building, merging, checking, files, the table."""

import copy
import json
import os
import subprocess
from dataclasses import replace

import pytest
from support.errors import refused

from hf_docmt import __version__
from hf_docmt.reports import report as report_module
from hf_docmt.reports.report import Report, merge_reports, package_commit
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.signature import Signature

MODEL = {"name": "tiny", "architecture": "concat", "parameters": 1234567, "config": {"past_context": 3}}


def result(metric="s-BLEU", value=23.456, signature="segments:sentence", **changes):
    given = {"task": "translation", "dataset": "talks", "split": "test", "n": 20}
    return Result(**{**given, "metric": metric, "value": value, "signature": Signature.parse(signature), **changes})


@pytest.fixture
def report():
    parts = {"distance=0": PartScore(100.0, 5), "distance=1": PartScore(66.7, 15)}
    accuracy = result("accuracy", 75.0, "ties:wrong", task="contrastive", dataset="pronoun", breakdown=parts)
    results = [result(strategy="sliding", beams=4), accuracy]
    return Report(model=MODEL, data={"train": "talks"}, results=results, training={"steps": 9})


def test_build(report):
    found = report.to_dict()
    assert (found["format"], found["package"], found["version"]) == (1, "hf-docmt", __version__)
    assert found["results"][0]["breakdown"] == {} and found["results"][0]["beams"] == 4
    assert "training" not in Report(model=MODEL, data={}, results=[]).to_dict()


def test_round_trip(report, tmp_path):
    path = tmp_path / "report.json"
    first = report.results[0].with_details({"name": "Müller", "repairs": None})
    report = replace(report, results=[first, *report.results[1:]])
    report.write(path)
    assert Report.read(path) == report
    assert "Müller" in path.read_text(encoding="utf-8")
    written = path.read_bytes()
    Report.read(path).write(path)
    assert path.read_bytes() == written
    assert os.listdir(tmp_path) == ["report.json"]


def test_failed_write_leaves_the_old_file(report, tmp_path, monkeypatch):
    path = tmp_path / "report.json"
    report.write(path)
    before = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        replace(report, data={"other": 1}).write(path)
    report.data["bad"] = float("inf")
    refused(r"report\.data\.bad: inf is not a score", report.write, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["report.json"]


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("results", 0, "vaule"), 1.0, r"results\[0\]: unknown key 'vaule'; did you mean 'value'"),
        (("extra",), 1, "report: unknown key 'extra'; known are"),
        (("model", "name"), None, "model.name: expected str, got None"),
        (("model", "layers"), 6, "model: unknown key 'layers'"),
        (("results", 0, "value"), float("nan"), r"results\[0\].value: nan is not a score"),
        (("results", 0, "value"), True, r"results\[0\].value: expected int or float, got True"),
        (("results", 0, "n"), "many", r"results\[0\].n: expected int, got 'many'"),
        (("results", 0, "task"), "music", r"results\[0\]: task 'music', expected one of translation, contrastive"),
        (
            ("results", 1, "breakdown", "distance=2"),
            50.0,
            r"results\[1\].breakdown\['distance=2'\]: expected an object",
        ),
        (("results", 1, "breakdown", "distance=0", "value"), float("nan"), "nan is not a score"),
        (("results", 0), [], r"results\[0\]: expected an object, got list"),
        (("training", "loss"), [1.0, float("nan")], r"report.training.loss\[1\]: nan"),
        (("data", "path"), object(), "report.data.path: object cannot be written as JSON"),
        (("format",), 2, "format 2, this version reads format 1"),
    ],
)
def test_bad_reports_are_refused(report, keys, value, message):
    broken = copy.deepcopy(report.to_dict())
    part = broken
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    refused(message, Report.from_dict, broken)


def test_bad_results_are_refused():
    for change, message in (
        ({"task": "music"}, "result: task 'music'"),
        ({"value": float("nan")}, "result.value: nan is not a score"),
        ({"details": {"x": object()}}, "result.details.x: object cannot be written as JSON"),
    ):
        refused(message, result, **change)


def test_missing_keys_are_named(report):
    broken = report.to_dict()
    del broken["results"][1]["signature"]
    refused(r"results\[1\]: missing signature", Report.from_dict, broken)
    refused("report: expected an object, got list", Report.from_dict, [])


def test_unreadable_files(report, tmp_path):
    path = tmp_path / "report.json"
    path.write_text('{"format": 1,\n "package": \n}')
    refused(r"report\.json, line 3, column 1: broken JSON", Report.read, path)
    with pytest.raises(FileNotFoundError, match="other.json: the report does not exist; check the path"):
        Report.read(tmp_path / "other.json")
    path.write_bytes(b'{"format": "\xff"}')
    refused(r"report\.json.*UTF-8.*byte offset 12", Report.read, path)
    path.write_text(json.dumps(report.to_dict()).replace("results", "result"))
    refused(r"report\.json: report: unknown key 'result'; did you mean 'results'", Report.read, path)


def test_packed_files(report, tmp_path):
    path = tmp_path / "report.json.gz"
    report.write(path)
    assert path.read_bytes()[:2] == b"\x1f\x8b" and Report.read(path) == report
    path.write_bytes(path.read_bytes()[:40])
    refused(r"report\.json\.gz: broken or truncated gzip file", Report.read, path)


def test_merge_replaces_repeated_measurements(report):
    again = result(value=30.0, strategy="sliding", beams=4)
    later = Report(model={"name": "tiny"}, data={"test": "news"}, results=[again])
    merged = merge_reports(report, later)
    assert [(found.metric, found.value) for found in merged.results] == [("accuracy", 75.0), ("s-BLEU", 30.0)]
    assert merged.model == MODEL and merged.data == {"train": "talks", "test": "news"}
    assert merged.training == {"steps": 9}
    other_beam = Report(model=MODEL, data={}, results=[result(strategy="sliding", beams=1)])
    assert len(merge_reports(report, other_beam).results) == 3


def test_merge_keeps_the_origin_of_older_numbers(report):
    older = replace(report, version="0.0.9", commit="a" * 40)
    merged = merge_reports(older, Report(model=MODEL, data={}, results=[result("chrF", 50.0)]))
    assert merged.version == __version__
    assert merged.results[0].details == {"version": "0.0.9", "commit": "a" * 40}
    assert merged.results[-1].details == {}
    assert older.results[0].details == {}  # the input is left as it was
    again = merge_reports(merged, merged)
    assert again.results == merged.results


def test_merge_refuses_different_models(report):
    with pytest.raises(ValueError, match="different models, 'tiny' and 'big'"):
        merge_reports(report, Report(model={"name": "big"}, data={}, results=[]))
    refused("no reports", merge_reports)


def test_table(report):
    report = replace(report, commit="0123456789abcdef0123456789abcdef01234567-dirty")
    lines = str(report).splitlines()
    assert lines[:2] == ["tiny, concat, 1,234,567 parameters", f"hf-docmt {__version__} (0123456789ab-dirty)"]
    assert lines[3].split() == ["dataset", "split", "strategy", "beams", "metric", "value", "n"]
    assert lines[5].split() == ["talks", "test", "sliding", "4", "s-BLEU", "(a)", "23.46", "20"]
    assert lines[6].split() == ["pronoun", "test", "-", "-", "accuracy", "(b)", "75.00", "20"]
    assert lines[8].split() == ["distance=1", "66.70", "15"]
    assert len({len(line) for line in lines[3:9]}) == 1  # the last column is flush right
    assert lines[-2:] == ["(a) segments:sentence", "(b) ties:wrong"]


def test_table_distinguishes_conditions():
    signatures = ("context:true", "context:empty", "context:true")
    results = [
        result("accuracy", value, signature=signature) for value, signature in zip((60.0, 50.0, 70.0), signatures)
    ]
    lines = str(Report(model=MODEL, data={}, results=results)).splitlines()
    letters = [next(cell for cell in line.split() if cell.startswith("(")) for line in lines[5:8]]
    assert letters == ["(a)", "(b)", "(a)"]
    assert lines[-2:] == ["(a) context:true", "(b) context:empty"]


def test_table_tells_other_counts_than_published(report):
    note = "deixis_dev: other counts than published: items 2 (published 500)"
    report = replace(report, results=[found.with_details({"counts": note}) for found in report.results])
    assert str(report).splitlines()[-3:] == ["(b) ties:wrong", "", note]


def test_table_without_results():
    assert "dataset" in str(Report(model={"name": "m"}, data={}, results=[]))


def test_commit_of_a_checkout(tmp_path, monkeypatch):
    """The commit, `-dirty` with changes, null without a checkout, without commits or without git."""
    package = tmp_path / "hf_docmt" / "evaluation"
    package.mkdir(parents=True)
    (package / "report.py").write_text("x = 1\n")
    monkeypatch.setattr(report_module, "__file__", str(package / "report.py"))

    def found():
        package_commit.cache_clear()
        return package_commit()

    def git(*arguments):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    try:
        assert found() is None
        git("init", "-q")
        assert found() is None
        git("add", ".")
        git("commit", "-q", "-m", "first")
        git("tag", "-a", "v1", "-m", "v1")
        assert found() == git("rev-parse", "HEAD")
        (package / "report.py").write_text("x = 2\n")
        assert found() == git("rev-parse", "HEAD") + "-dirty"
        monkeypatch.setenv("PATH", "")
        assert found() is None
    finally:
        monkeypatch.undo()
        package_commit.cache_clear()
