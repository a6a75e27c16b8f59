"""Attention within the limits of sentences against attention to all tokens with a mask."""

import pytest
import torch
from torch.nn import functional as F

from hf_docmt.modeling import limited_attention as limited
from hf_docmt.modeling.segments import sentence_index
from hf_docmt.modeling.sentence_stack import sentence_limits

SEP, HEADS, DIM = 4, 2, 3
LEFT, HOLES = torch.ones(3, 60, dtype=torch.long), torch.ones(3, 60, dtype=torch.long)
LEFT[1, :7], LEFT[2, :59] = 0, 0
HOLES[0, 20:33], HOLES[1, ::3], HOLES[2, 50:] = 0, 0, 0
CASES = {  # name: probability of a separator, tokens (1 = token)
    "short": (0.5, None),  # many of one token, a separator alone
    "long": (0.1, None),
    "left": (0.2, LEFT),
    "right": (0.2, LEFT.flip(1)),
    "holes": (0.2, HOLES),
    "empty_row": (0.2, torch.tensor([[1] * 60, [0] * 60, [1] * 60])),
    "one_long": (0.0, None),  # beside a row of sentences of three tokens
}


def random_ids(probability: float) -> torch.Tensor:
    torch.manual_seed(3)
    ids = torch.where(torch.rand(3, 60) < probability, SEP, 7)
    if not probability:
        ids[1, ::3] = SEP
    return ids


def masked_attention(query, key, value, index, tokens, is_causal):
    """The same with a mask over all tokens: (B, T, H, Dh); zeros for what is no token."""
    tokens = torch.ones_like(index) if tokens is None else tokens
    mask = (index[:, :, None] == index[:, None]) & tokens.bool()[:, None]  # (B, T, T)
    mask = mask.tril() if is_causal else mask
    states = F.scaled_dot_product_attention(query, key, value, mask[:, None]).transpose(1, 2)
    return torch.where(tokens.bool()[:, :, None, None], states, 0.0)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for name, value in {"FEW_KEYS": 0, "BLOCK": 16, "SCORES": {"cpu": 10_000, "cuda": 10_000}}.items():
        monkeypatch.setattr(limited, name, value)


def sentence_attention(states, index, tokens=None, is_causal=False, dropout=0.0):
    tokens = None if tokens is None else tokens.bool()
    inputs = limited.limit_inputs("own", *sentence_limits(index, is_causal), index.shape[1], tokens=tokens)
    return limited.limited_attention(*states, limited.limits_of(inputs, "own"), dropout=dropout)[0].transpose(1, 2)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_limited_is_masked(case, is_causal):
    probability, tokens = CASES[case]
    index = sentence_index(random_ids(probability), SEP)
    states = [torch.randn(3, HEADS, 60, DIM, requires_grad=True) for _ in range(3)]
    kept = torch.ones(3, 60, dtype=torch.bool) if tokens is None else tokens.bool()
    found = sentence_attention(states, index, tokens, is_causal).where(kept[..., None, None], 0.0)
    expected = masked_attention(*states, index, tokens, is_causal)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    gradient = torch.randn_like(found)
    for one, other in zip(*(torch.autograd.grad(output, states, gradient) for output in (found, expected))):
        torch.testing.assert_close(one, other.nan_to_num(0.0), atol=1e-5, rtol=0)


def test_dropout_is_the_same_in_the_backward_pass():
    """The output is linear in the values: with their gradient g it is g times values, if the same weights are left."""
    index = sentence_index(random_ids(0.2), SEP)
    states = [torch.randn(3, HEADS, 60, DIM, requires_grad=True) for _ in range(3)]
    output = sentence_attention(states, index, dropout=0.5)
    assert (output - sentence_attention(states, index)).abs().max() > 0.1
    torch.rand(10)
    total = (output * torch.arange(60.0)[:, None, None]).sum()
    gradient = torch.autograd.grad(total, states[2])[0]
    torch.testing.assert_close((gradient * states[2]).sum(), total, atol=1e-2, rtol=1e-4)
