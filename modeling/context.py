"""Context sentences read as sequences of their own: their encoding, and context attention in the decoder."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import BaseModelOutput

from .backbone import Attention, Decoder, DecoderLayer, DocMTForConditionalGeneration, DocMTModel, EncoderLayer
from .cpu_inference import Linear
from .segments import tokens_first

CONTEXT_INPUTS = ("context_input_ids", "context_attention_mask", "context_offsets", "context_is_target")


@dataclass
class ContextEncoderOutput(BaseModelOutput):
    """States of the current sentence (B, S, D), its context vectors (B, N, D), and which of them are there (B, N)."""

    context_states: torch.FloatTensor | None = None
    context_mask: torch.BoolTensor | None = None


class ContextAttention(nn.Module):
    """Attention to context vectors, as a sublayer of a layer, with or without a gate."""

    def __init__(self, config, num_heads: int, cache_index: int | None = None, gate: bool = False):
        super().__init__()
        self.attn = Attention(config, num_heads, cache_index)
        self.layer_norm = nn.LayerNorm(config.d_model)
        if gate:
            self.gate = Linear(config.d_model, 1)

    def sequential(self, layer: nn.Module, hidden_states: torch.Tensor, *context, **kwargs) -> torch.Tensor:
        """h + lambda c, with the layer's norm: states (B, T, D) -> (B, T, D); c is zero without context."""

        def read(states):
            return self.gated(self.attend(states, *context, **kwargs))

        return layer.sublayer(read, self.layer_norm, hidden_states)

    def parallel(self, layer: nn.Module, hidden_states: torch.Tensor, *context, **kwargs) -> torch.Tensor:
        """What is added to the output of attention to the source, lambda b: (B, T, D) -> (B, T, D).

        With norm after, b = norm(h + c), so that h is in both branches, and the gate sees their sum, as in the released
        code of Maka et al. (2024); the paper does not say how branches are joined. With norm before b = c, as the other
        branch has the residual.
        """
        normed = self.layer_norm(hidden_states) if layer.normalize_before else hidden_states
        read = nn.functional.dropout(self.attend(normed, *context, **kwargs), layer.dropout, layer.training)
        return self.gated(read if layer.normalize_before else self.layer_norm(hidden_states + read))

    def attend(self, states, context, mask, present, past_key_values=None, **kwargs) -> torch.Tensor:
        """c: states (B, T, D), context vectors (B or fewer, N, D), `present`: rows that have any -> (B, T, D)."""
        if context is None:
            return torch.zeros_like(states)
        read = self.attn(states, context, past_key_values, attention_mask=mask, **kwargs)[0]
        rows = present.repeat_interleave(read.shape[0] // present.shape[0])
        return torch.where(rows[:, None, None], read, torch.zeros_like(read))

    def gated(self, states: torch.Tensor) -> torch.Tensor:
        """lambda x, lambda = sigmoid(FFN(x)) (Maka et al. 2024, equation 5), where there is a gate."""
        return torch.sigmoid(self.gate(states)) * states if hasattr(self, "gate") else states


class ContextDecoderLayer(DecoderLayer):
    """Decoder layer with context attention after attention to the source, or beside it."""

    def __init__(self, config, layer_idx: int):
        super().__init__(config, layer_idx)
        if config.integration != "concatenate":
            cache_index = config.decoder_layers + layer_idx  # after those of attention to the source
            self.context = ContextAttention(config, config.decoder_attention_heads, cache_index, config.context_gate)


class ContextDecoder(Decoder):
    """Decoder that reads context vectors beside the source."""

    layer_class = ContextDecoderLayer

    def forward(self, encoder_hidden_states=None, encoder_attention_mask=None, embed_inputs=None, **kwargs):
        """As the backbone's; in `embed_inputs` `context_states` (B or fewer, N, D) and `context_mask` (the same, N)."""
        context, mask = embed_inputs["context_states"], embed_inputs["context_mask"]
        if self.config.integration == "concatenate":
            if context is not None:
                if encoder_attention_mask is None:
                    encoder_attention_mask = mask.new_ones(encoder_hidden_states.shape[:2])
                encoder_attention_mask = torch.cat([mask, encoder_attention_mask.to(mask.dtype)], dim=1)
                encoder_hidden_states = torch.cat([context, encoder_hidden_states], dim=1)
            embed_inputs = None
        return super().forward(
            encoder_hidden_states=encoder_hidden_states,
            encoder_attention_mask=encoder_attention_mask,
            embed_inputs=embed_inputs,
            **kwargs,
        )

    def embed(self, input_ids, positions, context_states=None, context_mask=None):
        hidden_states, layer_inputs = super().embed(input_ids, positions)
        if self.config.integration == "concatenate":
            return hidden_states, layer_inputs
        return hidden_states, layer_inputs | {"then": self.reading(hidden_states, context_states, context_mask)}

    def reading(self, hidden_states, context_states, context_mask) -> Callable:
        """What follows self-attention in a layer: attention to the source and to the context."""
        mask = present = None
        if context_states is not None:
            present = context_mask.any(dim=1)
            seen = context_mask | ~present[:, None]  # a softmax needs a key; what it finds there is left out
            sources, batch = context_states.shape[0], hidden_states.shape[0]
            mask = create_bidirectional_mask(
                config=self.config,
                inputs_embeds=hidden_states.view(sources, batch // sources * hidden_states.shape[1], -1),
                attention_mask=seen,
                encoder_hidden_states=context_states,
            )

        def read(layer, hidden_states, read_source, **kwargs):
            context = (context_states, mask, present)
            if self.config.integration == "sequential":
                return layer.context.sequential(layer, read_source(hidden_states), *context, **kwargs)
            return read_source(hidden_states) + layer.context.parallel(layer, hidden_states, *context, **kwargs)

        return read


class ContextModel(DocMTModel):
    """Encoder and decoder with context; the encoder's output holds the context vectors."""

    decoder_class = ContextDecoder
    encoder_input_names = CONTEXT_INPUTS

    def decoder_embed_inputs(self, decoder_input_ids, encoder_outputs, past_key_values):
        """Raises `ValueError` for encoder outputs without context, or with that of other sentences or another model."""
        if not hasattr(encoder_outputs, "context_states"):
            raise ValueError("encoder_outputs must come from this model's encoder: context_states is missing.")
        states, mask = encoder_outputs.context_states, encoder_outputs.context_mask
        if states is not None:
            rows, dim = encoder_outputs.last_hidden_state.shape[0], self.config.d_model
            if states.shape[0] != rows or states.shape[2] != dim or mask is None or mask.shape != states.shape[:2]:
                raise ValueError(
                    f"context_states must be the vectors of these {rows} sentences, ({rows}, N, {dim}), with a "
                    f"context_mask ({rows}, N); got {tuple(states.shape)}: give those that this model's encoder made."
                )
            mask = mask.bool()
        return {"context_states": states, "context_mask": mask}


class ContextLayers:
    """Encoder layers for the context alone, over the embeddings of the encoder that they are added to."""

    def add_context_layers(self, config, layers: int) -> None:
        self.context_layers = nn.ModuleList([EncoderLayer(config, i) for i in range(layers)])
        if config.normalize_before:
            self.context_layer_norm = nn.LayerNorm(config.d_model)
        self.post_init()

    def encode_context(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Ids and mask (B, N) -> states (B, N, D)."""
        hidden_states, layer_inputs = self.embed(ids, self.positions(ids, mask))
        seen = self.mask(hidden_states, mask | ~mask.any(dim=1, keepdim=True))  # a row without context has no key else
        for layer in self.context_layers:
            hidden_states = layer(hidden_states, seen, **layer_inputs)
        return self.context_layer_norm(hidden_states) if self.config.normalize_before else hidden_states


def joined(config, ids: torch.Tensor, mask: torch.Tensor, offsets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sentences (B, C, L) as one sequence a row in the document's order, `s1 <sep> s2 ... </s>`: (B, N), (B, N)."""
    present = mask.any(dim=2)
    far = torch.iinfo(offsets.dtype).max
    order = offsets.masked_fill(~present, far).sort(dim=1, stable=True).indices[..., None].expand_as(ids)
    ids, mask = ids.gather(1, order), mask.gather(1, order)
    present = mask.any(dim=2)
    ends = mask & (mask.flip(2).cumsum(dim=2).flip(2) == 1)  # the last token of each sentence, </s>
    last = present & (present.flip(1).cumsum(dim=1).flip(1) == 1)
    ids = ids.masked_fill(ends & ~last[..., None], config.sep_token_id).flatten(1)  # (B, C*L)
    mask = mask.flatten(1)
    width = max(int(mask.sum(dim=1).max()), 1)
    front = tokens_first(mask)[:, :width]
    mask = mask.gather(1, front)
    return ids.gather(1, front).masked_fill(~mask, config.pad_token_id), mask


def sentences_to_read(mask: torch.Tensor) -> torch.Tensor:
    """Which sentences of (B, C, L) go through layers, (B, C): those that are there, or where none is the first place.

    So the same parameters take part in every step, as training with several processes needs it.
    """
    present = mask.any(dim=2)
    if not present.any():
        present[:1, :1] = True
    return present


def check_context(
    config, input_ids, context_input_ids, context_attention_mask, context_offsets, context_is_target=None
) -> None:
    """Raise `ValueError` for context inputs that do not belong together, or of sentences that the model cannot tell."""
    if context_attention_mask is None or context_offsets is None:
        raise ValueError(
            "context_input_ids (B, C, L) was given without context_attention_mask (B, C, L) or context_offsets (B, C): "
            "give all three, as the collator makes them."
        )
    shape = tuple(context_input_ids.shape)
    if len(shape) != 3 or shape[0] != input_ids.shape[0]:
        raise ValueError(f"context_input_ids must be ({input_ids.shape[0]}, C, L), as input_ids has rows; got {shape}.")
    if tuple(context_attention_mask.shape) != shape or tuple(context_offsets.shape) != shape[:2]:
        raise ValueError(
            f"context_attention_mask must be {shape} and context_offsets {shape[:2]}, got "
            f"{tuple(context_attention_mask.shape)} and {tuple(context_offsets.shape)}."
        )
    if torch.compiler.is_compiling():
        return
    there = context_attention_mask.any(dim=2)
    present = context_offsets[there]
    wrong = (present < -config.past_context) | (present > config.future_context) | (present == 0)
    if wrong.any():
        raise ValueError(
            f"context_offsets: got {int(present[wrong][0])}, but this model has context from -{config.past_context} to "
            f"{config.future_context}, without 0 (past_context={config.past_context}, future_context="
            f"{config.future_context}): give fewer context sentences, or train with more."
        )
    is_target = torch.zeros_like(there) if context_is_target is None else context_is_target.bool()
    allowed = {"source": ~is_target, "target": is_target}.get(config.context_sides, torch.ones_like(there))
    if (there & (~allowed | (is_target & (context_offsets > 0)))).any():
        raise ValueError(
            f"context_is_target: this model reads context of the side context_sides={config.context_sides!r}, earlier "
            "translations being true and at offsets below 0; got others."
        )
    rows = torch.arange(len(there), device=there.device)[:, None].expand_as(there)
    places = torch.stack([rows[there], context_offsets[there], is_target[there].long()], dim=1)
    if len(places.unique(dim=0)) != len(places):
        raise ValueError("context_offsets: a row has two context sentences of one offset; give each sentence once.")


class ContextForConditionalGeneration(DocMTForConditionalGeneration):
    """Base of the architectures whose context sentences are separate inputs.

    `context_input_ids`, `context_attention_mask` (B, C, L), 1 = token: one context sentence a row, `tokens </s>`;
    `context_offsets` (B, C): its place, -1 = the sentence before the current one, +1 the one after it; a row that is
    all masked is no sentence. `context_is_target` (B, C) bool: the row is an earlier translation. Without context
    attention to it finds nothing; what a norm after the sum makes of that is the paper's.
    """

    model_class = ContextModel
    per_source_inputs = ("attention_mask", *CONTEXT_INPUTS)

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        encoder_outputs=None,
        past_key_values=None,
        labels=None,
        label_weights=None,
        use_cache=None,
        num_items_in_batch=None,
        context_input_ids=None,
        context_attention_mask=None,
        context_offsets=None,
        context_is_target=None,
        **kwargs,
    ):
        """As the backbone's, with the context described above."""
        return super().forward(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            decoder_attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            past_key_values=past_key_values,
            labels=labels,
            label_weights=label_weights,
            use_cache=use_cache,
            num_items_in_batch=num_items_in_batch,
            context_input_ids=context_input_ids,
            context_attention_mask=context_attention_mask,
            context_offsets=context_offsets,
            context_is_target=context_is_target,
            **kwargs,
        )
