"""`docmt compare`: tables, runs, pictures, translations side by side, options that do not go together."""

import json
import shutil

import pytest
from support.reader_checks import DOCUMENTS, jsonl

LANGUAGES = ("--source-lang", "en", "--target-lang", "de")


@pytest.fixture
def reports(run, documents, tmp_path):
    """Reports of three systems beside their translations: `a` copies the reference, `b-1` and `b-2` change a word."""
    paths = []
    for name, change in (("a", ""), ("b-1", "x "), ("b-2", "x y ")):
        rows = [
            {"doc_id": row["doc_id"], "translation": [change + pair["de"] for pair in row["translation"]]}
            for row in DOCUMENTS
        ]
        path = tmp_path / f"{name}.jsonl"
        path.write_text(jsonl(rows), "utf-8")
        paths.append(tmp_path / f"{name}.json")
        options = ("--name", name, "--strategy", "sentence" if name == "a" else "sliding", "-o", paths[-1])
        assert run("evaluate", path, documents, *LANGUAGES, *options)[0] == 0
    return paths


def test_the_default_compares(run, reports):
    code, out, err = run("compare", *reports[:2])
    lines = [line.split() for line in out.splitlines()]
    assert code == 0, err
    assert [
        "strategy",
        "sentence",
        "sliding",
    ] in lines and "difference: from a, p-value and that by Holm in brackets." in out
    assert sum(line[:1] == ["difference"] for line in lines) == 4


def test_systems_as_rows(run, reports):
    code, out, err = run("compare", *reports, "--rank", "pairs")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0 and lines[0] == ["dataset", "metric", "system", "n", "rank", "cluster", "score", "difference"], err
    assert lines[2][3:7] == ["a", "3", "1-3", "1"] and lines[3][0] == "b-1" and "12 tests." in out
    baseline = run("compare", *reports, "--rank", "baseline", "--format", "csv")[1].splitlines()
    assert baseline[0] == "dataset,metric,system,n,score,difference" and len(baseline) == 1 + 4 * 3
    found = json.loads(run("compare", *reports, "--rank", "pairs", "--format", "json")[1])
    assert {(pair["other"], pair["system"]) for pair in found["pairs"]} == {("a", "b-1"), ("a", "b-2"), ("b-1", "b-2")}
    code, _, err = run("compare", *reports, "--rank", "all")
    assert code == 1 and "unknown rank 'all': expected one of none, baseline, pairs" in err


def test_runs(run, reports, tmp_path):
    code, out, err = run("compare", *reports, "--runs", "-.$", "--format", "json")
    found = json.loads(out)
    assert code == 0 and found["systems"] == ["a", "b"], err
    assert [row["figures"]["b"]["runs"] for row in found["rows"]] == [2] * 4
    code, _, err = run("compare", *reports, "--runs", "-seed")
    assert code == 1 and "no two names are equal without '-seed'" in err
    (tmp_path / "other").mkdir()
    other = shutil.copy(reports[1], tmp_path / "other" / "r.json")  # of another system, called b-1, too
    code, _, err = run("compare", *reports, other, "--runs", "-.$")
    assert code == 1 and "are all called 'b-1'" in err and "give them names" in err


def test_output_that_is_an_input(run, reports):
    before = reports[0].read_bytes()
    code, _, err = run("compare", *reports, "-o", reports[0])
    assert code == 1 and "is the input" in err and reports[0].read_bytes() == before


def test_output_that_is_shown(run, reports, documents):
    """What the reports name is read, too."""
    for name in (documents, reports[1].with_suffix(".jsonl")):
        before = name.read_bytes()
        code, _, err = run("compare", "--show", *reports[:2], *LANGUAGES, "-o", name)
        assert code == 1 and "is the input" in err and name.read_bytes() == before


def test_output(run, reports, tmp_path):
    code, out, _ = run("compare", *reports, "--format", "markdown", "-o", tmp_path / "table.md")
    assert code == 0 and out == "" and (tmp_path / "table.md").read_text("utf-8").startswith("| dataset")
    code, _, err = run("compare", *reports, "-o", tmp_path / "nowhere" / "table.md")
    assert code == 1 and "nowhere" in err


def test_show(run, reports, tmp_path):
    code, out, err = run("compare", "--show", *reports[:2], *LANGUAGES)
    assert code == 0 and "3 of 3 sentences differ from a" in out and "{+x+}" in out, err
    translations = [path.with_suffix(".jsonl") for path in reports[:2]]
    code, _, err = run("compare", "--show", *translations, *LANGUAGES)
    assert code == 1 and "give them by --reference" in err
    given = ("--reference", tmp_path / "documents.jsonl", "--name", "one", "--name", "two", "--baseline", "two")
    code, out, _ = run("compare", "--show", *translations, *LANGUAGES, *given, "--sentences", "all", "--context", 0)
    assert code == 0 and "3 of 3 sentences differ from two" in out and "context" not in out
    page = tmp_path / "page.html"
    code, out, _ = run("compare", "--show", *reports, *LANGUAGES, "--order", "change", "--format", "html", "-o", page)
    assert code == 0 and out == "" and page.read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--order", "change"), "--order is for translations side by side (--show); remove it"),
        (("--reference", "x"), "--reference is for translations side by side"),
        (("--highlight", "x"), "--highlight is for pictures (--picture); remove it"),
        (("--picture-of", "index"), "--picture-of is for pictures"),
        (("--translator", "x"), "--translator is for translations side by side"),
        (("--show", "--translator", "x", *LANGUAGES), "only sets of WMT have translators"),
        (("--show", "--runs", "x"), "--runs is for tables of scores, not for --show; remove it"),
        (("--show", "--picture", "x.png"), "--picture is for tables of scores"),
        (("--show", "--format", "latex"), "unknown format 'latex': translations are shown as text, html"),
        (("--show", "--order", "size", *LANGUAGES), "unknown order 'size'"),
        (("--show", "--sentences", "al", *LANGUAGES), "unknown choice of sentences 'al'"),
        (("--format", "html"), "unknown format 'html'"),
    ],
)
def test_options_that_do_not_go_together(run, reports, options, message):
    code, out, err = run("compare", *reports, *options)
    assert code == 1 and out == "" and message in err
