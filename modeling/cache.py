"""The caches of decoding: ours, with one row of every source for all of its beams, and those of transformers."""

import warnings
from collections.abc import Callable
from dataclasses import fields
from functools import wraps

import torch
from transformers import DynamicCache, EncoderDecoderCache
from transformers.cache_utils import DynamicLayer
from transformers.modeling_outputs import Seq2SeqLMOutput

# What this version of transformers calls the cache in arguments and outputs: `past_key_values`, or `cache` from 5.24 on
CACHE_NAME = next(name for name in ("cache", "past_key_values") if name in {f.name for f in fields(Seq2SeqLMOutput)})
SOURCES = ("source", "context", "memory", "global")  # what decoders attend to; a new kind comes at the end


class DecodingCache(EncoderDecoderCache):
    """Cache of our search: a row of self-attention for every beam, and of attention to a source for every source."""

    def __init__(self, layer_class: type[DynamicLayer] = DynamicLayer) -> None:
        super().__init__(DynamicCache(), DynamicCache())
        self.self_attention_cache.layer_class_to_replicate = layer_class  # of self-attention

    def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
        self.self_attention_cache.reorder_cache(beam_idx)

    def batch_repeat_interleave(self, repeats: int) -> None:
        self.self_attention_cache.batch_repeat_interleave(repeats)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep these rows, where every source has one row."""
        self.self_attention_cache.batch_select_indices(indices)
        self.cross_attention_cache.batch_select_indices(indices)

    def keep(self, sources: int, length: int) -> None:
        """Of the rows keep the first beam of every source, and of it the first `length` tokens."""
        keys = self.self_attention_cache.layers[0].keys
        rows = torch.arange(0, keys.shape[0], keys.shape[0] // sources, device=keys.device)
        self.self_attention_cache.batch_select_indices(rows)
        self.self_attention_cache.crop(length - self.get_seq_length())

    def prompt_was_read(self) -> None:
        """Called by the search when the prompt stands in the cache and nothing was written yet."""


class CompactCache(DecodingCache):
    """Cache of layers that do not hold all tokens (`keys`, `values`, `length`), and a copy of the end of the prompt."""

    def __init__(self, layers: list[DynamicLayer]) -> None:
        super().__init__()
        self.self_attention_cache.layers = layers
        self.prompt: list[tuple] = []

    def prompt_was_read(self) -> None:
        """Remember the present state as the end of the prompt."""
        self.prompt = [(layer.keys, layer.values, layer.length) for layer in self.self_attention_cache.layers]

    def keep(self, sources: int, length: int) -> None:
        """Go back to the end of the prompt, of `length` tokens, with the first beam of every source."""
        if not self.prompt or self.prompt[0][2] != length:
            raise ValueError(f"cannot go back to {length} tokens: the prompt was not read with this cache.")
        for layer, (keys, values, _) in zip(self.self_attention_cache.layers, self.prompt):
            rows = torch.arange(0, keys.shape[0], keys.shape[0] // sources, device=keys.device)
            layer.keys, layer.values, layer.length = keys[rows], values[rows], length


# Any cache, ours or one of transformers


def cache_by_either_name(forward: Callable) -> Callable:
    """A `forward` with an argument `cache`, which may also be given as `past_key_values`, its name before 5.24.

    The prefix of an adapter, by one name, takes the place of the empty cache of `generate`.
    """

    @wraps(forward)
    def with_either_name(self, *args, past_key_values=None, **kwargs):
        if past_key_values is not None:
            caches = [cache for cache in (past_key_values, kwargs.get("cache")) if cached_length(cache)]
            if len(caches) > 1:
                raise ValueError("cache and past_key_values are the same argument, got both: give one of them.")
            kwargs["cache"] = caches[0] if caches else past_key_values
            if CACHE_NAME == "cache" and not torch.compiler.is_compiling():
                warnings.warn("`past_key_values` is deprecated: use `cache`.", FutureWarning, stacklevel=2)
        return forward(self, *args, **kwargs)

    return with_either_name


def cached_length(cache: EncoderDecoderCache | None) -> int | torch.Tensor:
    """Number of target tokens in a cache; a tensor where it is static, so that no step looks into it."""
    return 0 if cache is None else cache.get_seq_length()


def is_static(cache: EncoderDecoderCache | None) -> bool:
    """Whether self-attention gives out as many keys in every step; those that are no tokens a mask hides."""
    return cache is not None and cache.is_compileable


def source_states(
    cache: EncoderDecoderCache, name: str, layer_idx: int, layers: int
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Keys and values that one of so many decoder layers has kept of the source `name`, or None."""
    index = SOURCES.index(name) * layers + layer_idx
    if not cache.is_updated.get(index):
        return None
    layer = cache.cross_attention_cache.layers[index]
    return layer.keys, layer.values


def keep_source_states(
    cache: EncoderDecoderCache, name: str, layer_idx: int, layers: int, states: list[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Keep keys and values (B, ..., S, Dh) of a source; gives them out behind those that the cache came with.

    They are layers of `cross_attention_cache`, those of `source` first, so that transformers reorders, selects and
    exports them with it. A layer of a static cache, which has room for the source alone, is replaced.
    """
    stores, index = cache.cross_attention_cache.layers, SOURCES.index(name) * layers + layer_idx
    while len(stores) <= index:
        stores.append(DynamicLayer())
    if not isinstance(stores[index], DynamicLayer):
        stores[index] = DynamicLayer()
    cache.is_updated[index] = True
    return stores[index].update(*states)
