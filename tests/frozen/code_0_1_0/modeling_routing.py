"""Routing: each word decides what it takes from the sentences before and after, in every encoder layer."""

from dataclasses import replace

import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from .backbone import DocMTModel, Encoder, EncoderLayer
from .configuration_routing import RoutingConfig
from .context import CONTEXT_INPUTS, ContextForConditionalGeneration, ContextLayers
from .selection import Selectable, SelectedAttention, in_places, selectable, spread
from .sentence_cache import SelectedTranslation

PREVIOUS, CURRENT, NEXT = range(3)  # rows of the segment embedding


class RoutingEncoderLayer(EncoderLayer):
    """Encoder layer with attention to selected context between self-attention and feed-forward network."""

    def __init__(self, config: RoutingConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        self.context_attn = SelectedAttention(config, config.encoder_attention_heads)
        self.context_attn_layer_norm = nn.LayerNorm(config.d_model)

    def read_context(self, hidden_states: torch.Tensor, context: Selectable, **kwargs) -> torch.Tensor:
        """z = LayerNorm(x + h_AS) (equation 11), with the norm before where the backbone has it there."""

        def attend(states):
            return self.context_attn(states, context, **kwargs)

        return self.sublayer(attend, self.context_attn_layer_norm, hidden_states)


class RoutingEncoder(ContextLayers, Encoder):
    """Encoder layers, and beside each a context layer whose output the layer reads.

    Previous and next sentences share the context layers (section 4); segment embeddings tell previous, current and next
    sentences apart. Where layers normalise their input, what they read of a context layer is normalised, too.
    """

    layer_class = RoutingEncoderLayer
    tells_next = True  # a sentence is read otherwise where it is the next one

    def __init__(self, config: RoutingConfig):
        super().__init__(config)
        self.segment_embedding = nn.Embedding(3, config.d_model)
        self.add_context_layers(config, config.encoder_layers)

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        context_input_ids=None,
        context_attention_mask=None,
        context_offsets=None,
        context_is_target=None,
        context=None,
        **kwargs,
    ) -> BaseModelOutput:
        """As the backbone's, with context inputs; without them there is no context.

        `context` may take their place: outputs of the context layers, (B, C, L, D) each, and their mask (B, C, L).
        """
        if context is None:
            inputs = (input_ids, context_input_ids, context_attention_mask, context_offsets, context_is_target)
            context = self.context_outputs(*in_places(self.config, *inputs))
        outputs, mask = context
        context = selectable(self.config, outputs[0], mask, words=input_ids.shape[1])

        def read(layer: RoutingEncoderLayer, hidden_states, **kwargs):
            return layer.read_context(hidden_states, replace(context, states=outputs[layer.layer_idx]), **kwargs)

        return super().forward(input_ids=input_ids, attention_mask=attention_mask, then=read, **kwargs)

    def embed(self, input_ids, positions, segments=None):
        """As the backbone's, with segment embeddings: those of the current sentence, or `segments` (B, 1)."""
        if segments is None:
            segments = torch.full_like(input_ids[:, :1], CURRENT)
        return self.embed_inputs(input_ids, self.position_encoding(positions) + self.segment_embedding(segments)), {}

    def context_outputs(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Outputs of all context layers for sentences (B, C, L) in their places, (B, C, L, D) each, and the mask."""
        is_next = torch.arange(ids.shape[1], device=ids.device) >= self.config.past_context
        return spread(self.read_context, ids, mask, is_next)

    def read_context(self, input_ids, attention_mask, is_next: torch.Tensor) -> list[torch.Tensor]:
        """Sentences (P, L), which of them are next ones (P,) -> outputs of all context layers, (P, L, D) each."""
        roles = torch.where(is_next, NEXT, PREVIOUS)[:, None]
        hidden_states, _ = self.embed(input_ids, self.positions(input_ids, attention_mask), roles)
        seen, outputs = self.mask(hidden_states, attention_mask), []
        for layer in self.context_layers:
            hidden_states = layer(hidden_states, seen)
            outputs.append(self.context_layer_norm(hidden_states) if self.config.normalize_before else hidden_states)
        return outputs


class RoutingModel(DocMTModel):
    """Encoder with context and a plain decoder."""

    encoder_class = RoutingEncoder
    encoder_input_names = CONTEXT_INPUTS


class RoutingForConditionalGeneration(SelectedTranslation, ContextForConditionalGeneration):
    """Routing of context from the sentences before and after, word by word (Fei et al. 2022); see `RoutingConfig`.

    The parts are `RoutingEncoder`, `Selection` and `SelectedAttention`. A neighbour that the document has not gives
    nothing, and the other keeps its share.
    """

    config_class = RoutingConfig
    model_class = RoutingModel


RoutingForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["RoutingForConditionalGeneration", "RoutingModel"]
