"""Attention within gathered sentences against attention to all tokens with a mask."""

import pytest
import torch
from torch.nn import functional as F

from hf_docmt.modeling.segments import sentence_index
from hf_docmt.modeling.sentence_stack import gathered_sentences, group_sizes, latest_sentence, sentence_attention

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


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_gathered_is_masked(case, is_causal):
    probability, tokens = CASES[case]
    index = sentence_index(random_ids(probability), SEP)
    states = [torch.randn(3, HEADS, 60, DIM, requires_grad=True) for _ in range(3)]
    found = sentence_attention(*states, gathered_sentences(index, tokens), is_causal)
    expected = masked_attention(*states, index, tokens, is_causal)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    gradient = torch.randn_like(found)  # for what is no token, too: it goes nowhere
    for one, other in zip(*(torch.autograd.grad(output, states, gradient) for output in (found, expected))):
        torch.testing.assert_close(one, other.nan_to_num(0.0), atol=1e-5, rtol=0)
    with torch.no_grad():
        torch.testing.assert_close(sentence_attention(*states, gathered_sentences(index, tokens), is_causal), found)


def test_groups():
    """Lengths differ by a quarter or by eight at most; a long sentence stands alone."""
    found = group_sizes([1000, 100, 76, 75, 74, 20, 13, 12, 11, 2, 1])
    assert found == [(1, 1000), (3, 100), (1, 74), (3, 20), (1, 11), (2, 2)]
    assert group_sizes([5] * 7) == [(7, 5)]
    lengths = torch.randint(1, 60, (500,)).sort(descending=True).values.tolist()
    assert sum(rows * length for rows, length in group_sizes(lengths)) < 1.25 * sum(lengths)


def test_dropout_is_the_same_in_the_backward_pass():
    """The output is linear in the values: with their gradient g it is g times values, if the same weights are left."""
    index = sentence_index(random_ids(0.2), SEP)
    query, key, value = (torch.randn(3, HEADS, 60, DIM, requires_grad=True) for _ in range(3))
    sentences = gathered_sentences(index)
    output = sentence_attention(query, key, value, sentences, dropout=0.5)
    assert (output - sentence_attention(query, key, value, sentences)).abs().max() > 0.1
    torch.rand(10)
    total = (output * torch.arange(60.0)[:, None, None]).sum()
    gradient = torch.autograd.grad(total, value)[0]
    torch.testing.assert_close((gradient * value).sum(), total, atol=1e-2, rtol=1e-4)


@pytest.mark.parametrize("tokens", [None, LEFT, HOLES])
def test_latest_sentence(tokens):
    """The keys of the last token's sentence, of every row; all of them where every row is in its first sentence."""
    index = sentence_index(random_ids(0.1), SEP)
    seen = index == index[:, -1:]
    if tokens is not None:
        seen &= tokens.bool()
    found = latest_sentence(index, tokens)
    assert found["end_key"] == 60 and found["first_key"] == seen.nonzero()[:, 1].min() > 0
    assert torch.equal(found["sentence_mask"][:, 0, 0], seen[:, found["first_key"] :])
    assert latest_sentence(index[:1])["sentence_mask"] is None
    assert latest_sentence(torch.zeros_like(index), tokens) == {}
