"""Recurrent memory: a few vectors that every sentence reads and rewrites, carried through the document."""

from dataclasses import dataclass

import torch
from transformers import GenerationMixin
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)

from .configuration_memory import MemoryConfig
from .extended_forward import warn_without_context, with_inputs
from .layers import DecoderLayer, EncoderLayer
from .memory_unit import MemoryLayer, MemoryStack
from .modeling_docmt import Decoder, DocMTForConditionalGeneration, DocMTModel, Encoder
from .stream_strategies import STATE, StreamTranslation


class MemoryEncoderLayer(MemoryLayer, EncoderLayer):
    """Encoder layer with a memory, in some layers, which is read after self-attention."""

    def forward(self, hidden_states, attention_mask=None, **layer_inputs):
        hidden_states = self.self_attention_block(hidden_states, attention_mask, **layer_inputs)
        hidden_states, state = self.read_memory(hidden_states, **layer_inputs)
        return self.with_memory(self.feed_forward_block(hidden_states), state, **layer_inputs)


class MemoryDecoderLayer(MemoryLayer, DecoderLayer):
    """Decoder layer with a memory, in some layers, which is read between self-attention and attention to the source."""

    def forward(
        self,
        hidden_states,
        attention_mask=None,
        encoder_hidden_states=None,
        encoder_attention_mask=None,
        cache=None,
        **layer_inputs,
    ):
        source = (encoder_hidden_states, encoder_attention_mask)
        hidden_states = self.self_attention_block(hidden_states, attention_mask, cache, **layer_inputs)
        hidden_states, state = self.read_memory(hidden_states, cache, **layer_inputs)
        hidden_states = self.cross_attention_block(hidden_states, *source, cache, **layer_inputs)
        return self.with_memory(self.feed_forward_block(hidden_states), state, **layer_inputs)


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
    config_class = MemoryConfig
    layer_class = MemoryEncoderLayer

    def layer_inputs(
        self, input_ids, positions, attention_mask=None, encoder_memory=None, document_start=None, **kwargs
    ):
        """From the memory before the sentences, (B, slots, D), and which of them start documents, (B,)."""
        memory = self.memory_before(encoder_memory, document_start, input_ids.device, input_ids.shape[0])
        return self.memory_inputs(memory, True, input_ids.shape[0], attention_mask)

    def build_output(self, outputs, layer_inputs, input_ids, attention_mask=None, **kwargs):
        plain = super().build_output(outputs, layer_inputs, input_ids)
        return MemoryEncoderOutput(**plain, **self.memory_outputs(outputs.layer_outputs))


class MemoryDecoder(MemoryStack, Decoder):
    config_class = MemoryConfig
    layer_class = MemoryDecoderLayer

    def layer_inputs(
        self,
        input_ids,
        positions,
        attention_mask=None,
        encoder_hidden_states=None,
        cache=None,
        memory: torch.Tensor | None = None,  # (B or fewer, slots, D)
        document_start: torch.Tensor | None = None,  # the rows of `memory`
        **kwargs,
    ):
        """The memory is updated where no cache was given: with one the sentence is not complete yet."""
        batch, sources = input_ids.shape[0], encoder_hidden_states.shape[0]
        memory = self.memory_before(memory, document_start, input_ids.device, sources, batch)
        if memory is not None and cache is not None and memory.shape[0] == 1:
            memory = memory.expand(sources, -1, -1)  # rows of a cache are those of sources
        return self.memory_inputs(memory, cache is None, batch, attention_mask)

    def build_output(self, outputs, layer_inputs, input_ids, cache=None, **kwargs):
        plain = super().build_output(outputs, layer_inputs, input_ids)
        if cache is not None:
            return MemoryDecoderOutput(**plain)
        return MemoryDecoderOutput(**plain, **self.memory_outputs(outputs.layer_outputs))


class MemoryModel(DocMTModel):
    """Encoder and decoder with their memories."""

    config_class = MemoryConfig
    encoder_class = MemoryEncoder
    decoder_class = MemoryDecoder
    encoder_input_names = ("encoder_memory", "document_start")
    decoder_input_names = ("decoder_memory", "document_start")

    def decoder_inputs(self, *target_and_source, decoder_memory=None, document_start=None):
        return {"memory": decoder_memory, "document_start": document_start}

    def build_output(self, encoder_outputs, decoder_outputs) -> MemoryModelOutput:
        return MemoryModelOutput(
            **super().build_output(encoder_outputs, decoder_outputs),
            encoder_memory=getattr(encoder_outputs, "encoder_memory", None),  # states alone may have been given
            decoder_memory=decoder_outputs.decoder_memory,
            memory_states=(getattr(encoder_outputs, "memory_states", None), decoder_outputs.memory_states),
        )


class MemoryForConditionalGeneration(StreamTranslation, DocMTForConditionalGeneration, GenerationMixin):
    """Transformer with recurrent memory (Feng et al. 2022).

    A sentence at a time; the state goes in and comes out. `encoder_memory` and `decoder_memory` (B, slots, D) are what
    the sentences before have left, None or `document_start` (B,) bool true = the learned initial memory. The output has
    those for the next sentences. The decoder's is complete when the sentence is: it comes out of a pass over all of its
    tokens (decoder input from the start token on), not where a `cache` is given, so that in decoding it
    follows the chosen hypothesis. `translate_documents` (strategy `stream`) and `translate_stream` carry the state by
    themselves.
    """

    config_class = MemoryConfig
    model_class = MemoryModel
    output_class = MemoryLMOutput
    per_source_inputs = ("attention_mask", "encoder_memory", "decoder_memory", "document_start")
    context_arguments = ("document_start", "encoder_memory", "decoder_memory")

    def check_context(self, arguments):
        stream = "for translation in model.translate_stream(sentences, tokenizer): ..."
        warn_without_context(self, arguments, f"{stream}, which carries the memory from one sentence to the next")

    @with_inputs(DocMTForConditionalGeneration.forward, "encoder_memory", "decoder_memory", "document_start")
    def forward(self, *args, **kwargs):
        """As the backbone's, with the memories and `document_start` described above.

        Where `labels` alone tell the target, so do they which of its tokens are written into the memory. Raises
        `ValueError` for a training step of transformers' `Trainer`, which passes no memory from batch to batch.
        """
        of_trainer = self.training and kwargs.get("num_items_in_batch") is not None
        if of_trainer and all(kwargs.get(name) is None for name in self.context_arguments):
            raise ValueError(
                "a training step without a memory: this trainer does not carry it from sentence to sentence. Train by "
                "`docmt train` or hf_docmt.training.stream_trainer.StreamTrainer; give document_start=torch.ones(rows, "
                "dtype=torch.bool) if every sentence is to be a document of its own."
            )
        target = (kwargs.get(f"decoder_{name}") for name in ("input_ids", "attention_mask"))
        if kwargs.get("labels") is not None and all(states is None for states in target):
            kwargs["decoder_attention_mask"] = (kwargs["labels"] != -100).long()
        return super().forward(*args, **kwargs)

    @staticmethod
    def memory_after(outputs) -> dict[str, torch.Tensor]:
        """The state (B, slots, D) that a pass over whole sentences gave out, as `forward` takes it for the next."""
        return {name: outputs[name] for name in STATE if outputs.get(name) is not None}

    @staticmethod
    def memory_with_rows(memory: dict[str, torch.Tensor], rows: int) -> dict[str, torch.Tensor]:
        """A state (fewer rows, slots, D) with empty rows behind it for documents that start, (rows, slots, D)."""
        return {
            name: torch.cat([state, state.new_zeros(rows - state.shape[0], *state.shape[1:])])
            for name, state in memory.items()
        }


MemoryModel.register_for_auto_class("AutoModel")
MemoryForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["MemoryForConditionalGeneration", "MemoryModel"]
