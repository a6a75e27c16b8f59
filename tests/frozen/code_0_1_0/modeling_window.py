"""Window attention: every token sees the tokens around its own place, of the source those around an aligned one."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import nn
from transformers.cache_utils import DynamicLayer
from transformers.modeling_outputs import BaseModelOutput

from .alignment import by_sentence, linear, one_to_one, proportional, source_borders
from .backbone import (
    Attention,
    Decoder,
    DecoderLayer,
    DocMTForConditionalGeneration,
    DocMTModel,
    Encoder,
    EncoderLayer,
    Stack,
)
from .configuration_window import WindowConfig
from .decoding import DecodingCache
from .segments import token_positions
from .window_attention import Windows, dense_attention, window_attention, windows_around


class WindowAttention(Attention):
    """Multi-head attention to the keys of each query's window (Herold and Ney 2023, section 3.3).

    With relative positions every place of the window has a vector r in R^d, split over the heads like keys and queries
    and added to the keys as in Shaw et al. (2018); self-attention has them, cross-attention has not, as in the paper.
    The `eager` implementation computes all scores under the mask of equation 1 and returns the weights.
    """

    def __init__(self, config: WindowConfig, num_heads: int, layer_idx: int, places: int = 0, is_causal: bool = False):
        super().__init__(config, num_heads, layer_idx, is_causal)
        self.relative = nn.Embedding(places, config.d_model) if places else None  # row t: i - j = w - t

    def forward(self, hidden_states, key_value_states=None, past_key_values=None, attention_mask=None, **kwargs):
        """As in `Attention`, where `attention_mask` are the windows."""
        if key_value_states is None:
            return self.attend_self(hidden_states, past_key_values, attention_mask)
        sources = key_value_states.shape[0]
        query = self.heads(self.q_proj(hidden_states).view(sources, -1, hidden_states.shape[-1]))
        key, value = self.source_projections(key_value_states, past_key_values)
        output, weights = self.attend(query, key, value, attention_mask)
        if weights is not None:  # (sources, H, rows of one * T, S)
            rows = hidden_states.shape[0] // sources
            weights = weights.unflatten(2, (rows, -1)).transpose(1, 2).flatten(0, 1)  # (B, H, T, S)
        return self.out_proj(output.transpose(1, 2).reshape(hidden_states.shape)), weights

    def attend_self(self, hidden_states, past_key_values, windows: "TokenWindows"):
        query, key, value = self.self_projections(hidden_states)
        new = query.shape[2]
        if past_key_values is not None:
            key, value = past_key_values.self_attention_cache.update(key, value, self.layer_idx, windows.order)
        elif windows.order is not None:
            key, value = in_order(key, windows.order), in_order(value, windows.order)
        queries = windows.centres.shape[1]
        query = nn.functional.pad(query, (0, 0, queries - new, 0))  # in the places of what the cache has
        if windows.order is not None:
            query = in_order(query, windows.order)
        output, weights = self.attend(query, key, value, windows)
        if windows.order is not None:
            output = in_order(output, windows.order.argsort(dim=1))
        output = output[:, :, -new:].transpose(1, 2)  # (B, T, H, Dh)
        return self.out_proj(output.reshape(hidden_states.shape)), weights

    def attend(self, query, key, value, windows: Windows):
        relative = None
        if self.relative is not None:
            first = self.config.window - windows.left
            relative = self.relative.weight[first : first + windows.width].to(query.dtype)
            relative = relative.view(windows.width, -1, self.head_dim).transpose(0, 1)  # (H, width, Dh)
        dropout = self.dropout if self.training else 0.0
        if self.config._attn_implementation == "eager":
            return dense_attention(query * self.scaling, key, value, windows, relative, dropout)
        return window_attention(query, key, value, windows, relative, dropout), None


def in_order(states: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Columns of states (B, H, T, Dh) in the order (B, T)."""
    return states.gather(2, order[:, None, :, None].expand_as(states))


@dataclass
class TokenWindows(Windows):
    """Windows of self-attention; `order` (B, J) puts padding in front of the keys where it stands between tokens."""

    order: torch.Tensor | None = None


def token_windows(tokens: torch.Tensor | None, length: int, left: int, right: int, new: int, device) -> TokenWindows:
    """Windows of the last `new` of `length` tokens around their own places; `tokens` (B, length) bool or None = all.

    Where more than one of them is new, or padding stands between tokens, there is a window for every key.
    """
    order = first = end = None
    if tokens is not None:
        count = tokens.sum(dim=1)
        end = (tokens * torch.arange(1, length + 1, device=device)).amax(dim=1)
        first = end - count
        if bool((tokens.int().diff(dim=1) > 0).sum(1).add(tokens[:, 0]).gt(1).any()):
            order = tokens.int().argsort(dim=1, stable=True)
            first, end = length - count, torch.full_like(count, length)
    start = length - 1 if new == 1 and order is None else 0
    centres = torch.arange(start, length, device=device)[None]
    found = windows_around(centres, left, right, length, first, end)
    return TokenWindows(**vars(found), order=order)


class WindowEncoderLayer(EncoderLayer):
    def __init__(self, config: WindowConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        places = 2 * config.window + 1 if config.position == "relative" else 0
        self.self_attn = WindowAttention(config, config.encoder_attention_heads, layer_idx, places)


class WindowDecoderLayer(DecoderLayer):
    def __init__(self, config: WindowConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        places = config.window + 1 if config.position == "relative" else 0
        heads = config.decoder_attention_heads
        self.self_attn = WindowAttention(config, heads, layer_idx, places, is_causal=True)
        self.encoder_attn = WindowAttention(config, heads, layer_idx)

    def forward(self, hidden_states, *args, source_windows=None, **kwargs):
        return super().forward(hidden_states, *args, **kwargs | {"encoder_attention_mask": source_windows})


class RelativeStack(Stack):
    """Embeddings without places where attention has them."""

    def position_encoding(self, positions: torch.Tensor) -> torch.Tensor:
        if self.config.position == "absolute":
            return super().position_encoding(positions)
        return torch.zeros(*positions.shape, 1, device=positions.device)


@dataclass
class WindowEncoderOutput(BaseModelOutput):
    """Encoder states with the borders of the sentences, (B, N + 1), see `source_borders`."""

    source_borders: torch.LongTensor | None = None


class WindowEncoder(RelativeStack, Encoder):
    layer_class = WindowEncoderLayer

    def forward(self, input_ids=None, attention_mask=None, **kwargs):
        borders = source_borders(input_ids, attention_mask, self.config.sep_token_id)
        outputs = super().forward(input_ids=input_ids, attention_mask=attention_mask, **kwargs | {"return_dict": True})
        return WindowEncoderOutput(**outputs, source_borders=borders)

    def mask(self, hidden_states, attention_mask):
        length, window = hidden_states.shape[1], self.config.window
        tokens = None if attention_mask is None else attention_mask.bool()
        return token_windows(tokens, length, window, window, length, hidden_states.device)


class WindowDecoder(RelativeStack, Decoder):
    layer_class = WindowDecoderLayer

    def new_cache(self) -> "WindowCache":
        return WindowCache(self.config.window)

    def embed(self, input_ids, positions, source_windows):
        hidden_states, _ = super().embed(input_ids, positions)
        return hidden_states, {"source_windows": source_windows}

    def mask(self, hidden_states, attention_mask, encoder_hidden_states, encoder_attention_mask, past_key_values):
        """The windows of self-attention over what the cache keeps and the new tokens."""
        past = 0
        if past_key_values is not None:
            if not isinstance(past_key_values, WindowCache):
                kind = type(past_key_values).__name__
                raise ValueError(f"past_key_values must be what the model's new_cache() returns, got {kind}.")
            past = min(past_key_values.get_seq_length(), self.config.window)
        new, tokens = hidden_states.shape[1], None
        if attention_mask is not None:
            kept = attention_mask[:, :-new].sum(dim=1, keepdim=True)  # the cache has the last of them on the right
            kept = torch.arange(past, device=kept.device) >= past - kept
            tokens = torch.cat([kept, attention_mask[:, -new:].bool()], dim=1)
        return token_windows(tokens, past + new, self.config.window, 0, new, hidden_states.device), None


class WindowLayer(DynamicLayer):
    """Self-attention keys and values of one layer: those of the last w tokens, padding in front of them."""

    is_croppable = False

    def __init__(self, window: int):
        super().__init__()
        self.window, self.length = window, 0

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, order=None, *args, **kwargs):
        """Append (B, H, T_new, Dh) keys and values; returns them behind those that were kept, in the order given."""
        keys, values = key_states, value_states
        if self.length:
            keys, values = torch.cat([self.keys, keys], dim=2), torch.cat([self.values, values], dim=2)
        if order is not None:
            keys, values = in_order(keys, order), in_order(values, order)
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True
        self.keys, self.values = keys[:, :, -self.window :], values[:, :, -self.window :]
        self.length += key_states.shape[2]
        return keys, values

    def get_seq_length(self) -> int:
        """Number of tokens that were seen, padding included."""
        return self.length

    def crop(self, tokens_to_remove: int) -> None:
        raise ValueError(f"cannot take back {abs(tokens_to_remove)} tokens: the cache keeps the window only.")

    def reset(self) -> None:
        super().reset()
        self.length = 0


class WindowCache(DecodingCache):
    """Cache that keeps what a window of self-attention can still see, and a copy of that at the end of the prompt."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.self_attention_cache.layer_class_to_replicate = partial(WindowLayer, window)
        self.prompt: list[tuple] = []

    def keep_prompt(self) -> None:
        """Remember the present state as the end of the prompt."""
        self.prompt = [(layer.keys, layer.values, layer.length) for layer in self.self_attention_cache.layers]

    def keep(self, sources: int, length: int) -> None:
        """Go back to the end of the prompt, of `length` tokens, with the first beam of every source."""
        if not self.prompt or self.prompt[0][2] != length:
            raise ValueError(f"cannot go back to {length} tokens: the prompt was not read with this cache.")
        for layer, (keys, values, _) in zip(self.self_attention_cache.layers, self.prompt):
            rows = torch.arange(0, keys.shape[0], keys.shape[0] // sources, device=keys.device)
            layer.keys, layer.values, layer.length = keys[rows], values[rows], length


class WindowModel(DocMTModel):
    """Encoder and decoder with an alignment between them."""

    encoder_class = WindowEncoder
    decoder_class = WindowDecoder
    decoder_place_names = ("decoder_alignment", "decoder_tokens")

    def forward(self, decoder_attention_mask=None, **kwargs):
        """As in `DocMTModel`; `decoder_alignment` (B, T) holds the source column of each new target token."""
        return super().forward(
            decoder_attention_mask=decoder_attention_mask, decoder_tokens=decoder_attention_mask, **kwargs
        )

    def decoder_embed_inputs(
        self, decoder_input_ids, encoder_outputs, past_key_values, decoder_alignment=None, decoder_tokens=None
    ):
        borders = getattr(encoder_outputs, "source_borders", None)
        if borders is None:
            raise ValueError("encoder_outputs must come from this model's encoder: source_borders is missing.")
        if decoder_alignment is None:
            if past_key_values is not None and past_key_values.get_seq_length():
                raise ValueError(
                    "with a cache the decoder sees new tokens only and cannot align them: pass decoder_alignment "
                    "(B, T) for them, as prepare_inputs_for_generation does."
                )
            decoder_alignment = self.align(decoder_input_ids, decoder_tokens, borders, self.training)
        sources, keys, _ = encoder_outputs.last_hidden_state.shape
        centres, window = decoder_alignment.reshape(sources, -1), self.config.window  # (sources, rows of one * T)
        return {"source_windows": windows_around(centres, window, window, keys, borders[:, 0], borders[:, -1])}

    def align(self, decoder_input_ids, tokens, borders, training: bool = False) -> torch.Tensor:
        """Source columns (B, T) of all tokens that the decoder has read, ids and mask (B, T); borders (<= B, N + 1)."""
        config = self.config
        batch, length = decoder_input_ids.shape
        borders = borders.repeat_interleave(batch // len(borders), dim=0)
        positions = token_positions((batch, length), decoder_input_ids.device, tokens)
        if training:
            if tokens is None:  # padding on the right; the start token may be that of padding
                columns = torch.arange(1, length + 1, device=positions.device)
                lengths = ((decoder_input_ids != config.pad_token_id) * columns).amax(dim=1)
            else:
                lengths = tokens.sum(dim=1)
            return proportional(positions, lengths, borders)
        if config.alignment == "sentence":
            return by_sentence(decoder_input_ids, positions, config.sep_token_id, borders)
        if config.alignment == "one_to_one":
            return one_to_one(positions, borders)
        if config.length_ratio is None:
            raise ValueError(
                "length_ratio is not set: set config.length_ratio to the average number of source tokens per target "
                "token of the training data, which training by recipe finds by itself."
            )
        return linear(positions, config.length_ratio, borders)


class WindowForConditionalGeneration(DocMTForConditionalGeneration):
    """Window attention model (Herold and Ney 2023); its cost grows with the length times the window.

    A segment is `s1 <sep> s2 ... <sep> sK </s>` on both sides; see `WindowConfig`. In training mode the target is
    aligned to the source by the lengths of both, otherwise as the configuration says.
    """

    config_class = WindowConfig
    model_class = WindowModel

    def effective_context(self) -> int:
        """Tokens that a prediction can depend on: 2 w encoder layers + w decoder layers (section 3.3)."""
        config = self.config
        return config.window * (2 * config.encoder_layers + config.decoder_layers)

    def prepare_inputs_for_generation(self, input_ids, next_sequence_length=None, **kwargs):
        inputs = super().prepare_inputs_for_generation(input_ids, next_sequence_length, **kwargs)
        borders = getattr(inputs.get("encoder_outputs"), "source_borders", None)
        if borders is not None:
            aligned = self.model.align(input_ids, inputs.get("decoder_attention_mask"), borders)
            inputs["decoder_alignment"] = aligned[:, -inputs["decoder_input_ids"].shape[1] :]
        return inputs

    def _prefill(self, input_ids, generation_config, *args, **kwargs):
        if generation_config.prefill_chunk_size:
            raise ValueError(
                f"prefill_chunk_size must be None, got {generation_config.prefill_chunk_size}: a part of the "
                "prompt does not tell where its sentences stand."
            )
        outputs = super()._prefill(input_ids, generation_config, *args, **kwargs)
        if isinstance(outputs.past_key_values, WindowCache):
            outputs.past_key_values.keep_prompt()
        return outputs


WindowForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["WindowForConditionalGeneration", "WindowModel"]
