"""The layers of the Transformer, sequences of blocks, which take states (B, T, D) and add the output of a sublayer.

An architecture overrides a block, calls `super()` for the plain one, and finds the tensors of its mechanism, the
`layer_inputs` of the encoder or decoder, among the keyword arguments.
"""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from functools import wraps

import torch
from torch import nn
from torch.autograd import Function
from torch.backends import cuda
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import handle_torch_function, has_torch_function_unary
from transformers import EncoderDecoderCache
from transformers.activations import ACT2FN
from transformers.cache_utils import DynamicLayer
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from .configuration_docmt import DocMTConfig

# Name of the cache in arguments and outputs of this version of transformers: `past_key_values`, or `cache` from 5.24 on
CACHE_NAME = next(name for name in ("cache", "past_key_values") if name in {f.name for f in fields(Seq2SeqLMOutput)})
SOURCES = ("source", "context", "memory", "global")  # what decoders attend to; a new kind comes at the end
SDPA_KERNELS = {  # of torch's attention
    SDPBackend.FLASH_ATTENTION: cuda.flash_sdp_enabled,
    SDPBackend.EFFICIENT_ATTENTION: cuda.mem_efficient_sdp_enabled,
    SDPBackend.MATH: cuda.math_sdp_enabled,
}
BF16 = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()  # by the processor
MAX_QUERIES = 16  # of one row in a decoding step, where beams share their source
MIN_BATCHED = 512  # queries of all rows and heads, from which on two batched products are faster than sdpa
MAX_BF16 = 256  # queries or keys of one row and head, up to which they are so in training with bf16


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2), self or cross, with a cache while decoding.

    In cross-attention the decoder batch B may be a multiple of the source batch: the rows of one source are adjacent
    and share its keys and values, which the cache keeps under `source_name`.
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
        self.k_proj = nn.Linear(config.d_model, config.d_model)
        self.v_proj = nn.Linear(config.d_model, config.d_model)
        self.q_proj = nn.Linear(config.d_model, config.d_model)
        self.out_proj = nn.Linear(config.d_model, config.d_model)
        for projection in (self.q_proj, self.k_proj, self.v_proj):
            projection.init_role = "projection"
        self.out_proj.init_role = "attention_output"

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

        Weights are (B, H, T, S) with `eager` attention, otherwise None. `layer_inputs` are for subclasses.
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

    def heads_output(
        self, hidden_states, key_value_states=None, cache=None, attention_mask=None, output_attentions=False
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Output of the heads before the output projection, (B, T, H, Dh), and weights; arguments as in `forward`."""
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

    def self_projections(self, hidden_states: torch.Tensor) -> list[torch.Tensor]:
        """Q, K, V of self-attention: (B, T, D) -> (B, H, T, Dh) each."""
        return [self.heads(layer(hidden_states)) for layer in (self.q_proj, self.k_proj, self.v_proj)]

    def source_queries(self, hidden_states: torch.Tensor, key_value_states: torch.Tensor) -> torch.Tensor:
        """Q of cross-attention, the rows of one source side by side: (B, T, D) -> (sources, H, B / sources * T, Dh)."""
        sources = key_value_states.shape[0]
        return self.heads(self.q_proj(hidden_states).view(sources, -1, hidden_states.shape[-1]))

    def source_projections(self, key_value_states: torch.Tensor, cache, rows: int) -> list[torch.Tensor]:
        """K, V of cross-attention, with a cache computed once per source; `rows` is the number of queries' rows.

        (B, S, D) -> (B, H, S, Dh) each.
        """
        kept = None if cache is None else source_states(cache, *self.place)
        if kept is None:
            kept = [self.heads(layer(key_value_states)) for layer in (self.k_proj, self.v_proj)]
            kept = kept if cache is None else keep_source_states(cache, *self.place, kept)
        return kept

    @property
    def place(self) -> tuple[str, int, int]:
        """The cache's index for keys and values of the source."""
        return self.source_name, self.layer_idx, self.config.decoder_layers


class Layer(GradientCheckpointingLayer):
    """Base of encoder and decoder layers: self-attention, feed-forward network, residuals, norm before or after."""

    side: str  # "encoder" or "decoder"

    def __init__(self, config: DocMTConfig, layer_idx: int):
        super().__init__()
        self.layer_idx, self.gradient_checkpointing = layer_idx, False
        ffn_dim, heads = (getattr(config, f"{self.side}_{size}") for size in ("ffn_dim", "attention_heads"))
        self.normalize_before = config.normalize_before
        self.dropout, self.activation_dropout = config.dropout, config.activation_dropout
        self.activation_fn = ACT2FN[config.activation_function]
        self.fc1 = nn.Linear(config.d_model, ffn_dim)
        self.fc2 = nn.Linear(ffn_dim, config.d_model)
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

    def self_attention_block(self, hidden_states, attention_mask, cache=None, **layer_inputs) -> torch.Tensor:
        """x + SelfAttention(x): states (B, T, D), mask or None -> (B, T, D)."""
        states = self.normed(hidden_states, self.self_attn_layer_norm)
        output, _ = self.self_attn(states, cache=cache, attention_mask=attention_mask, **layer_inputs)
        return self.with_residual(hidden_states, output, self.self_attn_layer_norm)

    def feed_forward_block(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """x + W_2 f(W_1 x), (B, T, D)."""
        inner = self.activation_fn(self.fc1(self.normed(hidden_states, self.final_layer_norm)))  # (B, T, F)
        inner = dropout(inner, self.activation_dropout, self.training)
        return self.with_residual(hidden_states, self.fc2(inner), self.final_layer_norm)

    def normed(self, hidden_states: torch.Tensor, norm: nn.LayerNorm) -> torch.Tensor:
        """The input of a sublayer: norm(x) with the norm before, x with the norm after."""
        return norm(hidden_states) if self.normalize_before else hidden_states

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

    def cross_attention_block(
        self, hidden_states, encoder_hidden_states, encoder_attention_mask, cache=None, **layer_inputs
    ) -> torch.Tensor:
        """x + CrossAttention(x, source): states (B, T, D), source (B or fewer, S, D), mask or None -> (B, T, D)."""
        states = self.normed(hidden_states, self.encoder_attn_layer_norm)
        source = (encoder_hidden_states, cache, encoder_attention_mask)
        output, _ = self.encoder_attn(states, *source, **layer_inputs)
        return self.with_residual(hidden_states, output, self.encoder_attn_layer_norm)


class OutputProjection(nn.Linear):
    """States to logits; a bias may replace its own, and another matrix product that of torch."""

    takes_bias = True

    def forward(
        self, hidden_states: torch.Tensor, bias: torch.Tensor | None = None, product: Callable = nn.functional.linear
    ) -> torch.Tensor:
        """(..., D) -> (..., V)."""
        return product(hidden_states, self.weight, self.bias if bias is None else bias)


def is_plain(layer: nn.Module) -> bool:
    """Whether a layer is a plain linear one: no adapter, not quantized, no hooks that a call would run."""
    is_product = isinstance(layer, nn.Linear) and type(layer).forward in (nn.Linear.forward, OutputProjection.forward)
    return is_product and not (layer._forward_hooks or layer._forward_pre_hooks or "forward" in vars(layer))


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


def without_cudnn(states: torch.Tensor) -> AbstractContextManager:
    """Scope in which torch's attention to states on a GPU does not use cuDNN.

    cuDNN plans for half a second at each new shape, and documents have many shapes.
    """
    if not states.is_cuda or torch.compiler.is_compiling() or not cuda.cudnn_sdp_enabled():
        return nullcontext()
    return sdpa_kernel([kernel for kernel, is_enabled in SDPA_KERNELS.items() if is_enabled()])


def faster_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    is_causal: bool = False,
) -> torch.Tensor | None:
    """`batched_attention` of a decoding step of many rows, or of short rows to train on; None where sdpa is faster."""
    batch, heads, length, _ = query.shape
    if torch.is_grad_enabled():
        is_faster = BF16 and query.dtype is torch.bfloat16 and max(length, key.shape[2]) <= MAX_BF16
    else:
        is_faster = batch * heads * length >= MIN_BATCHED and length <= (1 if is_causal else MAX_QUERIES)
    is_possible = query.is_cpu and not dropout and not torch.compiler.is_compiling()
    if not is_faster or not is_possible or attention_mask is not None and attention_mask.dtype is not torch.bool:
        return None
    return batched_attention(query, key, value, attention_mask, scaling, is_causal)


def batched_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float,
    is_causal: bool = False,
) -> torch.Tensor:
    """softmax(QK^T / sqrt(d)) V, without weights and dropout: two products over all rows and heads at once.

    `attention_mask` (B or 1, 1, T, S), True = is seen; without one, `is_causal` queries see the keys up to their own.
    On a CPU twice as fast as sdpa with few queries, and up to ten times with bf16 and a backward pass, which sdpa has
    for long rows only.
    """
    (batch, heads, length, dim), keys = query.shape, key.flatten(0, 1).transpose(1, 2)  # (B * H, Dh, S)
    queries = query.reshape(-1, length, dim)  # (B * H, T, Dh)
    weights = torch.baddbmm(query.new_empty(1), queries, keys, beta=0, alpha=scaling)
    weights = weights.unflatten(0, (batch, heads))  # (B, H, T, S)
    if attention_mask is None and is_causal and length > 1:
        attention_mask = torch.ones(weights.shape[2:], dtype=torch.bool, device=weights.device).tril()  # (T, S)
    if attention_mask is not None:
        weights.masked_fill_(~attention_mask, torch.finfo(weights.dtype).min)
    output = torch.bmm(weights.softmax(dim=-1).flatten(0, 1), value.flatten(0, 1))
    return output.unflatten(0, (batch, heads)).transpose(1, 2)  # (B, T, H, Dh)


def cache_by_either_name(forward: Callable) -> Callable:
    """A `forward` with an argument `cache`, which may also be given as `past_key_values`, its name before 5.24.

    The prefix of an adapter, by one name, takes the place of the empty cache of `generate`.
    """

    @wraps(forward)
    def with_either_name(self, *args, past_key_values=None, **kwargs):
        if past_key_values is not None:
            caches = [cache for cache in (past_key_values, kwargs.get("cache")) if cached_length(cache)]
            if len(caches) > 1:
                raise ValueError("cache and past_key_values are the same argument, got both: give one of them.")
            kwargs["cache"] = caches[0] if caches else past_key_values
            if CACHE_NAME == "cache" and not torch.compiler.is_compiling():
                warnings.warn("`past_key_values` is deprecated: use `cache`.", FutureWarning, stacklevel=2)
        return forward(self, *args, **kwargs)

    return with_either_name


def cached_length(cache: EncoderDecoderCache | None) -> int | torch.Tensor:
    """Number of target tokens in a cache; a tensor where it is static, so that no step looks into it."""
    return 0 if cache is None else cache.get_seq_length()


def is_static(cache: EncoderDecoderCache | None) -> bool:
    """Whether self-attention returns the same number of keys in every step, and masks those that are not tokens."""
    return cache is not None and cache.is_compileable


def source_states(
    cache: EncoderDecoderCache, name: str, layer_idx: int, layers: int
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Keys and values of the source `name` that decoder layer `layer_idx` has kept, or None."""
    index = SOURCES.index(name) * layers + layer_idx
    if not cache.is_updated.get(index):
        return None
    layer = cache.cross_attention_cache.layers[index]
    return layer.keys, layer.values


def keep_source_states(
    cache: EncoderDecoderCache, name: str, layer_idx: int, layers: int, states: list[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Keep keys and values (B, ..., S, Dh) of a source; gives them out after those that the cache came with.

    They are layers of `cross_attention_cache`, those of `source` first, so that transformers reorders, selects and
    exports them with it. A layer of a static cache, which has room for the source alone, is replaced.
    """
    stores, index = cache.cross_attention_cache.layers, SOURCES.index(name) * layers + layer_idx
    while len(stores) <= index:
        stores.append(DynamicLayer())
    if not isinstance(stores[index], DynamicLayer):
        stores[index] = DynamicLayer()
    cache.is_updated[index] = True
    return stores[index].update(*states)


def dropout(states: torch.Tensor, p: float, training: bool) -> torch.Tensor:
    """As `torch.nn.functional.dropout`; on a CPU four times as fast, with a mask of bytes for the backward pass."""
    if not training or not p:
        return states
    if has_torch_function_unary(states):  # a mode of torch may want to know
        return handle_torch_function(dropout, (states,), states, p, training)
    if states.is_cpu and not torch.compiler.is_compiling():
        return Dropout.apply(states, p)
    return torch.native_dropout(states, p, True)[0]


class Dropout(Function):
    """Each value is 0 with probability `p`, to 16 bits: torch draws whole words faster than single decisions."""

    @staticmethod
    def forward(ctx, states, p):
        words = torch.empty(-(-states.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        dropped = min(round(p * 2**16), 2**16 - 1)  # of 2^16 draws
        kept = (words.view(torch.int16)[: states.numel()] >= dropped - 2**15).view(states.shape)
        ctx.save_for_backward(kept)
        ctx.scale = 2**16 / (2**16 - dropped)
        return Dropout.scaled(states, kept, ctx.scale)

    @staticmethod
    def backward(ctx, gradient):
        return Dropout.scaled(gradient, *ctx.saved_tensors, ctx.scale), None

    @staticmethod
    def scaled(states: torch.Tensor, kept: torch.Tensor, scale: float) -> torch.Tensor:
        """The kept values times `scale`, otherwise 0."""
        return states * kept.to(states.dtype).mul_(scale)


class SSRU(nn.Module):
    """A recurrence over target tokens in the place of a decoder's self-attention (Kim et al. 2019, SSRU).

    f_t = sigmoid(W_f x_t + b_f), c_t = f_t c_{t-1} + (1 - f_t) W x_t, h_t = relu(c_t), c_0 = 0, products by element:
    the state is one vector, whatever the length. All steps of a sequence are computed at once. Called as `Attention`;
    states are float32.
    """

    def __init__(self, config: DocMTConfig, layer_idx: int):
        super().__init__()
        self.layer_idx, self.longest = layer_idx, config.longest_translation
        self.input_proj = nn.Linear(config.d_model, config.d_model, bias=False)
        self.forget_gate = nn.Linear(config.d_model, config.d_model)

    def forward(
        self, hidden_states: torch.Tensor, cache=None, attention_mask: torch.Tensor | None = None, **layer_inputs
    ) -> tuple[torch.Tensor, None]:
        """`hidden_states` (B, T, D) -> (B, T, D), and no weights.

        `attention_mask` (B, T), 1 = token: the state passes others by. A cache has the state before the first token.
        """
        inputs, gate = self.input_proj(hidden_states), self.forget_gate(hidden_states)
        dtype, inputs, gate = inputs.dtype, inputs.float(), gate.float().sigmoid()
        layer = None if cache is None else self.recurrent_layer(cache)
        before = None if layer is None or layer.keys is None else layer.keys[:, None]  # (B, 1, D)
        if before is not None and inputs.shape[1] == 1 and attention_mask is None:
            states = torch.lerp(inputs, before, gate)
        else:
            states = self.all_states(inputs, gate, before, attention_mask)
        if layer is not None:
            layer.update(states[:, -1], states.shape[1])
        return torch.relu(states).to(dtype), None

    def recurrent_layer(self, cache: EncoderDecoderCache) -> "RecurrentLayer":
        """The cache's place for the state of this layer; an empty one is replaced.

        ValueError if the place already has keys and values, as with prefix tuning.
        """
        layers = cache.self_attention_cache.layers
        while len(layers) <= self.layer_idx:
            layers.append(RecurrentLayer())
        if not isinstance(layers[self.layer_idx], RecurrentLayer):
            if layers[self.layer_idx].is_initialized and int(layers[self.layer_idx].get_seq_length()):
                raise ValueError(
                    "decoder_autoregression='ssru' has no self-attention that could read the keys and values of a "
                    "prefix (prefix tuning): use LoRA."
                )
            layers[self.layer_idx] = RecurrentLayer()
        return layers[self.layer_idx]

    def all_states(self, inputs, gate, before, attention_mask) -> torch.Tensor:
        """States (B, T, D) of inputs and gates (B, T, D), after the one `before` (B, 1, D), or None."""
        added = (1 - gate) * inputs
        if attention_mask is not None:
            is_padding = attention_mask[..., None] == 0  # (B, T, 1)
            gate, added = gate.masked_fill(is_padding, 1.0), added.masked_fill(is_padding, 0.0)
        if before is not None:
            added = torch.cat([added[:, :1] + gate[:, :1] * before, added[:, 1:]], dim=1)
        return linear_recurrence(gate, added, self.longest)


def linear_recurrence(gate: torch.Tensor, added: torch.Tensor, longest: int) -> torch.Tensor:
    """c_t = gate_t c_{t-1} + added_t from c_0 = 0 for all t: (B, T, D) each, in log2(T) steps (Hillis and Steele 1986).

    After the step with `shift` s, `added_t` is the sum over the 2s last inputs, `gate_t` the product of their gates. In
    an export, whose T is any number, the number of steps is the one that `longest` tokens need.
    """
    length, shift = added.shape[1], 1
    limit = longest if torch.compiler.is_exporting() else length
    while shift < limit:
        earlier, product = (nn.functional.pad(x, (0, 0, shift, 0))[:, :length] for x in (added, gate))
        added, gate = added + gate * earlier, gate * product
        shift *= 2
    return added


class RecurrentLayer(DynamicLayer):
    """The cache of one layer: the state (B, D) after the last token, `keys`, and the number of tokens."""

    is_croppable = False
    length = 0

    def update(self, state: torch.Tensor, tokens: int) -> None:
        """Store the state (B, D) after this number of further tokens."""
        if not self.is_initialized:
            self.lazy_initialization(state, state)
        self.keys, self.values = state, state[:, :0]
        self.length += tokens

    def get_seq_length(self) -> int:
        return self.length

    def crop(self, tokens_to_remove: int) -> None:
        """ValueError: tokens cannot be removed."""
        if tokens_to_remove:
            raise ValueError(
                "a recurrent state cannot go back to fewer tokens, as assistants and prompt lookup need it: leave "
                "assistant_model and prompt_lookup_num_tokens out."
            )

    def reset(self) -> None:
        super().reset()
        self.length = 0
