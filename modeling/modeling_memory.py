"""Recurrent memory: a few vectors that every sentence reads and rewrites, carried through the document."""

from dataclasses import dataclass

import torch
from torch import nn
from transformers.activations import ACT2FN
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)

from .backbone import (
    Attention,
    Decoder,
    DecoderLayer,
    DocMTForConditionalGeneration,
    DocMTModel,
    Encoder,
    EncoderLayer,
)
from .configuration_memory import MemoryConfig
from .linear import Linear
from .segments import sinusoid
from .streaming import StreamTranslation


class MemoryUnit(nn.Module):
    """Output and update attention of one layer's memory M (Feng et al. 2022, sections 3.2 and 3.3).

    The paper writes h~ = MHA(h, M, M) (equation 5) and leaves open what stands around it. Here it is added to the
    sentence state, h~ = h + MHA(h, M, M): 16 vectors cannot replace the state of every word, and with the output
    projection at zero the layer is that of the sentence-level model. The update (equations 2 to 4) is as written,
    M + PE is query and residual, and its norms come after the sum in any backbone, which keeps a memory that is
    rewritten thousands of times at the same scale. Where layers normalise their input (`normalize_before`), both
    attentions see the normalised state.
    """

    def __init__(self, config: MemoryConfig, num_heads: int, ffn_dim: int, cache_index: int | None = None):
        super().__init__()
        self.dropout, self.activation_dropout = config.dropout, config.activation_dropout
        self.activation_fn = ACT2FN[config.activation_function]
        self.output_attn = Attention(config, num_heads, cache_index)
        if config.normalize_before:
            self.state_layer_norm = nn.LayerNorm(config.d_model)
        self.update_attn = Attention(config, num_heads)
        self.update_attn_layer_norm = nn.LayerNorm(config.d_model)
        self.fc1 = Linear(config.d_model, ffn_dim)
        self.fc2 = Linear(ffn_dim, config.d_model)
        self.final_layer_norm = nn.LayerNorm(config.d_model)

    def read(self, hidden_states, memory, past_key_values=None, **kwargs) -> tuple[torch.Tensor, torch.Tensor]:
        """Output attention: h (B, T, D), M (B or fewer, M, D) -> h~ (B, T, D), and the state that an update is from."""
        normed = self.state_layer_norm(hidden_states) if hasattr(self, "state_layer_norm") else hidden_states
        read = self.output_attn(normed, memory, past_key_values, **kwargs)[0]
        return hidden_states + nn.functional.dropout(read, self.dropout, self.training), normed

    def update(self, memory: torch.Tensor, states: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Update attention: M^t (B, M, D), h^t (B, T, D), `mask` as attention takes it -> M^{t+1} (B, M, D)."""
        places = torch.arange(memory.shape[1], device=memory.device)
        memory = memory + sinusoid(places, memory.shape[2]).to(memory.dtype)  # M^t + PE(M^t)
        gathered = self.update_attn(memory, states, attention_mask=mask)[0]
        memory = self.update_attn_layer_norm(memory + nn.functional.dropout(gathered, self.dropout, self.training))
        inner = nn.functional.dropout(self.activation_fn(self.fc1(memory)), self.activation_dropout, self.training)
        inner = nn.functional.dropout(self.fc2(inner), self.dropout, self.training)
        return self.final_layer_norm(memory + inner)


class MemoryEncoderLayer(EncoderLayer):
    """Self-attention, output attention where the layer has a memory, feed-forward network."""

    def __init__(self, config: MemoryConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        if layer_idx in config.layers_with_memory("encoder"):
            self.memory = MemoryUnit(config, config.encoder_attention_heads, config.encoder_ffn_dim)

    def forward(self, hidden_states, attention_mask=None, memory=None, memory_states=None, **kwargs) -> torch.Tensor:
        """`memory` {layer: (B, M, D)}; into `memory_states` goes the layer's h^t, from which its memory is updated."""

        def attend(states):
            return self.self_attn(states, attention_mask=attention_mask, **kwargs)[0]

        hidden_states = self.sublayer(attend, self.self_attn_layer_norm, hidden_states)
        if self.layer_idx in memory:
            mine = memory[self.layer_idx]
            hidden_states, memory_states[self.layer_idx] = self.memory.read(hidden_states, mine, **kwargs)
        return self.sublayer(self.feed_forward, self.final_layer_norm, hidden_states)


class MemoryDecoderLayer(DecoderLayer):
    """Causal self-attention, output attention where the layer has a memory, attention to the source, feed-forward."""

    def __init__(self, config: MemoryConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        layers = config.layers_with_memory("decoder")
        if layer_idx in layers:
            cache_index = config.decoder_layers + layers.index(layer_idx)  # after those of attention to the source
            self.memory = MemoryUnit(config, config.decoder_attention_heads, config.decoder_ffn_dim, cache_index)

    def forward(
        self,
        hidden_states,
        attention_mask=None,
        encoder_hidden_states=None,
        encoder_attention_mask=None,
        past_key_values=None,
        memory=None,
        memory_states=None,
        **kwargs,
    ) -> torch.Tensor:
        """As in `MemoryEncoderLayer`, `memory` with as many rows as the batch, or one for the rows of a source."""

        def attend(states):
            return self.self_attn(states, past_key_values=past_key_values, attention_mask=attention_mask, **kwargs)[0]

        def attend_source(states):
            return self.encoder_attn(
                states, encoder_hidden_states, past_key_values, attention_mask=encoder_attention_mask, **kwargs
            )[0]

        hidden_states = self.sublayer(attend, self.self_attn_layer_norm, hidden_states)
        if self.layer_idx in memory:
            mine = memory[self.layer_idx]
            hidden_states, memory_states[self.layer_idx] = self.memory.read(
                hidden_states, mine, past_key_values, **kwargs
            )
        hidden_states = self.sublayer(attend_source, self.encoder_attn_layer_norm, hidden_states)
        return self.sublayer(self.feed_forward, self.final_layer_norm, hidden_states)


class MemoryStack:
    """What encoder and decoder share: the learned initial memory, and the update after a sentence.

    The memories of all layers that have one stand behind each other, (B, slots, D) with slots = layers x `memory_size`.
    """

    side: str  # "encoder" or "decoder"

    def add_memory(self, config: MemoryConfig) -> None:
        self.memory_layers = config.layers_with_memory(self.side)
        if self.memory_layers:
            self.initial_memory = nn.Embedding(len(self.memory_layers) * config.memory_size, config.d_model)
        self.post_init()

    def memory_before(self, memory, document_start, batch: int) -> torch.Tensor | None:
        """The memory that a batch of sentences reads, carried over or the initial one, (B or fewer, slots, D).

        `memory` None: all sentences start documents, and share one row; `document_start` (the rows of `memory`,) bool
        tells those that do. Raises `ValueError` for a memory of another shape, or where the stack has none.
        """
        if not self.memory_layers:
            if memory is not None:
                raise ValueError(
                    f"{self.side}_memory was given, but this model has no memory in its {self.side} "
                    f"(memory_sides={self.config.memory_sides!r}): leave it out."
                )
            return None
        initial = self.initial_memory.weight[None]  # (1, slots, D)
        if memory is None:
            return initial
        slots, dim = initial.shape[1:]
        if memory.dim() != 3 or memory.shape[1:] != (slots, dim) or not memory.shape[0] or batch % memory.shape[0]:
            raise ValueError(
                f"{self.side}_memory must be the state of these {batch} sentences, ({batch}, {slots}, {dim}); got "
                f"{tuple(memory.shape)}: give the one that came out for the sentences before them, rows in this order."
            )
        if document_start is None:
            return memory
        if tuple(document_start.shape) != (memory.shape[0],):
            raise ValueError(
                f"document_start must have one truth value for each of the {memory.shape[0]} rows of "
                f"{self.side}_memory, got shape {tuple(document_start.shape)}."
            )
        return torch.where(document_start.bool()[:, None, None], initial.to(memory.dtype), memory)

    def by_layer(self, memory: torch.Tensor | None) -> dict[int, torch.Tensor]:
        """(B, slots, D) -> {layer: (B, M, D)}"""
        if memory is None:
            return {}
        return dict(zip(self.memory_layers, memory.split(self.config.memory_size, dim=1)))

    def memory_after(self, memory, states: dict[int, torch.Tensor], attention_mask=None) -> torch.Tensor | None:
        """M^{t+1} (B, slots, D) from M^t (B or fewer, slots, D) and the h^t (B, T, D) of the layers; 1 = token."""
        if memory is None:
            return None
        batch = next(iter(states.values())).shape[0]
        memory = memory.repeat_interleave(batch // memory.shape[0], dim=0)
        updated = []
        for layer, one in self.by_layer(memory).items():
            mask = attention_mask
            if mask is not None:
                mask = create_bidirectional_mask(
                    config=self.config,
                    inputs_embeds=one,
                    attention_mask=mask,
                    encoder_hidden_states=states[layer],
                )
            updated.append(self.layers[layer].memory.update(one, states[layer], mask))
        return torch.cat(updated, dim=1)


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
        kwargs |= {"memory": self.by_layer(memory), "memory_states": states, "return_dict": True}
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
        memory = self.memory_before(**kwargs.pop("embed_inputs"), batch=input_ids.shape[0])
        states: dict[int, torch.Tensor] = {}
        kwargs |= {"memory": self.by_layer(memory), "memory_states": states, "return_dict": True}
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
    decoder_place_names = ("decoder_memory", "document_start")

    def forward(self, input_ids=None, attention_mask=None, encoder_outputs=None, encoder_memory=None, **kwargs):
        if encoder_outputs is None:
            not_for_encoder = ("decoder_input_ids", "decoder_attention_mask", "past_key_values", "use_cache")
            others = {name: value for name, value in kwargs.items() if name not in not_for_encoder}
            others.pop("decoder_memory", None)
            encoder_outputs = self.encoder(
                input_ids=input_ids, attention_mask=attention_mask, encoder_memory=encoder_memory, **others
            )
        return super().forward(attention_mask=attention_mask, encoder_outputs=encoder_outputs, **kwargs)

    def decoder_embed_inputs(
        self, decoder_input_ids, encoder_outputs, past_key_values, decoder_memory=None, document_start=None
    ):
        return {"memory": decoder_memory, "document_start": document_start}

    def joined(self, encoder_outputs, decoder_outputs) -> MemoryModelOutput:
        return MemoryModelOutput(
            **super().joined(encoder_outputs, decoder_outputs),
            encoder_memory=encoder_outputs.encoder_memory,
            decoder_memory=decoder_outputs.decoder_memory,
            memory_states=(encoder_outputs.memory_states, decoder_outputs.memory_states),
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
        encoder_memory=None,
        decoder_memory=None,
        document_start=None,
        **kwargs,
    ):
        """As the backbone's, with the memories and `document_start` described above."""
        return super().forward(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            decoder_attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            encoder_memory=encoder_memory,
            decoder_memory=decoder_memory,
            document_start=document_start,
            **kwargs,
        )


MemoryForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["MemoryForConditionalGeneration", "MemoryModel"]
