"""The cache of decoding: self-attention by beam, every attention to a source once a source, under a name."""

import torch
from transformers import DynamicCache, EncoderDecoderCache, PreTrainedConfig, StaticCache
from transformers.cache_utils import DynamicLayer


class BeamLayer(DynamicLayer):
    """Self-attention keys and values of one layer, written and reordered in place.

    Stored time first, (T, B, H*Dh), so that a step writes one contiguous row and a reordering of beams copies whole
    rows, of the tokens alone that beams do not share; `keys` and `values` are views (B, H, T, Dh) of what is filled.
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
        """Take over the rows `beam_idx` (B,), where a row and the new one have not a token's states in common.

        `origins` (T, B) tells by token and row in which row they were computed, since rows or tokens last changed.
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
        self.adopt(self.keys.repeat_interleave(repeats, 0), self.values.repeat_interleave(repeats, 0), room=32)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        self.adopt(self.keys[indices], self.values[indices])

    def select_tokens(self, rows: torch.Tensor, columns: torch.Tensor) -> None:
        """Of the rows (N,) keep the tokens in these columns (N, T), in this order."""
        batch, length = self.keys.shape[0], columns.shape[1]
        index = (columns.T * batch + rows).flatten()  # (T*N,)
        kept = [buffer.flatten(0, 1).index_select(0, index) for buffer in self.buffers]
        for number, states in enumerate(kept):
            self.buffers[number] = states.new_empty(length + 32, len(rows), states.shape[1])
            self.buffers[number][:length] = states.view(length, len(rows), -1)  # (T, N, H*Dh)
        self.origins = rows.new_empty(0, len(rows))
        self.show(length)

    def join(self, other: "BeamLayer") -> None:
        """Take the rows of another layer behind its own; shorter ones are filled up in front."""
        length = max(self.keys.shape[2], other.keys.shape[2])
        pairs = ((self.keys, other.keys), (self.values, other.values))
        self.adopt(*(torch.cat([filled_up(one, length, front=True) for one in pair]) for pair in pairs), room=32)


class BeamCache(DynamicCache):
    """A `DynamicCache` of `BeamLayer`."""

    def __init__(self) -> None:
        super().__init__()
        self.layer_class_to_replicate = BeamLayer


class DecodingCache(EncoderDecoderCache):
    """Cache of generation: one row of self-attention for every beam, one of cross-attention for every source.

    Beams of a source share its keys and values, so reordering beams leaves them alone. Each kind of source has a store
    of its own: `source`, the encoder states (transformers knows it as `cross_attention_cache`), and those that an
    architecture names, such as `context` and `memory`.
    """

    can_have_holes = True  # whether tokens of self-attention that the mask leaves out may stay in it
    can_join = True  # whether further rows may come in between

    def __init__(self) -> None:
        super().__init__(BeamCache(), DynamicCache())

    def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
        self.self_attention_cache.reorder_cache(beam_idx)

    def batch_repeat_interleave(self, repeats: int) -> None:
        self.self_attention_cache.batch_repeat_interleave(repeats)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep these rows, where every source has one row."""
        self.self_attention_cache.batch_select_indices(indices)
        self.select_sources(indices)

    def select_sources(self, indices: torch.Tensor) -> None:
        """Keep these rows of everything that is kept once a source."""
        for store in (self.cross_attention_cache, *named_stores(self).values()):
            store.batch_select_indices(indices)

    def select_tokens(self, rows: torch.Tensor, columns: torch.Tensor) -> None:
        """Of self-attention keep these rows (N,), and of each these columns (N, T), right after all were read."""
        for layer in self.self_attention_cache.layers:
            layer.select_tokens(rows, columns)

    def join(self, other: "DecodingCache") -> None:
        """Take the rows of another cache, of one row for each source, behind its own; nothing in named stores."""
        for layer, new in zip(self.self_attention_cache.layers, other.self_attention_cache.layers):
            layer.join(new)
        for layer, new in zip(self.cross_attention_cache.layers, other.cross_attention_cache.layers):
            length = max(layer.keys.shape[2], new.keys.shape[2])
            layer.keys, layer.values = (
                torch.cat([filled_up(one, length) for one in pair])
                for pair in ((layer.keys, new.keys), (layer.values, new.values))
            )

    def keep(self, sources: int, length: int) -> None:
        """Of the rows keep the first beam of every source, and of it the first `length` tokens."""
        keys = self.self_attention_cache.layers[0].keys
        rows = torch.arange(0, keys.shape[0], keys.shape[0] // sources, device=keys.device)
        self.self_attention_cache.batch_select_indices(rows)
        self.self_attention_cache.crop(length - self.get_seq_length())

    def prompt_was_read(self) -> None:
        """Called by `generate` when the prompt stands in the cache and nothing was generated yet."""


class StaticDecodingCache(EncoderDecoderCache):
    """Cache whose self-attention has room for a fixed number of tokens, so that a step can be compiled; no beams.

    `get_seq_length` is a tensor, which no step looks into.
    """

    def __init__(self, config: PreTrainedConfig, max_length: int) -> None:
        super().__init__(StaticCache(config, max_length), DynamicCache())


def filled_up(states: torch.Tensor, length: int, front: bool = False) -> torch.Tensor:
    """Keys or values (B, H, T, Dh) with zeros behind the last one, or in `front`: (B, H, length, Dh)."""
    missing = length - states.shape[2]
    return torch.nn.functional.pad(states, (0, 0, missing, 0) if front else (0, 0, 0, missing))


def is_static(cache: EncoderDecoderCache | None) -> bool:
    """Whether self-attention gives out as many keys in every step; those that are no tokens a mask hides."""
    return cache is not None and cache.self_attention_cache.is_compileable


def cross_attention_layer(cache: EncoderDecoderCache, name: str, layer_idx: int) -> DynamicLayer:
    """The store `name` of any encoder-decoder cache, at one layer; `source` is its `cross_attention_cache`."""
    if name == "source":
        layers = cache.cross_attention_cache.layers
    else:
        layers = named_stores(cache).setdefault(name, DynamicCache()).layers
    while len(layers) <= layer_idx:
        layers.append(DynamicLayer())
    if name != "source":
        if not cache.is_updated.get((name, layer_idx), True):  # after `reset`, which does not know this store
            layers[layer_idx].reset()
        cache.is_updated[name, layer_idx] = True
    return layers[layer_idx]


def named_stores(cache: EncoderDecoderCache) -> dict[str, DynamicCache]:
    """The stores of a cache besides `source`, by name."""
    return cache.__dict__.setdefault("_named_stores", {})
