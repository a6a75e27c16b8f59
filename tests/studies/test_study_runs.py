"""Studies that run: order of jobs, failures, going on, and a real one from its file to its tables."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest
import yaml
from support.small_study import VALUES
from typer.testing import CliRunner

from hf_docmt.cli import app
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Part
from hf_docmt.studies import run_reports
from hf_docmt.studies.execution import run_study
from hf_docmt.studies.jobs import StudyPlan
from hf_docmt.studies.processes import end_with_parent, last_lines, run_jobs
from hf_docmt.studies.run_tables import condition_of
from hf_docmt.studies.study import load_study
from hf_docmt.training.run_folder import folder_lock


def test_figures_without_matplotlib_are_refused_before_anything_runs(study_file, monkeypatch):
    monkeypatch.setattr("hf_docmt.analysis.pictures.figures.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pictures need matplotlib"):
        run_study(study_file(), pretend)
    assert not os.path.exists("commands.txt")


def pretend(arguments):
    """Stands in for a command: writes down when it ran; fails where a file says so."""
    with open("commands.txt", "a") as file:
        file.write(json.dumps([time.monotonic(), os.getpid(), *arguments]) + "\n")
    print("pretended", *arguments)
    if Path("fails.txt").exists() and Path("fails.txt").read_text() in arguments:
        raise ValueError("it was to fail")
    if Path("killed.txt").exists() and Path("killed.txt").read_text() in arguments:
        os.kill(os.getpid(), signal.SIGKILL)


def run(plan, processes=1):
    finished, failed = [], []
    lost = run_jobs(
        plan,
        plan.pending(),
        pretend,
        processes,
        lambda job, seconds: finished.append(job.name),
        lambda job: failed.append(job.name),
    )
    assert [job.name for job in lost] == failed
    return finished, failed


def test_jobs_run_after_what_they_need(study_file):
    plan = StudyPlan(load_study(study_file({"seeds": [1]})))
    finished, failed = run(plan, processes=2)
    assert sorted(finished) == sorted(plan.jobs) and not failed
    for job in plan.jobs.values():
        assert all(finished.index(name) < finished.index(job.name) for name in job.needs)
    ran = [json.loads(line)[2:] for line in Path("commands.txt").read_text().splitlines()]
    assert ["corpus", "runs/corpus", "--train", "40", "--validation", "6", "--test", "6", "--suite-items", "2"] in ran
    assert (
        "pretended train runs/recipes/concat2-seed1.yaml" in plan.log_file(plan.jobs["train/concat2-seed1"]).read_text()
    )


def test_a_failed_job_stops_what_needs_it_alone(study_file):
    plan = StudyPlan(load_study(study_file({"seeds": [1]})))
    Path("fails.txt").write_text("runs/recipes/concat2-seed1.yaml")
    Path("killed.txt").write_text("runs/models/sentence-seed1")
    finished, failed = run(plan)
    assert failed == ["bleu/sentence-seed1", "train/concat2-seed1"]
    assert finished == ["prepare/corpus", "train/sentence-seed1"]
    assert "it was to fail" in plan.log_file(plan.jobs["train/concat2-seed1"]).read_text()
    assert "ended by SIGKILL" in last_lines(plan.log_file(plan.jobs["bleu/sentence-seed1"]))
    assert [job.name for job in plan.pending()][:1] == ["train/sentence-seed1"]  # pretended: there is no model


def test_a_job_ends_with_the_process_that_started_it():
    """Also where that is killed, and can end nothing itself."""
    fork = get_context("fork")
    reader, writer = fork.Pipe(duplex=False)
    parent = fork.Process(target=start_and_wait, args=(writer,))
    parent.start()
    writer.close()
    assert reader.recv() == "started"
    parent.kill()
    with pytest.raises(EOFError):  # the job had the last writer
        assert reader.poll(20)
        reader.recv()


def start_and_wait(writer):
    job = get_context("fork").Process(target=wait_for_end, args=(writer,))
    job.start()
    writer.close()
    job.join()


def wait_for_end(writer):
    threading.Thread(target=end_with_parent, daemon=True).start()
    writer.send("started")
    time.sleep(30)


@pytest.fixture(scope="module")
def finished_study(tmp_path_factory):
    """A folder in which the small study has run once, and what the command printed."""
    folder = tmp_path_factory.mktemp("study")
    before = Path.cwd()
    os.chdir(folder)
    try:
        (folder / "small.yaml").write_text(yaml.safe_dump(VALUES | {"seeds": [1]}, sort_keys=False))
        result = CliRunner().invoke(app, ["study", "small.yaml", "--processes", "2"])
    finally:
        os.chdir(before)
    assert result.exit_code == 0, result.output
    return folder, result


def test_a_study_from_file_to_table(finished_study, monkeypatch):
    folder, result = finished_study
    monkeypatch.chdir(folder)
    assert "Two tiny systems: 6 jobs to do" in result.stderr
    assert "5/6" in result.stderr and "small/tables/scores.md" in result.stdout
    table = Path("small/tables/scores.txt").read_text()
    assert [line.split()[0] for line in table.splitlines()[2:4]] == ["sentence", "concat2"]
    report, accuracy = (Report.read(f"small/{name}/concat2-seed1.json") for name in ("bleu", "accuracy"))
    assert report.name == "concat2-seed1" and report.training["steps"] == 4
    assert report.data["study"]["recipe"]["model"]["past_context"] == 1
    held = {one.metric: "statistics" in one.details for one in report.results}
    assert held == {"s-BLEU": True, "d-BLEU": True, "chrF": True, "TER": True}
    contexts = [(condition_of(one), "statistics" in one.details) for one in accuracy.results]
    assert contexts == [("true", True), ("empty", False)]
    assert Path("small/figures/distance.png").stat().st_size > 1000
    assert not Path("small/accuracy/sentence-seed1.json").exists()


def test_trust_in_remote_code_reaches_the_jobs(finished_study, tmp_path, monkeypatch):
    """A job runs with `--trust-remote-code` where the study was called with it."""
    shutil.copytree(finished_study[0], tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    Path("small/bleu/concat2-seed1.json").unlink()
    tokenizer = Path("runs/models/concat2-seed1/tokenizer_config.json")
    Path("runs/models/concat2-seed1/own_code.py").write_text(
        "from transformers import PreTrainedTokenizerFast\n\n\nclass OwnTokenizer(PreTrainedTokenizerFast):\n    pass\n"
    )
    own = json.loads(tokenizer.read_text()) | {
        "tokenizer_class": "OwnTokenizer",
        "auto_map": {"AutoTokenizer": [None, "own_code.OwnTokenizer"]},
    }
    tokenizer.write_text(json.dumps(own))
    refused = CliRunner().invoke(app, ["study", "small.yaml"])
    assert refused.exit_code == 1 and "--trust-remote-code" in refused.stderr
    assert CliRunner().invoke(app, ["--trust-remote-code", "study", "small.yaml"]).exit_code == 0


def test_a_second_call_runs_nothing_and_a_lost_report_is_made_again(finished_study, monkeypatch):
    folder, _ = finished_study
    monkeypatch.chdir(folder)
    dry = CliRunner().invoke(app, ["study", "small.yaml", "--dry-run"])
    assert dry.exit_code == 0 and not dry.stdout.strip()
    before = Path("small/bleu/concat2-seed1.json").read_bytes()
    Path("small/bleu/concat2-seed1.json").unlink()
    dry = CliRunner().invoke(app, ["study", "small.yaml", "--dry-run"])
    assert [line.split(":")[0] for line in dry.stdout.splitlines()] == ["bleu/concat2-seed1"] * 2
    again = run_study("small.yaml", rerun, only=["concat2"])
    assert (again.finished, again.missing) == (["bleu/concat2-seed1"], 0)
    timeless = [json.loads(text) for text in (before, Path("small/bleu/concat2-seed1.json").read_bytes())]
    for found in timeless:
        del found["data"]["study"]["seconds"]
    assert timeless[0] == timeless[1]


def rerun(arguments):
    from hf_docmt.cli.study import run_command

    run_command(arguments)


def test_reports_alone_are_enough(finished_study, tmp_path, monkeypatch):
    """A copy without the models has all reports, and renders the same numbers."""
    folder, _ = finished_study
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folder / "small", "small")
    shutil.copy(folder / "small.yaml", "small.yaml")
    table = Path("small/tables/scores.txt").read_text()
    assert "(randomisation over documents" in table
    result = CliRunner().invoke(app, ["study", "small.yaml", "--render", "--dry-run"])
    assert result.exit_code == 0 and "docmt train" not in result.stdout
    assert Path("small/tables/scores.txt").read_text() == table


def test_tables_and_figures_that_reports_do_not_fit_keep_no_other_from_being_made(
    finished_study, tmp_path, monkeypatch
):
    shutil.copytree(finished_study[0], tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    values = yaml.safe_load(Path("small.yaml").read_text())
    unclear = {"columns": {"score": {"evaluation": "bleu"}}}
    values["tables"] = {"unclear": unclear, **values["tables"]}
    Path("small.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    shutil.rmtree("small/tables")
    result = CliRunner().invoke(app, ["study", "small.yaml", "--render"])
    assert result.exit_code == 1
    assert re.search("^tables.unclear: column 'score': .* 4 results fit the column", str(result.exception))
    assert Path("small/tables/scores.txt").exists() and not Path("small/tables/unclear.txt").exists()


def test_long_statistics_stay_packed_beside(finished_study, tmp_path, monkeypatch):
    """Tables rendered without `output_dir` have the same marks."""
    shutil.copytree(finished_study[0], tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    table, kept = Path("small/tables/scores.txt").read_text(), Path("small/bleu/concat2-seed1.json")
    lengths = sorted(len(json.dumps(result.details["statistics"])) for result in Report.read(kept).results)
    for limit, long in ((lengths[1], len(lengths) - 2), (lengths[-1], 0)):
        monkeypatch.setattr(run_reports, "LONGEST_STATISTICS", limit)
        for file in Path("small/bleu").glob("*.json"):
            file.unlink()
        run_study("small.yaml", rerun)
        assert sum("statistics" not in result.details for result in Report.read(kept).results) == long
        assert Path(f"{kept}.gz").exists() == bool(long)
        os.rename("runs/reports", "runs/moved")
        result = CliRunner().invoke(app, ["study", "small.yaml", "--render"])
        assert result.exit_code == 0 and Path("small/tables/scores.txt").read_text() == table
        os.rename("runs/moved", "runs/reports")


def test_crossed_parts_that_a_table_shows_are_kept(finished_study, tmp_path, monkeypatch):
    shutil.copytree(finished_study[0], tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    values = yaml.safe_load(Path("small.yaml").read_text())
    column = {"evaluation": "accuracy", "metric": "accuracy", "part": "distance=1 order=2"}
    values["tables"] = {"crossed": {"columns": {"crossed": column}}}
    Path("small.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    plan = StudyPlan(load_study("small.yaml"))
    job = plan.jobs["accuracy/concat2-seed1"]
    full = Report.read(plan.full_report(job))
    parts = {"distance=1": Part(70.0, 4), "distance=1 order=1": Part(60.0, 2), "distance=1 order=2": Part(80.0, 2)}
    replace(full, results=[replace(result, breakdown=parts) for result in full.results]).write(plan.full_report(job))
    run_reports.keep_report(plan, job, 1.0)
    assert Report.read(plan.report_file(job)).results[0].breakdown.keys() == {"distance=1", "distance=1 order=2"}
    for _ in range(2):  # with the whole report, and without it
        assert CliRunner().invoke(app, ["study", "small.yaml", "--render"]).exit_code == 0
        assert "80.0" in Path("small/tables/crossed.txt").read_text()
        plan.full_report(job).unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("ends", "kept"), [([-0.01492, 0.0052316], [-0.01492, 0.0052316]), ([31.23456, 40], [31.235, 40])]
)
def test_intervals_are_rounded_by_their_size(ends, kept):
    """CXMI is some hundredths of a nat, accuracy some tens of percent."""
    assert run_reports.with_rounded_interval({"interval": ends}) == {"interval": kept}


def test_scores_of_corpora_are_tested_in_a_process_of_its_own(finished_study, tmp_path):
    """BLEU's statistics are of use only where its metric was imported, as no other test can have done there."""
    shutil.copytree(finished_study[0], tmp_path / "copy")
    command = [sys.executable, "-m", "hf_docmt", "study", "small.yaml", "--render"]
    subprocess.run(command, cwd=tmp_path / "copy", check=True, capture_output=True)
    table = (tmp_path / "copy/small/tables/scores.txt").read_text()
    assert "(randomisation over documents, 1000 samples, seed 1); 1 test" in table and "Not tested" not in table


def test_other_commands_than_those_of_a_report_are_refused(finished_study, monkeypatch):
    folder, _ = finished_study
    monkeypatch.chdir(folder)
    values = yaml.safe_load(Path("small.yaml").read_text())
    values["evaluations"]["accuracy"]["commands"][0] += " --beams 2"
    Path("changed.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    for action in (["--dry-run"], ["--render"], ["--dry-run", "--only", "sentence"]):  # of which none has changed
        result = CliRunner().invoke(app, ["study", "changed.yaml", "--results", "small", *action])
        assert result.exit_code == 1 and "was made from another recipe or by other commands" in str(result.exception)


def test_statistics_of_other_results_are_left_out(finished_study, tmp_path, monkeypatch):
    """Those in `output_dir` may have been made for the results in another folder since."""
    shutil.copytree(finished_study[0], tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    table = Path("small/tables/scores.txt").read_bytes()
    full = Path("runs/reports/bleu/concat2-seed1.json")
    values = json.loads(full.read_text())
    values["results"] = [result | {"value": result["value"] + 10} for result in values["results"]]
    full.write_text(json.dumps(values))
    result = CliRunner().invoke(app, ["study", "small.yaml", "--render"])
    rendered = Path("small/tables/scores.txt").read_bytes()
    assert result.exit_code == 0 and rendered.splitlines()[2:4] == table.splitlines()[2:4]


@pytest.mark.parametrize("option", ["only", "processes"])
def test_options_of_runs_are_refused_where_tables_alone_are_made(finished_study, monkeypatch, option):
    monkeypatch.chdir(finished_study[0])
    result = CliRunner().invoke(app, ["study", "small.yaml", "--render", f"--{option}", "1"])
    assert result.exit_code == 1 and f"--{option} is for runs, but --render is given" in str(result.exception)


def test_a_report_of_no_study_is_refused(finished_study, tmp_path, monkeypatch):
    shutil.copytree(finished_study[0], tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    kept = Path("small/bleu/concat2-seed1.json")
    values = json.loads(kept.read_text())
    kept.write_text(json.dumps(values | {"data": {"study": None}}))
    result = CliRunner().invoke(app, ["study", "small.yaml", "--render"])
    assert result.exit_code == 1 and "was made from another recipe or by other commands" in str(result.exception)


def test_systems_that_are_not_asked_for_are_not_missing(finished_study, tmp_path, monkeypatch):
    shutil.copytree(finished_study[0], tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    values = yaml.safe_load(Path("small.yaml").read_text())
    values["systems"]["concat3"] = {"init_from": "sentence", "tokenizer": None}
    Path("small.yaml").write_text(yaml.safe_dump(values | {"only": ["concat2"]}, sort_keys=False))
    assert run_study("small.yaml", rerun).missing == 0


def test_two_calls_at_once_are_refused(finished_study, monkeypatch):
    folder, _ = finished_study
    monkeypatch.chdir(folder)
    with folder_lock(Path("runs")), pytest.raises(ValueError, match="is in use"):
        run_study("small.yaml", rerun)
