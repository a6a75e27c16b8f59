"""The benchmark of memory in training: the rows and checks of a tiny model, and what a case computes."""

import pytest
import torch

from hf_docmt import registry
from hf_docmt.bench.attention import training_step
from hf_docmt.bench.models import TINY
from hf_docmt.bench.train_memory import CASES, TrainMemoryBenchmark, target_checks

SMALL = {"repeats": 1, "tokens": 60, "sizes": TINY, "vocab_size": 60}


def test_rows_and_checks(in_this_process):
    result = TrainMemoryBenchmark(**SMALL).run()
    found = result.to_json()
    assert [row["case"] for row in found["rows"]] == [f"{name}, 60 tokens" for name in CASES]
    assert {(case["skip_logits"], case["checkpointing"]) for case in in_this_process} == set(CASES.values())
    peer = result.rows[0]
    for row in result.rows:
        assert row.seconds > 0 and row.memory_mib >= 0 and row.ratio == pytest.approx(peer.seconds / row.seconds)
    times = [check for check in result.checks if check.name.endswith("time")]
    assert [check.value for check in times] == [result.rows[i].seconds / peer.seconds for i in (1, 3)]
    assert [check.target for check in result.checks] == [0.65, 1.02, 0.3, 1.35]
    assert "loss in chunks, checkpointing" in result.to_text()


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_what_it_says(name, monkeypatch):
    skip_logits, checkpointing = CASES[name]
    outputs, model_class = [], registry.get("window").model_class
    forward = model_class.forward

    def watched(model, **inputs):
        outputs.append((forward(model, **inputs), model.is_activation_checkpointing))
        return outputs[-1][0]

    monkeypatch.setattr(model_class, "forward", watched)
    case = TrainMemoryBenchmark(**SMALL, precision="bf16").shared_case(
        skip_logits=skip_logits, checkpointing=checkpointing
    )
    training_step(case, torch.device("cpu"))()
    assert len(outputs) == 2  # of a short document, and of the long one
    for (output, checkpointed), tokens in zip(outputs, (50, 60)):
        assert (output.logits is None) == skip_logits and checkpointed == checkpointing
        assert skip_logits or (output.logits.shape, output.logits.dtype) == ((1, tokens, 60), torch.bfloat16)


def test_what_was_not_measured_is_missed():
    rows = TrainMemoryBenchmark(**SMALL, time_limit=1e-6).run().rows
    assert all("not done after" in row.skipped for row in rows)
    assert not any(check.ok for check in target_checks(rows, 60))


def test_unknown_architecture():
    with pytest.raises(ValueError, match="nothing"):
        TrainMemoryBenchmark(architecture="nothing")
