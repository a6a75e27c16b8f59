"""Packed weights of linear layers: the results of torch, and never those of weights that are gone."""

import contextvars
import copy
import gc
import itertools
import os
import pickle
import threading
import weakref
from contextlib import ExitStack, contextmanager

import pytest
import torch
from support.battery import logits
from support.tiny_models import EOS, build
from torch import nn
from torch.nn import Linear

from hf_docmt.engine import scope
from hf_docmt.engine.scope import checksum, for_onednn, packed_products, unchanged_weights
from hf_docmt.modeling.layers import OutputProjection

BATCH = {"input_ids": torch.tensor([[7, 8, 9, EOS]]), "decoder_input_ids": torch.tensor([[2, 9, 8]])}


needs_bf16 = pytest.mark.skipif(not scope.BF16, reason="this processor has no bf16 instructions")


@contextmanager
def packed(*modules):
    """The scope of modules, in which torch's products are those of packed weights."""
    with ExitStack() as stack:
        for module in modules:
            stack.enter_context(unchanged_weights(module))
            stack.enter_context(packed_products(module))
        yield


def plain(layer: nn.Linear, states: torch.Tensor) -> torch.Tensor:
    return states @ layer.weight.T + (layer.bias if layer.bias is not None else 0)


def is_kept(layer: nn.Linear) -> bool:
    """Whether prepacked weights of the layer are kept."""
    return bool(scope._kept.get(layer))


def check(layer: nn.Linear, states: torch.Tensor, prepacked: bool = True) -> None:
    """The results are those of the weights as they are now, and they came from where they should."""
    with torch.no_grad(), packed(layer.eval()):
        for _ in range(2):  # the first product is with plain weights
            torch.testing.assert_close(layer(states), plain(layer, states), atol=1e-5, rtol=1e-5)
    assert is_kept(layer) == prepacked


def scoped_logits(model, batch) -> torch.Tensor:
    """Logits of the second pass in a scope, with prepacked weights."""
    with packed(model):
        return [logits(model, batch) for _ in range(2)][1]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 24), (3, 5, 24), (2, 1, 1, 24), (300, 24)])
def test_is_nn_linear(shape, bias):
    layer, states = Linear(24, 40, bias=bias), torch.randn(shape)
    check(layer, states)
    found = layer(states)
    torch.testing.assert_close(found, plain(layer, states), atol=1e-5, rtol=1e-5)
    found.sum().backward()
    assert layer.weight.grad is not None
    assert layer(torch.empty(0, 24)).shape == (0, 40)


def test_prepacked_only_in_inference():
    layer, states = Linear(8, 8), torch.randn(2, 8)
    with packed(layer):
        for _ in range(2):
            layer(states)
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
                assert layer(states).dtype == torch.bfloat16
            with torch.no_grad():
                Linear.forward(layer.double(), states.double())
                layer.float()
    assert not is_kept(layer)
    check(layer, states)


def test_plain_outside_of_the_scope():
    layer, other, states = Linear(8, 8), Linear(8, 8), torch.randn(2, 8)
    with torch.no_grad():
        for _ in range(2):
            layer(states)
        assert not is_kept(layer)
        with packed(other):
            for _ in range(2):
                layer(states)
        assert not is_kept(layer)
        check(layer, states)
        layer.weight.data.mul_(2)
        torch.testing.assert_close(layer(states), plain(layer, states), atol=1e-5, rtol=1e-5)


def test_second_product_is_the_first_with_packed():
    """Of a layer in training mode nothing is kept behind the scope."""
    layer, states = Linear(8, 8), torch.randn(2, 8)
    with torch.no_grad():
        for _ in range(2):
            with packed(layer):
                layer(states)
        assert not is_kept(layer)
        with packed(layer):
            layer(states)
            assert not is_kept(layer)
            layer(states)
            assert is_kept(layer)
        assert not is_kept(layer)


@pytest.mark.parametrize(
    ("shape", "rows", "prepacked"),
    [
        ((512, 512), 16, True),  # 2**22 multiplications
        ((512, 512), 15, False),
        ((512, 255), 1000, False),  # fewer than 2**17 elements
        ((512, 256), 1000, True),
    ],
)
def test_thresholds(shape, rows, prepacked, monkeypatch):
    """Those of production: the fixture of all tests sets them to 0."""
    monkeypatch.setattr(scope, "MIN_ELEMENTS", 2**17)
    monkeypatch.setattr(scope, "MIN_MULTIPLICATIONS", 2**22)
    layer, states = Linear(*shape), torch.randn(rows, shape[0])
    check(layer, states, prepacked)


def test_another_bias():
    layer, states, bias = OutputProjection(8, 6, bias=False).eval(), torch.randn(3, 8), torch.randn(6)
    with packed(layer):
        for grad in (True, False, False):
            with torch.set_grad_enabled(grad):
                torch.testing.assert_close(layer(states, bias), plain(layer, states) + bias, atol=1e-5, rtol=1e-5)
    assert is_kept(layer)


@needs_bf16
def test_bf16_weights():
    layer, states = Linear(64, 32).eval(), torch.randn(4, 64)
    exact = plain(layer, states).detach()
    with torch.no_grad(), packed(layer.bfloat16()):
        found = [layer(states.bfloat16()) for _ in range(2)][1]
    assert found.dtype == torch.bfloat16 and is_kept(layer)
    torch.testing.assert_close(found.float(), exact, atol=0.05, rtol=0.05)


def training_step(layer, looks: bool = False, **settings):
    """With a look at the layer between the gradient and the step, if asked for."""
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, **settings)
    layer(torch.randn(2, 24)).square().sum().backward()
    if looks:
        with torch.no_grad():
            layer(torch.randn(2, 24))
    optimizer.step()
    optimizer.zero_grad()


def swap(row: torch.Tensor, places: list, others: list) -> None:
    row[[*places, *others]] = row[[*others, *places]].clone()


def swap_signs(row: torch.Tensor) -> None:
    places = torch.stack([row.argmax(), row.argmin()])
    row[places] = -row[places]


MATRIX = (40, 24)
CHANGES = {  # those of `.data` and of numpy are not counted by torch
    "doubled": lambda layer: layer.weight.mul_(2),
    "moving average": lambda layer: layer.weight.data.mul_(0.5).add_(torch.randn(MATRIX), alpha=0.5),
    "new bias": lambda layer: layer.bias.copy_(torch.randn(40)),
    "other parameter": lambda layer: setattr(layer, "weight", nn.Parameter(torch.randn(MATRIX))),
    "other state": lambda layer: layer.load_state_dict(Linear(24, 40).state_dict()),
    "other state assigned": lambda layer: layer.load_state_dict(Linear(24, 40).state_dict(), assign=True),
    "other data": lambda layer: setattr(layer.weight, "data", torch.randn(MATRIX)),
    "there and back": lambda layer: layer.bfloat16().float(),
    "training step": training_step,
    "fused training step after a look": lambda layer: training_step(layer, looks=True, fused=True),
    "rows sorted": lambda layer: layer.weight.data.copy_(layer.weight.data[torch.randperm(40)].clone()),
    "one bit": lambda layer: layer.weight.data.view(torch.int32)[3, 5:6].bitwise_xor_(1 << 22),
    "two words of a row": lambda layer: swap(layer.weight.data[5], [0, 1], [4, 5]),  # the sum of blocks is the same
    "swapped signs": lambda layer: swap_signs(layer.weight.data[7]),
    "a view of numpy": lambda layer: layer.weight.detach().numpy()[2, 3:6].sort(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_follows_the_weights(change):
    layer, states = Linear(24, 40), torch.randn(3, 24)
    check(layer, states)
    before = layer.weight.detach().clone(), layer.bias.detach().clone()
    with torch.set_grad_enabled("step" in change):
        CHANGES[change](layer)
    assert not torch.equal(before[0], layer.weight) or not torch.equal(before[1], layer.bias)
    check(layer, states)


@pytest.mark.parametrize("kernels", ["0", "1"])
def test_checksum_misses_nothing_that_was_tried(monkeypatch, kernels):
    """Values moved, swapped, negated and doubled anywhere in a matrix of many lanes and blocks, behind torch's back.

    Neighbouring rows and columns that are exchanged, too.
    """
    monkeypatch.setenv("DOCMT_KERNELS", kernels)
    weight = torch.randn(300, 257)
    before, original = checksum(weight), weight.clone()
    for axis, size in enumerate(weight.shape):
        for first in (0, 100, size - 2):
            order = torch.arange(size)
            order[[first, first + 1]] = order[[first + 1, first]]
            assert not torch.equal(checksum(weight.index_select(axis, order)), before)
    draw = torch.Generator().manual_seed(1)
    for number in range(500):
        places = torch.randperm(weight.numel(), generator=draw)[: 2 + number % 5]
        if number % 2:  # close together: in one block, or in one lane
            places = (places[0] + torch.arange(len(places)) * (1, 2, 502, 4096)[number // 2 % 4]) % weight.numel()
        flat, values = weight.data.view(-1), original.view(-1)[places]
        flat[places] = (values.roll(1), -values, 2 * values, values.flip(0) * -1)[number % 4]
        assert torch.equal(weight, original) or not torch.equal(checksum(weight), before)
        flat[places] = values
    assert torch.equal(checksum(weight), before)


@pytest.mark.parametrize("columns", [32, 64, 96])
def test_checksum_sees_columns_that_are_negated(columns):
    weight = torch.randn(48, columns)
    before = checksum(weight)
    for pair in itertools.combinations(range(columns), 2):
        changed = weight.clone()
        changed[:, pair] *= -1
        assert not torch.equal(checksum(changed), before)


@pytest.mark.parametrize("kernels", ["0", "1"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(5, 7), (4, 8), (300, 33)])
def test_checksum_of_any_shape(monkeypatch, shape, dtype, kernels):
    monkeypatch.setenv("DOCMT_KERNELS", kernels)
    weight = torch.randn(shape).to(dtype)
    for same in (weight.clone(), torch.cat([weight.new_zeros(1), weight.flatten()])[1:].view(shape)):
        assert same.storage_offset() in (0, 1)
        changed = same.clone()
        changed[-1, -1] += 1
        assert not torch.equal(checksum(changed), checksum(same))


def test_unchanged_weights_are_prepacked_once(monkeypatch):
    made, reorder = [], torch.ops.mkldnn._reorder_linear_weight
    monkeypatch.setattr(torch.ops.mkldnn, "_reorder_linear_weight", lambda *a: made.append(a) or reorder(*a))
    layer, states = Linear(24, 40), torch.randn(3, 24)
    for number in (1, 1, 2):
        if number == 2:
            CHANGES["moving average"](layer)
        check(layer, states)
        assert len(made) == number


def test_training_mode_and_the_end_of_a_model_free_the_memory():
    model = build(past_context=1)
    scoped_logits(model, BATCH)
    assert is_kept(model.lm_head) and not is_kept(model.train().lm_head)
    scoped_logits(model.eval(), BATCH)
    matrix = weakref.ref(scope._kept[model.lm_head][(id(model.lm_head),), for_onednn])
    del model
    gc.collect()
    assert matrix() is None


def test_scope_ends_for_copies_of_the_context():
    """Tasks of asyncio and `asyncio.to_thread` copy the context of the code that starts them, and may outlive it."""
    layer, states = Linear(24, 40), torch.randn(3, 24)
    with torch.no_grad(), packed(layer.eval()):
        for _ in range(2):
            layer(states)
        task = contextvars.copy_context()
    layer.weight.data.mul_(2)
    with torch.no_grad():
        torch.testing.assert_close(task.run(layer, states), plain(layer, states), atol=1e-5, rtol=1e-5)


def test_copies_pickles_and_saved_weights_do_not_contain_it():
    model = build(past_context=1)
    with packed(model):
        for _ in range(2):
            expected = logits(model, BATCH)
        assert is_kept(model.lm_head) and is_kept(model.model.decoder.layers[1].self_attn.q_proj)
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert not any(map(is_kept, other.modules()))
            torch.testing.assert_close(logits(other, BATCH), expected)
            with torch.no_grad():
                other.lm_head.weight.mul_(3)
            assert torch.equal(logits(model, BATCH), expected)
        assert not any(
            "pack" in name for module in model.modules() for name in (*module.__dict__, *module.state_dict())
        )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_process_has_none():
    layer, states = Linear(24, 40), torch.randn(3, 24)
    check(layer, states)
    child = os.fork()
    if child == 0:
        os._exit(int(is_kept(layer)))
    assert os.waitpid(child, 0)[1] == 0 and is_kept(layer)


def test_scope_belongs_to_its_thread():
    layer, states = Linear(24, 40), torch.randn(3, 24)

    def work() -> None:
        with torch.no_grad():
            for _ in range(2):
                layer(states)

    with packed(layer):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert not is_kept(layer)


def test_inference_mode():
    model = build(past_context=1)
    expected = model(**BATCH).logits.detach()
    with torch.inference_mode():
        torch.testing.assert_close(scoped_logits(model, BATCH), expected, atol=1e-5, rtol=1e-5)
        made_inside = build(past_context=1)
        torch.testing.assert_close(scoped_logits(made_inside, BATCH), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(scoped_logits(model, BATCH), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(model(**BATCH).logits, expected)


def test_compiled():
    layer, states = Linear(8, 6), torch.randn(3, 8)
    model = nn.Sequential(layer)
    model.compile(backend="eager")
    with torch.no_grad(), packed(model):
        for _ in range(2):
            torch.testing.assert_close(model(states), plain(layer, states))
    assert not is_kept(layer)
