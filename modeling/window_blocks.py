"""Window attention in blocks: queries that are centred close to each other share one run of keys."""

from typing import Any

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

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
    and the window around them: W = m - 1 + width keys. A group has as many blocks of n queries as it needs, so there
    are at most I / n + J / m of them for any centres; every row gets NB, some of them empty. Where queries are centred
    on themselves, query a of a block is centred on its key a.
    """

    def __init__(self, windows, layout: dict[str, Any] | None = None):
        """Of windows, or of windows whose `layout` is known from other blocks of the same windows."""
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


def block_layout(windows) -> dict[str, Any]:
    """Which query stands where in which block, and the keys of its window, counted from the block's first.

    `slot` (B or 1, I), of every query; `query`, `low`, `high` (B or 1, NB, n), of every slot; `group` (B or 1, NB), of
    every block; `one_each` and `sorted`, whether, as in self-attention, every group has one block and queries stand in
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
        """Of states (R, I, Dh) those of the blocks' queries, (N, n, Dh)."""
        dim = rows.shape[-1]
        return rows.view(-1, dim).index_select(0, self.query).view(-1, self.blocks.queries, dim)

    def keys(self, rows: torch.Tensor) -> torch.Tensor:
        """Of padded states those of the blocks' keys, (N, W, Dh)."""
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
