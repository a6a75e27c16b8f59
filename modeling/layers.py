"""The layers of the Transformer, sequences of blocks, which take states (B, T, D) and add the output of a sublayer.

An architecture overrides a block, calls `super()` for the plain one, and finds the tensors of its mechanism, the
`layer_inputs` of the encoder or decoder, among the keyword arguments.
"""

from collections.abc import Callable

import torch
from torch import nn
from transformers.activations import ACT2FN
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from .acceleration import Linear, dropout, faster_attention, joint_linear
from .attention_kernels import without_cudnn
from .cache import keep_source_states, source_states
from .configuration_docmt import DocMTConfig
from .ssru import SSRU


def backbone(method: Callable) -> Callable:
    """Marks a method as the backbone's own: a step of decoding knows what it does, see `decoding_step.py`."""
    method.is_backbone = True
    return method


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2), self or cross, with a cache while decoding.

    In cross-attention the decoder batch B may be a multiple of the source batch: the rows of one source stand next to
    each other and share its keys and values, which the cache keeps under `source_name`.
    """

    def __init__(
        self,
        config: DocMTConfig,
        num_heads: int,
        layer_idx: int | None = None,
        is_causal: bool = False,
        source_name: str = "source",
    ):
        super().__init__()
        self.config, self.dropout = config, config.attention_dropout
        self.head_dim = config.d_model // num_heads
        self.scaling = self.head_dim**-0.5
        self.layer_idx, self.source_name, self.is_causal = layer_idx, source_name, is_causal
        self.k_proj = Linear(config.d_model, config.d_model)
        self.v_proj = Linear(config.d_model, config.d_model)
        self.q_proj = Linear(config.d_model, config.d_model)
        self.out_proj = Linear(config.d_model, config.d_model)
        for projection in (self.q_proj, self.k_proj, self.v_proj):
            projection.init_role = "projection"
        self.out_proj.init_role = "attention_output"

    @backbone
    def forward(
        self,
        hidden_states: torch.Tensor,
        key_value_states: torch.Tensor | None = None,
        cache=None,
        attention_mask: torch.Tensor | None = None,
        output_attentions: bool = False,
        **layer_inputs,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """`hidden_states` (B, T, D), in cross-attention `key_value_states` (B or fewer, S, D) -> (B, T, D), weights.

        Weights are (B, H, T, S) with `eager` attention, else None. `layer_inputs` are for subclasses.
        """
        output, weights = self.heads_output(hidden_states, key_value_states, cache, attention_mask, output_attentions)
        output = self.out_proj(output.reshape(hidden_states.shape))  # from (B, T, H, Dh)
        return output, self.by_row(weights, hidden_states.shape[0])

    def by_row(self, weights: torch.Tensor | None, batch: int) -> torch.Tensor | None:
        """Weights of the rows of one source side by side, (sources, H, B / sources * T, S) -> (B, H, T, S)."""
        if weights is None or weights.shape[0] == batch:
            return weights
        rows = batch // weights.shape[0]
        return weights.unflatten(2, (rows, -1)).transpose(1, 2).flatten(0, 1)

    @backbone
    def heads_output(
        self, hidden_states, key_value_states=None, cache=None, attention_mask=None, output_attentions=False
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """What the heads read, before the output projection, (B, T, H, Dh), and weights; arguments as of `forward`."""
        if key_value_states is None:
            query, key, value = self.self_projections(hidden_states)
            if cache is not None:
                key, value = cache.self_attention_cache.update(key, value, self.layer_idx)
        else:
            query = self.source_queries(hidden_states, key_value_states)
            key, value = self.source_projections(key_value_states, cache, hidden_states.shape[0])
        implementation = self.config._attn_implementation
        if key_value_states is not None and "flash" in implementation and attention_mask is not None:
            implementation = "sdpa"  # flash would take the mask of the keys for one of the queries, too
            attention_mask = attention_mask[:, None, None, :].bool()  # (B, 1, 1, S)
        return self.attend(query, key, value, attention_mask, implementation, output_attentions)

    @backbone
    def attend(self, query, key, value, attention_mask, implementation: str | None = None, output_attentions=False):
        """Queries (B, H, T, Dh), keys and values (B, H, S, Dh) -> (B, T, H, Dh), and weights (B, H, T, S) or None."""
        implementation = implementation or self.config._attn_implementation
        settings = {"dropout": self.dropout if self.training else 0.0, "scaling": self.scaling}
        if implementation == "sdpa":
            output = faster_attention(query, key, value, attention_mask, **settings, is_causal=self.is_causal)
            if output is not None:
                return output, None
        function = ALL_ATTENTION_FUNCTIONS.get_interface(implementation, eager_attention)
        with without_cudnn(query):
            return function(self, query, key, value, attention_mask, **settings, output_attentions=output_attentions)

    def heads(self, states: torch.Tensor) -> torch.Tensor:
        return states.view(*states.shape[:2], -1, self.head_dim).transpose(1, 2)  # (B, T, D) -> (B, H, T, Dh)

    @backbone
    def self_projections(self, hidden_states: torch.Tensor) -> list[torch.Tensor]:
        """Q, K, V of self-attention: (B, T, D) -> (B, H, T, Dh) each."""
        projected = joint_linear((self.q_proj, self.k_proj, self.v_proj), hidden_states)  # (B, T, D) each
        return [self.heads(states) for states in projected]

    @backbone
    def source_queries(self, hidden_states: torch.Tensor, key_value_states: torch.Tensor) -> torch.Tensor:
        """Q of cross-attention, the rows of one source side by side: (B, T, D) -> (sources, H, B / sources * T, Dh)."""
        sources = key_value_states.shape[0]
        return self.heads(self.q_proj(hidden_states).view(sources, -1, hidden_states.shape[-1]))

    @backbone
    def source_projections(self, key_value_states: torch.Tensor, cache, rows: int) -> list[torch.Tensor]:
        """K, V of cross-attention, with a cache computed once a source, of so many `rows` of queries.

        (B, S, D) -> (B, H, S, Dh) each.
        """
        kept = None if cache is None else source_states(cache, *self.place)
        if kept is None:
            kept = [self.heads(layer(key_value_states)) for layer in (self.k_proj, self.v_proj)]
            kept = kept if cache is None else keep_source_states(cache, *self.place, kept)
        return kept

    @property
    def place(self) -> tuple[str, int, int]:
        """Where a cache keeps the keys and values of the source."""
        return self.source_name, self.layer_idx, self.config.decoder_layers


class Layer(GradientCheckpointingLayer):
    """What encoder and decoder layers share: self-attention, feed-forward network, residuals, norm before or after."""

    side: str  # "encoder" or "decoder"

    def __init__(self, config: DocMTConfig, layer_idx: int):
        super().__init__()
        self.layer_idx, self.gradient_checkpointing = layer_idx, False
        ffn_dim, heads = (getattr(config, f"{self.side}_{size}") for size in ("ffn_dim", "attention_heads"))
        self.normalize_before = config.normalize_before
        self.dropout, self.activation_dropout = config.dropout, config.activation_dropout
        self.activation_fn = ACT2FN[config.activation_function]
        self.fc1 = Linear(config.d_model, ffn_dim)
        self.fc2 = Linear(ffn_dim, config.d_model)
        self.final_layer_norm = nn.LayerNorm(config.d_model, config.layer_norm_eps)
        is_decoder = self.side == "decoder"
        if is_decoder and config.decoder_autoregression == "ssru":
            self.self_attn = SSRU(config, layer_idx)
        else:
            self.self_attn = Attention(config, heads, layer_idx, is_causal=is_decoder)
        self.self_attn_layer_norm = nn.LayerNorm(config.d_model, config.layer_norm_eps)

    @property
    def gradient_checkpointing(self) -> bool:
        """Whether states are computed again in the backward pass; never without one, or `generate` has no cache."""
        return self._checkpointed and torch.is_grad_enabled()

    @gradient_checkpointing.setter
    def gradient_checkpointing(self, value: bool) -> None:
        self._checkpointed = value

    @backbone
    def self_attention_block(self, hidden_states, attention_mask, cache=None, **layer_inputs) -> torch.Tensor:
        """x + SelfAttention(x): states (B, T, D), mask or None -> (B, T, D)."""
        states = self.normed(hidden_states, self.self_attn_layer_norm)
        output, _ = self.self_attn(states, cache=cache, attention_mask=attention_mask, **layer_inputs)
        return self.with_residual(hidden_states, output, self.self_attn_layer_norm)

    @backbone
    def feed_forward_block(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """x + W_2 f(W_1 x), (B, T, D)."""
        inner = self.activation_fn(self.fc1(self.normed(hidden_states, self.final_layer_norm)))  # (B, T, F)
        inner = dropout(inner, self.activation_dropout, self.training)
        return self.with_residual(hidden_states, self.fc2(inner), self.final_layer_norm)

    @backbone
    def normed(self, hidden_states: torch.Tensor, norm: nn.LayerNorm) -> torch.Tensor:
        """The input of a sublayer: norm(x) with the norm before, x with the norm after."""
        return norm(hidden_states) if self.normalize_before else hidden_states

    @backbone
    def with_residual(self, hidden_states: torch.Tensor, output: torch.Tensor, norm: nn.LayerNorm) -> torch.Tensor:
        """The states after a sublayer: x + f(norm(x)) with the norm before, norm(x + f(x)) with the norm after."""
        hidden_states = hidden_states + dropout(output, self.dropout, self.training)
        return hidden_states if self.normalize_before else norm(hidden_states)


class EncoderLayer(Layer):
    """Self-attention and feed-forward network (Vaswani et al. 2017, section 3.1)."""

    side = "encoder"

    def forward(
        self, hidden_states: torch.Tensor, attention_mask: torch.Tensor | None = None, **layer_inputs
    ) -> torch.Tensor:
        """`hidden_states` (B, S, D) -> (B, S, D)."""
        hidden_states = self.self_attention_block(hidden_states, attention_mask, **layer_inputs)
        return self.feed_forward_block(hidden_states)

    def step_blocks(self) -> list[Callable]:
        """The blocks of `forward` in their order: see `encoder_kernels.py`."""
        return [self.self_attention_block, self.feed_forward_block]


class DecoderLayer(Layer):
    """Causal self-attention, attention to the source, feed-forward network (Vaswani et al. 2017, section 3.1)."""

    side = "decoder"

    def __init__(self, config: DocMTConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        self.encoder_attn = Attention(config, config.decoder_attention_heads, layer_idx)
        self.encoder_attn_layer_norm = nn.LayerNorm(config.d_model, config.layer_norm_eps)

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        encoder_hidden_states: torch.Tensor | None = None,
        encoder_attention_mask: torch.Tensor | None = None,
        cache=None,
        **layer_inputs,
    ) -> torch.Tensor:
        """`hidden_states` (B, T, D), `encoder_hidden_states` (B or fewer, S, D) -> (B, T, D)."""
        hidden_states = self.self_attention_block(hidden_states, attention_mask, cache, **layer_inputs)
        source = (encoder_hidden_states, encoder_attention_mask)
        hidden_states = self.cross_attention_block(hidden_states, *source, cache, **layer_inputs)
        return self.feed_forward_block(hidden_states)

    @backbone
    def cross_attention_block(
        self, hidden_states, encoder_hidden_states, encoder_attention_mask, cache=None, **layer_inputs
    ) -> torch.Tensor:
        """x + CrossAttention(x, source): states (B, T, D), source (B or fewer, S, D), mask or None -> (B, T, D)."""
        states = self.normed(hidden_states, self.encoder_attn_layer_norm)
        source = (encoder_hidden_states, cache, encoder_attention_mask)
        output, _ = self.encoder_attn(states, *source, **layer_inputs)
        return self.with_residual(hidden_states, output, self.encoder_attn_layer_norm)

    def step_blocks(self) -> list[Callable]:
        """The blocks of `forward` in their order, for steps of decoding: see `decoding_step.py`.

        Those of the layer itself, of `super()`, and further methods of states (R, 1, D), the cache and layer inputs.
        """
        return [self.self_attention_block, self.cross_attention_block, self.feed_forward_block]


def eager_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    **kwargs,
) -> tuple[torch.Tensor, torch.Tensor]:
    """softmax(QK^T / sqrt(d)) V: Q (B, H, T, Dh), K, V (B, H, S, Dh) -> (B, T, H, Dh) and weights (B, H, T, S).

    `attention_mask` (B or 1, 1, T, S) is added to the scores: 0 = is seen, the lowest number = is not.
    """
    weights = torch.matmul(query, key.transpose(2, 3)) * scaling  # (B, H, T, S)
    if attention_mask is not None:
        weights = weights + attention_mask
    weights = nn.functional.softmax(weights, dim=-1)
    kept = nn.functional.dropout(weights, p=dropout, training=module.training)
    return torch.matmul(kept, value).transpose(1, 2).contiguous(), weights
