"""`docmt bench`: names and helps without importing benchmarks; the report of all of them, and its tables."""

import json
import subprocess
import sys

import pytest

from hf_docmt.bench import report
from hf_docmt.bench.report import BenchmarkRun, BenchReport
from hf_docmt.bench.speed_tables import speed_tables

ROW = {"case": "a case", "ours": 6.0, "peer": 2.0, "ratio": 3.0, "unit": "items/s"}


@pytest.mark.parametrize("command", ["", "cost", "decode", "train", "data"])
def test_help_of_benchmarks_answers_quickly(command):
    """The options of benchmarks are known without importing them, which would import torch."""
    program = f"import atexit, sys; from hf_docmt import cli; sys.argv = 'docmt bench {command} --help'.split()\n"
    program += "atexit.register(lambda: print([name for name in ('torch', 'transformers') if name in sys.modules]))\n"
    done = subprocess.run([sys.executable, "-c", f"{program}cli.main()"], capture_output=True, text=True)
    names = ("--json", "--repeats") if command else ("decode", "cost", "all", "table")
    assert done.returncode == 0 and all(name in done.stdout for name in names)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout


def test_no_such_benchmark(run):
    code, out, err = run("bench", "decod")
    assert code != 0 and out == "" and "No such command 'decod'" in err


@pytest.fixture
def one_benchmark(monkeypatch):
    """A report of one benchmark, which fails for the last of the problems."""
    problems = [None]
    monkeypatch.setattr(report, "planned_runs", lambda only: [BenchmarkRun(benchmark="train")])

    def run_known(run):
        run.rows, run.setting = [ROW], {"precision": "fp32"}
        yield ROW
        run.problem = problems[-1]

    monkeypatch.setattr(BenchmarkRun, "measure", run_known)
    return problems


def test_all_and_table(run, one_benchmark, tmp_path):
    code, out, err = run("bench", "all", "--json", "-o", tmp_path / "bench.json")
    assert code == 0 and err == "train: a case: 6 beside 2 items/s, ratio 3\n"
    result = json.loads(out)
    assert result == json.loads((tmp_path / "bench.json").read_text()) and result["runs"][0]["rows"] == [ROW]
    assert {"processor", "threads", "torch", "transformers", "hf_docmt", "commit"} <= result["setting"].keys()
    code, out, _ = run("bench", "table", tmp_path / "bench.json")
    assert code == 0 and "| a case | items/s | 6.00 | 2.00 | 3.00 |" in out
    assert out.strip() == speed_tables(BenchReport.read(tmp_path / "bench.json"), "markdown")


def test_all_says_what_failed(run, one_benchmark):
    one_benchmark.append("no memory")
    code, out, err = run("bench", "all")
    assert code == 1 and "train: failed: no memory" in out and "a case" in out
    assert err.endswith("train: failed: no memory\n")


def test_where_it_cannot_write(run):
    code, out, err = run("bench", "all", "-o", "no/such/folder/bench.json")
    assert code == 1 and out == "" and "no/such/folder" in err
