"""Recurrent memory: a few vectors that every sentence reads and rewrites, carried through the document."""

from dataclasses import dataclass

import torch
from torch import nn
from transformers import GenerationMixin
from transformers.activations import ACT2FN
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)

from .configuration_docmt import DocMTConfig
from .configuration_memory import MemoryConfig
from .extended_forward import warn_without_context, with_inputs
from .layers import Attention, DecoderLayer, EncoderLayer, dropout
from .modeling_docmt import Decoder, DocMTForConditionalGeneration, DocMTModel, Encoder
from .segments import sinusoid
from .stream_strategies import STATE, StreamTranslation


class MemoryUnit(nn.Module):
    """Output and update attention of one layer's memory M (Feng et al. 2022, sections 3.2 and 3.3).

    The paper writes h~ = MHA(h, M, M) (equation 5) and leaves its residual open. By default it is added to
    the sentence state, h~ = h + dropout(MHA(h, M, M)): 16 vectors cannot replace the state of every word, and with the
    output projection at zero the layer is that of the sentence-level model. `memory_residual="none"` is the unchanged
    equation, without dropout, and cannot start neutral. The update (equations 2 to 4) is as written,
    M + PE is query and residual, and its norms come after the sum in any backbone, which keeps a memory that is
    rewritten thousands of times at the same scale. Where layers normalise their input (`normalize_before`), both
    attentions see the normalised state.
    """

    def __init__(self, config: DocMTConfig, num_heads: int, ffn_dim: int, layer_idx: int | None = None):
        super().__init__()
        self.dropout, self.activation_dropout = config.dropout, config.activation_dropout
        self.residual = config.memory_residual
        self.activation_fn = ACT2FN[config.activation_function]
        self.output_attn = Attention(config, num_heads, layer_idx, source_name="memory")
        if config.normalize_before:
            self.state_layer_norm = nn.LayerNorm(config.d_model)
        self.update_attn = Attention(config, num_heads)
        self.update_attn_layer_norm = nn.LayerNorm(config.d_model)
        self.fc1 = nn.Linear(config.d_model, ffn_dim)
        self.fc2 = nn.Linear(ffn_dim, config.d_model)
        self.final_layer_norm = nn.LayerNorm(config.d_model)

    def start_neutral(self) -> None:
        if self.residual == "none":
            raise ValueError(
                "memory_residual='none' replaces the sentence state by what is read from the memory, so that the "
                "model cannot begin with the translations of the sentence-level one: use 'add', or leave "
                "training.neutral_start out."
            )
        nn.init.zeros_(self.output_attn.out_proj.weight)
        nn.init.zeros_(self.output_attn.out_proj.bias)

    def read(self, hidden_states, memory, cache=None) -> tuple[torch.Tensor, torch.Tensor]:
        """Output attention: h (B, T, D), M (B or fewer, M, D) -> h~ (B, T, D), and the state that an update is from."""
        normed = self.state_layer_norm(hidden_states) if hasattr(self, "state_layer_norm") else hidden_states
        read = self.output_attn(normed, memory, cache)[0]
        if self.residual == "none":
            return read, normed
        return hidden_states + dropout(read, self.dropout, self.training), normed

    def update(self, memory: torch.Tensor, states: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Update attention: M^t (B or fewer, M, D), h^t (B, T, D), mask as attention takes it -> M^{t+1} (B, M, D)."""
        memory = memory.repeat_interleave(states.shape[0] // memory.shape[0], dim=0)
        slots = torch.arange(memory.shape[1], device=memory.device)
        memory = memory + sinusoid(slots, memory.shape[2]).to(memory.dtype)  # M^t + PE(M^t)
        gathered = self.update_attn(memory, states, attention_mask=mask)[0]
        memory = self.update_attn_layer_norm(memory + dropout(gathered, self.dropout, self.training))
        inner = dropout(self.activation_fn(self.fc1(memory)), self.activation_dropout, self.training)
        inner = dropout(self.fc2(inner), self.dropout, self.training)
        return self.final_layer_norm(memory + inner)


class MemoryLayer:
    """Base of encoder and decoder layers: some have a memory, read after self-attention.

    Such a layer returns its states, the state h^t (B, T, D) that an update is from, and the memory M^{t+1} (B, M, D)
    after the sentence, None unless `updates_memory`.
    """

    def __init__(self, config: DocMTConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        has_memory = layer_idx in config.layers_with_memory(self.side)
        self.memory_name = f"memory_{layer_idx}" if has_memory else None
        if has_memory:
            sizes = (getattr(config, f"{self.side}_{size}") for size in ("attention_heads", "ffn_dim"))
            self.memory = MemoryUnit(config, *sizes, layer_idx if self.side == "decoder" else None)

    def read_memory(self, hidden_states: torch.Tensor, cache=None, **layer_inputs):
        """States (B, T, D) that have read the memory, and h^t; None where the layer has no memory."""
        if self.memory_name is None:
            return hidden_states, None
        return self.memory.read(hidden_states, layer_inputs[self.memory_name], cache)

    def with_memory(self, hidden_states: torch.Tensor, state: torch.Tensor | None, **layer_inputs):
        """Output of the layer."""
        if self.memory_name is None:
            return hidden_states
        after = None
        if layer_inputs["updates_memory"]:
            after = self.memory.update(layer_inputs[self.memory_name], state, layer_inputs["memory_mask"])
        return hidden_states, state, after


class MemoryStack:
    """Base of encoder and decoder: the learned initial memory, and the update after a sentence.

    The memories of all layers that have one are concatenated, (B, slots, D) with slots = layers x `memory_size`.
    """

    def __init__(self, config: DocMTConfig):
        super().__init__(config)
        self.memory_layers = config.layers_with_memory(self.side)
        if self.memory_layers:
            self.initial_memory = nn.Embedding(len(self.memory_layers) * config.memory_size, config.d_model)
        self.post_init()

    def memory_before(self, memory, document_start, device: torch.device, *rows: int) -> torch.Tensor | None:
        """The memory that a batch of sentences reads, carried over or the initial one, (B or fewer, slots, D).

        `memory` None: all sentences start documents, and share one row; `document_start` (the rows of `memory`,) bool
        tells those that do. `rows`: how many it may have, those of the batch, or of the sources where some rows of the
        batch share one. Raises `ValueError` for a memory of another shape, or where the stack has none.
        """
        if not self.memory_layers:
            if memory is not None:
                raise ValueError(
                    f"{self.side}_memory was given, but this model has no memory in its {self.side} "
                    f"(memory_sides={self.config.memory_sides!r}): omit it."
                )
            return None
        slots = torch.arange(self.initial_memory.num_embeddings, device=device)
        initial = self.initial_memory(slots)[None]  # (1, slots, D)
        if memory is None:
            return initial
        memory = memory.to(initial.dtype)
        slots, dim = initial.shape[1:]
        if memory.dim() != 3 or memory.shape[1:] != (slots, dim) or memory.shape[0] not in rows:
            raise ValueError(
                f"{self.side}_memory must be the state of these {rows[0]} sentences, ({rows[0]}, {slots}, {dim}); got "
                f"{tuple(memory.shape)}: give the one that came out for the sentences before them, rows in this order."
            )
        if document_start is None:
            return memory
        if tuple(document_start.shape) != (memory.shape[0],):
            raise ValueError(
                f"document_start must have one truth value for each of the {memory.shape[0]} rows of "
                f"{self.side}_memory, got shape {tuple(document_start.shape)}."
            )
        return torch.where(document_start.bool()[:, None, None], initial, memory)

    def by_layer(self, memory: torch.Tensor | None) -> dict[int, torch.Tensor]:
        """(B, slots, D) -> {layer: (B, M, D)}"""
        if memory is None:
            return {}
        return dict(zip(self.memory_layers, memory.split(self.config.memory_size, dim=1)))

    def memory_inputs(self, memory: torch.Tensor | None, updates: bool, batch: int, attention_mask=None) -> dict:
        """Layer inputs: `memory_3` (B or fewer, M, D) for layer 3 and so on, whether it is updated, mask of the update.

        `attention_mask` (B, T), 1 = token that is written into the memory.
        """
        if memory is None:
            return {}
        mask = self.update_mask(batch, attention_mask, memory.device) if updates else None
        memories = {f"memory_{layer}": part for layer, part in self.by_layer(memory).items()}
        return memories | {"updates_memory": updates, "memory_mask": mask}

    def update_mask(self, batch: int, attention_mask: torch.Tensor | None, device: torch.device):
        """Mask of update attention, as attention takes it, from one of tokens (B, T)."""
        if attention_mask is None:
            return None
        return create_bidirectional_mask(
            config=self.config,
            inputs_embeds=self.empty_states(batch, self.config.memory_size, device),
            attention_mask=attention_mask,
            encoder_hidden_states=self.empty_states(*attention_mask.shape, device),
        )

    def memory_outputs(self, layer_outputs: dict[int, tuple]) -> dict:
        """From the layers' outputs: the memory after the sentence (B, slots, D), and {layer: h^t (B, T, D)}."""
        after = [memory for _, memory in layer_outputs.values() if memory is not None]
        return {
            f"{self.side}_memory": torch.cat(after, dim=1) if after else None,
            "memory_states": {layer: state for layer, (state, _) in layer_outputs.items()},
        }

    def memory_after(self, memory, states: dict[int, torch.Tensor], attention_mask=None) -> torch.Tensor | None:
        """M^{t+1} (B, slots, D) from M^t (B or fewer, slots, D) and the h^t (B, T, D) that a forward gave; 1 = token.

        Outside of a forward: for training that goes back through the updates of earlier sentences.
        """
        if memory is None:
            return None
        mask = self.update_mask(next(iter(states.values())).shape[0], attention_mask, memory.device)
        return torch.cat(
            [self.layers[i].memory.update(part, states[i], mask) for i, part in self.by_layer(memory).items()], dim=1
        )


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
    follows the chosen hypothesis. `translate_documents` (strategy `stream`) and `translate_stream` carry the state.
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
        """As in the backbone, with the memories and `document_start` described above.

        Where `labels` alone tell the target, so do they which of its tokens are written into the memory. Raises
        `ValueError` for a training step of transformers' `Trainer`, which passes no memory from batch to batch.
        """
        of_trainer = self.training and kwargs.get("num_items_in_batch") is not None
        if of_trainer and all(kwargs.get(name) is None for name in self.context_arguments):
            raise ValueError(
                "a training step without a memory: this trainer does not carry it from sentence to sentence. Train by "
                "`docmt train` or hf_docmt.training.stream_trainer.StreamTrainer; give document_start=torch.ones(rows, "
                "dtype=torch.bool) if every sentence is its own document."
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
        """A state (fewer rows, slots, D) with empty rows after it for documents that start, (rows, slots, D)."""
        return {
            name: torch.cat([state, state.new_zeros(rows - state.shape[0], *state.shape[1:])])
            for name, state in memory.items()
        }


MemoryModel.register_for_auto_class("AutoModel")
MemoryForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["MemoryForConditionalGeneration", "MemoryModel"]
