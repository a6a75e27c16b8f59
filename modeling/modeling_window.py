"""Window attention: every token sees the tokens around its own position, of the source those around an aligned one."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import nn
from transformers import GenerationMixin
from transformers.modeling_outputs import BaseModelOutput

from .configuration_window import ALIGNMENTS, WindowConfig
from .layers import Attention, DecoderLayer, EncoderLayer, cached_length, is_static
from .limited_attention import limit_inputs, limited_attention, limits_of
from .modeling_docmt import Decoder, DocMTForConditionalGeneration, DocMTModel, Encoder, Stack, encoder_field
from .segment_translator import SegmentTranslator
from .segments import is_whole_target, token_positions


def source_borders(input_ids: torch.Tensor, attention_mask: torch.Tensor | None, sep_token_id: int) -> torch.Tensor:
    """Columns where the sentences of a source begin, and the one after its last token: ids (B, S) -> (B, N + 1).

    N is the largest number of sentences (under `torch.compile` the largest possible); in a row that has fewer the
    others begin after its last token. A mask (B, S), 1 = token, may have padding on either side. Raises `ValueError`
    for padding between tokens.
    """
    batch, length = input_ids.shape
    tokens = torch.ones_like(input_ids) if attention_mask is None else attention_mask.long()
    if attention_mask is not None and not torch.compiler.is_compiling():
        check_padding(tokens)
    columns = torch.arange(1, length + 1, device=input_ids.device)
    end = (columns * tokens).amax(dim=1) if length else input_ids.new_zeros(batch)
    is_sep = (input_ids == sep_token_id) & (tokens == 1)
    number = is_sep.cumsum(dim=1)  # of the sentence that begins after a separator
    if torch.compiler.is_compiling():
        last = length + 1  # N, as if every token could be a separator
    else:
        last = int(number.max()) + 1 if number.numel() else 1  # N
    borders = end[:, None].repeat(1, last + 2)  # one more column for tokens that are not separators
    borders[:, 0] = end - tokens.sum(dim=1)
    return borders.scatter(1, number.where(is_sep, last + 1), columns.expand(batch, -1))[:, :-1]


def check_padding(tokens: torch.Tensor) -> None:
    """ValueError where a row of `tokens` (B, S), 0 for padding, has padding between tokens."""
    begins = (tokens[:, 1:] > tokens[:, :-1]).sum(dim=1) + tokens[:, :1].sum(dim=1)
    if bool((begins > 1).any()):
        raise ValueError(
            f"attention_mask of row {int(begins.argmax())} has padding between tokens, where windows would see fewer "
            "of them: put all padding on one side."
        )


def proportional(positions: torch.Tensor, lengths: torch.Tensor, borders: torch.Tensor) -> torch.Tensor:
    """b_i = round(J / I * i), halves up: token positions (B or 1, T) from 0, target lengths I (B,) -> (B, T)."""
    source, target = (borders[:, -1] - borders[:, 0])[:, None], lengths.clamp(min=1)[:, None]
    return in_source((2 * source * (positions + 1) + target) // (2 * target) - 1, borders)


def linear(positions: torch.Tensor, length_ratio: float, borders: torch.Tensor) -> torch.Tensor:
    """b_i = round(train_ratio * i), halves up; with a ratio of 1 b_i = i."""
    precise = torch.float32 if positions.device.type == "mps" else torch.float64
    aligned = (length_ratio * (positions + 1).to(precise) + 0.5).floor().long() - 1
    return in_source(aligned, borders)


def by_sentence(
    input_ids: torch.Tensor, positions: torch.Tensor, sep_token_id: int, borders: torch.Tensor
) -> torch.Tensor:
    """A target sentence begins with its source sentence, from there on b_i = b_{i-1} + 1: all ids (B, T) -> (B, T).

    Target sentences that the source has not are aligned to its last token.
    """
    is_sep = input_ids == sep_token_id
    number = is_sep.cumsum(dim=1)
    begin = torch.where(is_sep, positions, 0).cummax(dim=1).values
    first = borders.gather(1, number.clamp(max=borders.shape[1] - 1)) - borders[:, :1]
    return in_source(first + positions - begin, borders)


def in_source(positions: torch.Tensor, borders: torch.Tensor) -> torch.Tensor:
    """Positions of source tokens (B or 1, T), from 0, as columns (B, T) of those that there are."""
    first, end = borders[:, :1], borders[:, -1:]
    return (first + positions.clamp(min=0)).clamp(max=end - 1).clamp(min=first)


class WindowAttention(Attention):
    """Multi-head attention to the keys of each query's window (Herold and Ney 2023, section 3.3).

    With relative positions every position of the window has a vector r in R^d, split over the heads like keys and
    queries and added to the keys as in Shaw et al. (2018); self-attention has them, cross-attention has not, as in the
    paper. The `eager` implementation computes all scores under the mask of equation 1 and returns the weights.
    """

    def __init__(self, config: WindowConfig, num_heads: int, layer_idx: int, vectors: int = 0, is_causal: bool = False):
        super().__init__(config, num_heads, layer_idx, is_causal)
        self.relative = nn.Embedding(vectors, config.d_model) if vectors else None  # row t: i - j = w - t

    def forward(
        self,
        hidden_states: torch.Tensor,  # (B, T, D)
        key_value_states: torch.Tensor | None = None,  # (B or fewer, S, D)
        cache=None,
        attention_mask: torch.Tensor | None = None,
        **layer_inputs,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """As in `Attention`; windows are the `limit_inputs` called `token_windows` and `source_windows`."""
        if key_value_states is None:
            query, key, value = self.self_projections(hidden_states)
            if cache is not None:
                key, value = cache.self_attention_cache.update(key, value, self.layer_idx)
        else:
            query = self.source_queries(hidden_states, key_value_states)  # (sources, H, rows of one * T, Dh)
            key, value = self.source_projections(key_value_states, cache, hidden_states.shape[0])
        limits = limits_of(layer_inputs, "token_windows" if key_value_states is None else "source_windows")
        output, weights = self.attend_windows(query, key, value, limits)
        output = self.out_proj(output.transpose(1, 2).reshape(hidden_states.shape))
        return output, self.by_row(weights, hidden_states.shape[0])

    def attend_windows(self, query, key, value, limits: dict) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(B, H, I, Dh), (B, H, J, Dh) -> (B, H, I, Dh), and weights (B, H, I, J) with `eager`."""
        relative = None
        if self.relative is not None:
            left = reach(self.config.window, key.shape[2])
            first, width = self.config.window - left, left + 1 + left * (not self.is_causal)
            relative = self.relative(torch.arange(first, first + width, device=query.device)).to(query.dtype)
            relative = relative.view(width, -1, self.head_dim).transpose(0, 1)  # (H, width, Dh)
        return limited_attention(query, key, value, limits, relative, self.dropout if self.training else 0.0)


def reach(window: int, keys: int) -> int:
    """How far a window reaches among `keys` keys; all of it in an exported graph, whose shapes are open."""
    return window if torch.compiler.is_exporting() else min(window, max(keys - 1, 0))


class WindowEncoderLayer(EncoderLayer):
    def __init__(self, config: WindowConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        vectors = 2 * config.window + 1 if config.position == "relative" else 0
        self.self_attn = WindowAttention(config, config.encoder_attention_heads, layer_idx, vectors)


class WindowDecoderLayer(DecoderLayer):
    def __init__(self, config: WindowConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        vectors = config.window + 1 if config.position == "relative" else 0
        heads = config.decoder_attention_heads
        self.self_attn = WindowAttention(config, heads, layer_idx, vectors, is_causal=True)
        self.encoder_attn = WindowAttention(config, heads, layer_idx)


class WindowStack(Stack):
    """Base of encoder and decoder: no positions at the input if attention has them; windows instead of masks."""

    def position_encoding(self, positions: torch.Tensor) -> torch.Tensor:
        if self.config.position == "absolute":
            return super().position_encoding(positions)
        return torch.zeros(*positions.shape, 1, device=positions.device)

    def attention_mask(self, *args, **kwargs) -> None:
        return None

    def window_inputs(self, name: str, low: torch.Tensor, high: torch.Tensor, keys: int, **places) -> dict:
        """The windows from key `low` to `high`, (B or 1, I), as layer inputs."""
        is_dense = self.config.sees_all or self.config._attn_implementation == "eager"
        return limit_inputs(name, low, high, keys, is_dense, **places)

    def token_windows(self, tokens: torch.Tensor | None, keys: int, new: torch.Tensor, looks_ahead: bool) -> dict:
        """Windows of the new tokens, in columns (I,), among `keys` tokens; `tokens` (B, keys) bool or None = all.

        Padding may be anywhere: windows count tokens.
        """
        config, left = self.config, reach(self.config.window, keys)
        right = left if looks_ahead else 0
        if tokens is None:
            places = order = torch.arange(keys, device=new.device)[None]
            last = keys - 1
        else:
            places, order = tokens.long().cumsum(dim=1) - 1, (~tokens).int().sort(dim=1, stable=True).indices
            last = places[:, -1:]
        own = places[:, new]  # (B or 1, I)
        before, after = (keys, keys * looks_ahead) if config.sees_all else (left, right)
        low, high = (own - before).clamp(min=0), (own + after).clamp(max=last).clamp(min=0)
        ends = {"low": order.gather(1, low), "high": order.gather(1, high), "tokens": tokens}
        if config.position == "relative":
            ends |= {"places": places, "origin": own - left, "width": left + 1 + right}
        return self.window_inputs("token_windows", keys=keys, **ends)


@dataclass
class WindowEncoderOutput(BaseModelOutput):
    """Encoder states with the borders of the sentences, (B, N + 1), see `source_borders`."""

    source_borders: torch.LongTensor | None = None


class WindowEncoder(WindowStack, Encoder):
    config_class = WindowConfig
    layer_class = WindowEncoderLayer
    finds_sentences = True

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, **kwargs):
        """As in the backbone, with the borders of the sentences; padding between tokens is refused at once."""
        input_ids = self.ids_of(input_ids, inputs_embeds)
        borders = source_borders(input_ids, attention_mask, self.config.sep_token_id)
        return super().forward(input_ids=input_ids, attention_mask=attention_mask, source_borders=borders, **kwargs)

    def layer_inputs(self, input_ids, positions, attention_mask=None, **kwargs):
        tokens, columns = attention_mask, torch.arange(input_ids.shape[1], device=input_ids.device)
        return self.token_windows(None if tokens is None else tokens.bool(), len(columns), columns, looks_ahead=True)

    def build_output(self, outputs, layer_inputs, input_ids, attention_mask=None, source_borders=None, **kwargs):
        plain = super().build_output(outputs, layer_inputs, input_ids)
        return WindowEncoderOutput(**plain, source_borders=source_borders)


class WindowDecoder(WindowStack, Decoder):
    config_class = WindowConfig
    layer_class = WindowDecoderLayer

    def layer_inputs(
        self,
        input_ids,
        positions,
        attention_mask=None,
        encoder_hidden_states=None,
        cache=None,
        alignment: torch.Tensor | None = None,  # (sources, rows of one * T), the source column of each token
        source_borders: torch.Tensor | None = None,  # (sources, N + 1)
        **kwargs,
    ):
        """Windows of the source, and of self-attention over all tokens of the cache and the new ones."""
        length, new = cached_length(cache), input_ids.shape[1]
        tokens, columns = (
            self.padding_to_mask(attention_mask, length),
            torch.arange(new, device=input_ids.device) + length,
        )
        keys = cache.get_max_length() if is_static(cache) else length + new
        if tokens is not None:
            tokens = nn.functional.pad(tokens.bool(), (0, keys - tokens.shape[1]))
        first, last = source_borders[:, :1], source_borders[:, -1:] - 1
        low, high = first.expand(alignment.shape), last.expand(alignment.shape)
        if not self.config.sees_all:
            low, high = (
                (alignment - self.config.window).clamp(min=first),
                (alignment + self.config.window).clamp(max=last),
            )
        source = self.window_inputs("source_windows", low, high, encoder_hidden_states.shape[1])
        return source | self.token_windows(tokens, keys, columns, looks_ahead=False)

    def source_mask(self, *args, **kwargs) -> None:
        return None


_alignment: ContextVar[tuple[nn.Module, str] | None] = ContextVar("search_alignment", default=None)  # of which model


class WindowModel(DocMTModel):
    """Encoder and decoder with an alignment between them."""

    config_class = WindowConfig
    encoder_class = WindowEncoder
    decoder_class = WindowDecoder
    decoder_input_names = ("decoder_alignment",)

    def decoder_inputs(
        self, decoder_input_ids, decoder_attention_mask, encoder_outputs, cache=None, decoder_alignment=None
    ):
        """`decoder_alignment` (B, T): the source column of each new target token."""
        borders = borders_of(encoder_outputs)
        if decoder_alignment is None:
            start = self.config.decoder_start_token_id
            if cached_length(cache) and not is_whole_target(decoder_input_ids, start):
                raise ValueError(
                    "with a cache the decoder sees new tokens only and cannot align them: pass decoder_alignment "
                    "(B, T) for them, as prepare_inputs_for_generation does."
                )
            tokens = decoder_attention_mask
            if tokens is not None:
                tokens = tokens[:, -decoder_input_ids.shape[1] :]  # without a prefix in front
            decoder_alignment = self.align(decoder_input_ids, tokens, borders, self.training)
        sources = encoder_outputs.last_hidden_state.shape[0]
        return {"alignment": decoder_alignment.reshape(sources, -1), "source_borders": borders}

    def search_alignment(self) -> str:
        """The alignment for search and scoring: of an active `search_alignment`, by default the configuration's."""
        model, alignment = (None if torch.compiler.is_compiling() else _alignment.get()) or (None, None)
        return alignment if model is self else self.config.alignment

    def align(self, decoder_input_ids, tokens, borders, training: bool = False) -> torch.Tensor:
        """Source columns (B, T) of all tokens that the decoder has read, ids and mask (B, T); borders (<= B, N + 1)."""
        config = self.config
        batch, length = decoder_input_ids.shape
        borders = borders.repeat_interleave(batch // borders.shape[0], dim=0)
        positions = token_positions((batch, length), decoder_input_ids.device, tokens)
        if training:
            if tokens is None:  # padding on the right; the start token may be that of padding
                columns = torch.arange(1, length + 1, device=positions.device)
                lengths = ((decoder_input_ids != config.pad_token_id) * columns).amax(dim=1)
            else:
                lengths = tokens.sum(dim=1)
            return proportional(positions, lengths, borders)
        ratio = self.source_ratio()
        if not ratio:
            return by_sentence(decoder_input_ids, positions, config.sep_token_id, borders)
        return linear(positions, ratio, borders)

    def source_ratio(self) -> float:
        """Source tokens per target token along which search and scoring align, 0 = from the start of each sentence."""
        alignment = self.search_alignment()
        if alignment != "linear":
            return {"sentence": 0.0, "one_to_one": 1.0}[alignment]
        if self.config.length_ratio is None:
            raise ValueError(
                "length_ratio is not set: set config.length_ratio to the average number of source tokens per target "
                "token of the training data, which `docmt train` computes."
            )
        return self.config.length_ratio


def borders_of(encoder_outputs) -> torch.Tensor:
    """The starts of a source's sentences, (B, N + 1); ValueError for outputs of another encoder."""
    return encoder_field(encoder_outputs, "source_borders")


class WindowForConditionalGeneration(DocMTForConditionalGeneration, GenerationMixin):
    """Window attention model (Herold and Ney 2023); its cost grows with the length times the window.

    A segment is `s1 <sep> s2 ... <sep> sK </s>` on both sides; see `WindowConfig`. In training mode the target is
    aligned to the source by the lengths of both, otherwise as the configuration says.
    """

    config_class = WindowConfig
    model_class = WindowModel
    translator_class = SegmentTranslator
    _supports_flex_attn = False

    @contextmanager
    def search_alignment(self, alignment: str | None) -> Iterator[None]:
        """Within it this model searches and scores by one of the `ALIGNMENTS`; None = as without it.

        It holds for the thread that enters it, and not for compiled code. Raises `ValueError` for an unknown alignment.
        """
        if alignment is not None and alignment not in ALIGNMENTS:
            raise ValueError(f"alignment must be one of {', '.join(ALIGNMENTS)}, got {alignment!r}.")
        token = _alignment.set((self.model, alignment) if alignment else _alignment.get())
        try:
            yield
        finally:
            _alignment.reset(token)

    def decoder_inputs_for_generation(self, input_ids, model_inputs):
        """The source columns of the new tokens."""
        borders = getattr(model_inputs.get("encoder_outputs"), "source_borders", None)
        if borders is None:
            return {}
        aligned = self.model.align(input_ids, model_inputs.get("decoder_attention_mask"), borders)
        new = aligned[:, -model_inputs["decoder_input_ids"].shape[1] :]
        return {"decoder_alignment": new.contiguous()}  # the same strides in every step: compiled once


WindowModel.register_for_auto_class("AutoModel")
WindowForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["WindowForConditionalGeneration", "WindowModel"]
