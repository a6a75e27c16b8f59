"""One process and several: the same losses, plainly and with sharded parameters; resuming with another number."""

import json

import numpy as np
import pytest
import torch
from support.errors import refused
from support.process_counts import ALONE, CASES, EVEN, SHARDED, course, make_trainer, train_all
from support.processes import run_in_two
from torch.distributed.fsdp import StateDictType
from torch.utils.data import DataLoader

from hf_docmt.data.samplers import TokenBudgetBatchSampler
from hf_docmt.training.checkpoints import read_weights
from hf_docmt.training.distributed import RegroupedBatches, accumulation_for, check_sharding, equal_rounds

torch.set_num_threads(1)
LENGTHS = np.random.default_rng(0).integers(1, 40, size=(90, 2))


def sampler(rank, processes):
    return TokenBudgetBatchSampler(LENGTHS, 200, seed=3, rank=rank, world_size=processes)


def updates(samplers, accumulation, epoch):
    """The batches of every update, in no order."""
    shares = []
    for share in samplers:
        share.set_epoch(epoch)
        shares.append(list(share))
        assert len(shares[-1]) == len(share)
    steps = list(zip(*shares, strict=True))
    blocks = [steps[start : start + accumulation] for start in range(0, len(steps), accumulation)]
    return [sorted(batch for step in block for batch in step) for block in blocks]


@pytest.mark.parametrize(("before", "accumulation"), [(1, 1), (1, 2), (1, 6), (2, 1), (2, 3), (3, 2), (4, 1), (6, 1)])
def test_updates_of_another_number_of_processes(before, accumulation):
    """They have the same batches in the same order of updates, or the number is refused."""
    whole = [sampler(rank, before) for rank in range(before)]
    steps, allowed = len(whole[0]), 0
    for now in range(1, 8):
        expected = [updates(whole, accumulation, epoch) for epoch in (0, 1)]
        if any(len(update) % now for update in expected[0]):
            with pytest.raises(ValueError, match=f"an update has {before * accumulation} batches"):
                accumulation_for(now, before, accumulation, steps)
            continue
        allowed += 1
        shares = [RegroupedBatches(sampler(0, before), rank, now) for rank in range(now)]
        other = accumulation_for(now, before, accumulation, steps)
        assert [updates(shares, other, epoch) for epoch in (0, 1)] == expected
    assert allowed


def test_equal_rounds_in_every_process(monkeypatch):
    monkeypatch.setattr("hf_docmt.training.distributed.gather_object", lambda counts: [*counts, 5])
    assert list(equal_rounds([1, 2, 3])) == [(1, True), (2, True), (3, True), (3, False), (3, False)]
    assert list(equal_rounds([1, 2, 3, 4, 5]))[-1] == (5, True)
    nothing = DataLoader([7, 8], batch_sampler=[], collate_fn=list)
    assert list(equal_rounds(nothing)) == [([7], False)] * 5


def test_settings_of_sharding_that_cannot_be(tmp_path, monkeypatch):
    accelerator = make_trainer("concat", tmp_path, 1).accelerator
    check_sharding(accelerator)

    class Plugin:
        state_dict_type = StateDictType.SHARDED_STATE_DICT

    with monkeypatch.context() as patch:
        patch.setattr(accelerator.state, "fsdp_plugin", Plugin, raising=False)
        refused("type is SHARDED_STATE_DICT, expected FULL_STATE_DICT", check_sharding, accelerator)
        Plugin.state_dict_type = StateDictType.FULL_STATE_DICT
        check_sharding(accelerator)
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    monkeypatch.setattr(type(accelerator), "num_processes", 2)
    refused("on accelerators only, these processes run on cpu", check_sharding, accelerator)


@pytest.fixture(scope="module")
def one_process(tmp_path_factory):
    return train_all(tmp_path_factory.mktemp("one"), 1)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "port"), [("ddp", 29561), ("fsdp", 29562)])
def test_two_processes(one_process, tmp_path, kind, port):
    """Losses, validation and weights of one process, for every architecture; resumed without a difference."""
    alone = make_trainer("concat", tmp_path / ALONE, 1, shared=False, max_tokens=EVEN)
    alone.train()
    variables = SHARDED if kind == "fsdp" else {}
    run_in_two("-m", "support.process_counts", tmp_path, kind, port=port, **variables)
    two = json.loads((tmp_path / "losses.json").read_text())
    batches = [len(make_trainer(case, tmp_path / "none", 1).get_eval_dataloader()) for case in CASES]
    assert any(number % 2 for number in batches)  # of validation: one process has one more
    for case in CASES:
        for name in ("loss", "eval_loss"):
            assert two[case][name] == pytest.approx(one_process[case][name], abs=2e-6)
        assert two[case]["resumed"] == {name: two[case][name] for name in ("loss", "eval_loss")}
        assert two[case]["weights"] == pytest.approx(one_process[case]["weights"], rel=1e-5)
    if kind == "ddp":  # begun by one process, continued by two
        assert two[ALONE]["loss"] == pytest.approx(course(alone)["loss"], abs=2e-6)
    else:
        names = read_weights(tmp_path / "concat" / "checkpoint-3").keys()
        assert names == read_weights(alone.args.output_dir + "/checkpoint-3").keys()
        return
    # begun by two processes, continued by one
    for case in ("concat", "window"):
        resumed = make_trainer(case, tmp_path, 1, shared=False, gradient_accumulation_steps=1)
        resumed.train(resume_from_checkpoint=f"{resumed.args.output_dir}/checkpoint-2")
        assert course(resumed)["loss"] == pytest.approx(two[case]["loss"], abs=2e-6)
    memory = make_trainer("memory", tmp_path, 1)
    with pytest.raises(ValueError, match="by a run of 2 processes, this one has 1, and each of them .*; resume with 2"):
        memory.train(resume_from_checkpoint=True)
