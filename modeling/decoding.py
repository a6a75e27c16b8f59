"""Decoding with one row a source: the cache of keys and values, and what makes `generate` keep it so."""

from functools import wraps

import torch
from transformers import DynamicCache, EncoderDecoderCache, GenerationMixin
from transformers.cache_utils import DynamicLayer

from .cpu_inference import prepacked_weights


class BeamLayer(DynamicLayer):
    """Self-attention keys and values of one layer, written in place and reordered with one copy.

    Stored time first, (T, B, H*Dh), so that a step writes one contiguous row and a reordering of beams copies whole
    rows; `keys` and `values` are views (B, H, T, Dh) of what is filled.
    """

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.dtype, self.device = key_states.dtype, key_states.device
        self.adopt(key_states[:, :, :0], value_states[:, :, :0], room=key_states.shape[2] + 31)
        self.is_initialized = True

    def adopt(self, keys: torch.Tensor, values: torch.Tensor, room: int = 0) -> None:
        """Take over (B, H, T, Dh) keys and values, into buffers with room for more tokens."""
        batch, heads, length, dim = keys.shape
        self.heads, self.spare = heads, None
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
        if not self.get_seq_length():
            return
        if self.spare is None:
            self.spare = [torch.empty_like(buffer) for buffer in self.buffers]
        length = self.keys.shape[2]
        for buffer, spare in zip(self.buffers, self.spare):
            torch.index_select(buffer[:length], 1, beam_idx, out=spare[:length])
        self.buffers, self.spare = self.spare, self.buffers
        self.show(length)

    def crop(self, tokens_to_remove: int) -> None:
        super().crop(tokens_to_remove)
        self.show(self.keys.shape[2])

    def batch_repeat_interleave(self, repeats: int) -> None:
        self.adopt(self.keys.repeat_interleave(repeats, 0), self.values.repeat_interleave(repeats, 0), room=32)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        self.adopt(self.keys[indices], self.values[indices])


class DecodingCache(EncoderDecoderCache):
    """Cache of generation: one row of self-attention for every beam, one of cross-attention for every source.

    Beams of a source share its keys and values, so reordering beams leaves them alone.
    """

    def __init__(self) -> None:
        super().__init__(BeamCache(), DynamicCache())

    def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
        self.self_attention_cache.reorder_cache(beam_idx)

    def batch_repeat_interleave(self, repeats: int) -> None:
        self.self_attention_cache.batch_repeat_interleave(repeats)

    def keep(self, sources: int, length: int) -> None:
        """Of the rows keep the first beam of every source, and of it the first `length` tokens."""
        keys = self.self_attention_cache.layers[0].keys
        rows = torch.arange(0, keys.shape[0], keys.shape[0] // sources, device=keys.device)
        self.self_attention_cache.batch_select_indices(rows)
        self.self_attention_cache.crop(length - self.get_seq_length())


class BeamCache(DynamicCache):
    """A `DynamicCache` of `BeamLayer`."""

    def __init__(self) -> None:
        super().__init__()
        self.layer_class_to_replicate = BeamLayer


class SharedSources:
    """`GenerationMixin` repeats encoder states for every beam; with this before it they stay once per source.

    So do cross-attention keys and values, and a prompt is read once, as its beams are still the same.
    """

    per_source_inputs = ("attention_mask",)  # generation inputs with one row a source, shared by its beams

    def new_cache(self) -> DecodingCache:
        """An empty cache for `past_key_values`."""
        return self.get_decoder().new_cache()

    def prepacked_weights(self):
        """Scope in which the weights do not change, for faster inference on a CPU: see `cpu_inference`."""
        return prepacked_weights(self)

    @wraps(GenerationMixin.generate)
    def generate(self, *args, **kwargs):
        with self.prepacked_weights():
            return super().generate(*args, **kwargs)

    def _expand_inputs_for_generation(self, expand_size=1, is_encoder_decoder=True, input_ids=None, **model_kwargs):
        names = ("encoder_outputs", *self.per_source_inputs)
        shared = {name: model_kwargs.pop(name) for name in names if name in model_kwargs}
        input_ids, model_kwargs = super()._expand_inputs_for_generation(expand_size, False, input_ids, **model_kwargs)
        return input_ids, {**model_kwargs, **shared}

    def _prepare_cache_for_generation(self, generation_config, model_kwargs, *args):
        if generation_config.cache_implementation not in (None, "dynamic"):
            raise ValueError(
                f"cache_implementation must be 'dynamic' or None, got {generation_config.cache_implementation!r}: "
                "other caches cannot hold one row of source keys for several beams."
            )
        if model_kwargs.get("past_key_values") is None and generation_config.use_cache:
            model_kwargs["past_key_values"] = self.new_cache()
        else:
            super()._prepare_cache_for_generation(generation_config, model_kwargs, *args)

    def _reorder_cache(self, past_key_values, beam_idx: torch.Tensor):
        past_key_values.self_attention_cache.reorder_cache(beam_idx)
        return past_key_values

    def _prefill(self, input_ids, generation_config, model_kwargs, is_first_iteration=True):
        """The prompt is read once per source: its beams are still the same."""
        beams = input_ids.shape[0] // model_kwargs["encoder_outputs"].last_hidden_state.shape[0]
        own_cache = isinstance(model_kwargs.get("past_key_values"), DecodingCache)
        traced = generation_config.output_attentions or generation_config.output_hidden_states
        if beams == 1 or not own_cache or traced or generation_config.prefill_chunk_size:
            return super()._prefill(input_ids, generation_config, model_kwargs, is_first_iteration)
        once = {
            name: value[::beams]
            if torch.is_tensor(value) and name not in self.per_source_inputs and value.shape[:1] == input_ids.shape[:1]
            else value
            for name, value in model_kwargs.items()
        }
        outputs = super()._prefill(input_ids[::beams], generation_config, once, is_first_iteration)
        outputs.logits = outputs.logits[:, -1:].repeat_interleave(beams, dim=0)
        outputs.past_key_values.batch_repeat_interleave(beams)
        return outputs
