"""Document Transformer: a context encoder, read by every layer of encoder and decoder through a gate."""

import torch
from torch import nn
from transformers import GenerationMixin

from .configuration_doct import DocTConfig
from .context_attention import ContextEncoderOutput, ContextForConditionalGeneration, fill_with_zeros, move_affine
from .context_cache import ContextLayersTranslator
from .context_inputs import CONTEXT_INPUTS, ContextLayers, by_offset, check_context, given_context, joined
from .context_selection import SelectedAttention, adapt_selection, selectable
from .context_strategies import JoinedContextTranslator
from .layers import DecoderLayer, EncoderLayer
from .modeling_docmt import Decoder, DocMTModel, Encoder

OPEN_GATE = 6.0  # g = 0.9975, where the gate still gets a gradient


class GatedContext(nn.Module):
    """Context attention of a layer: LayerNorm(g x + (1 - g) y), g = sigmoid(W_x x + W_y y) (Zhang et al. 2018, 3.3).

    y is context attention. Instead of a residual there is the gate; y has no dropout and the gate no bias, as in the
    released code. With norm before, attention and gate see the normalised x, and the sum is not normalised. Without
    any context y is nothing and x stays.
    """

    def __init__(self, config: DocTConfig, num_heads: int, layer_idx: int | None = None):
        super().__init__()
        self.normalize_before = config.normalize_before
        self.attn = SelectedAttention(config, num_heads, layer_idx, selects=config.selection == "routing")
        self.layer_norm = nn.LayerNorm(config.d_model)
        self.state_gate = nn.Linear(config.d_model, config.d_model, bias=False)  # W_x
        self.context_gate = nn.Linear(config.d_model, config.d_model, bias=False)  # W_y

    def forward(
        self,
        hidden_states: torch.Tensor,  # x (B, T, D)
        context_states: torch.Tensor,  # (S, C, L, D)
        context_mask: torch.Tensor | None,
        context_present: torch.Tensor,  # (S, C) bool
        cache=None,
    ) -> torch.Tensor:
        """(B, T, D) -> (B, T, D); S = B or fewer sources."""
        states = self.layer_norm(hidden_states) if self.normalize_before else hidden_states
        read = self.attn(states, context_states, context_mask, context_present, cache)  # y
        gate = torch.sigmoid(self.state_gate(states) + self.context_gate(read))
        present = context_present.any(dim=1).repeat_interleave(states.shape[0] // context_present.shape[0])  # (B,)
        mixed = torch.where(present[:, None, None], gate * hidden_states + (1 - gate) * read, hidden_states)
        return mixed if self.normalize_before else self.layer_norm(mixed)


class GatedContextBlock:
    """Adds context attention after the self-attention of a layer."""

    def start_neutral(self) -> None:
        """With the norm after, LayerNorm(x/2 + 0) = LayerNorm(x); with the norm before nearly neutral, g x.

        There the gate, which has no bias, is held open by a channel of its norm that is 1.
        """
        fill_with_zeros(self.context.attn.attn.out_proj, self.context.state_gate, self.context.context_gate)
        if not self.normalize_before:
            move_affine(self.self_attn_layer_norm, self.context.layer_norm)
            return
        self.context.layer_norm.weight[-1], self.context.layer_norm.bias[-1] = 0.0, 1.0
        self.context.state_gate.weight[:, -1] = OPEN_GATE

    def self_attention_block(self, hidden_states, attention_mask, cache=None, **layer_inputs):
        context = [layer_inputs.pop(f"context_{name}", None) for name in ("states", "mask", "present")]
        hidden_states = super().self_attention_block(hidden_states, attention_mask, cache, **layer_inputs)
        return self.context(hidden_states, *context, cache)


class DocTEncoderLayer(GatedContextBlock, EncoderLayer):
    """Self-attention, context attention, feed-forward network."""

    def __init__(self, config: DocTConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        self.context = GatedContext(config, config.encoder_attention_heads)


class DocTDecoderLayer(GatedContextBlock, DecoderLayer):
    """Self-attention, context attention, attention to the source, feed-forward network."""

    def __init__(self, config: DocTConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        self.context = GatedContext(config, config.decoder_attention_heads, layer_idx)


class DocTEncoder(ContextLayers, Encoder):
    """The context encoder, and the encoder that reads it."""

    config_class = DocTConfig
    layer_class = DocTEncoderLayer
    distinguishes_next = False  # a sentence is read in one way whether it is before or after the current one

    def __init__(self, config: DocTConfig):
        super().__init__(config)
        self.add_context_layers(config, config.context_layers)

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        context: tuple[list[torch.Tensor], torch.Tensor] | None = None,
        inputs_embeds: torch.Tensor | None = None,
        **kwargs,
    ) -> ContextEncoderOutput:
        """As in the backbone, with context inputs; without them the model reads no context.

        `context` may replace them: the context encoder's output (B, C, L, D) in a list, and its mask (B, C, L).
        """
        if context is None:
            inputs = (self.ids_of(input_ids, inputs_embeds), *given_context(kwargs))
            context = self.selected(*inputs) if self.config.selection == "routing" else self.joined(*inputs)
        (states,), mask = context
        context = {"context_states": states, "context_padding": mask, "inputs_embeds": inputs_embeds}
        return super().forward(input_ids=input_ids, attention_mask=attention_mask, **context, **kwargs)

    def layer_inputs(
        self, input_ids, positions, attention_mask=None, context_states=None, context_padding=None, **kwargs
    ):
        context = selectable(self.config, context_states, context_padding, words=input_ids.shape[1])
        return {"context_states": context_states, **context}

    def build_output(
        self, outputs, layer_inputs, input_ids, attention_mask=None, context_states=None, context_padding=None, **kwargs
    ):
        plain = super().build_output(outputs, layer_inputs, input_ids)
        return ContextEncoderOutput(**plain, context_states=context_states, context_mask=context_padding)

    def selected(self, *inputs) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Each context sentence for itself, in its column: states (B, C, L, D) in a list, mask (B, C, L)."""
        ids, mask = by_offset(self.config, *inputs)
        return self.read_present(ids, mask, torch.zeros_like(mask[0, :, 0]))

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
    config_class = DocTConfig
    layer_class = DocTDecoderLayer

    def layer_inputs(self, input_ids, positions, context_states=None, context_mask=None, **kwargs):
        words = input_ids.shape[0] // context_mask.shape[0] * input_ids.shape[1]
        return {"context_states": context_states, **selectable(self.config, context_states, context_mask, words)}


class DocTModel(DocMTModel):
    """Encoder and decoder that read the context encoder."""

    config_class = DocTConfig
    encoder_class = DocTEncoder
    decoder_class = DocTDecoder
    encoder_input_names = CONTEXT_INPUTS

    def decoder_inputs(self, decoder_input_ids, decoder_attention_mask, encoder_outputs, cache=None):
        """Raises `ValueError` for encoder outputs without context, or with that of other sentences."""
        states, mask = (getattr(encoder_outputs, f"context_{name}", None) for name in ("states", "mask"))
        rows = encoder_outputs.last_hidden_state.shape[0]
        if states is None or mask is None or states.shape[0] != rows or mask.shape != states.shape[:3]:
            raise ValueError(
                "encoder_outputs must come from this model's encoder: context_states (B, C, L, D) and context_mask of "
                f"these {rows} sentences are missing, or are of other ones."
            )
        return {"context_states": states, "context_mask": mask}


class DocTForConditionalGeneration(ContextForConditionalGeneration, GenerationMixin):
    """Document Transformer (Zhang et al. 2018), with auto-selection as in Fei et al. (2022); see `DocTConfig`.

    The second of its two training steps updates what is new alone: `training.freeze` in a recipe. Departures from the
    released code: context sentences are joined by the separator, not a blank, and without any x stays unchanged, where
    the released code reads a lone `</s>`.
    """

    config_class = DocTConfig
    model_class = DocTModel
    translator_class = JoinedContextTranslator  # a joined context is another one for every sentence: nothing to cache

    def __init__(self, config: DocTConfig):
        super().__init__(config)
        if config.selection == "routing":
            self.translator_class = ContextLayersTranslator

    def adapt_state_dict(self, state_dict, source_config):
        return adapt_selection(self, *super().adapt_state_dict(state_dict, source_config), source_config)


DocTModel.register_for_auto_class("AutoModel")
DocTForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["DocTForConditionalGeneration", "DocTModel"]
