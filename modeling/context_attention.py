"""Attention of the decoder to context vectors: after attention to the source, next to it, or joined with it."""

from dataclasses import dataclass

import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from .configuration_context import IntegratedContextConfig
from .context_inputs import CONTEXT_INPUTS
from .extended_forward import warn_without_context, with_inputs
from .layers import Attention, DecoderLayer, dropout, is_plain
from .modeling_docmt import Decoder, DocMTForConditionalGeneration, DocMTModel


class ContextAttention(nn.Module):
    """Attention to context vectors, as a sublayer of a decoder layer, with or without a gate.

    c is what attention finds, zero without context. With `integration` `sequential` the module returns h + lambda c,
    with the layer's norm; with `parallel` it returns the term to add to the output of attention to the source, lambda
    b. With the norm after, b = norm(h + c), so that h is in both branches, and the gate sees their sum, as in the
    released code of Maka et al. (2024); the paper does not say how branches are joined. With the norm before b = c, as
    the other branch has the residual.
    """

    def __init__(self, config, num_heads: int, layer_idx: int):
        super().__init__()
        self.is_parallel = config.integration == "parallel"
        self.normalize_before, self.dropout = config.normalize_before, config.dropout
        self.attn = VectorAttention(config, num_heads, layer_idx, source_name="context")
        self.layer_norm = nn.LayerNorm(config.d_model)
        if config.context_gate:
            self.gate = nn.Linear(config.d_model, 1)

    def forward(
        self,
        hidden_states: torch.Tensor,  # h (B, T, D)
        context_states: torch.Tensor | None = None,  # (B or fewer, N, D)
        context_mask: torch.Tensor | None = None,
        context_absent: torch.Tensor | None = None,  # (B, 1, 1) bool, rows that have no context
        cache=None,
    ) -> torch.Tensor:
        """(B, T, D) -> (B, T, D)."""
        states = self.layer_norm(hidden_states) if self.normalize_before else hidden_states
        if context_states is None:
            context = torch.zeros_like(states)
        else:
            context = self.attn(states, context_states, cache, context_mask)[0].masked_fill(context_absent, 0)
        if self.is_parallel:
            context = dropout(context, self.dropout, self.training)
            return self.gated(context if self.normalize_before else self.layer_norm(hidden_states + context))
        states = hidden_states + dropout(self.gated(context), self.dropout, self.training)
        return states if self.normalize_before else self.layer_norm(states)

    def gated(self, states: torch.Tensor) -> torch.Tensor:
        """lambda x, lambda = sigmoid(FFN(x)) (Maka et al. 2024, equation 5), where there is a gate."""
        return torch.sigmoid(self.gate(states)) * states if hasattr(self, "gate") else states


class VectorAttention(Attention):
    """Attention to vectors that decoding does not change: no layer keeps its own keys and values.

    A query meets W_k instead of the keys, (W_k^T q) c = q (W_k c), and W_v what was read, W_v (sum p c) = sum p W_v c;
    the bias of the keys is the same for all of them, and omitted. All layers share N vectors in memory,
    not 2 N for each of them. Where the projections are wrapped or quantised, or attention is that of a kernel
    for narrow heads, the cache has keys and values.
    """

    def heads_output(
        self, hidden_states, key_value_states=None, cache=None, attention_mask=None, output_attentions=False
    ):
        inputs = (hidden_states, key_value_states, cache, attention_mask, output_attentions)
        if cache is None or not self.projects_late(key_value_states):
            return super().heads_output(*inputs)
        to_key, to_value = (  # (H, Dh, D)
            layer.weight.unflatten(0, (-1, self.head_dim)) for layer in (self.k_proj, self.v_proj)
        )
        query = self.source_queries(hidden_states, key_value_states)  # (S, H, T, Dh)
        query = torch.einsum("shtd,hdn->shtn", query, to_key)  # (S, H, T, D)
        vectors = key_value_states[:, None]  # (S, 1, N, D), one head
        mask = None if attention_mask is None else attention_mask[:, :, :1]  # (S, 1, 1, N), the same for all queries
        read, weights = self.attend(query.flatten(1, 2)[:, None], vectors, vectors, mask)  # (S, H*T, 1, D)
        read = read.view(query.shape)  # (S, H, T, D)
        output = torch.einsum("shtn,hdn->sthd", read, to_value) + self.v_proj.bias.view(-1, self.head_dim)
        return output, None if weights is None else weights.view(*query.shape[:3], -1)  # (S, H, T, N)

    def projects_late(self, vectors: torch.Tensor) -> bool:
        """Whether the weights of the projections may be used without calling these, and attention takes wide heads."""
        return self.config._attn_implementation in ("eager", "sdpa") and all(
            is_plain(layer) and (layer.weight.dtype, layer.weight.device) == (vectors.dtype, vectors.device)
            for layer in (self.k_proj, self.v_proj)
        )


class ContextDecoderLayer(DecoderLayer):
    """Decoder layer with context attention after attention to the source, or next to it."""

    def __init__(self, config, layer_idx: int):
        super().__init__(config, layer_idx)
        self.integration = config.integration
        if config.integration != "concatenate":
            self.context = ContextAttention(config, config.decoder_attention_heads, layer_idx)

    def start_neutral(self) -> None:
        """Context attention adds nothing; a branch with the norm after adds nothing by its norm."""
        if self.integration == "parallel" and not self.normalize_before:
            fill_with_zeros(self.context.layer_norm)
        elif self.integration != "concatenate":
            fill_with_zeros(self.context.attn.out_proj)
            if not self.normalize_before:
                move_affine(self.encoder_attn_layer_norm, self.context.layer_norm)

    def cross_attention_block(
        self, hidden_states, encoder_hidden_states, encoder_attention_mask, cache=None, **layer_inputs
    ):
        context = [layer_inputs.pop(f"context_{name}", None) for name in ("states", "mask", "absent")]
        source = (encoder_hidden_states, encoder_attention_mask)
        after_source = super().cross_attention_block(hidden_states, *source, cache, **layer_inputs)
        if self.integration == "sequential":
            return self.context(after_source, *context, cache)
        if self.integration == "parallel":
            return after_source + self.context(hidden_states, *context, cache)
        return after_source


class ContextDecoder(Decoder):
    """Decoder that reads context vectors in addition to the source."""

    config_class = IntegratedContextConfig
    layer_class = ContextDecoderLayer

    def source(self, states, mask, context_states=None, context_mask=None, **kwargs):
        """With `integration` `concatenate` [context; source]: context (B or fewer, N, D), mask (the same, N) bool."""
        if self.config.integration != "concatenate" or context_states is None:
            return states, mask
        if mask is None:
            mask = context_mask.new_ones(states.shape[:2])
        mask = torch.cat([context_mask, mask.to(context_mask.dtype)], dim=1)  # (B, N + S)
        return torch.cat([context_states, states], dim=1), mask  # (B, N + S, D)

    def layer_inputs(self, input_ids, positions, context_states=None, context_mask=None, **kwargs):
        """The context vectors, their mask as attention takes it, and which rows have none."""
        if self.config.integration == "concatenate" or context_states is None:
            return {}
        absent = ~context_mask.any(dim=1)  # of sources
        seen = context_mask | absent[:, None]  # a softmax needs a key; its result is discarded
        mask = self.source_mask(context_states, seen, input_ids.shape)
        absent = absent.repeat_interleave(input_ids.shape[0] // absent.shape[0])[:, None, None]  # (B, 1, 1)
        return {"context_states": context_states, "context_mask": mask, "context_absent": absent}


@dataclass
class ContextEncoderOutput(BaseModelOutput):
    """States of the current sentence (B, S, D), its context vectors (B, N, D), and their mask (B, N).

    In a Document Transformer (B, C, L, D) and (B, C, L).
    """

    context_states: torch.FloatTensor | None = None
    context_mask: torch.BoolTensor | None = None


class ContextModel(DocMTModel):
    """Encoder and decoder with context; the encoder's output holds the context vectors."""

    decoder_class = ContextDecoder
    encoder_input_names = CONTEXT_INPUTS

    def decoder_inputs(self, decoder_input_ids, decoder_attention_mask, encoder_outputs, cache=None):
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


class ContextForConditionalGeneration(DocMTForConditionalGeneration):
    """Base of the architectures whose context sentences are separate inputs.

    `context_input_ids`, `context_attention_mask` (B, C, L), 1 = token: one context sentence per row, `tokens </s>`;
    `context_offsets` (B, C): its offset, -1 = the sentence before the current one, +1 the one after it; a row that is
    fully masked is not a sentence. `context_is_target` (B, C) bool: the row is an earlier translation. Without context
    attention to it gives zeros; a norm after the sum treats them as in the paper.
    """

    model_class = ContextModel
    per_source_inputs = ("attention_mask", *CONTEXT_INPUTS)
    context_arguments = ("context_input_ids",)

    @with_inputs(DocMTForConditionalGeneration.forward, *CONTEXT_INPUTS)
    def forward(self, *args, **kwargs):
        """As in the backbone, with the context described above."""
        return super().forward(*args, **kwargs)

    def check_context(self, arguments):
        if self.config.past_context or self.config.future_context:
            call = (
                'context = tokenizer(["The sentence before."], return_tensors="pt"); model.generate(**tokenizer('
                '"This one.", return_tensors="pt"), context_input_ids=context.input_ids[None], context_attention_mask='
                "context.attention_mask[None], context_offsets=torch.tensor([[-1]]))"
            )
            warn_without_context(self, arguments, call)


def fill_with_zeros(*modules: nn.Module) -> None:
    """Set all parameters to zero: what a projection adds is nothing, what a norm scales is nothing."""
    for module in modules:
        for parameter in module.parameters():
            parameter.zero_()


def move_affine(norm: nn.LayerNorm, later: nn.LayerNorm) -> None:
    """Move scale and shift of a norm into the norm that follows it.

    LayerNorm(LayerNorm(x) a + b) is not LayerNorm(x) a + b; with 1 and 0 inside, a and b outside it is, except for the
    epsilon in the root.
    """
    later.load_state_dict(norm.state_dict())
    norm.weight.fill_(1.0)
    norm.bias.zero_()
