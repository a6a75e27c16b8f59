"""The cost bench by context: rows, growth and checks by numbers that are known; tiny documents."""

import json

import pytest
import torch
from support.processes import run_python
from torch import nn

from hf_docmt.bench import cost_by_context, measurement
from hf_docmt.bench.benchmark import WORKS
from hf_docmt.bench.cost_by_context import NEEDS_CONTEXT, PEER, ROUTING, SYSTEMS, CostByContext, context_fields
from hf_docmt.bench.models import NEVER, SPECIAL_TOKENS, TINY, random_model, random_units

CONTEXT, SENTENCES, SIZE, TOKENS = 3, 2, 5, 20  # context, sentences that follow it, their tokens, the vocabulary


def known_cost(process, case, time_limit):
    """0.5 s a sentence, 0.55 s of grouping; a context sentence adds 2 MiB to the single encoder, 0.3 to others.

    Of grouping 9 vectors of 32 numbers are kept: 0.3 MiB is 273 times as much.
    """
    context, grouping = case["context"], case["fields"].get("shortening") == "grouping"
    asked = case["fields"].get("past_context", 0) + case["fields"].get("future_context", 0)
    assert asked in (0, context) and case["tokens"] == 25 * (context + 1)
    grows = 0 if "past_context" not in case["fields"] else 2.0 if case["architecture"] == "concat" else 0.3
    return {"seconds": case["sentences"] * (0.55 if grouping else 0.5), "memory_mib": 10 + grows * context}


def case_of(name, **more):
    architecture, fields = SYSTEMS[name]
    case = {"architecture": architecture, "fields": fields | context_fields(name, CONTEXT)}
    case |= {"sizes": TINY, "vocab_size": TOKENS, "context": CONTEXT}
    case |= {"sentences": SENTENCES, "sentence_tokens": SIZE, "device": "cpu", "threads": 1, "work": "translation"}
    return case | more


def verdicts(found):
    return {check["name"]: (check["value"], check["ok"]) for check in found["checks"]}


def test_rows_growth_and_checks(monkeypatch):
    monkeypatch.setattr(measurement, "measure_in_subprocess", known_cost)
    reported = []
    result = CostByContext(repeats=1, sizes=TINY).run(reported.append)
    found = result.to_json()
    assert json.loads(json.dumps(found)) == found and result.to_text()
    rows = {row["case"]: row for row in found["rows"]}
    measured = len(SYSTEMS) * 6 - len(NEEDS_CONTEXT)
    caching = [name for name, (architecture, _) in SYSTEMS.items() if architecture == "caching"]
    assert len(rows) == len(found["rows"]) == measured + len(SYSTEMS) - 1 + len(caching)
    assert reported == result.rows[:measured]
    row = rows["grouping, 10 context sentences"]
    assert (row["ours"], row["peer"], row["ratio"]) == pytest.approx((1 / 0.55, 2, 1 / 1.1))
    assert (row["seconds"], row["memory_mib"], row["tokens"]) == (pytest.approx(0.55), 13, 275)
    assert rows["sentence, beside 1 context sentence"]["ratio"] == rows["tokens, 0 context sentences"]["ratio"] == 1
    row = rows["single-encoder, 1 to 20 context sentences"]
    assert (row["ours"], row["peer"], row["ratio"]) == pytest.approx((2, 2, 1)) and "MiB" in row["unit"]
    row = rows["linear, 1 to 20 context sentences"]
    assert (row["ours"], row["peer"], row["ratio"]) == pytest.approx((0.3, 2, 0.15))
    assert verdicts(found) == {
        "grouping, 10 context sentences: time over sentence's": (pytest.approx(1.1), True),
        "routing, 2 context sentences: time over sentence's": (pytest.approx(1), True),
        "grouping: memory growth over single-encoder's": (pytest.approx(0.15), True),
        "grouping: memory growth over what is kept": (pytest.approx(0.3 * 2**20 / (9 * 32 * 4)), False),
    }
    kept = [rows[f"{name}, 1 to 20 context sentences, beside what is kept"]["peer"] for name in caching]
    assert [mib * 2**20 for mib in kept] == [vectors * 32 * 4 for vectors in (26, 13, 13, 9, 10)]
    assert found["setting"]["contexts"] == [0, 1, 2, 5, 10, 20] and found["setting"]["sentences"] == 8
    trained = CostByContext(repeats=1, work="training", sizes=TINY).run().to_json()
    assert verdicts(trained) == {"routing, 2 context sentences: time over sentence's": (pytest.approx(1), True)}


def test_what_was_not_measured_is_missed(monkeypatch):
    """Failed, or stopped with fewer context sentences: neither time nor growth is shown."""

    def costly(process, case, time_limit):
        if case["fields"].get("shortening") == "grouping":
            return {"skipped": "it failed"} if case["context"] == 10 else known_cost(process, case, time_limit)
        if "context_sides" in case["fields"] and case["context"] == 10:
            return {"skipped": "not done after 100 s"}
        return known_cost(process, case, time_limit)

    monkeypatch.setattr(measurement, "measure_in_subprocess", costly)
    result = CostByContext(repeats=1, sizes=TINY, time_limit=100).run()
    found = result.to_json()
    rows = {row["case"]: row for row in found["rows"]}
    row = rows["single-encoder, 20 context sentences"]
    assert row["skipped"] == "at 275 tokens: not done after 100 s" and row["ours"] is row["ratio"] is None
    assert row["peer"] == 2 and rows["single-encoder, 1 to 5 context sentences"]["ours"] == pytest.approx(2)
    assert rows["grouping, 10 context sentences"]["skipped"] == "it failed"
    shown = verdicts(found)
    assert shown.pop("routing, 2 context sentences: time over sentence's")[1]
    assert all(value is None and not ok for value, ok in shown.values())
    assert "it failed" in result.to_text()


def test_single_encoder_that_does_not_grow(monkeypatch):
    monkeypatch.setattr(measurement, "measure_in_subprocess", lambda *_: {"seconds": 1.0, "memory_mib": None})
    rows = {row["case"]: row for row in CostByContext(repeats=1, contexts=(1, 2), sizes=TINY).run().to_json()["rows"]}
    assert rows["grouping, not measured"]["ours"] is None
    monkeypatch.setattr(measurement, "measure_in_subprocess", lambda *_: {"seconds": 1.0, "memory_mib": 3.0})
    found = CostByContext(repeats=1, contexts=(1, 2), sizes=TINY).run().to_json()
    rows = {row["case"]: row for row in found["rows"]}
    assert rows["grouping, 1 to 2 context sentences"]["ours"] == 0
    assert rows["grouping, 1 to 2 context sentences"]["ratio"] is None
    assert verdicts(found)["grouping: memory growth over single-encoder's"] == (None, False)


@pytest.mark.parametrize("work", WORKS)
def test_tiny_run(monkeypatch, in_this_process, work):
    """All systems, in this process, whose memory stays as it is."""
    monkeypatch.setattr(cost_by_context, "return_freed_blocks", lambda: None)
    monkeypatch.setattr(cost_by_context, "SENTENCE_TOKENS", 5)
    options = {"contexts": (0, 1, 3), "sentences": 1, "sizes": TINY, "vocab_size": TOKENS}
    found = CostByContext(repeats=1, work=work, **options).run().to_json()
    rows = [row for row in found["rows"] if row["unit"] == "sentences/s"]
    without = [name for name in SYSTEMS if name not in NEEDS_CONTEXT]
    assert [row["name"] for row in rows] == without + list(SYSTEMS) * 2
    for row in rows:
        assert row["skipped"] is None and row["ours"] == pytest.approx(1 / row["seconds"]) and row["memory_mib"] >= 0


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_follows_the_lead_is_translated_as_by_sliding(name, monkeypatch):
    """Every measured sentence with all of its context; of those before one token is written, where they are kept."""
    case = case_of(name)
    model = random_model(case["architecture"], case["fields"], TINY, TOKENS)
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    model.final_logits_bias[:, :SPECIAL_TOKENS] = NEVER
    monkeypatch.setattr(cost_by_context, "random_model", lambda *arguments: model)
    written, generate = [], model.generate
    monkeypatch.setattr(model, "generate", lambda **inputs: written.append(inputs) or generate(**inputs))
    begin = cost_by_context.translation(case, torch.device("cpu"))
    written.clear()
    torch.manual_seed(5)
    translate = begin(CONTEXT, SENTENCES)
    assert len(written) == (CONTEXT if case["architecture"] in ("caching", "routing") else 0)
    assert {inputs["stopping_criteria"][0].ends.item() - 1 for inputs in written} <= {1}
    written.clear()
    found = translate()
    torch.manual_seed(5)
    document = random_units(CONTEXT + SENTENCES + case["fields"].get("future_context", 0), SIZE, TOKENS)
    settings = {"max_new_tokens": SIZE, "num_beams": 1, "do_sample": False}
    model.translator_class(model, 1, settings).translate([document], "sliding")
    assert found == [part.target for part in document.parts[CONTEXT : CONTEXT + SENTENCES]]
    for inputs in written[:SENTENCES] if name != ROUTING else ():  # it has read its context before
        assert context_sentences(case, inputs) == (0 if name == PEER else CONTEXT)


def context_sentences(case, inputs):
    """How many sentences of context a model was given."""
    if case["architecture"] == "caching":
        outputs = inputs["encoder_outputs"]
        shortening = case["fields"]["shortening"]
        kept = {"none": SIZE + 1, "grouping": 9, "selecting": 10}.get(shortening, (SIZE + 1) // 2)
        return outputs.context_mask.sum().item() // kept - (shortening != "none")
    if case["architecture"] in ("multiencoder", "doct"):
        return inputs["context_attention_mask"].any(dim=2).sum().item()
    return (inputs["input_ids"] == 4).sum().item()  # separators


@pytest.mark.parametrize("name", ["tokens", "grouping"])
def test_each_sentence_is_encoded_once(name, monkeypatch):
    case = case_of(name)
    model, seen = random_model(case["architecture"], case["fields"], TINY, TOKENS), []
    read = model.get_encoder().read
    monkeypatch.setattr(model.get_encoder(), "read", lambda **source: seen.append(source) or read(**source))
    monkeypatch.setattr(cost_by_context, "random_model", lambda *arguments: model)
    begin = cost_by_context.translation(case, torch.device("cpu"))
    seen.clear()
    translate = begin(CONTEXT, SENTENCES)
    assert len(seen) == CONTEXT
    translate()
    assert len(seen) == CONTEXT + SENTENCES


def test_freed_blocks_are_returned():
    """In a process of its own, whose memory is slow from then on."""
    code = "from hf_docmt.bench import measurement; measurement.return_freed_blocks(); print([0] * 9)"
    done = run_python("-c", code)
    assert done.returncode == 0 and done.stdout == f"{[0] * 9}\n", done.stderr


def test_command(monkeypatch, run):
    monkeypatch.setattr(measurement, "measure_in_subprocess", known_cost)
    code, out, err = run("bench", "cost", "--by", "context", "--repeats", 1, "--contexts", "1, 10")
    assert code == 0 and "selecting, 10 context sentences" in out and "20 context" not in out
    assert "grouping, 10 context sentences: time over sentence's" in out
    assert len(err.splitlines()) == 2 * len(SYSTEMS) and err.startswith("sentence, beside 1 context sentence ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--by", "size"), "--by is 'size', expected length or context"),
        (("--contexts", "1,2"), "--contexts is for --by context; leave it out"),
        (("--by", "context", "--lengths", "1,2,3"), "--lengths is for --by length; leave it out"),
        (("--by", "context", "--stream-sentences", 50), "--stream-sentences is for --by length; leave it out"),
        (("--by", "context", "--contexts", "1,-2"), "--contexts is '1,-2', expected whole numbers with commas"),
        (("--by", "context", "--contexts", "2,1"), "from the fewest sentences to the most, got [2, 1]"),
        (("--lengths", "500 1000"), "--lengths is '500 1000', expected whole numbers with commas"),
        (("--lengths", "500,1000"), "lengths: expected at least three"),
    ],
)
def test_bad_options(run, options, message):
    code, out, err = run("bench", "cost", *options)
    assert code == 1 and out == "" and message in err


@pytest.mark.gpu
def test_on_a_gpu(monkeypatch):
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    monkeypatch.setattr(cost_by_context, "return_freed_blocks", lambda: None)
    assert cost_by_context.measure(case_of("grouping", device="cuda"), None)["memory_mib"] > 0
