"""Concatenation: sentences of a document read and written as one sequence, with sentence-position encodings."""

from dataclasses import dataclass

import torch
from torch import nn
from transformers import GenerationMixin
from transformers.modeling_outputs import BaseModelOutput

from .configuration_concat import ConcatConfig
from .layers import DecoderLayer, EncoderLayer, cached_length
from .modeling_docmt import Decoder, DocMTForConditionalGeneration, DocMTModel, Encoder, Stack, encoder_field
from .segment_translator import SegmentTranslator
from .segments import is_whole_target, sentence_index, sinusoid


def sentence_count(input_ids: torch.Tensor, sep_token_id: int) -> torch.Tensor:
    """Number of sentences of every segment, (B, T) -> (B,)."""
    return (input_ids == sep_token_id).sum(dim=1) + 1


def sentence_numbers(
    index: torch.Tensor, count: torch.Tensor, past_context: int = 0, future_context: int = 0
) -> torch.Tensor:
    """Sentence positions k of Lupo et al. (2023), section 2.1: the current sentence is 1, those before it 2, 3, ...

    Future sentences, which the paper does not treat, get the numbers after those of the past, nearest first. With
    `future_context` 0 the last sentence is the current one, so in a chunk numbers run from right to left.
    `index` (B, T) from `sentence_index`, `count` (B,) -> (B, T), at least 1.
    """
    current = (count - 1 - future_context).clamp(min=0)[:, None]  # (B, 1); a sentence alone is the current one
    past = (current - index + 1).clamp(min=1)
    if not future_context:
        return past
    future = (past_context + 1 + index - current).clamp(max=past_context + 1 + future_context)
    return torch.where(index > current, future, past)


class SegmentEncoding(nn.Module):
    """Encoding of the sentence of the segment that a token belongs to (Lupo et al. 2023).

    Segment-shifted positions and segment embeddings SE_k (section 2.1), persistent encodings (section 2.2),
    position-segment embeddings PSE = [PE; SE] (section 2.3). One learned table serves encoder and decoder, as in the
    released code; unlike there, learned PSE is looked up at every step and so really learns. Sinusoids are those of
    Vaswani et al.; with `position_type` `sinusoidal_t2t` segments, too, have the frequencies of the released code.
    """

    owner: "list[SegmentEncoding] | None" = None  # whose table is read, if not this one's

    def __init__(self, config: ConcatConfig):
        super().__init__()
        self.config = config
        self.dim = config.pse_dim or config.d_model  # d_SE
        self.includes_positions = config.segment_encoding == "shift" or bool(config.pse_dim)
        if config.segment_encoding == "learned":
            self.embedding = nn.Embedding(config.window_size, self.dim)
            self.embedding.init_role = "segments"

    def start_neutral(self) -> None:
        """Learned encodings add nothing; the others are fixed by their definition."""
        if self.config.segment_encoding == "learned" and self.owner is None:
            nn.init.zeros_(self.embedding.weight)

    def forward(self, positions: torch.Tensor, index: torch.Tensor, numbers: torch.Tensor, encode_positions):
        """Token positions (B or 1, T), sentence index and number k (B, T) -> (B, T, D).

        Added to the encoding of positions, or, where `includes_positions`, in its place. `encode_positions` is the
        stack's own, (B or 1, T) -> (B or 1, T, D).
        """
        config = self.config
        if config.segment_encoding == "shift":
            if config.segment_shift is None:
                raise ValueError(
                    "segment_shift is not set: set config.segment_shift to a number of positions, such as the average "
                    "length of a source sentence of the training data (hf_docmt's Examples.mean_source_length, rounded "
                    "up), which `docmt train` computes."
                )
            return encode_positions(positions + config.segment_shift * index)
        segments = self.segments(numbers)
        if not config.pse_dim:
            return segments
        fused = sinusoid(positions + config.position_offset, config.d_model - self.dim, config.position_type)
        return torch.cat([fused.expand(*segments.shape[:2], -1).to(segments.dtype), segments], dim=-1)  # (B, T, D)

    def segments(self, numbers: torch.Tensor) -> torch.Tensor:
        """SE_k: sentence numbers (B, T), the current one 1 -> (B, T, d_SE)."""
        if self.config.segment_encoding == "sinusoidal":
            formula = self.config.position_type
            return sinusoid(numbers, self.dim, "sinusoidal" if formula == "learned" else formula)
        if self.config.segment_encoding == "onehot":
            return nn.functional.one_hot(numbers - 1, self.dim).float()
        return (self if self.owner is None else self.owner[0]).embedding(numbers - 1)

    def share(self, owner: "SegmentEncoding") -> None:
        """Read the table of another module, which owns it: device maps split a model with one tied table alone."""
        del self.embedding
        self.owner = [owner]  # a list, so that it is not a submodule
        self.register_load_state_dict_pre_hook(drop_second_table)


def drop_second_table(encoding: SegmentEncoding, state_dict: dict, prefix: str, *_) -> None:
    """The name that the one table had in the decoder, too, when it was a tied weight."""
    state_dict.pop(f"{prefix}embedding.weight", None)


class PersistentEncodingLayer:
    """Adds the persistent encoding to the input of every layer but the first, which has it already (section 2.2)."""

    def __init__(self, config: ConcatConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        self.adds_encoding = config.persistent and layer_idx > 0

    def self_attention_block(self, hidden_states, *args, segment_encoding: torch.Tensor | None = None, **kwargs):
        hidden_states = self.add_encoding(hidden_states, segment_encoding=segment_encoding)
        return super().self_attention_block(hidden_states, *args, **kwargs)

    def add_encoding(self, hidden_states, cache=None, segment_encoding: torch.Tensor | None = None):
        """States (B, T, D) with the encoding of their sentences, (B, T, D)."""
        if not self.adds_encoding or segment_encoding is None:
            return hidden_states
        return hidden_states + segment_encoding.to(hidden_states.dtype)


class ConcatEncoderLayer(PersistentEncodingLayer, EncoderLayer):
    pass


class ConcatDecoderLayer(PersistentEncodingLayer, DecoderLayer):
    pass


class SegmentStack(Stack):
    """The embedding with the encoding of sentences."""

    def __init__(self, config: ConcatConfig):
        super().__init__(config)
        if config.segment_encoding != "none":
            self.segment_encoding = SegmentEncoding(config)
            self.post_init()

    def embed(self, input_ids, positions, segment_encoding: torch.Tensor | None = None, **layer_inputs):
        if segment_encoding is None:
            return super().embed(input_ids, positions)
        if not self.segment_encoding.includes_positions:
            segment_encoding = self.position_encoding(positions) + segment_encoding
        return self.embed_with(input_ids, segment_encoding)


@dataclass
class ConcatEncoderOutput(BaseModelOutput):
    """Encoder states with the number of sentences of every segment, (B,)."""

    sentence_count: torch.LongTensor | None = None


class ConcatEncoder(SegmentStack, Encoder):
    config_class = ConcatConfig
    layer_class = ConcatEncoderLayer

    @property
    def finds_sentences(self) -> bool:
        return self.config.segment_encoding != "none"

    def layer_inputs(self, input_ids, positions, attention_mask=None, **kwargs):
        """`segment_encoding` (B, S, D)."""
        if self.config.segment_encoding == "none":
            return {}
        index = sentence_index(input_ids, self.config.sep_token_id)
        count = sentence_count(input_ids, self.config.sep_token_id)
        self.check_count(count)
        numbers = sentence_numbers(index, count, self.config.past_context, self.config.future_context)
        return {"segment_encoding": self.segment_encoding(positions, index, numbers, self.position_encoding)}

    def check_count(self, count: torch.Tensor) -> None:
        """Raise `ValueError` where a segment has more sentences than the table has rows."""
        config, has_table = self.config, self.config.segment_encoding in ("onehot", "learned")
        if has_table and not torch.compiler.is_compiling() and int(count.max()) > config.window_size:
            raise ValueError(
                f"segment has {int(count.max())} sentences, but {config.segment_encoding} segment embeddings number "
                f"{config.window_size} (past_context={config.past_context}, future_context={config.future_context}): "
                "use shorter windows, or train with a larger context."
            )

    def build_output(self, outputs, layer_inputs, input_ids, attention_mask=None, **kwargs):
        plain = super().build_output(outputs, layer_inputs, input_ids)
        return ConcatEncoderOutput(**plain, sentence_count=sentence_count(input_ids, self.config.sep_token_id))


class ConcatDecoder(SegmentStack, Decoder):
    config_class = ConcatConfig
    layer_class = ConcatDecoderLayer

    def layer_inputs(self, input_ids, positions, sentence_index=None, sentence_numbers=None, **kwargs):
        """`segment_encoding` (B, T, D) from the sentences of all new tokens, (B, T) each."""
        if self.config.segment_encoding == "none":
            return {}
        encoding = self.segment_encoding(positions, sentence_index, sentence_numbers, self.position_encoding)
        return {"segment_encoding": encoding}


class ConcatModel(DocMTModel):
    """Encoder and decoder that know which sentence a token belongs to."""

    config_class = ConcatConfig
    encoder_class = ConcatEncoder
    decoder_class = ConcatDecoder
    decoder_input_names = ("decoder_sentence_index",)

    def __init__(self, config: ConcatConfig):
        super().__init__(config)
        if config.segment_encoding == "learned":
            self.decoder.segment_encoding.share(self.encoder.segment_encoding)

    def decoder_inputs(
        self, decoder_input_ids, decoder_attention_mask, encoder_outputs, cache=None, decoder_sentence_index=None
    ):
        """`decoder_sentence_index` (B, T): the sentence of each new target token."""
        config = self.config
        if config.segment_encoding == "none":
            return {}
        index = decoder_sentence_index
        if index is None:
            if cached_length(cache) and not is_whole_target(decoder_input_ids, config.decoder_start_token_id):
                raise ValueError(
                    "with a cache the decoder sees new tokens only and cannot count sentences: pass "
                    "decoder_sentence_index (B, T) for them, as prepare_inputs_for_generation does."
                )
            index = sentence_index(decoder_input_ids, config.sep_token_id)
        count = encoder_field(encoder_outputs, "sentence_count")
        if config.context_sides == "source":
            count = torch.ones_like(count)  # the target is the current sentence alone
        count = count.repeat_interleave(decoder_input_ids.shape[0] // count.shape[0])  # (B,)
        future = config.future_context if config.context_sides == "both" else 0
        numbers = sentence_numbers(index, count, config.past_context, future)
        if config.start_sentence == "current":
            numbers = numbers.masked_fill(decoder_input_ids == config.decoder_start_token_id, 1)
        return {"sentence_index": index, "sentence_numbers": numbers}


class ConcatForConditionalGeneration(DocMTForConditionalGeneration, GenerationMixin):
    """Concatenation model (Tiedemann and Scherrer 2017; Lupo et al. 2023); without context the sentence-level one.

    A segment is `s1 <sep> s2 ... <sep> sK </s>` on both sides; see `ConcatConfig` for the encodings.
    """

    config_class = ConcatConfig
    model_class = ConcatModel
    translator_class = SegmentTranslator

    def decoder_inputs_for_generation(self, input_ids, model_inputs):
        """The sentence index of the new tokens."""
        if self.config.segment_encoding == "none":
            return {}
        index = sentence_index(input_ids, self.config.sep_token_id)
        new = index[:, -model_inputs["decoder_input_ids"].shape[1] :]
        return {"decoder_sentence_index": new.contiguous()}  # the same strides in every step: compiled once


ConcatModel.register_for_auto_class("AutoModel")
ConcatForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["ConcatForConditionalGeneration", "ConcatModel"]
