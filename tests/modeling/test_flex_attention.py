"""FlexAttention of masked attention is sdpa, by torch's reference of it; compiled: test_compiled_training."""

import pytest
import torch
from support.battery import gradients, logits
from support.tiny_models import build, long_batch
from torch.nn.attention import flex_attention
from transformers import masking_utils
from transformers.integrations.flex_attention import WrappedFlexAttention

CASES = {
    "gtransformer": ("gtransformer", {"past_context": 3, "global_layers": 1}),
    "lst": ("lst", {"past_context": 3}),
}


@pytest.fixture
def formula(monkeypatch):
    """FlexAttention and its masks without compilation."""
    make = masking_utils.create_block_mask
    monkeypatch.setattr(WrappedFlexAttention, "__call__", lambda self: flex_attention.flex_attention)
    monkeypatch.setattr(flex_attention, "_warn_once", lambda *args, **kwargs: None)
    monkeypatch.setattr(flex_attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    monkeypatch.setattr(masking_utils, "create_block_mask", lambda _compile, **kwargs: make(**kwargs))


@pytest.fixture
def formula_of_gradients(formula, monkeypatch):
    """With the backward pass, which torch refuses on a CPU; its graph is traced, not compiled."""
    monkeypatch.setattr(flex_attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", False)
    monkeypatch.setattr(flex_attention, "_validate_device", lambda *states: None)
    torch.compiler.reset()


@pytest.mark.parametrize("case", CASES)
def test_scores(formula, case):
    model, batch, found = model_of(case), long_batch(40, 38), []
    for implementation in ("sdpa", "flex_attention"):
        model.set_attn_implementation(implementation)
        found.append(logits(model, batch | {"skip_logits": False})[batch["labels"] != -100])
    torch.testing.assert_close(*found, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_gradients(formula_of_gradients, case):
    model, results = model_of(case), []
    for implementation in ("sdpa", "flex_attention"):
        model.set_attn_implementation(implementation)
        results.append(gradients(model, long_batch(40, 38)))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def model_of(case: str):
    architecture, fields = CASES[case]
    return build(architecture, **fields, encoder_layers=1, decoder_layers=1)


def test_windows_have_none():
    """Their limits cost less than a mask."""
    with pytest.raises(ValueError, match="does not support"):
        build("window", past_context=3).set_attn_implementation("flex_attention")
