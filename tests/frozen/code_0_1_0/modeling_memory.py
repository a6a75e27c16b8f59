"""Recurrent memory: a few vectors that every sentence reads and rewrites, carried through the document."""

from dataclasses import dataclass

import torch
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)

from .backbone import Decoder, DecoderLayer, DocMTForConditionalGeneration, DocMTModel, Encoder, EncoderLayer
from .configuration_memory import MemoryConfig
from .memory_unit import MemoryStack, MemoryUnit
from .streaming import StreamTranslation


class MemoryEncoderLayer(EncoderLayer):
    """Encoder layer with a memory, in some layers, which is read after self-attention."""

    def __init__(self, config: MemoryConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        if layer_idx in config.layers_with_memory("encoder"):
            self.memory = MemoryUnit(config, config.encoder_attention_heads, config.encoder_ffn_dim)


class MemoryDecoderLayer(DecoderLayer):
    """Decoder layer with a memory, in some layers, which is read between self-attention and attention to the source."""

    def __init__(self, config: MemoryConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        layers = config.layers_with_memory("decoder")
        if layer_idx in layers:
            cache_index = config.decoder_layers + layers.index(layer_idx)  # after those of attention to the source
            self.memory = MemoryUnit(config, config.decoder_attention_heads, config.decoder_ffn_dim, cache_index)


@dataclass
class MemoryEncoderOutput(BaseModelOutput):
    """Encoder states, the memory after the sentence (B, slots, D), and {layer: h^t (B, S, D)} that it comes from."""

    encoder_memory: torch.FloatTensor | None = None
    memory_states: dict | None = None


@dataclass
class MemoryDecoderOutput(BaseModelOutputWithPastAndCrossAttentions):
    """Decoder states, and memory and its origin as in `MemoryEncoderOutput`; None where a cache was given."""

    decoder_memory: torch.FloatTensor | None = None
    memory_states: dict | None = None


@dataclass
class MemoryModelOutput(Seq2SeqModelOutput):
    """With the memories after the sentence; `memory_states`: what they come from, for encoder and decoder."""

    encoder_memory: torch.FloatTensor | None = None
    decoder_memory: torch.FloatTensor | None = None
    memory_states: tuple | None = None


@dataclass
class MemoryLMOutput(Seq2SeqLMOutput):
    """As `MemoryModelOutput`, with logits and loss."""

    encoder_memory: torch.FloatTensor | None = None
    decoder_memory: torch.FloatTensor | None = None
    memory_states: tuple | None = None


class MemoryEncoder(MemoryStack, Encoder):
    layer_class = MemoryEncoderLayer
    side = "encoder"

    def __init__(self, config: MemoryConfig):
        super().__init__(config)
        self.add_memory(config)

    def forward(self, input_ids=None, attention_mask=None, encoder_memory=None, document_start=None, **kwargs):
        """As the backbone's; `encoder_memory` (B, slots, D), `document_start` (B,)."""
        memory = self.memory_before(encoder_memory, document_start, input_ids.shape[0])
        states: dict[int, torch.Tensor] = {}
        kwargs |= {"then": self.reading(memory, states), "return_dict": True}
        outputs = super().forward(input_ids=input_ids, attention_mask=attention_mask, **kwargs)
        after = self.memory_after(memory, states, attention_mask)
        return MemoryEncoderOutput(**outputs, encoder_memory=after, memory_states=states)


class MemoryDecoder(MemoryStack, Decoder):
    layer_class = MemoryDecoderLayer
    side = "decoder"

    def __init__(self, config: MemoryConfig):
        super().__init__(config)
        self.add_memory(config)

    def forward(self, input_ids=None, attention_mask=None, past_key_values=None, use_cache=None, **kwargs):
        """As the backbone's, `embed_inputs` with `decoder_memory` (B or fewer, slots, D) and `document_start`."""
        sources = kwargs["encoder_hidden_states"].shape[0]
        memory = self.memory_before(*kwargs.pop("embed_inputs").values(), sources, input_ids.shape[0])
        states: dict[int, torch.Tensor] = {}
        kwargs |= {"then": self.reading(memory, states), "return_dict": True}
        kwargs |= {"past_key_values": past_key_values, "use_cache": use_cache}
        outputs = super().forward(input_ids=input_ids, attention_mask=attention_mask, **kwargs)
        if past_key_values is not None:  # the sentence is not complete yet
            return MemoryDecoderOutput(**outputs)
        after = self.memory_after(memory, states, attention_mask)
        return MemoryDecoderOutput(**outputs, decoder_memory=after, memory_states=states)


class MemoryModel(DocMTModel):
    """Encoder and decoder with their memories."""

    encoder_class = MemoryEncoder
    decoder_class = MemoryDecoder
    encoder_input_names = ("encoder_memory", "document_start")
    decoder_place_names = ("decoder_memory", "document_start")

    def decoder_embed_inputs(
        self, decoder_input_ids, encoder_outputs, past_key_values, decoder_memory=None, document_start=None
    ):
        return {"memory": decoder_memory, "document_start": document_start}

    def joined(self, encoder_outputs, decoder_outputs) -> MemoryModelOutput:
        return MemoryModelOutput(
            **super().joined(encoder_outputs, decoder_outputs),
            encoder_memory=getattr(encoder_outputs, "encoder_memory", None),  # states alone may have been given
            decoder_memory=decoder_outputs.decoder_memory,
            memory_states=(getattr(encoder_outputs, "memory_states", None), decoder_outputs.memory_states),
        )


class MemoryForConditionalGeneration(StreamTranslation, DocMTForConditionalGeneration):
    """Transformer with recurrent memory (Feng et al. 2022).

    A sentence at a time; the state goes in and comes out. `encoder_memory` and `decoder_memory` (B, slots, D) are what
    the sentences before have left, None or `document_start` (B,) bool true = the learned initial memory. The output has
    those for the next sentences. The decoder's is complete when the sentence is: it comes out of a pass over all of its
    tokens (decoder input from the start token on), not where `past_key_values` are given, so that in decoding it
    follows the chosen hypothesis. `translate_documents` (strategy `stream`) and `translate_stream` carry the state by
    themselves.
    """

    config_class = MemoryConfig
    model_class = MemoryModel
    output_class = MemoryLMOutput
    per_source_inputs = ("attention_mask", "encoder_memory", "decoder_memory", "document_start")

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        encoder_outputs=None,
        past_key_values=None,
        labels=None,
        encoder_memory=None,
        decoder_memory=None,
        document_start=None,
        **kwargs,
    ):
        """As the backbone's, with the memories and `document_start` described above.

        Where `labels` alone tell the target, so do they which of its tokens are written into the memory.
        """
        if labels is not None and decoder_input_ids is None and decoder_attention_mask is None:
            decoder_attention_mask = (labels != -100).long()
        return super().forward(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            decoder_attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            past_key_values=past_key_values,
            labels=labels,
            encoder_memory=encoder_memory,
            decoder_memory=decoder_memory,
            document_start=document_start,
            **kwargs,
        )


MemoryForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["MemoryForConditionalGeneration", "MemoryModel"]
