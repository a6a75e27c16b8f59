"""Concatenation: sentences of a document read and written as one sequence, with sentence-position encodings."""

from dataclasses import dataclass

import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from .backbone import Decoder, DecoderLayer, DocMTForConditionalGeneration, DocMTModel, Encoder, EncoderLayer
from .configuration_concat import ConcatConfig
from .segments import sentence_count, sentence_index, sentence_numbers, sinusoid


class SegmentEncoding(nn.Module):
    """What tells a token its place, as a sum for the first block and a part that later blocks get again.

    Lupo et al. (2023): segment-shifted positions and segment embeddings SE_k (section 2.1), persistent encodings
    (section 2.2), position-segment embeddings PSE = [PE; SE] (section 2.3). One learned table serves encoder and
    decoder, as in the released code; unlike there, learned PSE is looked up at every step and so really learns.
    Sinusoids are those of Vaswani et al., as the paper says; the released code has the tensor2tensor frequencies.
    """

    def __init__(self, config: ConcatConfig):
        super().__init__()
        self.config = config
        self.dim = config.pse_dim or config.d_model  # d_SE
        if config.segment_encoding == "learned":
            self.embedding = nn.Embedding(config.window_size, self.dim)

    def forward(self, positions, index, numbers, encode) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Token positions (B or 1, T), sentence index and number k (B, T), `encode`: positions -> PE.

        Returns what the first block adds to the token embeddings, and what all later ones add (None = nothing).
        """
        config = self.config
        if config.segment_encoding == "shift":
            if config.segment_shift is None:
                raise ValueError(
                    "segment_shift is not set: set config.segment_shift to a number of positions, such as the average "
                    "length of a source sentence of the training data (hf_docmt's Examples.mean_source_length, rounded "
                    "up), which training by recipe finds by itself."
                )
            added = again = encode(positions + config.segment_shift * index)
        elif config.pse_dim:
            fused = sinusoid(positions + config.position_offset, config.d_model - self.dim, config.position_type)
            segments = self.segments(numbers)
            added = again = torch.cat([fused.expand(*segments.shape[:2], -1).to(segments.dtype), segments], dim=-1)
        else:
            again = self.segments(numbers)
            added = encode(positions) + again
        return added, (again if config.persistent else None)

    def segments(self, numbers: torch.Tensor) -> torch.Tensor:
        """SE_k: sentence numbers (B, T), the current one 1 -> (B, T, d_SE)."""
        if self.config.segment_encoding == "sinusoidal":
            return sinusoid(numbers, self.dim)
        if self.config.segment_encoding == "onehot":
            return nn.functional.one_hot(numbers - 1, self.dim).float()
        return self.embedding(numbers - 1)


class ConcatEncoderLayer(EncoderLayer):
    """Encoder layer that adds the persistent encoding to its input (the first one has it already)."""

    def forward(self, hidden_states, attention_mask=None, segment_encoding=None, **kwargs):
        if segment_encoding is not None and self.layer_idx > 0:
            hidden_states = hidden_states + segment_encoding.to(hidden_states.dtype)
        return super().forward(hidden_states, attention_mask, **kwargs)


class ConcatDecoderLayer(DecoderLayer):
    """Decoder layer that adds the persistent encoding to its input (the first one has it already)."""

    def forward(self, hidden_states, *args, segment_encoding=None, **kwargs):
        if segment_encoding is not None and self.layer_idx > 0:
            hidden_states = hidden_states + segment_encoding.to(hidden_states.dtype)
        return super().forward(hidden_states, *args, **kwargs)


@dataclass
class ConcatEncoderOutput(BaseModelOutput):
    """Encoder states with the number of sentences of every segment, (B,)."""

    sentence_count: torch.LongTensor | None = None


class ConcatEncoder(Encoder):
    layer_class = ConcatEncoderLayer

    def __init__(self, config: ConcatConfig):
        super().__init__(config)
        if config.segment_encoding != "none":
            self.segment_encoding = SegmentEncoding(config)
            self.post_init()

    def embed(self, input_ids, positions):
        if self.config.segment_encoding == "none":
            return super().embed(input_ids, positions)
        index = sentence_index(input_ids, self.config.sep_token_id)
        count = sentence_count(input_ids, self.config.sep_token_id)
        self.check_count(count)
        numbers = sentence_numbers(index, count, self.config.past_context, self.config.future_context)
        added, again = self.segment_encoding(positions, index, numbers, self.position_encoding)
        return self.embed_inputs(input_ids, added), {"segment_encoding": again}

    def check_count(self, count: torch.Tensor) -> None:
        """Raise `ValueError` where a segment has more sentences than the table has rows."""
        config = self.config
        if config.segment_encoding not in ("onehot", "learned") or torch.compiler.is_compiling():
            return
        if int(count.max()) > config.window_size:
            raise ValueError(
                f"segment has {int(count.max())} sentences, but {config.segment_encoding} segment embeddings number "
                f"{config.window_size} (past_context={config.past_context}, future_context={config.future_context}): "
                "use shorter windows, or train with a larger context."
            )

    def forward(self, input_ids=None, attention_mask=None, **kwargs):
        outputs = super().forward(input_ids=input_ids, attention_mask=attention_mask, **kwargs | {"return_dict": True})
        count = sentence_count(input_ids, self.config.sep_token_id)
        return ConcatEncoderOutput(**outputs, sentence_count=count)


class ConcatDecoder(Decoder):
    layer_class = ConcatDecoderLayer

    def __init__(self, config: ConcatConfig):
        super().__init__(config)
        if config.segment_encoding != "none":
            self.segment_encoding = SegmentEncoding(config)
            self.post_init()

    def embed(self, input_ids, positions, index=None, numbers=None):
        if self.config.segment_encoding == "none":
            return super().embed(input_ids, positions)
        added, again = self.segment_encoding(positions, index, numbers, self.position_encoding)
        return self.embed_inputs(input_ids, added), {"segment_encoding": again}


class ConcatModel(DocMTModel):
    """Encoder and decoder that know which sentence a token belongs to."""

    encoder_class = ConcatEncoder
    decoder_class = ConcatDecoder
    decoder_place_names = ("decoder_sentence_index",)

    def decoder_embed_inputs(self, decoder_input_ids, encoder_outputs, past_key_values, decoder_sentence_index=None):
        config = self.config
        if config.segment_encoding == "none":
            return {}
        index = decoder_sentence_index
        if index is None:
            if past_key_values is not None and past_key_values.get_seq_length():
                raise ValueError(
                    "with a cache the decoder sees new tokens only and cannot count sentences: pass "
                    "decoder_sentence_index (B, T) for them, as prepare_inputs_for_generation does."
                )
            index = sentence_index(decoder_input_ids, config.sep_token_id)
        count = getattr(encoder_outputs, "sentence_count", None)
        if count is None:
            raise ValueError("encoder_outputs must come from this model's encoder: sentence_count is missing.")
        if config.context_sides == "source":
            count = torch.ones_like(count)  # the target is the current sentence alone
        count = count.repeat_interleave(decoder_input_ids.shape[0] // count.shape[0])
        future = config.future_context if config.context_sides == "both" else 0
        return {"index": index, "numbers": sentence_numbers(index, count, config.past_context, future)}


class ConcatForConditionalGeneration(DocMTForConditionalGeneration):
    """Concatenation model (Tiedemann and Scherrer 2017; Lupo et al. 2023); without context the sentence-level one.

    A segment is `s1 <sep> s2 ... <sep> sK </s>` on both sides; see `ConcatConfig` for the encodings.
    """

    config_class = ConcatConfig
    model_class = ConcatModel

    def __init__(self, config: ConcatConfig):
        super().__init__(config)
        if config.segment_encoding == "learned":
            table = "segment_encoding.embedding.weight"
            self._tied_weights_keys = {**self._tied_weights_keys, f"model.decoder.{table}": f"model.encoder.{table}"}
            self.post_init()

    def prepare_inputs_for_generation(self, input_ids, next_sequence_length=None, **kwargs):
        inputs = super().prepare_inputs_for_generation(input_ids, next_sequence_length, **kwargs)
        if self.config.segment_encoding != "none":
            index = sentence_index(input_ids, self.config.sep_token_id)
            inputs["decoder_sentence_index"] = index[:, -inputs["decoder_input_ids"].shape[1] :]
        return inputs


ConcatForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["ConcatForConditionalGeneration", "ConcatModel"]
