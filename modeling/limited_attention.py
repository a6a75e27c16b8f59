"""Attention in which every query sees a run of keys alone: a window around a position, or its own sentence."""

from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

BLOCK = 64  # queries that read one run of keys together
FEW_KEYS = 256  # up to which all scores under a mask are faster
SCORES = {"cpu": 2**18, "cuda": 2**25}  # that are computed at a time
PARTS = ("limits", "tokens", "places", "allowed", "offsets", "starts", "spans")


def limit_inputs(
    name: str,
    low: torch.Tensor,
    high: torch.Tensor,
    keys: int,
    is_dense: bool = False,
    tokens: torch.Tensor | None = None,
    places: torch.Tensor | None = None,
    origin: torch.Tensor | None = None,
    width: int = 0,
) -> dict[str, torch.Tensor]:
    """Tensors for all layers, under names that begin with `name`: what `limited_attention` needs of its limits.

    A query sees the keys from column `low` to `high`, (B or 1, I) int64; low > high = none. `tokens` (B, keys) bool are
    those that are keys; None = all. For relative vectors, `places` (B or 1, keys) are the positions of keys, `origin`
    (B or 1, I) those at the left end of each query's window of `width`. `is_dense`: all scores, under a mask.
    """
    limits = torch.stack(torch.broadcast_tensors(low, high, low if origin is None else origin))  # (3, B or 1, I)
    if is_dense or torch.compiler.is_compiling() or keys <= FEW_KEYS:
        columns = torch.arange(keys, device=low.device)[None]
        inputs = {"allowed": allowed_keys(limits, columns, tokens)[:, None]}  # (B or 1, 1, I, J)
        if places is not None:
            inputs["offsets"] = relative_offsets(limits, places, width)[:, None]  # (B or 1, 1, I, J)
    else:
        inputs = {"limits": limits, "tokens": tokens, "places": places}
        inputs["starts"], inputs["spans"] = block_keys(low, high, keys)
    return {f"{name}_{part}": value for part, value in inputs.items() if value is not None}


def limits_of(layer_inputs: dict[str, Any], name: str) -> dict[str, Any]:
    """The output of `limit_inputs` among the inputs of a layer."""
    return {part: layer_inputs[f"{name}_{part}"] for part in PARTS if f"{name}_{part}" in layer_inputs}


def limited_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    limits: dict[str, Any],
    relative: torch.Tensor | None = None,
    dropout: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """softmax(q (k + r)^T / sqrt(d)) v over the keys that each query sees, zeros where it sees none.

    Queries (B, H, I, Dh), keys and values (B, H, J, Dh) -> (B, H, I, Dh), and weights (B, H, I, J) where all scores are
    computed, otherwise None. `relative` (H, width, Dh) are the vectors r for the positions in a window, from left to
    right, on queries and keys as in Shaw et al. (2018). Time and memory, forward and backward, grow with the keys seen:
    a block of queries reads the run of keys that its queries see.
    """
    query = query * query.shape[-1] ** -0.5
    if "allowed" in limits:
        return attend(query, key, value, limits["allowed"], limits.get("offsets"), relative, dropout)
    arguments = (query, key, value, limits, relative, dropout)
    if torch.is_grad_enabled() and query.requires_grad:  # the backward pass computes the weights again
        return checkpoint(attend_blocks, *arguments, use_reentrant=False, preserve_rng_state=dropout > 0), None
    return attend_blocks(*arguments), None


def attend(query, key, value, allowed, offsets=None, relative=None, dropout: float = 0.0):
    """The attention of scaled queries (B, H, ..., I, Dh) to keys (B, H, ..., J, Dh), and weights (B, H, ..., I, J).

    `allowed` and `offsets`, rows of `relative` (H, ..., width, Dh), are (B or 1, 1, ..., I, J).
    """
    scores = query @ key.transpose(-2, -1)
    if relative is not None:
        own = query @ relative.transpose(-2, -1)  # (B, H, ..., I, width)
        scores = scores + own.gather(-1, offsets.expand(scores.shape))
    weights = nn.functional.softmax(scores.masked_fill_(~allowed, torch.finfo(scores.dtype).min), dim=-1)
    output = nn.functional.dropout(weights, p=dropout) @ value
    return output.masked_fill(~allowed.any(dim=-1, keepdim=True), 0.0), weights


def allowed_keys(limits: torch.Tensor, columns: torch.Tensor, tokens: torch.Tensor | None = None) -> torch.Tensor:
    """Whether queries with `limits` (3, B or 1, ..., I) see the keys in `columns` (B or 1, ..., J)."""
    columns = columns[..., None, :]
    seen = (columns >= limits[0, ..., None]) & (columns <= limits[1, ..., None])
    return seen if tokens is None else seen & tokens[..., None, :]


def relative_offsets(limits: torch.Tensor, places: torch.Tensor, width: int) -> torch.Tensor:
    """Position of every key in every query's window, (..., I, J), the nearest one where it is outside."""
    return (places[..., None, :] - limits[2, ..., None]).clamp(0, width - 1)


def block_keys(low: torch.Tensor, high: torch.Tensor, keys: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The first key that each block of queries sees, (B or 1, blocks), and on the CPU how many it needs, (blocks,)."""
    is_empty = low > high
    first = in_blocks(low.masked_fill(is_empty, keys), keys).amin(dim=2)
    last = in_blocks(high.masked_fill(is_empty, -1), -1).amax(dim=2)
    return first, (last - first + 1).clamp(min=1).amax(dim=0).cpu()


def in_blocks(states: torch.Tensor, filling: int = 0) -> torch.Tensor:
    """(B or 1, I, ...) -> (B or 1, blocks, BLOCK or fewer, ...), filled up after the last one."""
    length, others = states.shape[1], [0, 0] * (states.dim() - 2)
    size = min(BLOCK, max(length, 1))
    return nn.functional.pad(states, (*others, 0, -length % size), value=filling).unflatten(1, (-1, size))


def attend_blocks(query, key, value, limits: dict, relative: torch.Tensor | None, dropout: float) -> torch.Tensor:
    """`limited_attention` of scaled queries, some blocks at a time."""
    batch, heads, length, dim = query.shape
    queries = in_blocks(query.flatten(0, 1)).unflatten(0, (batch, heads))  # (B, H, blocks, n, Dh)
    groups = block_groups(limits["spans"].tolist(), queries[:, :, 0].numel() // dim, query.device.type)
    counts = [count for count, _ in groups]
    columns = [
        start[..., None] + torch.arange(span, device=start.device)  # (B or 1, G, span)
        for start, (_, span) in zip(limits["starts"].split(counts, dim=1), groups)
    ]
    index = torch.cat([some.flatten(1) for some in columns], dim=1).clamp(max=key.shape[2] - 1)  # (B or 1, N)
    rows = torch.arange(batch * heads, device=index.device).view(batch, heads, 1) * key.shape[2]
    rows, sizes = (rows + index[:, None]).flatten(), [some[0].numel() for some in columns]
    key, value = (
        states.reshape(-1, dim).index_select(0, rows).view(batch, heads, -1, dim).split(sizes, dim=2)
        for states in (key, value)
    )
    own = in_blocks(limits["limits"].flatten(0, 1), 0).unflatten(0, (3, -1))  # (3, B or 1, blocks, n)
    outputs = []
    for q, k, v, column, limit in zip(queries.split(counts, dim=2), key, value, columns, own.split(counts, dim=2)):
        tokens, places = (of_columns(limits[name], column) if name in limits else None for name in ("tokens", "places"))
        allowed, settings = allowed_keys(limit, column, tokens)[:, None], {}
        if relative is not None:
            offsets = relative_offsets(limit, places, relative.shape[1])[:, None]
            settings = {"offsets": offsets, "relative": relative[:, None]}
        k, v = (states.unflatten(2, column.shape[1:]) for states in (k, v))  # (B, H, G, span, Dh)
        outputs.append(attend(q, k, v, allowed, **settings, dropout=dropout)[0])
    return torch.cat(outputs, dim=2).flatten(2, 3)[:, :, :length]


def block_groups(spans: list[int], queries: int, device: str) -> list[tuple[int, int]]:
    """Blocks that are computed together, (number, keys of each), so that their scores fit into memory."""
    groups: list[tuple[int, int]] = []
    for span in spans:
        count, longest = groups[-1] if groups else (0, 0)
        longest = max(longest, span)
        if groups and queries * longest * (count + 1) <= SCORES.get(device, SCORES["cuda"]):
            groups[-1] = (count + 1, longest)
        else:
            groups.append((1, span))
    return groups


def of_columns(states: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Values (B or 1, J) of keys in these columns (B or 1, G, span), of the last key beyond it: (B or 1, G, span)."""
    rows = max(len(states), len(columns))
    index = columns.flatten(1).clamp(max=states.shape[1] - 1).expand(rows, -1)
    return states.expand(rows, -1).gather(1, index).unflatten(1, columns.shape[1:])
