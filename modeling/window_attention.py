"""Attention in which every query sees the keys around one position: selected keys, not a mask over all of them."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.attention.flex_attention import BlockMask
from transformers.integrations.flex_attention import compile_friendly_flex_attention

BLOCK = 32  # fewest key positions that queries of one block may be centred on
FLEX_BLOCK = 128  # queries, and keys, of one block of the kernel
GATHERED = 4  # keys gathered query by query per key that there is, up to which blocks do not pay


@dataclass
class Windows:
    """The keys that every query sees: those from `low` to `high`, within `centres` - left and + right.

    `centres`, `low`, `high` (B or 1, I) int64, positions of keys from 0; low > high = no key. `keys` is their number J.
    `computed` are those of `allowed`, `offsets`, `blocks` and `block_mask` that need not be computed.
    """

    centres: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor
    keys: int
    left: int
    right: int
    computed: dict[str, Any] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Keys of a whole window."""
        return self.left + 1 + self.right

    @property
    def block(self) -> int:
        """Key positions that the queries of one block are centred on: more of them for larger windows."""
        return max(BLOCK, -(-self.width // 32) * 16)

    @property
    def allowed(self) -> torch.Tensor:
        """Whether each query sees each key, (B or 1, 1, I, J) bool."""
        if "allowed" in self.computed:
            return self.computed["allowed"]
        positions = torch.arange(self.keys, device=self.low.device)
        return ((positions >= self.low[..., None]) & (positions <= self.high[..., None]))[:, None]

    @property
    def offsets(self) -> torch.Tensor:
        """Position of every key in every query's window, (B or 1, 1, I, J), the nearest one where it is outside."""
        if "offsets" in self.computed:
            return self.computed["offsets"]
        positions = torch.arange(self.keys, device=self.low.device) + self.left
        return (positions - self.centres[..., None]).clamp(0, self.width - 1)[:, None]

    @property
    def blocks(self) -> "Blocks":
        return self.computed["blocks"] if "blocks" in self.computed else Blocks(self)

    @property
    def block_mask(self) -> BlockMask:
        """The windows as FlexAttention takes them."""
        return self.computed["block_mask"] if "block_mask" in self.computed else window_block_mask(self)

    def method(self, is_relative: bool) -> str:
        """How attention to these windows is computed, with or without relative vectors."""
        if "allowed" in self.computed:
            return "dense"
        if "block_mask" in self.computed:
            return "flex"
        if torch.compiler.is_exporting() or self.keys <= self.block + self.width - 1:
            return "dense"
        few = self.centres.shape[1] * self.width <= GATHERED * self.keys
        return "gathered" if few and not is_relative else "blocked"

    def to_layer_inputs(self, name: str, is_relative: bool, implementation: str = "sdpa") -> dict[str, Any]:
        """The windows as tensors for all layers, under names that begin with `name`, with what the method needs."""
        inputs = {name: torch.stack([self.centres, self.low, self.high])}  # (3, B or 1, I)
        if implementation == "flex_attention":
            return inputs | {f"{name}_block_mask": self.block_mask}
        method = "dense" if implementation == "eager" else self.method(is_relative)
        if method == "dense":
            inputs[f"{name}_allowed"] = self.allowed
            if is_relative:
                inputs[f"{name}_offsets"] = self.offsets
        elif method == "blocked":
            inputs |= {f"{name}_{part}": value for part, value in self.blocks.layout.items()}
        return inputs


def windows_around(
    centres: torch.Tensor,
    left: int,
    right: int,
    keys: int,
    first: torch.Tensor | None,
    end: torch.Tensor | None,
    sees_all: bool = False,
) -> Windows:
    """Windows of `left` keys before and `right` after each centre (B or 1, I), of the keys `first` to `end` - 1 (B,).

    None = from the first key, to the last. Centres are positions from 0 to `keys` - 1. `sees_all`: all keys before, and
    after where `right` is not 0.
    """
    left, right = reach(left, keys), reach(right, keys)
    low, high = centres - (keys if sees_all else left), centres + (keys if sees_all and right else right)
    low = low.clamp(min=0 if first is None else first[:, None])
    high = high.clamp(max=keys - 1 if end is None else end[:, None] - 1)
    return Windows(*torch.broadcast_tensors(centres, low, high), keys, left, right)


def reach(window: int, keys: int) -> int:
    """How far a window reaches among `keys` keys; all of it in an exported graph, whose shapes are open."""
    return window if torch.compiler.is_exporting() else min(window, max(keys - 1, 0))


def token_windows(
    tokens: torch.Tensor | None,
    length: int,
    left: int,
    right: int,
    new: int,
    device: torch.device,
    sees_all: bool = False,
) -> tuple[Windows, torch.Tensor | None]:
    """Windows of the last `new` of `length` tokens around themselves; `tokens` (B, length) bool or None = all.

    Where more than one of them is new, there is a window for every key, and padding may be between tokens. The
    second value is the order (B, length) that puts such padding in front, None without such padding. Under
    `torch.compile`, which does not know where padding is, all of it is moved there.
    """
    order = first = end = None
    if tokens is not None:
        count = tokens.sum(dim=1)
        end = (tokens * torch.arange(1, length + 1, device=device)).amax(dim=1)
        first = end - count
        if new > 1 and (torch.compiler.is_compiling() or has_inner_padding(tokens)):
            order = tokens.int().sort(dim=1, stable=True).indices
            first, end = length - count, torch.full_like(count, length)
    start = length - 1 if new == 1 else 0
    centres = torch.arange(start, length, device=device)[None]
    return windows_around(centres, left, right, length, first, end, sees_all), order


def has_inner_padding(tokens: torch.Tensor) -> bool:
    """Whether there is padding between the tokens of a row, (B, length) bool."""
    begins = (tokens.int().diff(dim=1) > 0).sum(dim=1) + tokens[:, 0]
    return bool((begins > 1).any())


def windows_of(layer_inputs: dict[str, Any], name: str, keys: int, window: int, looks_ahead: bool) -> Windows:
    """The output of `Windows.to_layer_inputs` for this number of keys; window and direction as configured."""
    left = reach(window, keys)
    windows = Windows(*layer_inputs[name].unbind(), keys, left, left if looks_ahead else 0)
    for part in ("allowed", "offsets", "block_mask"):
        if f"{name}_{part}" in layer_inputs:
            windows.computed[part] = layer_inputs[f"{name}_{part}"]
    if f"{name}_slot" in layer_inputs:
        windows.computed["blocks"] = Blocks(windows, {part: layer_inputs[f"{name}_{part}"] for part in LAYOUT})
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

    Herold and Ney (2023), section 3.3; `relative` (H, width, Dh) are the vectors r for the positions in a window, from
    left to right, on queries and keys as in Shaw et al. (2018); they need centres that are the queries' own positions.
    A query without keys gets zeros. Time and memory, forward and backward, grow with I + J times the window: windows
    are taken from the keys query by query for a few queries, and block by block for many; where they have a block mask,
    torch's FlexAttention does it. Raises `ValueError` for a `relative` of another width.
    """
    if relative is not None and relative.shape[1] != windows.width:
        raise ValueError(
            f"relative has vectors for {relative.shape[1]} positions, expected one for each of the {windows.width} "
            "positions of a window: it has none beyond the window."
        )
    query = query * query.shape[-1] ** -0.5
    method = windows.method(relative is not None)
    if method == "flex":
        return flex_window_attention(query, key, value, windows, relative, dropout)
    if method == "dense":
        return dense_attention(query, key, value, windows, relative, dropout)[0]
    if method == "gathered":
        return gathered_attention(query, key, value, windows, dropout)
    return BlockedAttention.apply(query, key, value, relative, windows.blocks, dropout)


def dense_attention(query, key, value, windows, relative=None, dropout: float = 0.0):
    """`window_attention` over all keys with a mask, for scaled queries: the output, and weights (B, H, I, J)."""
    scores = query @ key.transpose(2, 3)  # (B, H, I, J)
    if relative is not None:
        own = query @ relative.transpose(1, 2)  # (B, H, I, width)
        scores = scores + own.gather(3, windows.offsets.expand(scores.shape))
    return weigh(scores, windows.allowed, value, dropout)


def gathered_attention(query, key, value, windows, dropout: float = 0.0) -> torch.Tensor:
    """`window_attention` with the keys of every query side by side, (B, H, I, width, Dh), for scaled queries."""
    batch, heads, length, dim = query.shape
    positions = (windows.centres - windows.left)[..., None] + torch.arange(windows.width, device=query.device)
    allowed = (positions >= windows.low[..., None]) & (positions <= windows.high[..., None])  # (B or 1, I, width)
    rows = positions.clamp(0, windows.keys - 1).flatten(1)[:, None]  # (B or 1, 1, I * width)
    rows = rows + windows.keys * torch.arange(batch * heads, device=query.device).view(batch, heads, 1)
    key, value = (
        states.reshape(-1, dim).index_select(0, rows.flatten()).view(batch, heads, length, -1, dim)
        for states in (key, value)
    )
    scores = query[:, :, :, None] @ key.transpose(3, 4)  # (B, H, I, 1, width)
    return weigh(scores, allowed[:, None, :, None], value, dropout)[0].squeeze(3)


def weigh(scores: torch.Tensor, allowed: torch.Tensor, value: torch.Tensor, dropout: float):
    """Softmax over the allowed scores, zero weights without any, and the weighted values."""
    scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    weights = nn.functional.softmax(scores, dim=-1).masked_fill(~allowed, 0.0)
    return nn.functional.dropout(weights, p=dropout) @ value, weights


# By torch's FlexAttention: one kernel, which skips the blocks of keys that no window reaches


def window_block_mask(windows) -> BlockMask:
    """The block mask of windows; every block of queries sees the keys between its lowest and highest one."""
    low, high = windows.low, windows.high  # (B or 1, I)
    rows, queries = low.shape
    count = -(-windows.keys // FLEX_BLOCK)
    empty = low > high
    first = in_blocks(low.masked_fill(empty, windows.keys), windows.keys).amin(dim=-1) // FLEX_BLOCK  # (B or 1, blocks)
    last = in_blocks(high.masked_fill(empty, -1), -1).amax(dim=-1) // FLEX_BLOCK
    needed = (last - first + 1).clamp(min=0)
    indices = (first[..., None] + torch.arange(count, device=low.device)) % count  # those needed in front, each once
    low, high = low.flatten(), high.flatten()

    def seen(row, head, query, key) -> torch.Tensor:
        place = query if rows == 1 else row * queries + query
        return (key >= low[place]) & (key <= high[place])

    return BlockMask.from_kv_blocks(
        needed[:, None].int(),
        indices[:, None].int(),
        BLOCK_SIZE=FLEX_BLOCK,
        mask_mod=seen,
        seq_lengths=(queries, windows.keys),
    )


def in_blocks(limits: torch.Tensor, filling: int) -> torch.Tensor:
    """(B or 1, I) -> (B or 1, blocks, FLEX_BLOCK), filled up after the last one."""
    rest = -limits.shape[1] % FLEX_BLOCK
    return torch.nn.functional.pad(limits, (0, rest), value=filling).unflatten(1, (-1, FLEX_BLOCK))


def flex_window_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    windows,
    relative: torch.Tensor | None = None,
    dropout: float = 0.0,
) -> torch.Tensor:
    """`window_attention` for scaled queries. Raises `ValueError` for dropout, which FlexAttention has not."""
    if dropout:
        raise ValueError(
            f"attn_implementation='flex_attention' has no dropout, got attention_dropout={dropout}: set it to 0.0 in "
            "the configuration, or use 'sdpa'."
        )
    settings = {"block_mask": windows.block_mask, "scale": 1.0}
    if relative is None:
        return compile_friendly_flex_attention(query, key, value, **settings)
    own = query @ relative.transpose(1, 2)  # (B, H, I, width)
    first = (windows.centres - windows.left).flatten()  # the key at the left end of each whole window
    rows, queries = windows.centres.shape
    last = windows.width - 1

    def with_relative(score, row, head, position, key):
        place = position if rows == 1 else row * queries + position
        return score + own[row, head, position, (key - first[place]).clamp(0, last)]

    return compile_friendly_flex_attention(query, key, value, score_mod=with_relative, **settings)


SLAB = {"cpu": 2**18, "cuda": 2**25}  # scores that are held at a time
LAYOUT = ("slot", "query", "low", "high", "group", "one_each", "sorted")


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
                ctx.kept.append(nn.functional.dropout(torch.ones_like(weights, dtype=query.dtype), dropout))
                weights = weights * ctx.kept[-1]
            states = torch.bmm(weights, part.keys(values))
            outputs[:, part.block_slice] = part.without_empty(states).view_as(outputs[:, part.block_slice])
        return blocks.in_order(outputs, query.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        (query, key, value, relative), blocks = ctx.saved_tensors, ctx.blocks
        rows, keys, values, grads = head_rows(query), blocks.padded(key), blocks.padded(value), head_rows(gradient)
        query_grad = rows.new_empty(rows.shape[0], blocks.count, blocks.queries, rows.shape[-1])
        key_grad, value_grad = torch.zeros_like(keys), torch.zeros_like(values)
        relative_grad = None if relative is None else torch.zeros_like(relative, dtype=torch.float)
        for number, part in enumerate(blocks.parts(*query.shape[:2])):
            q, k, g = part.queries(rows), part.keys(keys), part.without_empty(part.queries(grads))
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
            query_grad[:, part.block_slice] = states.view_as(query_grad[:, part.block_slice])
        query_grad = blocks.in_order(query_grad, query.shape)
        key_grad, value_grad = (blocks.unpadded(states, key.shape) for states in (key_grad, value_grad))
        return query_grad, key_grad, value_grad, relative_grad, None, None


def head_rows(states: torch.Tensor) -> torch.Tensor:
    """(B, H, I, Dh) -> (R, I, Dh): a row for each head of each example, R = H * B."""
    return states.transpose(0, 1).flatten(0, 1).contiguous()


class Blocks:
    """Queries sorted into blocks of equal size, each of which sees one run of keys.

    Keys are cut at every m-th position; the queries centred between two cuts are one group, which needs these m keys
    and the window around them: W = m - 1 + width keys. A group has the blocks of n queries that it needs, so their
    number is at most I / n + J / m for any centres; every row gets NB, some of them empty. Where queries are centred
    on themselves, query a of a block is centred on its key a.
    """

    def __init__(self, windows, layout: dict[str, Any] | None = None):
        """Blocks of windows; `layout` comes from other blocks of the same windows, if known."""
        self.windows = windows
        self.stride, self.span = windows.block, windows.block - 1 + windows.width  # m, W
        self.layout = block_layout(windows) if layout is None else layout
        self.slot, self.query, self.low, self.high, self.group, self.one_each, self.sorted = (
            self.layout[part] for part in LAYOUT
        )
        self.count, self.queries = self.query.shape[1:]  # NB, n
        groups = -(-windows.keys // self.stride)
        self.key_rows = groups + -(-(windows.width - 1) // self.stride)  # m keys each, with those after the last group

    def padded(self, states: torch.Tensor) -> torch.Tensor:
        """Keys (B, H, J, Dh) with what the windows need on both sides: (R * key_rows, m * Dh)."""
        batch, heads, length, dim = states.shape
        rows = states.new_zeros(heads, batch, self.key_rows * self.stride, dim)
        rows[:, :, self.windows.left : self.windows.left + length] = states.transpose(0, 1)
        return rows.view(-1, self.stride * dim)

    def unpadded(self, rows: torch.Tensor, shape: torch.Size) -> torch.Tensor:
        batch, heads, length, dim = shape
        rows = rows.view(heads, batch, -1, dim)[:, :, self.windows.left : self.windows.left + length]
        return rows.transpose(0, 1)  # (B, H, J, Dh)

    def in_order(self, states: torch.Tensor, shape: torch.Size) -> torch.Tensor:
        """The output of blocks, (R, NB, n, Dh), by query: (B, H, I, Dh)."""
        batch, heads, length, dim = shape
        states = states.view(heads, batch, -1, dim)
        if self.sorted:
            return states[:, :, :length].transpose(0, 1)
        slot = self.slot[None, :, :, None].expand(heads, batch, length, dim)
        return states.gather(2, slot).transpose(0, 1)

    def parts(self, batch: int, heads: int):
        """The blocks, split to fit into memory."""
        scores = heads * batch * self.queries * (self.span + 1)
        step = max(1, SLAB.get(self.group.device.type, SLAB["cuda"]) // scores)
        for start in range(0, self.count, step):
            yield Part(self, slice(start, min(start + step, self.count)), batch, heads)


def block_layout(windows) -> dict[str, Any]:
    """Place of each query in its block, and the keys of its window, counted from the block's first.

    `slot` (B or 1, I), of every query; `query`, `low`, `high` (B or 1, NB, n), of every slot; `group` (B or 1, NB), of
    every block; `one_each` and `sorted`, whether, as in self-attention, every group has one block and queries keep
    their order.
    """
    centres, stride = windows.centres, windows.block
    rows, queries = centres.shape
    groups = -(-windows.keys // stride)
    size = stride * queries // windows.keys + (queries != windows.keys)  # n
    group = centres // stride  # (B or 1, I)
    order = group.argsort(dim=1, stable=True)
    sorted_group = group.gather(1, order)
    counts = group.new_zeros(rows, groups).scatter_add(1, group, torch.ones_like(group))
    needed = (counts + size - 1) // size
    rank = torch.arange(queries, device=group.device) - (counts.cumsum(1) - counts).gather(1, sorted_group)
    block = (needed.cumsum(1) - needed).gather(1, sorted_group) + rank // size
    slot = block * size + rank % size
    compiling = torch.compiler.is_compiling()  # then shapes are those of the worst case
    count = groups + queries // size if compiling else int(needed.sum(1).max())  # NB
    start = sorted_group * stride - windows.left  # the key that a query's block begins with
    low, high = (limit.gather(1, order) - start for limit in (windows.low, windows.high))
    empty, shape = slot.new_zeros(rows, count * size), (rows, count, size)
    layout = {
        "slot": torch.empty_like(slot).scatter(1, order, slot),
        "query": empty.scatter(1, slot, order).view(shape),
        "low": (empty + 1).scatter(1, slot, low).view(shape),
        "high": empty.scatter(1, slot, high).view(shape),
        "group": empty[:, :count].scatter(1, block, sorted_group),
    }
    for name, states in (("one_each", layout["group"]), ("sorted", layout["slot"])):
        in_turn = torch.arange(states.shape[1], device=states.device)
        layout[name] = not compiling and bool((states == in_turn).all())
    return layout


class Part:
    """Some blocks of all rows: N = R * number of blocks."""

    def __init__(self, blocks: Blocks, block_slice: slice, batch: int, heads: int):
        self.blocks, self.block_slice, self.batch, self.heads = blocks, block_slice, batch, heads
        row = torch.arange(heads * batch, device=blocks.group.device).view(heads, batch, 1)
        self.query = (blocks.query[:, block_slice].flatten(1) + row * blocks.slot.shape[1]).flatten()  # (N * n,)
        self.key = (blocks.group[:, block_slice] + row * blocks.key_rows).flatten()  # (N,)
        low, high = (limit[:, block_slice, :, None] for limit in (blocks.low, blocks.high))
        column = torch.arange(blocks.span, device=low.device)
        self.hidden = (column < low) | (column > high)  # (B or 1, nb, n, W)
        self.empty = low > high  # (B or 1, nb, n, 1)

    def queries(self, rows: torch.Tensor) -> torch.Tensor:
        """The states of the blocks' queries, (R, I, Dh) -> (N, n, Dh)."""
        dim = rows.shape[-1]
        return rows.view(-1, dim).index_select(0, self.query).view(-1, self.blocks.queries, dim)

    def keys(self, rows: torch.Tensor) -> torch.Tensor:
        """The padded states of the blocks' keys, (N, W, Dh)."""
        dim = rows.shape[1] // self.blocks.stride
        span, step = self.blocks.span * dim, rows.shape[1]
        count = (rows.numel() - span) // step + 1
        return rows.as_strided((count, span), (step, 1)).index_select(0, self.key).view(-1, self.blocks.span, dim)

    def add_keys(self, rows: torch.Tensor, states: torch.Tensor) -> None:
        """Add what blocks give to their keys, (N, W, Dh), to the padded ones."""
        for number, chunk in enumerate(states.flatten(1).split(rows.shape[1], dim=1)):
            if self.blocks.one_each:
                at = slice(self.block_slice.start + number, self.block_slice.stop + number)
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
        """(N, n, width), by position in the window of each query, to (N, n, W), by key of the block.

        Row a moves by a to the right: rows of W + 1 are read as rows of W. What was not in a window is arbitrary.
        """
        count, queries, width = own.shape
        rows = own.new_zeros(count, queries, self.blocks.span + 1)
        rows[..., :width] = own
        return rows.view(count, -1)[:, : queries * self.blocks.span].view(count, queries, -1)

    def unskewed(self, scores: torch.Tensor) -> torch.Tensor:
        """(N, n, W), by key of the block, to (N, n, width), by position in the window of each query."""
        rows = nn.functional.pad(scores.flatten(1), (0, scores.shape[1]))
        return rows.view(*scores.shape[:2], -1)[..., : self.blocks.windows.width]
