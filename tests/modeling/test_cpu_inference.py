"""Packed linear layers: nn.Linear's results, and never those of weights that are gone."""

import copy
import pickle

import pytest
import torch
from support.battery import logits
from support.tiny_models import EOS, build
from torch import nn

from hf_docmt.modeling import cpu_inference
from hf_docmt.modeling.cpu_inference import Linear

BATCH = {"input_ids": torch.tensor([[7, 8, 9, EOS]]), "decoder_input_ids": torch.tensor([[2, 9, 8]])}


def plain(layer: nn.Linear, states: torch.Tensor) -> torch.Tensor:
    return states @ layer.weight.T + (layer.bias if layer.bias is not None else 0)


def check(layer: nn.Linear, states: torch.Tensor, packed: bool = True) -> None:
    """The result is that of the weights as they are now, and it came from where it should."""
    with torch.no_grad():
        torch.testing.assert_close(layer(states), plain(layer, states), atol=1e-5, rtol=1e-5)
    assert ("_packed" in layer.__dict__) == packed


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


def test_packed_only_where_there_is_nothing_to_learn():
    layer, states = Linear(8, 8), torch.randn(2, 8)
    layer(states)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert layer(states).dtype == torch.bfloat16
    with torch.no_grad():
        Linear.forward(layer.double(), states.double())
    assert "_packed" not in layer.__dict__
    check(layer.float(), states)


def test_small_fp32_weights_are_not_packed(monkeypatch):
    monkeypatch.setattr(cpu_inference, "SMALLEST", 64)
    check(Linear(8, 8), torch.randn(2, 8))
    check(Linear(8, 7), torch.randn(2, 8), packed=False)


def test_few_rows_pass_packed_weights_by(monkeypatch):
    """They leave the copy for the many rows that come next, unless the weights are to learn."""
    monkeypatch.setattr(cpu_inference, "LEAST_WORK", 3 * 64)
    layer = Linear(8, 8)
    check(layer, torch.randn(2, 8), packed=False)
    check(layer, torch.randn(3, 8))
    check(layer, torch.randn(2, 8))
    layer(torch.randn(2, 8))
    assert "_packed" not in layer.__dict__
    with torch.no_grad():
        layer.bfloat16()(torch.randn(1, 8).bfloat16())
        assert "_packed" not in layer.__dict__
        layer(torch.randn(2, 8).bfloat16())
        assert "_packed" in layer.__dict__


def test_another_bias():
    layer, states, bias = Linear(8, 6, bias=False), torch.randn(3, 8), torch.randn(6)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            torch.testing.assert_close(layer(states, bias), plain(layer, states) + bias, atol=1e-5, rtol=1e-5)


def test_bf16_weights():
    layer, states = Linear(64, 32), torch.randn(4, 64)
    exact = plain(layer, states).detach()
    with torch.no_grad():
        found = layer.bfloat16()(states.bfloat16())
    assert found.dtype == torch.bfloat16 and "_packed" in layer.__dict__
    torch.testing.assert_close(found.float(), exact, atol=0.05, rtol=0.05)


def double_in_place(layer):
    with torch.no_grad():
        layer.weight.mul_(2)


def new_bias_values(layer):
    with torch.no_grad():
        layer.bias.copy_(torch.randn_like(layer.bias))


def other_parameter(layer):
    layer.weight = nn.Parameter(torch.randn_like(layer.weight))


def other_state(layer):
    layer.load_state_dict(Linear(24, 40).state_dict())


def other_state_assigned(layer):
    layer.load_state_dict(Linear(24, 40).state_dict(), assign=True)


def other_data(layer):
    layer.weight.data = torch.randn_like(layer.weight)


def there_and_back(layer):
    layer.bfloat16().float()


def training_step(layer, **settings):
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, **settings)
    layer(torch.randn(2, 24)).square().sum().backward()
    optimizer.step()


def fused_training_step(layer):
    training_step(layer, fused=True)


def fused_training_step_after_a_look(layer):
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=True)
    layer(torch.randn(2, 24)).square().sum().backward()
    with torch.no_grad():
        layer(torch.randn(2, 24))
    optimizer.step()
    optimizer.zero_grad()


def moving_average(layer):
    """As averages of weights are kept: through `.data`, of which torch keeps no count."""
    layer.weight.data.mul_(0.5).add_(torch.randn(40, 24), alpha=0.5)


CHANGES = (
    double_in_place,
    moving_average,
    new_bias_values,
    other_parameter,
    other_state,
    other_state_assigned,
    other_data,
    there_and_back,
    training_step,
    fused_training_step,
    fused_training_step_after_a_look,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_follows_the_weights(change):
    layer, states = Linear(24, 40), torch.randn(3, 24)
    check(layer, states)
    before = layer.weight.detach().clone(), layer.bias.detach().clone()
    change(layer)
    layer.zero_grad()
    assert not torch.equal(before[0], layer.weight) or not torch.equal(before[1], layer.bias)
    check(layer, states)


def test_what_stands_around_a_projection_is_called():
    """Hooks, and adapters as peft puts them in place of q_proj, also where weights could be packed."""
    attention = build().model.encoder.layers[0].self_attn
    states, calls = torch.randn(1, 3, attention.q_proj.in_features), []
    with torch.no_grad():
        before = attention(states)[0]
        assert "_packed" in attention.__dict__
        attention.q_proj.register_forward_hook(lambda *_: calls.append(1))
        torch.testing.assert_close(attention(states)[0], before)
        attention.k_proj = nn.Sequential(attention.k_proj, Linear(16, 16))
        adapted = attention(states)[0]
    assert calls == [1, 1] and not torch.allclose(adapted, before, atol=1e-4)
    torch.testing.assert_close(adapted, attention(states)[0])


def test_weights_at_an_old_address():
    layer, states = Linear(24, 40), torch.randn(3, 24)
    layer.weight = nn.Parameter(torch.randn(40, 24))
    check(layer, states)
    address = layer.weight.data_ptr()
    layer.weight = None
    kept = []
    for _ in range(50):
        kept.append(torch.randn(40, 24))
        if kept[-1].data_ptr() == address:
            break
    layer.weight = nn.Parameter(kept[-1])
    check(layer, states)


def test_model_follows_a_fused_training_step():
    """Projections that are packed together, too."""
    model = build(past_context=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
    before = logits(model, BATCH)
    for _ in range(2):
        model(**BATCH, labels=BATCH["decoder_input_ids"]).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found = logits(model, BATCH)
        torch.testing.assert_close(found, model(**BATCH).logits.detach(), atol=1e-5, rtol=1e-5)
        assert (found - before).abs().max() > 1e-3
        before = found


def test_copies_and_pickles_are_made_without_it():
    model = build(past_context=1)
    expected = logits(model, BATCH)
    packed = [name for name, module in model.named_modules() if "_packed" in module.__dict__]
    assert "lm_head" in packed and "model.decoder.layers.1.self_attn" in packed
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert not any("_packed" in module.__dict__ for module in other.modules())
        assert torch.equal(logits(other, BATCH), expected)
        with torch.no_grad():
            other.lm_head.weight.mul_(3)
        assert torch.equal(logits(model, BATCH), expected)
    assert not any("packed" in name for name in model.state_dict())


def test_inference_mode():
    model = build(past_context=1)
    expected = model(**BATCH).logits.detach()
    with torch.inference_mode():
        torch.testing.assert_close(model(**BATCH).logits, expected, atol=1e-5, rtol=1e-5)
        made_inside = build(past_context=1)
        torch.testing.assert_close(made_inside(**BATCH).logits, expected, atol=1e-5, rtol=1e-5)


def test_compiled():
    layer, states = Linear(8, 6), torch.randn(3, 8)
    compiled = torch.compile(layer, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(states), plain(layer, states))
    with torch.no_grad():
        torch.testing.assert_close(compiled(states), plain(layer, states))
    assert "_packed" not in layer.__dict__


def test_decoding_with_averaged_weights():
    """Every weight changed through `.data`, as averages are kept, is seen by the next `generate`."""
    model = build()
    inputs = {"input_ids": BATCH["input_ids"], "max_new_tokens": 6, "num_beams": 2, "do_sample": False}
    settings = inputs | {"return_dict_in_generate": True, "output_scores": True, "no_repeat_ngram_size": 2}
    model.generate(**settings)
    with torch.no_grad():
        for parameter in model.model.decoder.layers.parameters():
            parameter.data.mul_(0.7)
    found = torch.stack(model.generate(**settings).scores)
    expected = torch.stack(copy.deepcopy(model).generate(**settings).scores)
    torch.testing.assert_close(found, expected)
