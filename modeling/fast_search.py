"""A faster search: a cache of beams that is written in place, and the best tokens, found block by block.

Scores of beams are added to the best tokens alone, where transformers goes through the vocabulary several times.
"""

import torch
from transformers.cache_utils import DynamicLayer

from .cpu_kernels import best_of

BLOCK = 128  # neighbouring tokens, of which only the best is looked at first


class BeamLayer(DynamicLayer):
    """Self-attention keys and values of one layer, written and reordered in place.

    Stored time first, (T, B, H*Dh), so that a step writes one contiguous row and a reordering of beams copies rows of
    the tokens alone that they do not share; `keys` and `values` are views (B, H, T, Dh) of what is filled.
    """

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.dtype, self.device = key_states.dtype, key_states.device
        self.adopt(key_states[:, :, :0], value_states[:, :, :0], room=key_states.shape[2] + 31)
        self.is_initialized = True

    def adopt(self, keys: torch.Tensor, values: torch.Tensor, room: int = 0) -> None:
        """Take over (B, H, T, Dh) keys and values, into buffers with room for more tokens."""
        batch, heads, length, dim = keys.shape
        self.heads = heads
        self.origins = torch.empty(0, batch, dtype=torch.long, device=keys.device)
        self.buffers = [keys.new_empty(length + room, batch, heads * dim) for _ in range(2)]
        for buffer, states in zip(self.buffers, (keys, values)):
            buffer[:length] = states.permute(2, 0, 1, 3).flatten(2)  # (T, B, H*Dh)
        self.show(length)

    def show(self, length: int) -> None:
        self.keys, self.values = (
            buffer[:length].unflatten(2, (self.heads, -1)).permute(1, 2, 0, 3) for buffer in self.buffers
        )

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs):
        """Append (B, H, T_new, Dh) keys and values; returns all of them, (B, H, T, Dh)."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        past, new = self.keys.shape[2], key_states.shape[2]
        if past + new > self.buffers[0].shape[0]:
            self.adopt(self.keys, self.values, room=past + new)
        for buffer, states in zip(self.buffers, (key_states, value_states)):
            buffer[past : past + new].unflatten(2, (self.heads, -1)).copy_(states.permute(2, 0, 1, 3))
        self.show(past + new)
        return self.keys, self.values

    def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
        """Take over the rows `beam_idx` (B,), of the tokens that a row and the new one do not share.

        `origins` (T, B) is, by token and row, the row in which states were computed since rows or tokens last changed.
        """
        length, batch = self.get_seq_length(), len(beam_idx)
        if not length:
            return
        new = torch.arange(batch, device=beam_idx.device).expand(length - len(self.origins), batch)
        before = torch.cat([self.origins, new])  # (T, B)
        self.origins = before[:, beam_idx]
        tokens, rows = (self.origins != before).nonzero(as_tuple=True)  # (N,) each
        sources, targets = tokens * batch + beam_idx[rows], tokens * batch + rows
        for buffer in self.buffers:
            states = buffer.flatten(0, 1)  # (T*B, H*Dh)
            states.index_copy_(0, targets, states.index_select(0, sources))

    def crop(self, tokens_to_remove: int) -> None:
        super().crop(tokens_to_remove)
        self.show(self.keys.shape[2])
        self.origins = self.origins[: self.keys.shape[2]]

    def batch_repeat_interleave(self, repeats: int) -> None:
        if self.is_initialized:
            self.adopt(self.keys.repeat_interleave(repeats, 0), self.values.repeat_interleave(repeats, 0), room=32)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        self.adopt(self.keys[indices], self.values[indices])


def best_token(scores: torch.Tensor) -> torch.Tensor:
    """`argmax` of scores (R, V), (R,): the first of the largest, or of those that are no numbers."""
    best = best_of(scores, 1)
    if best is not None:
        return best[1][:, 0]
    size = scores.shape[1]
    if size < 2 * BLOCK:
        return scores.argmax(dim=1)
    blocks = scores[:, : size // BLOCK * BLOCK].unflatten(1, (-1, BLOCK))
    rest = scores[:, -BLOCK:].amax(dim=1, keepdim=True)  # what is behind the last block, and some of it again
    block = torch.cat([blocks.amax(dim=2), rest], dim=1).argmax(dim=1)  # (R,)
    start = (block * BLOCK).clamp(max=size - BLOCK)[:, None]
    return start[:, 0] + scores.gather(1, start + torch.arange(BLOCK, device=scores.device)).argmax(dim=1)


def best_continuations(log_probs: torch.Tensor, scores: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """`topk` of log-probabilities (B * beams, V) plus the scores of their beams (B, beams), over beams and tokens.

    Returns values and indices into (beams * V), (B, count) each. Where values are equal, their order is that of torch.
    """
    best = best_of(log_probs, count + 1, scores)
    values, indices, are_tied = best or (*best_by_blocks(log_probs, scores, count + 1), True)
    if not are_tied:
        return values[:, :-1], indices[:, :-1]
    tied = ~(values[:, :-1] > values[:, 1:]).all(dim=1)  # or no numbers
    values, indices = values[:, :-1], indices[:, :-1]
    if tied.any():
        values, indices = values.clone(), indices.clone()
        every = log_probs.view(*scores.shape, -1)[tied] + scores[tied][..., None]  # (tied, beams, V)
        values[tied], indices[tied] = every.flatten(1).topk(count)
    return values, indices


def best_by_blocks(log_probs: torch.Tensor, scores: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """As `best_continuations`, but for the order of equal ones."""
    batch, beams = scores.shape
    vocab_size = log_probs.shape[1]
    if vocab_size // BLOCK < count:
        return (log_probs.view(batch, beams, vocab_size) + scores[..., None]).flatten(1).topk(count)
    values, tokens = best_tokens(log_probs, count)  # (B * beams, count)
    values = values.view(batch, beams, -1) + scores[..., None]
    tokens = tokens.view(batch, beams, -1) + torch.arange(beams, device=scores.device)[:, None] * vocab_size
    values, order = values.flatten(1).topk(count)
    return values, tokens.flatten(1).gather(1, order)


def best_tokens(scores: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """`topk` of scores (R, V), but for the order of equal ones: values and indices, (R, count) each."""
    rows, whole = scores.shape[0], scores.shape[1] // BLOCK * BLOCK
    blocks = scores[:, :whole].unflatten(1, (-1, BLOCK))  # (R, V / BLOCK, BLOCK)
    best = blocks.amax(dim=2).topk(count, sorted=False).indices  # a better token is in one of the best blocks
    values = blocks[torch.arange(rows, device=best.device)[:, None], best].flatten(1)  # (R, count * BLOCK)
    indices = (best[..., None] * BLOCK + torch.arange(BLOCK, device=best.device)).flatten(1)
    if whole < scores.shape[1]:
        rest = torch.arange(whole, scores.shape[1], device=best.device)
        values, indices = torch.cat([values, scores[:, whole:]], 1), torch.cat([indices, rest.expand(rows, -1)], 1)
    values, order = values.topk(count)
    return values, indices.gather(1, order)
