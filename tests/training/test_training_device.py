"""Updates on the device of the tests: as on the CPU, in bf16, and with parameters sharded in one process."""

import copy

import pytest
import torch
from support.battery import moved, on_device
from support.process_counts import CASES, course, make_trainer
from support.tiny_models import build
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from hf_docmt.loading import registry

FAST = ("concat", "memory")
PARAMETERS = [pytest.param(name, marks=[] if name in FAST else pytest.mark.slow) for name in CASES]
SETTINGS = {"max_steps": 2, "eval_strategy": "no", "save_strategy": "no"}


def losses(case: str, folder, device, **arguments) -> list[float]:
    trainer = make_trainer(case, folder, 1, use_cpu=device == "cpu", **SETTINGS, **arguments)
    trainer.train()
    assert trainer.args.device.type == device
    return course(trainer)["loss"]


@pytest.mark.parametrize("case", PARAMETERS)
def test_two_updates(case, device, tmp_path):
    expected = losses(case, tmp_path, "cpu")
    assert len(expected) == 2 and expected[0] != expected[1]
    if device.type != "cpu":
        assert losses(case, tmp_path, device.type) == pytest.approx(expected, abs=1e-4)
    assert losses(case, tmp_path, device.type, bf16=True) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("case", CASES)
def test_sharded_in_one_process(case, device, tmp_path):
    """FSDP2 over one process gives the losses of the plain model."""
    architecture = registry.get(case.split(",")[0])
    sharded = on_device(build(architecture.name, **CASES[case]), device).train()
    plain, trainer = copy.deepcopy(sharded), make_trainer(case, tmp_path, 1)
    batch = moved(trainer.data_collator([trainer.train_dataset[number] for number in range(3)]), device)
    backend = "gloo" if device.type == "cpu" else "nccl"
    distributed.init_process_group(backend, init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        mesh = init_device_mesh(device.type, (1,))
        for layer in (*sharded.get_encoder().layers, *sharded.get_decoder().layers):
            fully_shard(layer, mesh=mesh)
        fully_shard(sharded, mesh=mesh)
        for expected, value in zip(updates(plain, batch), updates(sharded, batch), strict=True):
            torch.testing.assert_close(value, expected, atol=1e-5, rtol=1e-5)
    finally:
        distributed.destroy_process_group()


def updates(model, batch: dict) -> list[torch.Tensor]:
    """The loss before each of two updates, and after them."""
    optimizer, values = torch.optim.SGD(model.parameters(), lr=0.1), []
    for _ in range(3):
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.detach())
    return values
