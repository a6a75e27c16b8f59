"""Studies that run: failures, going on, refusals, with a command that pretends; and a real one, to its tables."""

import gzip
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
import yaml
from support.errors import refused
from support.small_study import VALUES
from support.tiny_models import build, word_tokenizer
from typer.testing import CliRunner

from hf_docmt.cli import app
from hf_docmt.files import DataError
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import Statistics
from hf_docmt.studies.packed_reports import read_reports, write_reports
from hf_docmt.studies.plan import StudyPlan
from hf_docmt.studies.run import collect_reports, run_study
from hf_docmt.studies.study import load_study
from hf_docmt.training.run_folder import folder_lock

SNAKEFILE = Path(__file__).parents[2] / "examples/studies/Snakefile"
PRETENDING = f"""#!{sys.executable}
import fcntl, os, shutil, signal, sys, time
arguments = sys.argv[1:]
with open("commands.txt", "a") as file:
    print(os.environ["OMP_NUM_THREADS"], *arguments, file=file)
print("pretended", *arguments)
if os.path.exists("alone.txt"):
    lock = open("alone.txt")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an error where another job runs
    time.sleep(0.3)
if os.path.exists("fails.txt") and open("fails.txt").read() in arguments:
    sys.exit("it was to fail")
if os.path.exists("kills.txt") and open("kills.txt").read() in arguments:
    process = os.getppid()
    while b"snakemake" not in open(f"/proc/{{process}}/cmdline", "rb").read().split(b"\\0"):
        process = int(open(f"/proc/{{process}}/stat").read().rpartition(")")[2].split()[1])
    os.kill(process, signal.SIGKILL)
    sys.exit(1)
if os.path.exists("hangs.txt") and arguments[0] == "train":
    time.sleep(100)
if arguments[0] == "train":
    folder = "runs/models/" + os.path.basename(arguments[1]).removesuffix(".yaml")
    shutil.copytree("model", folder, dirs_exist_ok=True)
elif "-o" in arguments and "reports" in arguments[-1]:
    shutil.copy("report.json", arguments[-1])
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    build().save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)
    (folder / "training.json").write_text('{"steps": 4, "seconds": 2.0}')
    return folder


@pytest.fixture
def plan(study_file, model):
    """The plan of the small study, with a command that pretends."""
    file = study_file({"seeds": [1]})
    shutil.copytree(model, "model")
    signature = Signature.parse("segments:sentence|version:0.2.0")
    statistics = {"statistics": Statistics(["a", "b"], [[1, 2], [2, 2]], "document").to_dict()}
    common = {"dataset": "test", "split": "all", "signature": signature, "n": 2, "details": statistics}
    parts = {"distance=1": PartScore(50.0, 2)}
    results = [
        Result(task="translation", metric="s-BLEU", value=20.0, **common),
        Result(task="contrastive", metric="accuracy", value=50.0, breakdown=parts, **common),
    ]
    Report(model={"name": "m"}, data={}, results=results).write("report.json")
    Path("pretending").write_text(PRETENDING)
    Path("pretending").chmod(0o755)
    return StudyPlan(load_study(file), docmt="./pretending")


def commands():
    return [line.split() for line in Path("commands.txt").read_text().splitlines()]


def test_a_dry_run_on_snakemakes_own_command_line(plan, monkeypatch, capfd):
    """The Snakefile of the examples, as for clusters: all jobs are printed, none is run."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", SNAKEFILE, "--cores", "1", "--dry-run", "-p"]
    subprocess.run([*command, "--rerun-triggers", "mtime", "--config", "study=small.yaml"], check=True)
    printed = "".join(capfd.readouterr())
    assert "docmt train runs/recipes/concat2-seed1.yaml" in printed and "docmt contrast" in printed
    assert not Path("runs/models").exists()
    monkeypatch.setattr("sys.executable", "echo")
    assert run_study(plan, dry_run=True) == 0 and " --dry-run " in capfd.readouterr().out


def test_what_is_missing_is_run_and_what_failed_or_was_killed_goes_on(plan):
    Path("fails.txt").write_text("runs/recipes/concat2-seed1.yaml")
    assert run_study(plan, processes=2) == 1
    ran = [words[1:3] for words in commands()]
    assert [words[0] for words in ran[:2]] == ["corpus", "train"] and ran[1][1] == "runs/recipes/sentence-seed1.yaml"
    assert ["translate", "runs/models/sentence-seed1"] in ran and ["train", "runs/recipes/concat2-seed1.yaml"] in ran
    assert ["translate", "runs/models/concat2-seed1"] not in ran
    assert "it was to fail" in Path("runs/logs/train/concat2-seed1.log").read_text()
    collect_reports(plan)
    assert [run.name for _, run in plan.pending()] == ["concat2-seed1"] * 2

    Path("fails.txt").unlink()
    Path("kills.txt").write_text("runs/recipes/concat2-seed1.yaml")  # Snakemake itself
    Path("runs/models/concat2-seed1").mkdir(parents=True)
    Path("runs/models/concat2-seed1/recipe.yaml").write_text("of a training that was interrupted")
    assert run_study(plan) < 0
    Path("kills.txt").unlink()
    Path("alone.txt").touch()  # several can begin at once behind the training (Snakemake before 9.17 ran them all)
    assert run_study(plan) == 0
    again = [words[1:] for words in commands()[len(ran) :]]
    assert again[:2] == [["train", "runs/recipes/concat2-seed1.yaml", "--resume"]] * 2
    assert sorted(words[0] for words in again[2:]) == ["contrast", "evaluate", "translate"]
    collect_reports(plan)
    assert not plan.pending()
    report = read_reports(plan.results)["bleu", "concat2-seed1"]
    assert report.name == "concat2-seed1" and report.training["steps"] == 4
    assert report.data["study"]["recipe"]["model"]["past_context"] == 1 and report.data["study"]["seconds"] > 0
    assert "statistics" in report.results[0].details


def test_sigterm_ends_the_jobs(plan):
    """In the background of a shell script as well, where SIGINT is ignored."""
    Path("hangs.txt").touch()
    trains = lambda: Path("commands.txt").exists() and [words for words in commands() if words[1] == "train"]  # noqa: E731

    def stop():
        while not trains():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        Thread(target=stop).start()
        started = time.monotonic()
        assert run_study(plan) != 0
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - started < 60 and len(trains()) == 1


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("hf_docmt.studies.run", "pip install 'snakemake>="),
        ("hf_docmt.analysis.pictures", "pictures need matplotlib"),
    ],
)
def test_packages_that_are_missing_are_named_before_anything_runs(plan, monkeypatch, module, message):
    monkeypatch.setattr(f"{module}.find_spec", lambda name: None)
    refused(message, run_study, plan)
    assert not Path("commands.txt").exists()


def test_two_calls_at_once_are_refused(plan):
    plan.output.mkdir()
    with folder_lock(plan.output), pytest.raises(ValueError, match="is in use"):
        run_study(plan)


@pytest.fixture
def finished(plan):
    """The plan of a study of which all reports are there, and nothing else."""
    for evaluation, run in plan.evaluations:
        study = {"evaluation": evaluation, "seed": 1, "digest": plan.digest(evaluation, run)}
        report = replace(Report.read("report.json"), model={"name": run.name}, data={"study": study})
        plan.reports[evaluation, run.name] = report
    write_reports(plan.reports, plan.results)
    return plan


def study(*arguments):
    return CliRunner().invoke(app, ["study", *arguments])


def test_reports_alone_are_enough(finished):
    result = study("small.yaml")
    assert result.exit_code == 0, result.output
    assert result.stdout.split()[-4:] == [
        *(f"small/tables/scores.{suffix}" for suffix in ("txt", "md", "tex")),
        "small/figures/distance.png",
    ]
    rows = [line.split() for line in Path("small/tables/scores.txt").read_text().splitlines()[2:4]]
    assert rows == [["sentence", "-", "20.0", "-"], ["concat2", "-", "20.0", "50.0"]]
    assert Path("small/figures/distance.png").stat().st_size > 1000
    assert not Path("runs/models").exists()


def test_reports_in_files_of_their_own_are_read_and_packed_ones_unpacked(finished):
    """As 0.2.0 wrote them: long statistics of documents in a packed file beside the report."""
    before = read_reports(finished.results)
    assert study("small.yaml", "--unpack", "files").exit_code == 0
    report = Report.read("files/bleu/concat2-seed1.json")
    assert report == before["bleu", "concat2-seed1"]
    Path("files/bleu/concat2-seed1.json.gz").write_bytes(gzip.compress(json.dumps(report.to_dict()).encode()))
    replace(report, results=[replace(result, details={}) for result in report.results]).write(
        "files/bleu/concat2-seed1.json"
    )
    assert read_reports(Path("files")) == before
    other = [replace(result, value=result.value + 1) for result in report.results]
    replace(report, results=other).write("files/bleu/concat2-seed1.json")  # of another run than the packed one
    assert read_reports(Path("files"))["bleu", "concat2-seed1"].results[0].value == 21.0


def test_packed_reports_of_gzip_and_damaged_ones(finished):
    """A study of before goes on, and has one packed file then; what is cut is refused."""
    before, packed = read_reports(finished.results), finished.results / "reports.jsonl.xz"
    earlier = packed.with_suffix(".gz")
    earlier.write_bytes(gzip.compress(lzma.decompress(packed.read_bytes())))
    packed.unlink()
    assert read_reports(finished.results) == before
    write_reports(before, finished.results)
    assert read_reports(finished.results) == before and not earlier.exists()
    for data in (packed.read_bytes()[:-9], b"{}"):
        packed.write_bytes(data)
        with pytest.raises(DataError, match="reports.jsonl.xz: broken or truncated file"):
            read_reports(finished.results)


def test_tables_that_reports_do_not_fit_keep_no_other_from_being_made(finished):
    values = yaml.safe_load(Path("small.yaml").read_text())
    unclear = {"columns": {"score": {"evaluation": "bleu", "dataset": "test"}}}
    values["tables"] = {"unclear": unclear, **values["tables"]}
    Path("small.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    result = study("small.yaml", "--render")
    assert result.exit_code == 1 and "tables.unclear: column 'score'" in str(result.exception)
    assert "2 results fit the column" in str(result.exception)
    assert Path("small/tables/scores.txt").exists() and not Path("small/tables/unclear.txt").exists()


def test_other_commands_than_those_of_a_report_are_refused(finished):
    values = yaml.safe_load(Path("small.yaml").read_text())
    values["evaluations"]["accuracy"]["commands"][0] += " --beams 2"
    Path("changed.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    for action in (["--dry-run"], ["--render"], ["--dry-run", "--only", "sentence"]):  # of which none has changed
        result = study("changed.yaml", "--results", "small", *action)
        assert result.exit_code == 1 and "was made from another recipe or by other commands" in str(result.exception)


@pytest.mark.parametrize("option", ["only", "processes"])
def test_options_of_runs_are_refused_where_tables_alone_are_made(finished, option):
    result = study("small.yaml", "--render", f"--{option}", "1")
    assert result.exit_code == 1 and f"--{option} is for runs, but --render is given" in str(result.exception)


@pytest.mark.slow
def test_a_study_from_file_to_table(tmp_path, monkeypatch):
    """With trust in the code of models, which reaches the jobs."""
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(yaml.safe_dump(VALUES | {"seeds": [1]}, sort_keys=False))
    result = CliRunner().invoke(app, ["--trust-remote-code", "study", "small.yaml", "--processes", "2"])
    assert result.exit_code == 0, result.output
    table = Path("small/tables/scores.txt").read_text()
    assert [line.split()[0] for line in table.splitlines()[2:4]] == ["sentence", "concat2"]
    assert "(randomisation over documents" in table
    logs = "".join(file.read_text() for file in Path(".snakemake/log").iterdir())
    assert "hf_docmt --trust-remote-code train" in logs
