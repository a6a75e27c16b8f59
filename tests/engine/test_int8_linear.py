"""Int8 linear layers against rounding, an integer product and scaling in plain operations."""

import copy
import pickle
import threading

import pytest
import torch
from support.errors import refused
from torch import nn
from torch.nn import Linear

from hf_docmt.engine import cpu_kernels, int8_linear
from hf_docmt.engine.int8_linear import Int8Linear, int8_product

needs_fbgemm = pytest.mark.skipif(not int8_linear.FBGEMM, reason="torch was built without FBGEMM")


def reference(layer: nn.Linear, states: torch.Tensor, levels: int) -> torch.Tensor:
    """Every output from its definition: round, sum up integers, scale."""
    outputs = torch.empty(*states.shape[:-1], layer.out_features, dtype=torch.float64)
    for place in torch.cartesian_prod(*map(torch.arange, states.shape[:-1])).reshape(-1, states.dim() - 1).tolist():
        row = states[tuple(place)].double()
        row_scale = row.abs().max() / levels
        integers = torch.round(row / row_scale).long() if row_scale else torch.zeros(len(row)).long()
        for channel, weights in enumerate(layer.weight.detach().double()):
            scale = weights.abs().max() / 127
            rounded = torch.round(weights / scale).long() if scale else torch.zeros(len(row)).long()
            outputs[(*place, channel)] = (integers * rounded).sum() * row_scale * scale
    return outputs if layer.bias is None else outputs + layer.bias.detach()


@pytest.fixture(params=["kernels", pytest.param("fbgemm", marks=needs_fbgemm), "portable"])
def levels(request, monkeypatch) -> int:
    """Levels of the input, with each of the products."""
    monkeypatch.setenv("DOCMT_KERNELS", "1" if request.param == "kernels" else "0")
    if request.param == "kernels" and not cpu_kernels.most_rows(8):
        pytest.skip("the kernels were not built, or this processor has no VNNI")
    monkeypatch.setattr(int8_linear, "FBGEMM", request.param == "fbgemm")
    return int8_linear.INPUT_LEVELS if request.param == "fbgemm" else int8_linear.LEVELS


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 24), (3, 5, 24), (2, 1, 1, 24)])
def test_definition(levels, shape, bias):
    layer, states = Linear(24, 10, bias=bias), torch.randn(shape) * torch.tensor([0.1, 100.0] * 12)
    with torch.no_grad():
        layer.weight[3] = 0  # a channel without weights
        layer.weight[4] *= 1000
        states[..., 7] *= 30
        states.view(-1, 24)[0] = 0  # a row of zeros
        found = Int8Linear.of(layer)(states)
    assert found.shape == (*shape[:-1], 10)
    torch.testing.assert_close(found.double(), reference(layer, states, levels), atol=1e-4, rtol=1e-5)


def test_rows_do_not_depend_on_each_other(levels):
    layer, states = Int8Linear.of(Linear(32, 16)), torch.randn(6, 32) * torch.logspace(-3, 3, 6)[:, None]
    with torch.no_grad():
        for i in range(6):
            assert torch.equal(layer(states[i]), layer(states)[i])


def test_large_outputs_in_blocks(monkeypatch):
    monkeypatch.setenv("DOCMT_KERNELS", "0")
    layer, states = Int8Linear.of(Linear(8, 16)), torch.randn(2, 7, 8)
    with torch.no_grad():
        whole = layer(states)
        monkeypatch.setattr(int8_linear, "BLOCK_ELEMENTS", 48)
        assert torch.equal(layer(states), whole)


def test_several_layers_at_once(levels):
    layers, states = [Int8Linear.of(Linear(16, size)) for size in (8, 4, 12)], torch.randn(2, 3, 16)
    with torch.no_grad():
        found = int8_product(layers, states, None, own_bias=True)
        expected = torch.cat([layer(states) for layer in layers], dim=-1)
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)


def test_values_that_are_not_finite_stay_so(levels):
    layer, states = Int8Linear.of(Linear(40, 4)), torch.randn(3, 40)
    states[0, 2], states[1, 3] = torch.nan, torch.inf
    with torch.no_grad():
        found = layer(states)
    assert not found[:2].isfinite().any() and found[2].isfinite().all()
    assert layer(torch.empty(0, 40)).shape == (0, 4)


def test_new_weights_are_used():
    layer, other, states = Int8Linear.of(Linear(8, 4)), Int8Linear.of(Linear(8, 4)), torch.randn(2, 8)
    with torch.no_grad():
        before, expected = layer(states), other(states)
        layer.load_state_dict(other.state_dict())
        assert torch.equal(layer(states), expected)
        layer.weight = nn.Parameter(-other.weight, requires_grad=False)
        assert not torch.equal(layer(states), expected)
        assert not torch.equal(before, expected)


@pytest.mark.parametrize("name", ["weight_scale", "bias"])
def test_new_scales_and_biases_are_used(levels, name):
    layers, states = [Int8Linear.of(Linear(8, 4)) for _ in range(3)], torch.randn(2, 8)
    with torch.no_grad():
        int8_product(layers, states, None, own_bias=True)
        getattr(layers[1], name).mul_(2)
        expected = torch.cat([layer(states) for layer in map(copy.deepcopy, layers)], dim=-1)
        torch.testing.assert_close(int8_product(layers, states, None, own_bias=True), expected)


@needs_fbgemm
def test_one_thread_at_a_time_sets_the_engine():
    """Of two that pack side by side one would set the engine back while the other packs, or leave its own behind."""
    engine, found = torch.backends.quantized.engine, []

    def enter():
        with int8_linear.fbgemm_engine():
            found.append(torch.backends.quantized.engine)

    with int8_linear.fbgemm_engine():
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join(0.1)
        assert not found
    thread.join()
    assert found == [int8_linear.ENGINE] and torch.backends.quantized.engine == engine


def test_copies_have_no_packed_weights():
    layer, states = Int8Linear.of(Linear(8, 4)), torch.randn(2, 8)
    with torch.no_grad():
        expected = layer(states)
        for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert not other._packed and torch.equal(other(states), expected)


def test_types():
    layer, states = Int8Linear.of(Linear(8, 4)), torch.randn(2, 8)
    with torch.no_grad():
        expected = layer(states)
        layer.bfloat16()
        assert (layer.weight.dtype, layer.bias.dtype, layer.weight_scale.dtype) == (
            torch.int8,
            torch.bfloat16,
            torch.float32,
        )
        found = layer(states.bfloat16())
        assert found.dtype is torch.bfloat16
        torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.05)


def test_no_gradients():
    layer = Int8Linear.of(Linear(8, 4))
    layer(torch.randn(2, 8))
    refused("int8 weights give no gradients", layer, torch.randn(2, 8, requires_grad=True))


def test_weights_that_are_not_finite():
    layer = Linear(8, 4)
    layer.weight.data[1, 2] = torch.inf
    refused("not all finite", Int8Linear.of, layer)
