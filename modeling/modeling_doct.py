"""Document Transformer: a context encoder, read by every layer of encoder and decoder through a gate."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from .backbone import Decoder, DecoderLayer, DocMTModel, Encoder, EncoderLayer
from .configuration_doct import DocTConfig
from .context import CONTEXT_INPUTS, ContextForConditionalGeneration, ContextLayers, check_context, joined
from .context_translation import ContextTranslator
from .cpu_inference import Linear
from .selection import Selectable, SelectedAttention, in_places, selectable, spread
from .sentence_cache import SelectedTranslation


class GatedContext(nn.Module):
    """Context attention of a layer: LayerNorm(g x + (1 - g) y), g = sigmoid(W_x x + W_y y) (Zhang et al. 2018, 3.3).

    y is context attention. Instead of a residual there is the gate; y has no dropout and the gate no bias, as in the
    released code. With norm before, attention and gate see the normalised x, and the sum is not normalised. Without
    any context y is nothing and x stays.
    """

    def __init__(self, config: DocTConfig, num_heads: int, cache_index: int | None = None):
        super().__init__()
        self.attn = SelectedAttention(config, num_heads, cache_index, selects=config.selection == "routing")
        self.layer_norm = nn.LayerNorm(config.d_model)
        self.state_gate = Linear(config.d_model, config.d_model, bias=False)  # W_x
        self.context_gate = Linear(config.d_model, config.d_model, bias=False)  # W_y

    def forward(self, layer: nn.Module, hidden_states: torch.Tensor, context: Selectable, **kwargs) -> torch.Tensor:
        """States (B, T, D) -> (B, T, D)"""
        states = self.layer_norm(hidden_states) if layer.normalize_before else hidden_states
        read = self.attn(states, context, **kwargs)
        gate = torch.sigmoid(self.state_gate(states) + self.context_gate(read))
        present = context.present.any(dim=1).repeat_interleave(len(states) // len(context.present))
        mixed = torch.where(present[:, None, None], gate * hidden_states + (1 - gate) * read, hidden_states)
        return mixed if layer.normalize_before else self.layer_norm(mixed)


def reading(context: Selectable) -> Callable:
    """What follows self-attention in encoder and decoder layers."""

    def read(layer, hidden_states, read_source=None, **kwargs):
        hidden_states = layer.context(layer, hidden_states, context, **kwargs)
        return hidden_states if read_source is None else read_source(hidden_states)

    return read


class DocTEncoderLayer(EncoderLayer):
    """Self-attention, context attention, feed-forward network."""

    def __init__(self, config: DocTConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        self.context = GatedContext(config, config.encoder_attention_heads)


class DocTDecoderLayer(DecoderLayer):
    """Self-attention, context attention, attention to the source, feed-forward network."""

    def __init__(self, config: DocTConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        cache_index = config.decoder_layers + layer_idx  # after those of attention to the source
        self.context = GatedContext(config, config.decoder_attention_heads, cache_index)


@dataclass
class DocTEncoderOutput(BaseModelOutput):
    """States of the current sentence (B, S, D), of its context (B, C, L, D), and which of those are there (B, C, L)."""

    context_states: torch.FloatTensor | None = None
    context_mask: torch.BoolTensor | None = None


class DocTEncoder(ContextLayers, Encoder):
    """The context encoder, and the encoder that reads it."""

    layer_class = DocTEncoderLayer
    tells_next = False  # a sentence is read in one way whatever its place

    def __init__(self, config: DocTConfig):
        super().__init__(config)
        self.add_context_layers(config, config.context_layers)

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
    ) -> DocTEncoderOutput:
        """As the backbone's, with context inputs; without them there is no context.

        `context` may take their place: the context encoder's output (B, C, L, D) in a list, and its mask (B, C, L).
        """
        if context is None:
            inputs = (input_ids, context_input_ids, context_attention_mask, context_offsets, context_is_target)
            context = self.selected(*inputs) if self.config.selection == "routing" else self.joined(*inputs)
        (states,), mask = context
        kwargs |= {"return_dict": True, "then": reading(selectable(self.config, states, mask, input_ids.shape[1]))}
        outputs = super().forward(input_ids=input_ids, attention_mask=attention_mask, **kwargs)
        return DocTEncoderOutput(**outputs, context_states=states, context_mask=mask)

    def selected(self, *inputs) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Each context sentence for itself, in its place: states (B, C, L, D) in a list, mask (B, C, L)."""
        ids, mask = in_places(self.config, *inputs)
        return spread(self.read_context, ids, mask, torch.zeros_like(mask[0, :, 0]))

    def read_context(self, input_ids, attention_mask, is_next=None) -> list[torch.Tensor]:
        """Sentences (P, L) -> states (P, L, D), in a list."""
        return [self.encode_context(input_ids, attention_mask.bool())]

    def joined(self, input_ids, ids, mask, offsets, is_target) -> tuple[list[torch.Tensor], torch.Tensor]:
        """All context sentences as one sequence: states (B, 1, L, D) in a list, mask (B, 1, L)."""
        if ids is None:
            ids = torch.full_like(input_ids[:, :1], self.config.pad_token_id)
            mask = torch.zeros_like(ids, dtype=torch.bool)
        else:
            check_context(self.config, input_ids, ids, mask, offsets, is_target)
            ids, mask = joined(self.config, ids, mask.bool(), offsets)
        return [self.encode_context(ids, mask)[:, None]], mask[:, None]


class DocTDecoder(Decoder):
    layer_class = DocTDecoderLayer

    def embed(self, input_ids, positions, context_states, context_mask):
        hidden_states, layer_inputs = super().embed(input_ids, positions)
        words = hidden_states.shape[0] // context_mask.shape[0] * hidden_states.shape[1]
        context = selectable(self.config, context_states, context_mask, words)
        return hidden_states, layer_inputs | {"then": reading(context)}


class DocTModel(DocMTModel):
    """Encoder and decoder that read the context encoder."""

    encoder_class = DocTEncoder
    decoder_class = DocTDecoder
    encoder_input_names = CONTEXT_INPUTS

    def decoder_embed_inputs(self, decoder_input_ids, encoder_outputs, past_key_values):
        """Raises `ValueError` for encoder outputs without context, or with that of other sentences."""
        states, mask = (getattr(encoder_outputs, f"context_{name}", None) for name in ("states", "mask"))
        rows = encoder_outputs.last_hidden_state.shape[0]
        if states is None or mask is None or states.shape[0] != rows or mask.shape != states.shape[:3]:
            raise ValueError(
                "encoder_outputs must come from this model's encoder: context_states (B, C, L, D) and context_mask of "
                f"these {rows} sentences are missing, or are of other ones."
            )
        return {"context_states": states, "context_mask": mask}


class DocTForConditionalGeneration(SelectedTranslation, ContextForConditionalGeneration):
    """Document Transformer (Zhang et al. 2018), with auto-selection as in Fei et al. (2022); see `DocTConfig`.

    The second of its two training steps updates what is new alone: `training.freeze` in a recipe. Departures from the
    released code: context sentences are joined by the separator, not a blank, and where there are none x stays as it
    is, while there a lone `</s>` is read.
    """

    config_class = DocTConfig
    model_class = DocTModel

    def translator(self, tokenizer, batch_size: int, generate_kwargs: dict) -> ContextTranslator:
        """A joined context is another one for every sentence, so that there is nothing to keep."""
        if self.config.selection == "routing":
            return super().translator(tokenizer, batch_size, generate_kwargs)
        return ContextTranslator(self, tokenizer, batch_size, generate_kwargs)


DocTForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["DocTForConditionalGeneration", "DocTModel"]
