"""Rounds, medians, ratios, checks and text of results, by numbers that are known; a benchmark from outside."""

import json
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace

import pytest
import torch

from hf_docmt.bench import CLASSES, load_benchmark
from hf_docmt.bench.benchmark import POSITIVE, Benchmark, ignore_row
from hf_docmt.bench.measurement import elapsed_seconds, median_seconds
from hf_docmt.bench.results import BenchResult, Check, Row, machine_setting
from hf_docmt.bench.train import Watch


def test_sides_alternate_and_the_median_counts():
    calls = []
    times = {"ours": iter([90.0, 1.0, 2.0, 60.0]), "peer": iter([90.0, 3.0, 50.0, 5.0])}

    def side(name):
        return lambda: calls.append(name) or next(times[name])

    assert median_seconds({name: side(name) for name in times}, repeats=3) == {"ours": 2.0, "peer": 5.0}
    assert calls == ["ours", "peer", "peer", "ours", "ours", "peer", "peer", "ours"]  # the first round does not count


def test_seconds_by_a_clock(monkeypatch):
    ticks, calls = iter([10.0, 12.5]), []
    assert elapsed_seconds(lambda: calls.append(1), clock=lambda: next(ticks)) == 2.5
    assert calls == [1]
    monkeypatch.setattr("torch.cuda.synchronize", lambda device: calls.append(device))
    elapsed_seconds(lambda: calls.append(2), torch.device("cuda", 1))
    assert calls == [1, torch.device("cuda", 1), 2, torch.device("cuda", 1)]  # the GPU is done before the clock is read
    numbers = count()
    watch = Watch(clock=lambda: float(next(numbers)))
    on_cpu = SimpleNamespace(device="cpu")
    watch.on_train_begin(on_cpu, None, None)
    watch.on_train_end(on_cpu, None, None)
    assert watch.seconds == 1.0


def test_ratio_is_the_time_of_the_peer_over_ours():
    row = Row.of_speeds("a case", "sentences/s", 8, {"ours": 2.0, "peer": 5.0}, more=1)
    assert (row.ours, row.peer, row.ratio) == (4.0, 1.6, 2.5) and row.to_json()["more"] == 1


def test_check_and_text():
    assert Check.at_least("x", 2.0, 2.0).ok and not Check.at_least("x", 1.99, 2.0).ok
    row = Row.of_speeds("a case", "sentences/s", 1, {"ours": 2.0, "peer": 5.0})
    checks = [Check.at_least("fast", 2.5, 1.5), Check.at_least("faster", 2.5, 3)]
    text = BenchResult([row], checks, machine_setting()).to_text()
    assert "a case" in text and "seconds" not in text and f"threads: {torch.get_num_threads()}" in text
    verdicts = {line.split()[0]: line.split()[-1] for line in text.splitlines() if line.startswith("fast")}
    assert verdicts == {"fast": "ok", "faster": "missed"}


def test_text_of_rows_with_different_columns():
    """A further peer has not all cases: CTranslate2 computes some precisions on some processors only."""
    sides = 1, {"ours": 2.0, "peer": 5.0}
    rows = [Row.of_speeds("one", "s", *sides, ctranslate2=3.5), Row.of_speeds("two", "s", *sides, further=1)]
    lines = [line.split() for line in BenchResult(rows, [], {}).to_text().splitlines()]
    assert lines[0][-2:] == ["ctranslate2", "further"]
    assert [line[-2:] for line in lines if line and line[0] in ("one", "two")] == [["3.50", "-"], ["-", "1"]]


def test_the_setting_names_the_gpu(monkeypatch):
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device: f"name of {device}")
    assert machine_setting("cuda:1")["gpu"] == "name of cuda:1"
    assert "gpu" not in machine_setting("cpu")


def test_benchmarks_of_the_report():
    reported = [
        name for name in CLASSES for options in load_benchmark(name).report_options if load_benchmark(name)(**options)
    ]
    assert set(reported) == CLASSES.keys() - {"ceilings", "window-decoding"}


@dataclass(kw_only=True)
class Addition(Benchmark):
    """A benchmark whose times are known."""

    repeats: int = 2
    device: str = "cpu"

    def run(self, on_row=ignore_row):
        row = Row.of_speeds("a sum", "sums/s", 1, {"ours": 1.0, "peer": 1.5}, more=self.repeats)
        on_row(row)
        return self.result([row], [Check.at_least("ratio", row.ratio, 1.0)])


def test_a_command_runs_its_class(monkeypatch, run):
    monkeypatch.setitem(CLASSES, "ceilings", f"{__name__}:Addition")
    code, out, err = run("bench", "ceilings", "--repeats", 3, "--json")
    result = json.loads(out)
    assert code == 0 and err == "" and result["setting"]["repeats"] == result["rows"][0]["more"] == 3
    assert result["checks"] == [{"name": "ratio", "value": 1.5, "target": 1.0, "ok": True}]
    code, out, err = run("bench", "ceilings", "--repeats", 0)
    assert code == 1 and out == "" and "repeats: expected a whole number of at least 1, got 0" in err
    code, out, _ = run("bench", "ceilings")
    assert code == 0 and "a sum" in out and "repeats: 5" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(({name: value}, f"{name}: expected a whole number") for name in POSITIVE for value in (0, 1.5, True)),
        ({"documents": 0}, "documents: expected a whole number of at least 1, got 0"),
        ({"updates": 1}, "updates: expected at least 2, .* got 1"),
        ({"stream_sentences": 9}, "stream_sentences: expected 0 .* of at least 10, got 9"),
        ({"stream_sentences": True}, "stream_sentences: expected 0"),
        ({"work": "decoding"}, "work: expected translation or training, got 'decoding'"),
        ({"contexts": (0, 5)}, r"contexts: expected at least two of 1 or more, .* got \[0, 5\]"),
        ({"contexts": (0, 1, 1)}, "contexts: expected at least two"),
        ({"contexts": (-1, 1, 2)}, r"contexts: expected whole numbers of at least 0, got \[-1, 1, 2\]"),
        ({"contexts": (0, 1.5, 2)}, "contexts: expected whole numbers of at least 0"),
        ({"lengths": (1, 2)}, "lengths: expected at least three"),
        ({"lengths": (1, 3, 2)}, r"from the shortest to the longest, got \[1, 3, 2\]"),
        ({"lengths": (0, 1, 2)}, "lengths: expected whole numbers"),
        ({"batch_sizes": ()}, "batch_sizes: expected at least one"),
        ({"batch_sizes": (4, 0)}, "batch_sizes: expected whole numbers"),
        ({"sizes": {"d_model": 8}}, "sizes: expected d_model, "),
        ({"vocab_size": 6}, "vocab_size: expected at least 7"),
        ({"device": "tpu"}, "device: expected cpu, or cuda where there is one, got 'tpu'"),
        ({"time_limit": 0}, "time_limit: expected more than 0 seconds"),
        ({"precisions": ()}, "precisions: expected at least one, got"),
        ({"precisions": ("fp16",)}, r"precisions: expected some of fp32, bf16, int8, got \['fp16'\]"),
        ({"precision": "fp16"}, "precision: expected fp32 or bf16, got 'fp16'"),
        ({"size": "large"}, "size: expected base or small, got 'large'"),
    ],
)
def test_options_that_are_refused(arguments, message):
    """By whatever benchmark has them."""
    kinds = [load_benchmark(name) for name in CLASSES]
    kinds = [kind for kind in kinds if arguments.keys() <= kind.__dataclass_fields__.keys()]
    assert kinds
    for kind in kinds:
        with pytest.raises(ValueError, match=message):
            kind(**arguments)
