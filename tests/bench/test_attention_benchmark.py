"""The attention bench: growth and limits by numbers that are known; tiny steps of the real thing; its processes."""

import json
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from support.processes import run_python

from hf_docmt.bench import attention, measurement
from hf_docmt.bench.attention import CASES, AttentionBenchmark
from hf_docmt.bench.measurement import available_memory, measure_rows, measure_work
from hf_docmt.bench.models import EOS, SEP, TINY, random_document
from hf_docmt.bench.process import GIB, measure_in_subprocess
from hf_docmt.bench.results import ScalingRow, growth_exponent

SHARED = {"device": "cpu", "threads": 1}
DECODING = SHARED | {"sizes": TINY, "vocab_size": 40, "batch": 2, "length": 60, "tokens": 120}
ALONE = SHARED | {"build": attention.ALONE_STEP, "tokens": 1024, "fields": {}}


def rows(*costs):
    shared = {"case": "a case", "unit": "tokens/s", "name": "a system"}
    return [ScalingRow(**shared, tokens=tokens, seconds=seconds, memory_mib=mib) for tokens, seconds, mib in costs]


def known_cost(process, case, time_limit):
    """Time and memory that grow with the length for window, with its square for others; eager is skipped at last."""
    tokens = case["tokens"]
    if "beams" in case:
        return {"seconds": tokens * (1.1 if case["architecture"] == "lst" else 1.0), "memory_mib": 5.0}
    if case["implementation"] == "eager" and tokens == 400 and case["build"] == attention.STEP:
        return {"skipped": "too much"}
    linear = case.get("architecture") == "window" or case["implementation"] == "window"
    cost = tokens * 10 if linear else tokens**2
    cost *= 1.25 if case.get("architecture") == "lst" else 1.0
    return {"seconds": cost / 1e3, "memory_mib": cost * (100.0 if case["implementation"] == "eager" else 1.0)}


def test_growth():
    square = rows((10, 1.0, 3.0), (20, 4.0, 6.0), (40, 16.0, 12.0))
    assert growth_exponent(square, "seconds") == pytest.approx(2)
    assert growth_exponent(square, "memory_mib") == pytest.approx(1)
    assert growth_exponent(square[:1], "seconds") is None
    assert growth_exponent(rows((10, None, 0.0), (20, 1.0, 0.0)), "seconds") is None


def test_what_was_stopped_is_not_tried_again(monkeypatch):
    """Longer documents would need more; other cases go on. A process gets the memory that is there, and no more."""
    measured = []

    def measure_quickly(process, case, time_limit):
        measured.append(case)
        return {"seconds": 1}

    monkeypatch.setattr(measurement, "available_memory", lambda device: 5 * GIB)
    monkeypatch.setattr(measurement, "measure_in_subprocess", measure_quickly)
    stopped = [ScalingRow(case="c", unit="u", name="a", tokens=tokens, skipped="late") for tokens in (10, 20)]
    cases = {name: {"tokens": 30, "device": "cpu"} for name in "ab"}
    make_row, options = partial(ScalingRow.at_length, peer="b"), AttentionBenchmark(repeats=1)
    rows = measure_rows(cases, make_row, options, lambda row: None, stopped)
    assert [(row.skipped, row.seconds) for row in rows] == [("at 10 tokens: late", None), (None, 1)]
    assert [case["memory_limit"] for case in measured] == [4 * GIB]


def test_rows_growth_and_checks(monkeypatch):
    monkeypatch.setattr(measurement, "measure_in_subprocess", known_cost)
    reported = []
    result = AttentionBenchmark(repeats=1, lengths=(100, 200, 400), sizes=TINY).run(reported.append)
    assert reported == result.rows[: 5 * 3 + 3 + 8] and "too much" in result.to_text()
    found = result.to_json()
    assert json.loads(json.dumps(found)) == found
    by_case = {(row["case"], row["unit"]): row for row in found["rows"]}
    assert len(by_case) == len(found["rows"]) == 5 * 3 + 3 + 8 + 5 * 2
    row = by_case["window w=10, 400 tokens", "target tokens/s"]
    assert row["ours"] == pytest.approx(100) and row["ratio"] == pytest.approx(40) and row["memory_mib"] == 4000
    row = by_case["concat eager, 400 tokens", "target tokens/s"]
    assert row["skipped"] == "too much" and row["ours"] is row["ratio"] is None and row["peer"] == pytest.approx(2.5)
    row = by_case["window w=20, 200 to 400 tokens", "exponent of memory"]
    assert (row["ours"], row["peer"], row["ratio"]) == pytest.approx((1, 2, 0.5))
    assert by_case["concat eager, 200 to 200 tokens", "exponent of time"]["ours"] is None
    assert all(row["ratio"] == 1 for row in found["rows"] if row["name"] == "concat sdpa")
    assert {check["name"]: check["value"] for check in found["checks"]} == {
        **{f"window w={w}, exponent of {what}": pytest.approx(1) for w in (10, 20) for what in ("time", "memory")},
        **{f"window w={w}: smallest ratio": pytest.approx(20) for w in (10, 20)},
        "attention alone: ratio to sdpa": pytest.approx(40),
        "attention alone: memory over sdpa's": pytest.approx(1 / 40),
        "attention alone: memory over eager's": pytest.approx(1 / 4000),
        **{f"lst, {n} tokens: {what} over concat's": 1.25 for n in (100, 200, 400) for what in ("time", "memory")},
        **{
            f"lst, {mode}, {text}: time over concat's": pytest.approx(1.1)
            for mode in ("greedy", "beam 4")
            for text in ("windows of four sentences", "a segment of twenty sentences")
        },
    }
    assert [check["name"] for check in found["checks"] if not check["ok"]] == [
        f"lst, {n} tokens: {what} over concat's" for n in (100, 200, 400) for what in ("time", "memory")
    ]


def test_command(monkeypatch, run):
    """Rows on standard error as they come, all at the end on standard output."""
    monkeypatch.setattr(measurement, "measure_in_subprocess", known_cost)
    code, out, err = run("bench", "attention", "--repeats", 1, "--json")
    assert code == 0 and len(json.loads(out)["rows"]) == 5 * 4 + 3 + 8 + 5 * 2
    assert len(err.splitlines()) == 5 * 4 + 3 + 8 and err.startswith("concat sdpa, 1024 tokens ")


def test_flex_attention_on_cuda_alone(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    on_cpu, on_cuda = AttentionBenchmark(device="cpu"), AttentionBenchmark(device="cuda")
    assert on_cpu.cases == CASES and on_cuda.cases == CASES | attention.FLEX
    assert on_cuda.step_case("lst flex", 100)["implementation"] == "flex_attention"


def test_what_was_not_measured_is_missed(monkeypatch):
    """Exponents of window that do not reach the last length do not count."""

    def unfinished(process, case, time_limit):
        late = "window" in case.get("fields", {}) or case.get("architecture") == "lst"
        return {"skipped": "late"} if late and case["tokens"] == 400 else known_cost(process, case, time_limit)

    monkeypatch.setattr(measurement, "measure_in_subprocess", unfinished)
    result = AttentionBenchmark(lengths=(50, 100, 200, 400), sizes=TINY).run()
    checks = {check.name: check for check in result.checks}
    unmeasured = ["window w=10, exponent of time", "attention alone: ratio to sdpa"]
    for name in [*unmeasured, "lst, 400 tokens: time over concat's", "lst, 400 tokens: memory over concat's"]:
        assert checks[name].value is None and not checks[name].ok


def test_tiny_run(monkeypatch, in_this_process):
    """Every case that this version has, in this process."""
    monkeypatch.setattr(attention, "DECODING", {"windows of four sentences": (2, 30)})
    monkeypatch.setattr(attention, "ALONE", {"sdpa": {}, "eager": {}, "window": {}})
    monkeypatch.setattr(attention, "attention_alone", lambda case, device: lambda: None)
    monkeypatch.setattr(attention, "CASES", {name: CASES[name] for name in ("concat sdpa", "concat eager", "lst")})
    found = AttentionBenchmark(repeats=1, lengths=(20, 60, 110), sizes=TINY, vocab_size=40).run().to_json()
    steps = [row for row in found["rows"] if row["unit"] == "target tokens/s" and "alone" not in row["name"]]
    assert len(steps) == 9 + 4
    for row in steps:
        assert row["skipped"] is None and row["ours"] == pytest.approx(row["tokens"] / row["seconds"])
        assert -5 < row["memory_mib"] < 500  # the process may give some back meanwhile


@pytest.mark.parametrize("beams", [1, 2])
def test_segments_are_written(beams):
    """As many tokens as asked for, a separator at the end of every 25."""
    write = attention.segment_decoding(DECODING | {"architecture": "lst", "beams": beams}, torch.device("cpu"))
    ids = write()
    assert ids.shape == (2, 61)
    assert [(row == SEP).nonzero().flatten().tolist() for row in ids] == [[25, 50]] * 2


def test_document():
    ids = random_document(60, 100)[0]
    assert ids.shape == (60,) and ids[-1] == EOS and ids.max() < 100
    assert (ids == SEP).nonzero().flatten().tolist() == [24, 49] and (ids[:24] >= 6).all()


def test_memory_of_maps_is_seen():
    """Eager attention holds maps of 8 x 1024 x 1024 numbers of 4 bytes, sdpa none, both measured in a new process.

    In this process, what earlier tests left may be freed during the measurement, and would count against it.
    """
    cases = [ALONE | {"implementation": name} for name in ("sdpa", "eager")]
    code = "import json; from hf_docmt.bench.measurement import measure_work\n"
    done = run_python("-c", f"{code}print(json.dumps([measure_work(case, None) for case in {cases}]))")
    sdpa, eager = json.loads(done.stdout)
    assert eager.keys() == sdpa.keys() == {"seconds", "memory_mib"}
    assert eager["seconds"] > 0 and sdpa["seconds"] > 0
    assert 64 < eager["memory_mib"] < 250 and sdpa["memory_mib"] < 40


def test_a_process_that_fails(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    work = "allocation:allocate"
    if sys.platform == "linux":
        numbers = measure_in_subprocess(work, {"memory_limit": GIB}, 500)
        assert numbers == {"skipped": "needs more than the 1.0 GiB that are free"}
    assert measure_in_subprocess(work, {}, 0.01) == {"skipped": "not done after 0.01 s"}


def test_available_memory():
    assert available_memory("cpu") > 2**20


@pytest.mark.gpu
def test_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    eager, sdpa = (measure_work(ALONE | {"implementation": name, "device": "cuda"}, None) for name in ("eager", "sdpa"))
    assert eager["memory_mib"] > 64 > sdpa["memory_mib"] > 0 and available_memory("cuda") > 2**20
