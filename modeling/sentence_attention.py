"""Attention within sentences: the tokens of every sentence are gathered into a row of their own, without a mask.

Each token has one slot among the rows, so that gathering and its gradient are two copies by index. Sentences of about
the same length form a group, whose rows are as long as its longest one. So a long sentence costs one attention of its
length, whatever stands beside it.
"""

import torch
from torch import nn
from torch.autograd import Function
from torch.utils.checkpoint import checkpoint

from .layers import without_cudnn

NAMES = ("slot_tokens", "token_slots", "empty_slots", "hidden_tokens", "group_sizes")
FEW_TOKENS = 8  # by which the lengths in a group may differ, where a quarter of the longest one is less


def gathered_sentences(index: torch.Tensor, tokens: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
    """Where the tokens of every sentence stand when these are gathered, for `sentence_attention`.

    `index` (B, T), the sentence of all tokens, from 0 to T; `tokens` (B, T), 1 = token, None = all. Returns
    `slot_tokens` (R,), the token in every slot, counted over the batch; `token_slots` (B * T,), the slot of every one;
    `empty_slots` (E,), those that are filled up; `hidden_tokens` (H,), those that are none; `group_sizes` (G, 2), on
    the CPU, the number of rows of each group and their length. An empty dict where no row has a second sentence.
    """
    batch, length = index.shape
    device = index.device
    most = length + 1  # sentences of a row
    runs = (index + most * torch.arange(batch, device=device)[:, None]).flatten()  # (B * T,), a number a sentence
    hidden = torch.empty(0, dtype=torch.long, device=device)
    shown = torch.arange(batch * length, device=device)
    if tokens is not None:
        flat = tokens.flatten().bool()
        shown, hidden = flat.nonzero()[:, 0], (~flat).nonzero()[:, 0]
    numbers, sentence, lengths = runs[shown].unique_consecutive(return_inverse=True, return_counts=True)
    if not (numbers[1:] // most == numbers[:-1] // most).any():
        return {}
    order = lengths.argsort(descending=True, stable=True)
    sizes = group_sizes(lengths[order].tolist())
    rows, row_lengths = torch.tensor(sizes, device=device).unbind(1)
    row_ends = row_lengths.repeat_interleave(rows).cumsum(0)  # of every sentence in this order, its row's last slot + 1
    first_slot = torch.empty_like(row_ends).scatter(0, order, row_ends - row_lengths.repeat_interleave(rows))
    first_token = lengths.cumsum(0) - lengths
    slots = first_slot[sentence] + torch.arange(len(shown), device=device) - first_token[sentence]
    slot_tokens = runs.new_full((int(row_ends[-1]),), -1).scatter(0, slots, shown)
    token_slots = torch.zeros_like(runs).scatter(0, shown, slots)
    empty = (slot_tokens < 0).nonzero()[:, 0]
    return dict(zip(NAMES, (slot_tokens.clamp(min=0), token_slots, empty, hidden, torch.tensor(sizes)), strict=True))


def group_sizes(lengths: list[int]) -> list[tuple[int, int]]:
    """Groups of sentences of about the same length, as (number, longest), from their lengths in descending order."""
    groups: list[tuple[int, int]] = []
    for length in lengths:
        count, longest = groups[-1] if groups else (0, 0)
        if count and length >= longest - max(FEW_TOKENS, longest // 4):
            groups[-1] = (count + 1, longest)
        else:
            groups.append((1, length))
    return groups


def sentence_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    sentences: dict[str, torch.Tensor],
    is_causal: bool = False,
    dropout: float = 0.0,
) -> torch.Tensor:
    """softmax(QK^T / sqrt(d)) V within every sentence: (B, H, T, Dh) -> (B, T, H, Dh), zeros for what is no token.

    For the backward pass nothing is kept but the arguments; the rest is computed again.
    """
    layout = tuple(sentences[name] for name in NAMES)
    if torch.is_grad_enabled() and query.requires_grad:
        settings = {"use_reentrant": False, "preserve_rng_state": dropout > 0}
        return checkpoint(attend_gathered, query, key, value, *layout, is_causal, dropout, **settings)
    return attend_gathered(query, key, value, *layout, is_causal, dropout)


def attend_gathered(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    slot_tokens: torch.Tensor,
    token_slots: torch.Tensor,
    empty_slots: torch.Tensor,
    hidden_tokens: torch.Tensor,
    group_sizes: torch.Tensor,
    is_causal: bool,
    dropout: float,
) -> torch.Tensor:
    """`sentence_attention`, with what it computes on the way kept for the backward pass."""
    batch, heads, length, dim = query.shape
    gathered = [
        Rearranged.apply(
            states.transpose(1, 2).reshape(-1, heads * dim), slot_tokens, token_slots, empty_slots, hidden_tokens
        )  # (R, H * Dh)
        for states in (query, key, value)
    ]
    filled = None
    if not is_causal and len(empty_slots):  # the empty slots of a row are behind its tokens
        filled = torch.ones_like(slot_tokens, dtype=torch.bool).index_fill(0, empty_slots, False)
    outputs, start = [], 0
    for rows, row_length in group_sizes.tolist():
        end = start + rows * row_length
        q, k, v = (states[start:end].view(rows, row_length, heads, dim).transpose(1, 2) for states in gathered)
        mask = None if filled is None else filled[start:end].view(rows, 1, 1, row_length)
        with without_cudnn(q):
            output = nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=is_causal
            )
        outputs.append(output.transpose(1, 2).reshape(-1, heads * dim))
        start = end
    joined = outputs[0] if len(outputs) == 1 else torch.cat(outputs)  # (R, H * Dh)
    states = Rearranged.apply(joined, token_slots, slot_tokens, hidden_tokens, empty_slots)
    return states.view(batch, length, heads, dim)


class Rearranged(Function):
    """Rows of a matrix in another order, to places that may be empty; the gradient takes them the way back.

    `source` (N,) is the row that each new one is taken from, `place` (M,) where each old one went; both may be anything
    for the new rows `empty` and the old rows `unused`.
    """

    @staticmethod
    def forward(ctx, states, source, place, empty, unused):
        """(M, D) -> (N, D), zeros in `empty`."""
        ctx.save_for_backward(source, place, empty, unused)
        return states.index_select(0, source).index_fill_(0, empty, 0.0)

    @staticmethod
    def backward(ctx, gradient):
        source, place, empty, unused = ctx.saved_tensors
        gradient = Rearranged.apply(gradient, place, source, unused, empty)
        return gradient, None, None, None, None


def latest_sentence(index: torch.Tensor, tokens: torch.Tensor | None = None) -> dict:
    """The keys that the last token of every row sees in its sentence, among those from the first one that is seen.

    `index` (B, T), the `sentence_index` of all tokens; `tokens` (B, T), 1 = token, None = all. Returns `first_key`, the
    column of that one, `end_key`, T, and `sentence_mask` (B, 1, 1, T - first), None = all. An empty dict where every
    token of every row is seen.
    """
    seen = index == index[:, -1:]  # (B, T)
    if tokens is not None:
        seen = seen & tokens.bool()
    first = int(seen.any(dim=0).int().argmax())
    mask = seen[:, first:]
    if bool(mask.all()):
        mask = None
    if first == 0 and (mask is None if tokens is None else torch.equal(seen, tokens.bool())):
        return {}
    mask = mask if mask is None else mask[:, None, None]
    return {"first_key": first, "end_key": index.shape[1], "sentence_mask": mask}
