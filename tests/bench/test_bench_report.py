"""The report of all benchmarks: runs in processes, what an interrupted or failed one leaves, the README's tables."""

import json
import sys
from pathlib import Path

import pytest
import torch
from support.errors import refused

from hf_docmt.bench import process, report
from hf_docmt.bench.ceilings import CeilingsBenchmark
from hf_docmt.bench.models import TRANSFORMER_BASE
from hf_docmt.bench.report import UNFINISHED, BenchmarkRun, BenchReport, planned_runs, run_all_benchmarks
from hf_docmt.bench.speed_tables import ceiling_share, report_text, speed_tables

ROOT = Path(__file__).resolve().parents[2]
TINY = {"matrix_size": 32, "copied_mib": 1, "repeats": 1}
SPEEDS = {"fp32": 50.0, "bf16": 100.0, "int8": 200.0, "copy": 20.0}


def ceilings_run(factor=1.0):
    units = {name: "GB/s" if name == "copy" else "GFLOP/s" for name in SPEEDS}
    rows = [{"case": name, "ours": speed * factor, "unit": units[name]} for name, speed in SPEEDS.items()]
    return BenchmarkRun(benchmark="ceilings", problem=None, rows=rows)


def known_report(*runs):
    versions = {"processor": "A | B", "capability": "AVX512", "threads": 1, "torch": "2", "transformers": "5"}
    setting = versions | {"hf_docmt": "0.2.0", "commit": None}
    return BenchReport(setting=setting, started="2026-01-02T03:04:05+00:00", runs=list(runs))


def decode_row(precision, ours, peer):
    case = {"case": f"{precision} greedy", "precision": precision, "mode": "greedy", "batch": 1}
    return case | {"ours": ours, "peer": peer, "ratio": ours / peer, "ours_seconds": 0.25}


def test_lengths_of_a_run_with_the_defaults():
    """Rows of other numbers of tokens, such as those of decoding, have no column."""
    row = {"name": "lst", "unit": "tokens/s", "ratio": 0.5, "memory_mib": 7}
    rows = [row | {"tokens": tokens} for tokens in (500, 1024)]
    setting = {"lengths": [1024], "repeats": 3}
    run = BenchmarkRun(benchmark="attention", problem=None, rows=rows, setting=setting)
    text = speed_tables(known_report(ceilings_run(), run, ceilings_run()), "markdown")
    assert "Medians of 3 rounds." in text
    assert "|  | 1024 tokens | MiB, 1024 |" in text and "| lst | 2.00 | 7.00 |" in text and "500" not in text


def test_ceilings():
    found = CeilingsBenchmark(**TINY).run().to_json()
    units = {row["case"]: row["unit"] for row in found["rows"]}
    assert units == dict.fromkeys(("fp32", "bf16", "int8"), "GFLOP/s") | {"copy": "GB/s"}
    assert all(row["ours"] > 0 for row in found["rows"]) and found["rows"][0]["ratio"] == 1


def test_amounts_of_the_ceilings(monkeypatch):
    """Two operations for each pair of numbers, and every byte of a copy once read and once written."""
    monkeypatch.setattr(CeilingsBenchmark, "median_seconds", lambda self, work: work() is None or 0.5)
    rows = {row.case: row.ours for row in CeilingsBenchmark(matrix_size=100, copied_mib=3).run().rows}
    assert rows["fp32"] == rows["int8"] == pytest.approx(0.004)
    assert rows["copy"] == pytest.approx(12 * 2**20 / 1e9)


def test_a_run_of_a_benchmark(monkeypatch, other_end):
    """Options come as JSON has them; what a library prints is not taken for a row."""
    monkeypatch.setattr(report, "load_plugins", lambda: print("a library"))
    monkeypatch.setattr(report, "messages_of", other_end)
    run = BenchmarkRun(benchmark="ceilings", options=TINY)
    rows = list(run.measure())
    assert rows == run.rows and [row["case"] for row in rows] == list(SPEEDS)
    assert run.problem is None and run.seconds > 0
    assert run.setting["threads"] == torch.get_num_threads() and run.setting["matrix_size"] == 32


@pytest.mark.parametrize(
    "end, problem",
    [
        ("raise RuntimeError('out of\\nluck')", "luck"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "its process was ended by SIGKILL"),
        ("sys.exit(3)", "exit code 3 without a message"),
    ],
)
def test_a_failed_run_keeps_its_rows(monkeypatch, end, problem):
    row = {"case": "a", "unit": "s", "ours": 1}
    rows = [row, row | {"ours": 2}]  # of the same case: the later one counts
    lines = [f"print({json.dumps({'row': row})!r}, flush=True)" for row in rows]
    program = "\n".join(["import sys", *lines, end])
    monkeypatch.setattr(process, "COMMAND", (sys.executable, "-c", program))
    run = BenchmarkRun(benchmark="any")
    assert list(run.measure()) == rows
    assert run.problem == problem and run.rows == rows[1:]


def test_order_of_runs():
    runs = planned_runs()
    names = [run.benchmark for run in runs]
    assert names[::2] == ["ceilings"] * (len(names) // 2 + 1)
    assert {"decode", "train", "attention", "cost-by-length", "cost-by-context", "contrast"} < set(names[1::2])
    alone = [run.benchmark for run in planned_runs("decode")]  # Transformer-base and the small size
    assert alone == ["ceilings", "decode", "ceilings", "decode", "ceilings"]
    refused("there is no benchmark 'decoding': give one of .*, decode, ", planned_runs, "decoding")


@pytest.fixture
def two_benchmarks(monkeypatch):
    """Runs of two benchmarks, of which the first one fails."""
    runs = [BenchmarkRun(benchmark=name) for name in ("ceilings", "decode", "contrast")]
    monkeypatch.setattr(report, "planned_runs", lambda only=None: runs)

    def run_known(run):
        run.rows = [{"case": "a", "ours": 2.0, "peer": 1.0, "ratio": 2.0, "unit": "items/s"}]
        yield run.rows[0]
        run.problem = "no memory" if run.benchmark == "decode" else None

    monkeypatch.setattr(BenchmarkRun, "measure", run_known)


def test_a_failure_is_named_and_the_others_go_on(two_benchmarks, tmp_path):
    lines = []
    made = run_all_benchmarks(tmp_path / "bench.json", lines.append)
    assert lines[1:3] == ["decode: a: 2 beside 1 items/s, ratio 2", "decode: failed: no memory"] and len(lines) == 4
    assert BenchReport.read(tmp_path / "bench.json") == made
    assert [run.problem for run in made.runs] == [None, "no memory", None] and made.failed() == made.runs[1:2]


def test_one_benchmark_again(two_benchmarks, monkeypatch, tmp_path):
    """The other runs stay; a report of another machine, or without it, is refused as it is."""
    path, again = tmp_path / "bench.json", []
    before = run_all_benchmarks(path, again.append)

    def run_again(run):
        again.append(run.benchmark)
        run.rows = [before.runs[0].rows[0] | {"ours": 4.0}]
        yield run.rows[0]
        run.problem = None

    monkeypatch.setattr(BenchmarkRun, "measure", run_again)
    again.clear()
    made = run_all_benchmarks(path, lambda line: None, only="decode")
    assert again == ["decode"] and BenchReport.read(path) == made and not made.failed()
    assert [run.rows[0]["ours"] for run in made.runs] == [2.0, 4.0, 2.0] and made.started == before.started
    made.runs[1].checks = [{"name": "of before"}]
    made.write(path)
    monkeypatch.setattr(BenchmarkRun, "measure", lambda run: iter(()))
    failed = run_all_benchmarks(path, lambda line: None, only="decode").runs[1]
    assert (failed.problem, failed.rows, failed.checks, failed.setting) == (UNFINISHED, [], [], {})
    text = path.read_text(encoding="utf-8")
    refused("has no runs of 'train': give one of ceilings, decode, contrast", run_all_benchmarks, path, only="train")
    monkeypatch.setattr(report, "machine_setting", lambda: made.setting | {"processor": "another one"})
    refused("was measured with processor .*, here it is another one", run_all_benchmarks, path, only="decode")
    assert path.read_text(encoding="utf-8") == text


def test_one_benchmark_of_a_report_that_is_not_there(two_benchmarks, tmp_path):
    made = run_all_benchmarks(tmp_path / "decode.json", lambda line: None, only="decode")
    assert len(made.runs) == 3 and BenchReport.read(tmp_path / "decode.json") == made


def test_an_interrupted_report_has_the_rows_until_then(two_benchmarks, tmp_path):
    def stop_at(line):
        if line.startswith("contrast"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all_benchmarks(tmp_path / "bench.json", stop_at)
    report = BenchReport.read(tmp_path / "bench.json")
    assert [run.problem for run in report.runs] == [None, "no memory", UNFINISHED]
    assert len(report.runs[1].rows) == 1


def test_steady_and_busy_machines():
    checks = known_report(ceilings_run(), ceilings_run(0.7), ceilings_run(0.9)).checks()
    assert [check.value for check in checks] == pytest.approx([0.7] * 4) and not any(check.ok for check in checks)
    assert all(check.ok for check in known_report(ceilings_run(), ceilings_run(0.9)).checks())


def test_share_of_the_ceiling():
    """Transformer-base: 6 x 4.2 M and 16.4 M weights a step, 18.9 M and 3.1 M for the source."""
    setting = {"sizes": TRANSFORMER_BASE, "vocab_size": 32000, "source_tokens": 25, "target_tokens": 25}
    row = {"precision": "fp32", "mode": "greedy", "batch": 1, "ours_seconds": 1.0}
    source, step = 6 * (4 * 512**2 + 2 * 512 * 2048) + 6 * 2 * 512**2, 6 * (6 * 512**2 + 2 * 512 * 2048) + 32000 * 512
    read = 25 * step * 4 / 20e9
    assert ceiling_share(row, setting, SPEEDS) == pytest.approx(2 * source * 25 / 50e9 + read)
    row |= {"mode": "beam 4", "batch": 64, "ours_seconds": 2.0, "precision": "bf16"}  # products decide
    products = 2 * (source * 25 * 64 + step * 25 * 256) / 100e9
    assert ceiling_share(row, setting, SPEEDS) == pytest.approx(products / 2)


def test_tables():
    setting = {"sizes": TRANSFORMER_BASE, "vocab_size": 32000, "source_tokens": 25, "target_tokens": 25, "repeats": 3}
    rows = [decode_row("fp32", 6.0, 4.0) | {"ctranslate2": 5.0}, decode_row("bf16", 12.0, 8.0)]
    rows.append(decode_row("int8", 14.0, 5.0))
    decode = BenchmarkRun(benchmark="decode", problem=None, rows=rows, setting=setting)
    scaling = [
        {"name": name, "tokens": tokens, "ratio": 1 / time, "memory_mib": 10 * time, "unit": "target tokens/s"}
        for name, time in (("concat sdpa", 1.0), ("lst", 1.25))
        for tokens in (1024, 2208)
    ]
    scaling[-1] |= {"ratio": None, "memory_mib": None}
    scaling.append({"name": "lst, exponent of time", "tokens": 2208, "ratio": 1.0, "unit": "exponent of time"})
    attention = BenchmarkRun(benchmark="attention", options={"lengths": [1024, 2208]}, problem="killed", rows=scaling)
    sliding = {"case": "sliding", "unit": "sentences/s", "ours": 9.0, "peer": 3.0, "ratio": 3.0}
    documents = BenchmarkRun(benchmark="documents", problem=None, rows=[sliding], setting={"repeats": 1})
    report = known_report(ceilings_run(), decode, ceilings_run(1.1), attention, documents)
    text = speed_tables(report, "markdown")
    assert "| greedy, batch 1 | 4.00 | 1.50 | 3.00 | 2.80 | 1.25 |" in text  # times the peer in fp32
    assert "Decoding, 25 to 25 tokens, width 512, vocabulary 32000: times" in text and "attention: killed" in text
    assert "| lst | 1.25 | - | 12.5 | - |" in text and "exponent" not in text
    assert "do at most. Medians of 3 rounds." in text and "side by side (ours : peer). Measured once." in text
    assert "| sliding | sentences/s | 9.00 | 3.00 | 3.00 |" in text
    assert "fp32 52.5 GFLOP/s" in text and "at least 0.91 of the highest" in text
    whole = report_text(report)
    assert "attention: failed: killed" in whole and "copy: lowest over highest" in whole


def test_files_that_are_no_report(tmp_path):
    path = tmp_path / "bench.json"
    whole = {"format": 1, "runs": [], "started": "2026-01-02T03:04:05", "setting": {}, "seconds": 1.0}
    no_reports = [
        [],
        {"rows": []},
        whole | {"format": 2},
        {name: whole[name] for name in ("format", "runs", "started")},
    ]
    no_reports += [whole | {"runs": runs} for runs in (1, [1], [{"rows": []}], [{"benchmark": "decode", "more": 1}])]
    for values in no_reports:
        path.write_text(json.dumps(values))
        refused("bench.json: expected a report of `docmt bench all`, format 1", BenchReport.read, path)
    refused("absent.json: the file does not exist", BenchReport.read, tmp_path / "absent.json")


def test_the_speed_tables_are_those_of_the_reports():
    """Made by `docmt bench table`; of what was measured with other threads, or by torch alone, in a file of its own."""
    readme = (ROOT / "examples/reports/README.md").read_text(encoding="utf-8")
    reports = sorted(path.name for path in (ROOT / "examples/reports").glob("bench_*.json"))
    assert len(reports) == 4
    for name in reports:
        begin = f"<!-- docmt bench table examples/reports/{name} -->\n"
        report = BenchReport.read(ROOT / "examples/reports" / name)
        assert readme.partition(begin)[2].partition("<!-- end -->")[0].strip() == speed_tables(report, "markdown")
