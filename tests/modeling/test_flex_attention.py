"""FlexAttention of masked attention is sdpa, by torch's reference of it; compiled: test_compiled_training."""

import pytest
import torch
from support.battery import gradients, logits
from support.tiny_models import build, long_batch
from torch.nn.attention import flex_attention
from transformers import masking_utils
from transformers.integrations.flex_attention import WrappedFlexAttention

from hf_docmt.modeling.window_attention import window_attention, windows_around

CASES = {
    "window narrow": ("window", {"past_context": 3, "window": 4}),
    "window wide": ("window", {"past_context": 3, "window": 140, "alignment": "sentence"}),
    "window sees all": ("window", {"past_context": 3, "window": 4, "sees_all": True}),
    "window absolute": ("window", {"past_context": 3, "window": 10, "position": "absolute"}),
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
@pytest.mark.parametrize("case", ["gtransformer", "lst", "window narrow"])
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


@pytest.mark.parametrize("window", [3, 200])
def test_blocks_of_the_mask(window):
    """A block that a query sees a key of is never left out, one beside all windows is; whatever the centres."""
    centres = torch.randint(0, 700, (2, 300)).sort(dim=1).values
    centres[1] = centres[1].roll(100)
    windows = windows_around(centres, window, window, 700, torch.tensor([0, 130]), torch.tensor([700, 131]))
    allowed = torch.nn.functional.pad(windows.allowed, (0, 68, 0, 84))  # to multiples of 128
    needed = allowed.view(2, 1, 3, 128, 6, 128).any(dim=5).any(dim=3)
    blocks = windows.block_mask.to_dense().bool()
    assert torch.equal(blocks & needed, needed) and not blocks[1, 0, :, 2:].any()
    run = blocks.int().diff(dim=-1).clamp(min=0).sum(dim=-1) + blocks[..., 0]
    assert run.max() == 1 and blocks.sum() == sum(between(row) for row in needed.flatten(0, 2))


def between(needed: torch.Tensor) -> int:
    """Blocks from the first needed one to the last."""
    places = needed.nonzero()
    return int(places[-1] - places[0] + 1) if len(places) else 0


def test_queries_without_keys(formula):
    """They get zeros, as without FlexAttention."""
    query, key, value = torch.randn(3, 1, 2, 20, 4)
    windows = windows_around(torch.arange(20)[None], 2, 2, 20, torch.tensor([0]), torch.tensor([10]))
    expected = window_attention(query, key, value, windows)
    windows.computed["block_mask"] = windows.block_mask
    found = window_attention(query, key, value, windows)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    assert not found[:, :, 12:].any()


def test_dropout_is_refused():
    model = build("window", past_context=3, window=4, attention_dropout=0.1).train()
    model.set_attn_implementation("flex_attention")
    with pytest.raises(ValueError, match="no dropout, got attention_dropout=0.1: set it to 0.0"):
        model(**long_batch(40, 38))
