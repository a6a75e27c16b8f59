"""The attention bench: growth and limits by numbers that are known; tiny steps of the real thing; its processes."""

import json
import subprocess
from types import SimpleNamespace

import pytest
import torch

from hf_docmt.bench import attention, attention_step
from hf_docmt.bench.attention import CASES, AttentionBenchmark
from hf_docmt.bench.attention_step import measure, random_document
from hf_docmt.bench.marian import TRANSFORMER_BASE
from hf_docmt.bench.memory import available_memory
from hf_docmt.bench.results import ScalingRow
from hf_docmt.bench.scaling import GIB, growth_exponent, reason_to_skip
from hf_docmt.bench.subprocesses import measure_in_subprocess

TINY = {name: 2 if name.endswith(("layers", "heads")) else 32 for name in TRANSFORMER_BASE}
SHARED = {"repeats": 1, "device": "cpu", "threads": 1}
ALONE = SHARED | {"work": "attention alone", "tokens": 1024, "fields": {}}


def rows(*costs):
    shared = {"case": "a case", "unit": "tokens/s", "name": "a system"}
    return [ScalingRow(**shared, tokens=tokens, seconds=seconds, memory_mib=mib) for tokens, seconds, mib in costs]


def known_cost(case, shorter, time_limit):
    """Time and memory that grow with the length for window, with its square for others; eager is skipped at last."""
    tokens = case["tokens"]
    if case["implementation"] == "eager" and tokens == 400 and "sizes" in case:
        return {"skipped": "too much"}
    linear = case.get("architecture") == "window" or case["implementation"] == "window"
    cost = tokens * 10 if linear else tokens**2
    return {"seconds": cost / 1e3, "memory_mib": cost * (100.0 if case["implementation"] == "eager" else 1.0)}


def test_growth():
    square = rows((10, 1.0, 3.0), (20, 4.0, 6.0), (40, 16.0, 12.0))
    assert growth_exponent(square, "seconds") == pytest.approx(2)
    assert growth_exponent(square, "memory_mib") == pytest.approx(1)
    assert growth_exponent(square[:1], "seconds") is None
    assert growth_exponent(rows((10, None, 0.0), (20, 1.0, 0.0)), "seconds") is None


def test_what_would_be_too_much():
    before = rows((10, 1.0, 2048.0), (20, 4.0, 4096.0))
    assert reason_to_skip(before, 40, 3, 100, 64 * GIB) is None
    assert reason_to_skip(before, 40, 3, 40, 64 * GIB) == "would take about 48 s, the limit is 40 s"
    assert reason_to_skip(before, 40, 3, 100, 8.5 * GIB) == "would need about 8.0 GiB more memory, 8.5 GiB are free"
    assert reason_to_skip(before[:1], 20, 1, 3.9, 64 * GIB) == "would take about 4 s, the limit is 3.9 s"  # the square
    assert reason_to_skip((), 40, 3, 1e-9, 0) is None  # nothing is known yet


def test_rows_growth_and_checks(monkeypatch):
    monkeypatch.setattr(attention, "measure_or_skip", known_cost)
    reported = []
    result = AttentionBenchmark(lengths=(100, 200, 400), sizes=TINY).run(reported.append)
    assert reported == result.rows[: 5 * 3 + 3] and "too much" in result.to_text()
    found = result.to_json()
    assert json.loads(json.dumps(found)) == found
    by_case = {(row["case"], row["unit"]): row for row in found["rows"]}
    assert len(by_case) == len(found["rows"]) == 5 * 3 + 3 + 5 * 2
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
    }
    assert all(check["ok"] for check in found["checks"])


def test_command(monkeypatch, run):
    """Rows on standard error as they come, all at the end on standard output."""
    monkeypatch.setattr(attention, "measure_or_skip", known_cost)
    code, out, err = run("bench", "attention", "--repeats", 1, "--json")
    assert code == 0 and len(json.loads(out)["rows"]) == 5 * 5 + 3 + 5 * 2
    assert len(err.splitlines()) == 5 * 5 + 3 and err.startswith("concat sdpa, 736 tokens ")


def test_what_was_not_measured_is_missed(monkeypatch):
    """Exponents of window that do not reach the last length do not count."""

    def unfinished(case, shorter, time_limit):
        window = "window" in case["fields"]
        return {"skipped": "late"} if window and case["tokens"] == 400 else known_cost(case, shorter, time_limit)

    monkeypatch.setattr(attention, "measure_or_skip", unfinished)
    result = AttentionBenchmark(lengths=(50, 100, 200, 400), sizes=TINY).run()
    checks = {check.name: check for check in result.checks}
    for name in ("window w=10, exponent of time", "attention alone: ratio to sdpa"):
        assert checks[name].value is None and not checks[name].ok


def test_tiny_run(monkeypatch):
    """Every case that this version has, in this process."""
    monkeypatch.setattr(attention, "measure_in_subprocess", lambda module, case, limit: measure(case))
    monkeypatch.setattr(attention, "ALONE", {"sdpa": {}, "eager": {}, "window": {}})
    monkeypatch.setitem(attention_step.WORK, "attention alone", lambda case, device: lambda: None)
    monkeypatch.setattr(attention, "CASES", {name: CASES[name] for name in ("concat sdpa", "concat eager", "lst")})
    found = AttentionBenchmark(repeats=1, lengths=(20, 60, 110), sizes=TINY, vocab_size=40).run().to_json()
    steps = [row for row in found["rows"] if row["unit"] == "target tokens/s" and "alone" not in row["name"]]
    assert len(steps) == 9
    for row in steps:
        assert row["skipped"] is None and row["ours"] == pytest.approx(row["tokens"] / row["seconds"])
        assert row["memory_mib"] >= 0


def test_architecture_that_is_not_there():
    found = attention.measure_or_skip({"architecture": "none"} | SHARED | {"tokens": 5}, (), 1)
    assert found == {"skipped": "this version has no architecture 'none'"}


def test_document():
    ids = random_document(60, 100)[0]
    assert ids.shape == (60,) and ids[-1] == attention_step.EOS and ids.max() < 100
    assert (ids == attention_step.SEP).nonzero().flatten().tolist() == [24, 49] and (ids[:24] >= 6).all()


def test_memory_of_maps_is_seen():
    """Eager attention holds maps of 8 x 1024 x 1024 numbers of 4 bytes, sdpa none."""
    eager, sdpa = (measure(ALONE | {"implementation": name}) for name in ("eager", "sdpa"))
    assert eager["seconds"] > 0 and sdpa["seconds"] > 0
    assert 64 < eager["memory_mib"] < 250 and sdpa["memory_mib"] < 40


def test_a_process():
    case = ALONE | {"implementation": "sdpa", "tokens": 64}
    found = measure_in_subprocess("hf_docmt.bench.attention_step", case, 500)
    assert found.keys() == {"seconds", "memory_mib"} and found["seconds"] > 0
    found = measure_in_subprocess("hf_docmt.bench.attention_step", case | {"work": "rest"}, 500)
    assert found == {"skipped": "KeyError: 'rest'"}
    assert measure_in_subprocess("hf_docmt.bench.attention_step", case, 0.01) == {"skipped": "not done after 0.01 s"}


def test_a_process_that_was_killed(monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *args, **more: SimpleNamespace(returncode=-9))
    assert measure_in_subprocess("any", {}, 1) == {"skipped": "its process was ended by SIGKILL"}


def test_available_memory():
    assert available_memory("cpu") > 2**20


@pytest.mark.gpu
def test_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    eager, sdpa = (measure(ALONE | {"implementation": name, "device": "cuda"}) for name in ("eager", "sdpa"))
    assert eager["memory_mib"] > 64 > sdpa["memory_mib"] > 0 and available_memory("cuda") > 2**20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"repeats": 0}, "repeats: expected a whole number of at least 1, got 0"),
        ({"lengths": (1, 2)}, "lengths: expected at least three"),
        ({"lengths": (1, 3, 2)}, r"from the shortest to the longest, got \[1, 3, 2\]"),
        ({"lengths": (0, 1, 2)}, "lengths: expected a whole number"),
        ({"sizes": {"d_model": 8}}, "sizes: got"),
        ({"vocab_size": 6}, "vocab_size: expected at least 7"),
        ({"device": "tpu"}, "device: expected cpu, or cuda where there is one, got 'tpu'"),
        ({"time_limit": 0}, "time_limit: expected more than 0 seconds"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        AttentionBenchmark(**arguments)
