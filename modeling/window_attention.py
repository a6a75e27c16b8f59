"""Attention in which every query sees the keys around one place: selected keys, not a mask over all of them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

BLOCK = 32  # fewest places of keys that queries of one block may be centred on
SLAB = {"cpu": 2**18, "cuda": 2**25}  # scores that are held at a time
GATHERED = 4  # keys gathered query by query per key that there is, up to which blocks do not pay


@dataclass
class Windows:
    """The keys that every query sees: those from `low` to `high`, within `centres` - left and + right.

    `centres`, `low`, `high` (B or 1, I) int64, places of keys from 0; low > high = no key. `keys` is their number J.
    """

    centres: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor
    keys: int
    left: int
    right: int

    @property
    def width(self) -> int:
        """Keys of a whole window."""
        return self.left + 1 + self.right

    @property
    def block(self) -> int:
        """Places of keys that the queries of one block are centred on: more of them for larger windows."""
        return max(BLOCK, -(-self.width // 32) * 16)

    @cached_property
    def allowed(self) -> torch.Tensor:
        """Which query sees which key, (B or 1, 1, I, J) bool."""
        places = torch.arange(self.keys, device=self.low.device)
        return ((places >= self.low[..., None]) & (places <= self.high[..., None]))[:, None]

    @cached_property
    def offsets(self) -> torch.Tensor:
        """Place of every key in every query's window, (B or 1, 1, I, J), the nearest place where it is outside."""
        places = torch.arange(self.keys, device=self.low.device) + self.left
        return (places - self.centres[..., None]).clamp(0, self.width - 1)[:, None]

    @cached_property
    def blocks(self) -> "Blocks":
        return Blocks(self)

    def method(self, is_relative: bool) -> str:
        """How attention to these windows is computed, with or without relative vectors."""
        if self.keys <= self.block + self.width - 1:
            return "dense"
        few = self.centres.shape[1] * self.width <= GATHERED * self.keys
        return "gathered" if few and not is_relative else "blocked"

    def to_layer_inputs(self, name: str, is_relative: bool, is_dense: bool = False) -> dict[str, Any]:
        """The windows as tensors for all layers, under names that begin with `name`, with what the method needs."""
        inputs = {name: torch.stack([self.centres, self.low, self.high])}  # (3, B or 1, I)
        method = "dense" if is_dense else self.method(is_relative)
        if method == "dense":
            inputs[f"{name}_allowed"] = self.allowed
            if is_relative:
                inputs[f"{name}_offsets"] = self.offsets
        elif method == "blocked":
            inputs |= {f"{name}_{part}": value for part, value in self.blocks.layout.items()}
        return inputs


def windows_around(
    centres: torch.Tensor, left: int, right: int, keys: int, first: torch.Tensor | None, end: torch.Tensor | None
) -> Windows:
    """Windows of `left` keys before and `right` after each centre (B or 1, I), of the keys `first` to `end` - 1 (B,).

    None = from the first key, to the last. Centres are places from 0 to `keys` - 1.
    """
    left, right = min(left, max(keys - 1, 0)), min(right, max(keys - 1, 0))
    low, high = centres - left, centres + right
    low = low.clamp(min=0 if first is None else first[:, None])
    high = high.clamp(max=keys - 1 if end is None else end[:, None] - 1)
    return Windows(*torch.broadcast_tensors(centres, low, high), keys, left, right)


def windows_of(layer_inputs: dict[str, Any], name: str, keys: int, window: int, looks_ahead: bool) -> Windows:
    """What `Windows.to_layer_inputs` made, with so many keys; `window` and direction are the configuration's."""
    left = min(window, max(keys - 1, 0))
    windows = Windows(*layer_inputs[name].unbind(), keys, left, left if looks_ahead else 0)
    for part in ("allowed", "offsets"):
        if f"{name}_{part}" in layer_inputs:
            setattr(windows, part, layer_inputs[f"{name}_{part}"])  # in place of computing the cached property
    if f"{name}_slot" in layer_inputs:
        windows.blocks = Blocks(windows, {part: layer_inputs[f"{name}_{part}"] for part in LAYOUT})
    return windows


def window_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    windows: Windows,
    relative: torch.Tensor | None = None,
    dropout: float = 0.0,
) -> torch.Tensor:
    """softmax(q (k + r)^T / sqrt(d)) v over the keys of each query's window: (B, H, I, Dh), (B, H, J, Dh) -> query's.

    Herold and Ney (2023), section 3.3; `relative` (H, width, Dh) are the vectors r for the places of a window from left
    to right, on queries and keys as in Shaw et al. (2018); they need centres that are the queries' own places. A query
    without keys gets zeros. Time and memory, forward and backward, grow with I + J times the window: windows are taken
    from the keys query by query for a few queries, and block by block for many. Raises `ValueError` for a `relative`
    of another width.
    """
    if relative is not None and relative.shape[1] != windows.width:
        raise ValueError(
            f"relative has vectors for {relative.shape[1]} places, expected one for each of the {windows.width} places "
            "of a window: there are none beyond it."
        )
    query = query * query.shape[-1] ** -0.5
    method = windows.method(relative is not None)
    if method == "dense":
        return dense_attention(query, key, value, windows, relative, dropout)[0]
    if method == "gathered":
        return gathered_attention(query, key, value, windows, dropout)
    return BlockedAttention.apply(query, key, value, relative, windows.blocks, dropout)


def dense_attention(query, key, value, windows, relative=None, dropout: float = 0.0):
    """The same over all keys with a mask, for scaled queries: what is attended, and weights (B, H, I, J)."""
    scores = query @ key.transpose(2, 3)  # (B, H, I, J)
    if relative is not None:
        own = query @ relative.transpose(1, 2)  # (B, H, I, width)
        scores = scores + own.gather(3, windows.offsets.expand(scores.shape))
    return weigh(scores, windows.allowed, value, dropout)


def gathered_attention(query, key, value, windows, dropout: float = 0.0) -> torch.Tensor:
    """The same with the keys of every query side by side, (B, H, I, width, Dh), for scaled queries."""
    batch, heads, length, dim = query.shape
    places = (windows.centres - windows.left)[..., None] + torch.arange(windows.width, device=query.device)
    allowed = (places >= windows.low[..., None]) & (places <= windows.high[..., None])  # (B or 1, I, width)
    rows = places.clamp(0, windows.keys - 1).flatten(1)[:, None]  # (B or 1, 1, I * width)
    rows = rows + windows.keys * torch.arange(batch * heads, device=query.device).view(batch, heads, 1)
    key, value = (
        states.reshape(-1, dim).index_select(0, rows.flatten()).view(batch, heads, length, -1, dim)
        for states in (key, value)
    )
    scores = query[:, :, :, None] @ key.transpose(3, 4)  # (B, H, I, 1, width)
    return weigh(scores, allowed[:, None, :, None], value, dropout)[0].squeeze(3)


def weigh(scores: torch.Tensor, allowed: torch.Tensor, value: torch.Tensor, dropout: float):
    """Softmax over the allowed scores, no weight where there is none, and the weighted values."""
    scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    weights = nn.functional.softmax(scores, dim=-1).masked_fill(~allowed, 0.0)
    return nn.functional.dropout(weights, p=dropout) @ value, weights


class BlockedAttention(Function):
    """Window attention over blocks, some of them at a time; the backward pass computes the weights again.

    Inside, heads and batch are one dimension R = H * B, head first.
    """

    @staticmethod
    def forward(ctx, query, key, value, relative, blocks, dropout):
        """Scaled queries (B, H, I, Dh), keys and values (B, H, J, Dh), vectors (H, width, Dh) -> (B, H, I, Dh)."""
        ctx.save_for_backward(query, key, value, relative)
        ctx.blocks, ctx.kept = blocks, []
        rows, keys, values = head_rows(query), blocks.padded(key), blocks.padded(value)
        outputs = rows.new_empty(rows.shape[0], blocks.count, blocks.queries, rows.shape[-1])
        for part in blocks.parts(*query.shape[:2]):
            weights = part.weights(part.queries(rows), part.keys(keys), relative)
            if dropout:
                ctx.kept.append((torch.rand_like(weights, dtype=torch.float) >= dropout) / (1 - dropout))
                weights = weights * ctx.kept[-1]
            states = torch.bmm(weights, part.keys(values))
            outputs[:, part.place] = part.without_empty(states).view_as(outputs[:, part.place])
        return blocks.in_order(outputs, query.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        (query, key, value, relative), blocks = ctx.saved_tensors, ctx.blocks
        rows, keys, values, given = head_rows(query), blocks.padded(key), blocks.padded(value), head_rows(gradient)
        query_grad = rows.new_empty(rows.shape[0], blocks.count, blocks.queries, rows.shape[-1])
        key_grad, value_grad = torch.zeros_like(keys), torch.zeros_like(values)
        relative_grad = None if relative is None else torch.zeros_like(relative, dtype=torch.float)
        for number, part in enumerate(blocks.parts(*query.shape[:2])):
            q, k, g = part.queries(rows), part.keys(keys), part.without_empty(part.queries(given))
            weights = part.weights(q, k, relative)
            kept = ctx.kept[number] if ctx.kept else None
            part.add_keys(value_grad, torch.bmm((weights if kept is None else weights * kept).transpose(1, 2), g))
            weight_grad = torch.bmm(g, part.keys(values).transpose(1, 2))
            if kept is not None:
                weight_grad = weight_grad * kept
            score_grad = torch.ops.aten._softmax_backward_data(weight_grad, weights, -1, weights.dtype)
            part.add_keys(key_grad, torch.bmm(score_grad.transpose(1, 2), q))
            states = torch.bmm(score_grad, k)
            if relative is not None:
                own = part.unskewed(score_grad).view(relative.shape[0], -1, relative.shape[1])  # (H, B*nb*n, width)
                states += torch.bmm(own, relative).view_as(states)
                relative_grad += torch.bmm(own.transpose(1, 2), q.view(relative.shape[0], -1, q.shape[-1]))
            query_grad[:, part.place] = states.view_as(query_grad[:, part.place])
        query_grad = blocks.in_order(query_grad, query.shape)
        key_grad, value_grad = (blocks.unpadded(states, key.shape) for states in (key_grad, value_grad))
        return query_grad, key_grad, value_grad, relative_grad, None, None


def head_rows(states: torch.Tensor) -> torch.Tensor:
    return states.transpose(0, 1).flatten(0, 1).contiguous()  # (B, H, I, Dh) -> (R, I, Dh)


class Blocks:
    """Queries sorted into blocks of equal size, each of which sees one run of keys.

    Keys are cut at every m-th place, and the queries centred between two cuts are one group, which needs the m places
    and the window around them: W = m - 1 + width keys. A group has as many blocks of n queries as it needs, so there
    are at most I / n + J / m of them for any centres; every row gets NB, some of them empty. Where queries are centred
    on their own places, query a of a block is centred on its place a.
    """

    def __init__(self, windows: Windows, layout: dict[str, Any] | None = None):
        """Of windows, or of windows whose `layout` is known from other blocks of the same windows."""
        self.windows = windows
        self.places, self.span = windows.block, windows.block - 1 + windows.width  # m, W
        self.layout = block_layout(windows) if layout is None else layout
        self.slot, self.query, self.low, self.high, self.group, self.in_turn, self.sorted = (
            self.layout[part] for part in LAYOUT
        )
        self.count, self.queries = self.query.shape[1:]  # NB, n
        groups = -(-windows.keys // self.places)
        self.key_rows = groups + -(-(windows.width - 1) // self.places)  # m keys each, with those after the last group

    def padded(self, states: torch.Tensor) -> torch.Tensor:
        """Keys (B, H, J, Dh) with what the windows need on both sides: (R * key_rows, m * Dh)."""
        batch, heads, length, dim = states.shape
        rows = states.new_zeros(heads, batch, self.key_rows * self.places, dim)
        rows[:, :, self.windows.left : self.windows.left + length] = states.transpose(0, 1)
        return rows.view(-1, self.places * dim)

    def unpadded(self, rows: torch.Tensor, shape: torch.Size) -> torch.Tensor:
        batch, heads, length, dim = shape
        rows = rows.view(heads, batch, -1, dim)[:, :, self.windows.left : self.windows.left + length]
        return rows.transpose(0, 1)  # (B, H, J, Dh)

    def in_order(self, states: torch.Tensor, shape: torch.Size) -> torch.Tensor:
        """What blocks computed, (R, NB, n, Dh), by query: (B, H, I, Dh)."""
        batch, heads, length, dim = shape
        states = states.view(heads, batch, -1, dim)
        if self.sorted:
            return states[:, :, :length].transpose(0, 1)
        slot = self.slot[None, :, :, None].expand(heads, batch, length, dim)
        return states.gather(2, slot).transpose(0, 1)

    def parts(self, batch: int, heads: int):
        """The blocks, as many at a time as there is room for."""
        scores = heads * batch * self.queries * (self.span + 1)
        step = max(1, SLAB.get(self.group.device.type, SLAB["cuda"]) // scores)
        for start in range(0, self.count, step):
            yield Part(self, slice(start, min(start + step, self.count)), batch, heads)


LAYOUT = ("slot", "query", "low", "high", "group", "in_turn", "sorted")


def block_layout(windows: Windows) -> dict[str, Any]:
    """Which query stands where in which block, and the keys of its window, counted from the block's first.

    `slot` (B or 1, I), of every query; `query`, `low`, `high` (B or 1, NB, n), of every slot; `group` (B or 1, NB), of
    every block; `in_turn` and `sorted`, whether, as in self-attention, every group is a block and queries stand in
    their order.
    """
    centres, places = windows.centres, windows.block
    rows, queries = centres.shape
    groups = -(-windows.keys // places)
    size = places * queries // windows.keys + (queries != windows.keys)  # n
    group = centres // places  # (B or 1, I)
    order = group.argsort(dim=1, stable=True)
    sorted_group = group.gather(1, order)
    counts = group.new_zeros(rows, groups).scatter_add(1, group, torch.ones_like(group))
    needed = (counts + size - 1) // size
    rank = torch.arange(queries, device=group.device) - (counts.cumsum(1) - counts).gather(1, sorted_group)
    block = (needed.cumsum(1) - needed).gather(1, sorted_group) + rank // size
    slot = block * size + rank % size
    count = int(needed.sum(1).max())  # NB
    start = sorted_group * places - windows.left  # the key that a query's block begins with
    low, high = (limit.gather(1, order) - start for limit in (windows.low, windows.high))
    empty, shape = slot.new_zeros(rows, count * size), (rows, count, size)
    layout = {
        "slot": torch.empty_like(slot).scatter(1, order, slot),
        "query": empty.scatter(1, slot, order).view(shape),
        "low": (empty + 1).scatter(1, slot, low).view(shape),
        "high": empty.scatter(1, slot, high).view(shape),
        "group": empty[:, :count].scatter(1, block, sorted_group),
    }
    layout["in_turn"] = bool((layout["group"] == torch.arange(count, device=group.device)).all())
    layout["sorted"] = bool((layout["slot"] == torch.arange(queries, device=group.device)).all())
    return layout


class Part:
    """Some blocks of all rows: N = R * number of blocks."""

    def __init__(self, blocks: Blocks, place: slice, batch: int, heads: int):
        self.blocks, self.place, self.batch, self.heads = blocks, place, batch, heads
        row = torch.arange(heads * batch, device=blocks.group.device).view(heads, batch, 1)
        self.query = (blocks.query[:, place].flatten(1) + row * blocks.slot.shape[1]).flatten()  # (N * n,)
        self.key = (blocks.group[:, place] + row * blocks.key_rows).flatten()  # (N,)
        low, high = (limit[:, place, :, None] for limit in (blocks.low, blocks.high))
        column = torch.arange(blocks.span, device=low.device)
        self.hidden = (column < low) | (column > high)  # (B or 1, nb, n, W)
        self.empty = low > high  # (B or 1, nb, n, 1)

    def queries(self, rows: torch.Tensor) -> torch.Tensor:
        """Of states (R, I, Dh) those of the blocks' queries, (N, n, Dh)."""
        dim = rows.shape[-1]
        return rows.view(-1, dim).index_select(0, self.query).view(-1, self.blocks.queries, dim)

    def keys(self, rows: torch.Tensor) -> torch.Tensor:
        """Of padded states those of the blocks' keys, (N, W, Dh)."""
        dim = rows.shape[1] // self.blocks.places
        span, step = self.blocks.span * dim, rows.shape[1]
        count = (rows.numel() - span) // step + 1
        return rows.as_strided((count, span), (step, 1)).index_select(0, self.key).view(-1, self.blocks.span, dim)

    def add_keys(self, rows: torch.Tensor, states: torch.Tensor) -> None:
        """Add what blocks give to their keys, (N, W, Dh), to the padded ones."""
        for number, chunk in enumerate(states.flatten(1).split(rows.shape[1], dim=1)):
            if self.blocks.in_turn:
                at = slice(self.place.start + number, self.place.stop + number)
                rows.unflatten(0, (self.heads * self.batch, -1))[:, at, : chunk.shape[1]] += chunk.unflatten(
                    0, (self.heads * self.batch, -1)
                )
            else:
                rows[:, : chunk.shape[1]].index_add_(0, self.key + number, chunk)

    def by_row(self, states: torch.Tensor) -> torch.Tensor:
        return states.view(self.heads, self.batch, -1, *states.shape[1:])  # (H, B, nb, ...)

    def without_empty(self, states: torch.Tensor) -> torch.Tensor:
        """States (N, n, Dh) with zeros where a query sees no key."""
        self.by_row(states).masked_fill_(self.empty, 0.0)
        return states

    def weights(self, queries: torch.Tensor, keys: torch.Tensor, relative: torch.Tensor | None) -> torch.Tensor:
        """Attention weights, (N, n, W)."""
        scores = torch.bmm(queries, keys.transpose(1, 2))
        if relative is not None:
            own = torch.bmm(queries.view(self.heads, -1, queries.shape[-1]), relative.transpose(1, 2))
            scores += self.skewed(own.view(*queries.shape[:2], -1))  # from (H, B*nb*n, width)
        self.by_row(scores).masked_fill_(self.hidden, torch.finfo(scores.dtype).min)
        return nn.functional.softmax(scores, dim=-1)

    def skewed(self, own: torch.Tensor) -> torch.Tensor:
        """(N, n, width), by place in the window of each query, to (N, n, W), by key of the block.

        Row a moves a places to the right: rows of W + 1 are read as rows of W. What was not in a window is arbitrary.
        """
        count, queries, width = own.shape
        rows = own.new_zeros(count, queries, self.blocks.span + 1)
        rows[..., :width] = own
        return rows.view(count, -1)[:, : queries * self.blocks.span].view(count, queries, -1)

    def unskewed(self, scores: torch.Tensor) -> torch.Tensor:
        """(N, n, W), by key of the block, to (N, n, width), by place in the window of each query."""
        rows = nn.functional.pad(scores.flatten(1), (0, scores.shape[1]))
        return rows.view(*scores.shape[:2], -1)[..., : self.blocks.windows.width]
