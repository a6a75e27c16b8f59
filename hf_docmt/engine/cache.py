"""The cache of our search: a row of every source for all of its beams, and self-attention that is written in place."""

import copy

import torch
from transformers import DynamicCache, EncoderDecoderCache
from transformers.cache_utils import DynamicLayer


class DecodingCache(EncoderDecoderCache):
    """Cache of our search: a row of self-attention for every beam, and of attention to a source for every source."""

    def __init__(self) -> None:
        super().__init__(DynamicCache(), DynamicCache())
        self.self_attention_cache.layer_class_to_replicate = BeamLayer

    def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
        self.self_attention_cache.reorder_cache(beam_idx)

    def batch_repeat_interleave(self, repeats: int) -> None:
        self.self_attention_cache.batch_repeat_interleave(repeats)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep these rows, where every source has one row."""
        self.self_attention_cache.batch_select_indices(indices)
        self.cross_attention_cache.batch_select_indices(indices)

    def of_rows(self, sources: torch.Tensor, targets: torch.Tensor) -> "DecodingCache":
        """A new cache of these sources (S,) and targets (R,)."""
        made = copy.copy(self)
        stores = (self.self_attention_cache, targets), (self.cross_attention_cache, sources)
        made.self_attention_cache, made.cross_attention_cache = (of_rows(*store) for store in stores)
        return made

    def keep(self, sources: int, length: int) -> None:
        """Keep the row of the first beam of every source, with its first `length` tokens."""
        keys = self.self_attention_cache.layers[0].keys
        rows = torch.arange(0, keys.shape[0], keys.shape[0] // sources, device=keys.device)
        self.self_attention_cache.batch_select_indices(rows)
        self.self_attention_cache.crop(length - self.get_seq_length())


def of_rows(cache: DynamicCache, rows: torch.Tensor) -> DynamicCache:
    """A cache of these rows (R,) of another one."""
    made = copy.copy(cache)
    made.layers = [copy.copy(layer) for layer in cache.layers]
    made.batch_select_indices(rows)
    return made


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
        if self.is_initialized:
            self.adopt(self.keys[indices], self.values[indices])
