"""Tables of a study: cells worked out by hand."""

import statistics
from dataclasses import replace

import pytest
from support.errors import refused

from hf_docmt.reports.report import Report
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import Statistics
from hf_docmt.studies import tables
from hf_docmt.studies.study import ColumnSection, FigureSection, TableSection
from hf_docmt.studies.tables import RunTable


def result(value, context="true", dataset="deixis", rows=None):
    details = {"statistics": Statistics([str(n) for n in range(len(rows))], rows, "item").to_dict()} if rows else {}
    signature = Signature.parse(f"logprob:sum|past:3|context:{context}|version:0.2.0")
    return Result(
        task="contrastive", dataset=dataset, split="all", metric="accuracy", value=value, signature=signature, n=10,
        breakdown={"distance=1": PartScore(value + 1, 5)}, details=details,
    )  # fmt: skip


def report(name, *results, training=None):
    _, _, seed = name.rpartition("-seed")
    data = {"study": {"seed": int(seed)}}
    return Report(model={"name": name, "parameters": 1234}, data=data, results=results, training=training)


def table(columns, systems, baseline=None, rows=None):
    section = TableSection({name: ColumnSection(**column) for name, column in columns.items()}, baseline=baseline)
    return RunTable(section, {"accuracy": systems}, rows or list(systems))


SCORE = {"evaluation": "accuracy", "metric": "accuracy"}
RUNS = {
    "sentence": [report("sentence-seed1", result(50.0)), report("sentence-seed2", result(51.0))],
    "concat": [report("concat-seed1", result(80.0)), report("concat-seed2", result(84.0))],
}


def test_means_deviations_and_a_test_over_runs():
    found = table({"deixis": SCORE, "near": {**SCORE, "part": "distance=1"}}, RUNS, "sentence")
    cell = found.columns["deixis"]["concat"]
    assert (cell.value, cell.runs) == (82.0, 2)
    assert cell.deviation == pytest.approx(statistics.stdev([80, 84]))
    assert cell.significant  # Welch: t = 31.5 / sqrt(8/2 + 0.5/2) = 15.3 with 1.12 degrees of freedom, p = 0.03
    assert found.columns["near"]["concat"].value == 83.0
    text = found.to_text("text")
    assert "82.0* ±2.8" in text and "50.5 ±0.7" in text
    assert "Means of 2 runs" in text and "2 tests" in text
    assert "deixis, near: logprob:sum|context:true|version:0.2.0" in text


def test_other_runs_are_not_significant():
    runs = RUNS | {"concat": [report("a-seed1", result(49.0)), report("a-seed2", result(60.0))]}
    assert not table({"deixis": SCORE}, runs, "sentence").columns["deixis"]["concat"].significant


def test_single_runs_are_tested_over_documents():
    wrong, right = [[n % 2, 1] for n in range(40)], [[1, 1]] * 40
    systems = {
        "sentence": [report("sentence-seed1", result(50.0, rows=wrong))],
        "concat": [report("concat-seed1", result(100.0, rows=right))],
        "lst": [report("lst-seed1", result(50.0, rows=wrong))],
    }
    cells = table({"deixis": SCORE}, systems, "sentence").columns["deixis"]
    assert cells["concat"].significant and not cells["lst"].significant
    assert cells["concat"].deviation is None
    part = table({"near": {**SCORE, "part": "distance=1"}}, systems, "sentence").columns["near"]
    assert not part["concat"].significant  # a part has no statistics of documents
    text = table({"deixis": SCORE, "near": {**SCORE, "part": "distance=1"}}, systems, "sentence").to_text("text")
    assert "* differs from sentence with p < 0.05 (randomisation over items" in text and "2 tests" in text
    assert "Not tested, no statistics in the reports: near of concat, near of lst." in text


def test_difference_between_contexts():
    systems = {"concat": [report("concat-seed1", result(80.0), result(55.0, "random, seed 0"))]}
    columns = {"gain": {**SCORE, "minus_context": "random"}}
    assert table(columns, systems).columns["gain"]["concat"].value == 25.0


def test_facts():
    training = {"steps": 100, "tokens_per_update": 2000, "seconds": 50.0, "resumed_from_step": None}
    systems = {"concat": [report("concat-seed1", result(80.0), training=training)]}
    columns = {"parameters": {"fact": "parameters", "digits": 0}, "speed": {"fact": "training tokens/s", "digits": 0}}
    text = table(columns, systems).to_text("markdown")
    assert "| concat | 1,234 | 4,000 |" in text
    resumed = {"concat": [report("concat-seed1", result(80.0), training=training | {"resumed_from_step": 50})]}
    assert table(columns, resumed).columns["speed"]["concat"].value is None
    seconds = {"seconds": {"fact": "training seconds"}}
    assert table(seconds, systems).columns["seconds"]["concat"].value == 50
    assert table(seconds, resumed).columns["seconds"]["concat"].value is None  # those of its last part alone


def test_facts_are_means_over_the_runs_of_all_evaluations():
    seconds = [{"steps": 100, "seconds": seconds} for seconds in (50.0, 70.0, 90.0)]
    runs = [report(f"concat-seed{n}", result(80.0), training=training) for n, training in enumerate(seconds, 1)]
    section = TableSection({"seconds": ColumnSection(fact="training seconds")})
    found = RunTable(section, {"bleu": {"concat": runs[:1]}, "accuracy": {"concat": runs}}, ["concat"])
    assert found.columns["seconds"]["concat"].value == 70.0
    resumed = [replace(one, training=one.training | {"resumed_from_step": n}) for n, one in enumerate(runs)]
    section = TableSection({"score": ColumnSection(**SCORE), "seconds": ColumnSection(fact="training seconds")})
    text = RunTable(section, {"accuracy": {"concat": resumed}}, ["concat"]).to_text("text")
    assert "50.0 (1 of 3 runs)" in text  # the first alone was not interrupted


def test_a_single_run_is_tested_against_the_baselines_of_its_seed():
    right = [[1, 1]] * 40
    scores = (0.0, [[0, 1]] * 40), (50.0, [[n % 2, 1] for n in range(40)]), (100.0, right)
    base = [report(f"sentence-seed{n}", result(value, rows=rows)) for n, (value, rows) in enumerate(scores, 1)]
    for seed, significant in ((1, True), (2, True), (3, False)):
        systems = {"sentence": base, "concat": [report(f"concat-seed{seed}", result(100.0, rows=right))]}
        found = table({"deixis": SCORE}, systems, "sentence")
        assert found.columns["deixis"]["concat"].significant is significant
    systems["concat"] = [report("concat-seed4", result(9.0))]
    text = table({"deixis": SCORE}, systems, "sentence").to_text("text")
    assert "Not tested, no figure of sentence in the row: deixis of concat." in text
    rows = [line.split() for line in text.splitlines()[:4]]
    assert [row[:2] for row in rows if row[0] in ("system", "sentence", "concat")] == [
        ["system", "runs"], ["sentence", "3"], ["concat", "1"]
    ]  # fmt: skip


def test_runs_that_were_measured_in_another_way_are_not_tested():
    signature = Signature.parse("logprob:mean|past:3|version:0.2.0")
    other = [replace(result(value), signature=signature) for value in (9, 8)]
    systems = RUNS | {"concat": [report(f"concat-seed{n}", one) for n, one in enumerate(other, 1)]}
    found = table({"deixis": SCORE}, systems, "sentence")
    assert not found.columns["deixis"]["concat"].significant
    assert "Not tested, concat and sentence cannot be compared: different logprob" in found.to_text("text")


def test_the_baseline_need_not_be_a_row():
    found = table({"deixis": SCORE}, RUNS, "sentence", rows=["concat"])
    assert found.columns["deixis"].keys() == {"concat"} and found.columns["deixis"]["concat"].significant


def test_what_is_missing():
    systems = {"sentence": RUNS["sentence"], "concat": RUNS["concat"][:1], "lst": [report("lst-seed1")], "none": []}
    few = report("concat-seed2", replace(result(80.0), breakdown={}))
    found = table({"deixis": SCORE}, systems, "sentence")
    rows = found.to_text("text").splitlines()[2:5]
    assert [row.split()[0] for row in rows] == ["sentence", "concat", "lst"]
    assert [row.split()[1] for row in rows] == ["2", "1", "0"] and rows[2].split()[2] == "-"
    part = table({"deixis": SCORE, "near": {**SCORE, "part": "distance=1"}}, {"concat": [RUNS["concat"][0], few]})
    assert "(1 of 2 runs)" in part.to_text("text")


def test_only_systems_that_the_evaluations_of_its_columns_had():
    section = TableSection({"deixis": ColumnSection(**SCORE), "parameters": ColumnSection(fact="parameters")})
    reports = {"bleu": {"sentence": RUNS["sentence"]}, "accuracy": {"concat": RUNS["concat"]}}
    assert RunTable(section, reports, ["sentence", "concat"]).systems == ["concat"]
    facts = TableSection({"parameters": ColumnSection(fact="parameters")})
    assert RunTable(facts, reports, ["sentence", "concat"]).systems == ["sentence", "concat"]


def test_a_column_that_no_report_fits_is_named():
    text = table({"score": {**SCORE, "dataset": "deiksis"}}, {"concat": RUNS["concat"]}).to_text("text")
    assert "score: no report has it; check metric, dataset" in text


def test_a_column_that_several_results_fit_is_refused():
    systems = {"concat": [report("concat-seed1", result(80.0), result(70.0, dataset="ellipsis"))]}
    message = "column 'score': concat-seed1, accuracy: 2 results fit the column: deixis acc"
    refused(message, table, {"score": SCORE}, systems)


@pytest.mark.parametrize("runs", [1, 2])
def test_a_figure_over_runs(tmp_path, monkeypatch, runs):
    """A line for each system: of the values of its run, or of the means over those that it has."""
    drawn = []
    monkeypatch.setattr(tables, "draw_breakdown", lambda found, path, **options: drawn.append(found))
    systems = {"sentence": RUNS["sentence"][:1], "concat": RUNS["concat"][:runs]}
    tables.draw_figure(FigureSection("accuracy"), systems, tmp_path / "figures" / "a.png")
    (found,) = drawn
    assert found.systems == ("sentence", "concat")
    (near,) = [row for row in found.rows if row.part == "distance=1"]
    assert [near.figures[system].value for system in found.systems] == [51.0, {1: 81.0, 2: 83.0}[runs]]
