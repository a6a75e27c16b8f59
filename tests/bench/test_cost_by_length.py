"""The cost benchmark by length: rows and checks by numbers that are known; tiny translations; a stream."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch

from hf_docmt.bench import cost_by_length, measurement
from hf_docmt.bench.cost_by_length import SYSTEMS, CostByLength
from hf_docmt.bench.measurement import measure_rows, measure_work
from hf_docmt.bench.models import SPECIAL_TOKENS, TINY, random_model
from hf_docmt.bench.results import ScalingRow

SMALL = {"lengths": (4, 8, 12), "chunk": 4, "sizes": TINY, "vocab_size": 20}
CASE = {"architecture": "memory", "strategy": "stream", "fields": {}, "sizes": TINY, "vocab_size": 20, "chunk": 4}
CASE |= {"tokens": 12, "unit": 4, "device": "cpu", "threads": 1}


def known_cost(process, case, time_limit):
    """Chunks take time that grows with the length, a tenth more with memory, documents its square."""
    if case["unit"] == case["tokens"]:
        return {"seconds": case["tokens"] ** 2 / 1e4, "memory_mib": case["tokens"] / 10}
    slow = 1.1 if case["architecture"] == "memory" else 1.0
    return {"seconds": case["tokens"] / 100 * slow, "memory_mib": 8.0}


def verdicts(found):
    return {check["name"]: (check["value"], check["ok"]) for check in found["checks"]}


def test_rows_growth_and_checks(monkeypatch):
    monkeypatch.setattr(measurement, "measure_in_subprocess", known_cost)
    found = CostByLength(lengths=(100, 200, 400), sizes=TINY).run().to_json()
    assert json.loads(json.dumps(found)) == found
    by_case = {(row["case"], row["unit"]): row for row in found["rows"]}
    assert len(by_case) == len(found["rows"]) == 3 * 3 + 3 * 2
    row = by_case["memory, 400 tokens", "target tokens/s"]
    assert (row["ours"], row["peer"], row["ratio"]) == pytest.approx((100 / 1.1, 100, 1 / 1.1))
    assert (row["seconds"], row["memory_mib"]) == pytest.approx((4.4, 8))
    assert by_case["document, 400 tokens", "target tokens/s"]["ratio"] == pytest.approx(0.25)
    row = by_case["document, 200 to 400 tokens", "exponent of time"]
    assert (row["ours"], row["peer"], row["ratio"]) == pytest.approx((2, 1, 2))
    assert by_case["document, 200 to 400 tokens", "exponent of memory"]["ours"] == pytest.approx(1)
    assert found["rows"][0]["name"] == "sentence" and found["rows"][0]["ratio"] == 1
    assert verdicts(found) == {
        "memory: largest time over sentence's": (pytest.approx(1.1), True),
        "memory, exponent of memory": (pytest.approx(0), True),
    }
    assert found["setting"]["chunk"] == 100 and found["setting"]["stream_sentences"] == 0


def test_what_costs_too_much_is_missed(monkeypatch):
    def dear(process, case, time_limit):
        found = known_cost(process, case, time_limit)
        if case["architecture"] == "memory":
            found = {"seconds": 1.2 * case["tokens"], "memory_mib": case["tokens"] ** 0.2}
        return found

    monkeypatch.setattr(measurement, "measure_in_subprocess", dear)
    found = verdicts(CostByLength(lengths=(100, 200, 400), sizes=TINY).run().to_json())
    assert found["memory: largest time over sentence's"] == (pytest.approx(120), False)
    assert found["memory, exponent of memory"] == (pytest.approx(0.2), False)


def test_skipped_cases(monkeypatch):
    """Because its process failed, or that of a shorter one; nothing is shown where a length is missing."""

    def failing(process, case, time_limit):
        failed = case["architecture"] == "memory" and case["tokens"] == 400
        late = case["unit"] == case["tokens"] and case["tokens"] == 200
        reason = "it failed" if failed else "not done after 15 s" if late else None
        return {"skipped": reason} if reason else known_cost(process, case, time_limit)

    monkeypatch.setattr(measurement, "measure_in_subprocess", failing)
    result = CostByLength(lengths=(100, 200, 400), sizes=TINY, time_limit=15).run()
    found = result.to_json()
    rows = {row["case"]: row for row in found["rows"]}
    row = rows["document, 400 tokens"]
    assert row["skipped"] == "at 200 tokens: not done after 15 s" and row["ours"] is row["ratio"] is None
    assert row["peer"] == pytest.approx(100)
    assert rows["memory, 400 tokens"]["skipped"] == "it failed"
    assert rows["memory, 200 to 200 tokens"]["ours"] is None
    assert all(value is None and not ok for value, ok in verdicts(found).values())
    assert "it failed" in result.to_text()


def test_systems_alternate(monkeypatch):
    """Medians over the rounds so far; what was skipped is not measured again."""
    calls = []
    times = {"a": iter([3.0, 1.0, 2.0]), "b": iter([5.0, None])}

    def next_time(process, case, time_limit):
        calls.append(case["name"])
        seconds = next(times[case["name"]])
        return {"seconds": seconds, "memory_mib": None} if seconds else {"skipped": "killed"}

    monkeypatch.setattr(measurement, "measure_in_subprocess", next_time)
    cases = {name: {"name": name, "tokens": 10, "device": "cpu"} for name in times}
    make_row, options, reported = partial(ScalingRow.at_length, peer="a"), CostByLength(repeats=3), []
    rows = measure_rows(cases, make_row, options, reported.append)
    assert [(row.name, row.seconds) for row in reported] == [("a", 3), ("b", 5), ("b", None), ("a", 2), ("a", 2)]
    assert [(row.seconds, row.skipped) for row in rows] == [(2, None), (None, "killed")]
    assert calls == ["a", "b", "b", "a", "a"]


def test_rows_are_reported_when_they_are_measured(monkeypatch):
    """After each measurement, with what is known then; at last they are those of the result."""
    reported, measured = [], []

    def watched(process, case, time_limit):
        assert len(reported) == len(measured)
        measured.append(case)
        return {"skipped": "no"} if len(measured) == 14 else known_cost(process, case, time_limit)

    monkeypatch.setattr(measurement, "measure_in_subprocess", watched)
    result = CostByLength(repeats=2, lengths=(100, 200, 400), sizes=TINY).run(reported.append)
    assert len(reported) == len(measured) == 3 * 2 * 3 - 1
    assert reported[0] == result.rows[0] and {row.case: row for row in reported} == {
        row.case: row for row in result.rows if row.unit == "target tokens/s"
    }
    assert reported[7].to_line() == "memory, 200 tokens" + " " * 30 + "2.20 s        8.00 MiB        0.91 ratio"
    assert reported[13].to_line() == "memory, 400 tokens" + " " * 24 + "skipped: no"
    assert replace(reported[0], memory_mib=None).to_line()[40:] == "        1.00 s           - MiB        1.00 ratio"


def test_tiny_run(in_this_process):
    """All systems and a stream, in this process."""
    result = CostByLength(repeats=1, **SMALL, stream_sentences=10).run()
    found = result.to_json()
    speeds = [row for row in found["rows"] if row["unit"] == "target tokens/s"]
    assert [row["name"] for row in speeds] == list(SYSTEMS) * 3
    for row in speeds:
        assert row["skipped"] is None and row["ours"] == pytest.approx(row["tokens"] / row["seconds"])
        assert row["memory_mib"] >= 0
    row = found["rows"][-1]
    assert row["case"] == "stream, 10 sentences" and row["memory_mib"] == row["ours"] - row["peer"]
    assert row["ratio"] == pytest.approx(1, abs=0.5) and row["seconds"] > 0
    assert found["checks"][-1]["name"] == "stream: MiB added after a tenth"
    assert result.to_text()


@pytest.mark.parametrize(
    ("architecture", "strategy", "unit"),
    [("concat", "sentence", 4), ("memory", "stream", 4), ("concat", "sentence", 12)],
)
def test_as_many_target_tokens_as_source_tokens(architecture, strategy, unit):
    case = CASE | {"architecture": architecture, "strategy": strategy, "unit": unit}
    written = cost_by_length.translation(case, torch.device("cpu"))()
    assert [len(ids) for ids in written] == [unit] * (12 // unit)
    assert min(token for ids in written for token in ids) >= SPECIAL_TOKENS


def test_an_end_that_was_written_is_an_error(monkeypatch):
    model = random_model("memory", {}, TINY, 20)
    model.final_logits_bias[:, model.config.eos_token_id] = 1e9
    monkeypatch.setattr(cost_by_length, "random_model", lambda *arguments: model)
    with pytest.raises(RuntimeError, match=r"expected 4 target tokens a unit, got \[0\]"):
        cost_by_length.translation(CASE, torch.device("cpu"))


def test_equal_names_have_equal_weights():
    memory, plain = (dict(random_model(name, {}, TINY, 20).named_parameters()) for name in ("memory", "concat"))
    assert plain.keys() < memory.keys()
    for name, weight in plain.items():
        assert torch.equal(weight, memory[name])
    first, second = (plain[f"model.encoder.layers.0.fc{number}.weight"] for number in (1, 2))
    assert not torch.equal(first, second)


def test_memory_goes_from_chunk_to_chunk(monkeypatch):
    """The state that a sentence leaves is the one that the next one reads."""
    model, seen = random_model("memory", {}, TINY, 20), []
    encoder = model.get_encoder()
    encoder.register_forward_hook(
        lambda module, args, kwargs, out: seen.append((kwargs["encoder_memory"], out.encoder_memory)), with_kwargs=True
    )
    monkeypatch.setattr(cost_by_length, "random_model", lambda *arguments: model)
    translate = cost_by_length.translation(CASE, torch.device("cpu"))
    seen.clear()
    translate()
    assert [given is None for given, _ in seen] == [True, False, False]
    assert all(torch.equal(left, given) for (_, left), (given, _) in zip(seen, seen[1:]))


def test_stream_check():
    for mib, is_ok in ((cost_by_length.MAX_STREAM_GROWTH, True), (cost_by_length.MAX_STREAM_GROWTH + 0.1, False)):
        row = cost_by_length.stream_row(10, {"end": 100 + mib, "tenth": 100.0})
        assert cost_by_length.stream_check(row).ok == is_ok
    row = cost_by_length.stream_row(10, {"skipped": "not done after 1 s"})
    assert row.skipped == "not done after 1 s" and row.ours is row.ratio is None
    assert not cost_by_length.stream_check(row).ok


def test_random_sentences_are_generated_lazily():
    sentences = cost_by_length.random_sentences(10**12, seed=1)
    drawn = [next(sentences) for _ in range(50)]
    assert len(set(drawn)) == 50 and all(2 <= len(sentence.split()) <= 6 for sentence in drawn)
    again, other = (next(cost_by_length.random_sentences(1, seed=seed)) for seed in (1, 2))
    assert drawn[0] == again != other


def test_command(monkeypatch, run):
    monkeypatch.setattr(measurement, "measure_in_subprocess", known_cost)
    stream = {"seconds": 9.0, "tenth": 400.0, "end": 401.0}
    monkeypatch.setattr(cost_by_length, "measure_in_subprocess", lambda *arguments: stream)
    arguments = ("--lengths", "200,400,1600", "--stream-sentences", 50, "--time-limit", 5000, "--json")
    code, out, _ = run("bench", "cost", *arguments)
    result = json.loads(out)
    assert code == 0 and result["rows"][-1]["memory_mib"] == 1.0 and result["checks"][-1]["ok"]
    assert (result["setting"]["time_limit"], result["setting"]["lengths"]) == (5000, [200, 400, 1600])
    code, out, err = run("bench", "cost", "--repeats", 1)
    assert code == 0 and "memory, 8000 tokens" in out and "memory: largest time over sentence's" in out
    assert len(err.splitlines()) == 15 and err.startswith("sentence, 500 tokens ")


@pytest.mark.gpu
def test_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    assert measure_work(CASE | {"device": "cuda", "build": cost_by_length.WORK}, None)["memory_mib"] > 0
    assert cost_by_length.measure_stream({"stream_sentences": 10, "device": "cuda", "threads": 1}, None)["end"] > 0


def test_lengths_that_are_no_chunks():
    with pytest.raises(ValueError, match="multiples of the chunk of 100 tokens, got 350; change either"):
        CostByLength(lengths=(100, 200, 350))
