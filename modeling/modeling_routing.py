"""Routing: each word decides what it takes from the sentences before and after, in every encoder layer."""

import torch
from torch import nn
from transformers import GenerationMixin

from .configuration_routing import RoutingConfig
from .context_attention import ContextForConditionalGeneration, fill_with_zeros, move_affine
from .context_cache import ContextLayersTranslator
from .context_inputs import CONTEXT_INPUTS, ContextLayers, by_offset, given_context
from .context_selection import SelectedAttention, SelectedStates, adapt_selection, selectable
from .layers import EncoderLayer
from .modeling_docmt import DocMTModel, Encoder

PREVIOUS, CURRENT, NEXT = range(3)  # rows of the segment embedding


class RoutingEncoderLayer(EncoderLayer):
    """Encoder layer with attention to selected context between self-attention and feed-forward network."""

    def __init__(self, config: RoutingConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        selected = SelectedStates if config.selection_weighs == "states" else SelectedAttention
        self.context_attn = selected(config, config.encoder_attention_heads)
        self.context_attn_layer_norm = nn.LayerNorm(config.d_model)

    def start_neutral(self) -> None:
        fill_with_zeros(self.context_attn.attn.out_proj)
        if not self.normalize_before:
            move_affine(self.self_attn_layer_norm, self.context_attn_layer_norm)

    def self_attention_block(
        self,
        hidden_states,
        attention_mask,
        cache=None,
        context_mask: torch.Tensor | None = None,
        context_present: torch.Tensor | None = None,  # (B, C) bool, or (B, 1)
        context_tokens: torch.Tensor | None = None,  # of `SelectedStates`
        context_words: torch.Tensor | None = None,
        **layer_inputs,
    ):
        """Self-attention and z = LayerNorm(x + h_AS) (equation 11), with the norm before where the others have it."""
        hidden_states = super().self_attention_block(hidden_states, attention_mask, cache, **layer_inputs)
        states = self.normed(hidden_states, self.context_attn_layer_norm)
        context_states = layer_inputs[f"context_states_{self.layer_idx}"]  # (B, C, L, D)
        inputs = (context_states, context_mask, context_present)
        if context_tokens is not None:
            inputs += (context_tokens, context_words)
        output = self.context_attn(states, *inputs)
        return self.with_residual(hidden_states, output, self.context_attn_layer_norm)


class RoutingEncoder(ContextLayers, Encoder):
    """Encoder layers, each with a context layer whose output it reads.

    Previous and next sentences share the context layers (section 4); segment embeddings distinguish previous, current
    and next sentences. Where layers normalise their input, what they read of a context layer is normalised, too.
    """

    config_class = RoutingConfig
    layer_class = RoutingEncoderLayer
    distinguishes_next = True  # a sentence is read otherwise where it is the next one

    def __init__(self, config: RoutingConfig):
        super().__init__(config)
        self.segment_embedding = nn.Embedding(3, config.d_model)
        self.add_context_layers(config, config.encoder_layers)

    def start_neutral(self) -> None:
        super().start_neutral()
        fill_with_zeros(self.segment_embedding)

    def layer_inputs(
        self,
        input_ids,
        positions,
        attention_mask=None,
        context: tuple[list[torch.Tensor], torch.Tensor] | None = None,
        **kwargs,
    ):
        """The outputs of the context layers, `context_states_0` (B, C, L, D) for layer 0 and so on, and their mask.

        `context` may replace the context inputs: outputs of the context layers, (B, C, L, D) each, and their mask
        (B, C, L). Without both the model reads no context.
        """
        if context is None:
            context = self.context_outputs(*by_offset(self.config, input_ids, *given_context(kwargs)))
        outputs, mask = context
        states = {f"context_states_{layer}": output for layer, output in enumerate(outputs)}
        if self.config.selection_weighs == "attention":
            return states | selectable(self.config, outputs[0], mask, words=input_ids.shape[1])
        words = None if attention_mask is None else attention_mask.bool()
        inputs = selectable(self.config, outputs[0][:, :1], mask.any(dim=1, keepdim=True), words=input_ids.shape[1])
        return states | inputs | {"context_tokens": mask, "context_words": words}

    def embed(self, input_ids, positions, segments: torch.Tensor | None = None, **layer_inputs):
        """With segment embeddings: those of the current sentence, or `segments` (B, 1)."""
        if segments is None:
            segments = torch.full((input_ids.shape[0], 1), CURRENT, device=input_ids.device)
        return self.embed_with(input_ids, self.position_encoding(positions) + self.segment_embedding(segments))

    def context_outputs(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Outputs of all context layers for sentences (B, C, L) in order, (B, C, L, D) each, and the mask."""
        is_next = torch.arange(ids.shape[1], device=ids.device) >= self.config.past_context
        return self.read_present(ids, mask, is_next)

    def read_context(self, input_ids, attention_mask, is_next: torch.Tensor) -> list[torch.Tensor]:
        """Sentences (P, L), which of them are next ones (P,) -> outputs of all context layers, (P, L, D) each."""
        roles = torch.where(is_next, NEXT, PREVIOUS)[:, None]
        hidden_states = self.embed(input_ids, self.positions(input_ids, attention_mask), roles)
        mask, outputs = self.attention_mask(hidden_states, attention_mask), []
        for layer in self.context_layers:
            states = None if self.engine is None else self.engine.encode(self, hidden_states, attention_mask, [layer])
            hidden_states = layer(hidden_states, mask) if states is None else states
            outputs.append(self.context_layer_norm(hidden_states) if self.config.normalize_before else hidden_states)
        return outputs


class RoutingModel(DocMTModel):
    """Encoder with context and a plain decoder."""

    config_class = RoutingConfig
    encoder_class = RoutingEncoder
    encoder_input_names = CONTEXT_INPUTS


class RoutingForConditionalGeneration(ContextForConditionalGeneration, GenerationMixin):
    """Routing of context from the sentences before and after, word by word (Fei et al. 2022); see `RoutingConfig`.

    The parts are `RoutingEncoder`, `Selection` and `SelectedAttention`. A neighbour that the document has not gives
    nothing, and the other keeps its share.
    """

    config_class = RoutingConfig
    model_class = RoutingModel
    translator_class = ContextLayersTranslator

    def adapt_state_dict(self, state_dict, source_config):
        return adapt_selection(self, *super().adapt_state_dict(state_dict, source_config), source_config)


RoutingModel.register_for_auto_class("AutoModel")
RoutingForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["RoutingForConditionalGeneration", "RoutingModel"]
