"""Inference on a CPU with prepacked weights, inside a scope in which the weights do not change.

Decoding multiplies a few rows by large matrices: up to five times as fast with weights in the layout of oneDNN, or of
the compiled primitives, which take layers that no step has to call.
`prepacked_weights(model)` is the scope; `generate` and `translate_documents` enter it. Outside of it, with gradients,
in autocast, under `torch.compile` and on other devices a `Linear` is an `nn.Linear`. Results differ by rounding only.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from weakref import WeakKeyDictionary

import torch
from torch import nn

from .cpu_kernels import BLOCK, MULTIPLE
from .int8_linear import is_plain_int8, joint_bias, joint_int8_linear, whole_blocks
from .kept_work import unchanged_modules
from .search import modules_of
from .weight_checksums import checksum

ONEDNN = torch.backends.mkldnn.is_available()
BF16 = ONEDNN and torch.ops.mkldnn._is_mkldnn_bf16_supported()  # the processor has instructions for it
PREPACKED_TYPES = (torch.float32, torch.bfloat16) if BF16 else (torch.float32,)
MIN_ELEMENTS = 2**17  # of an fp32 matrix; the oneDNN product takes some 50 microseconds to begin
MIN_MULTIPLICATIONS = 2**22  # elements times rows
MAX_QUERIES = 16  # of one row in a decoding step, where beams share their source
MIN_BATCHED = 512  # queries of all rows and heads, from which on two batched products are faster than sdpa
MAX_BF16 = 256  # queries or keys of one row and head, up to which they are so in training with bf16
LAYOUT_ROWS = 4  # the number of rows that the layout is chosen for; others run well on it, too


def multiplies(forward: Callable) -> Callable:
    """Marks the `forward` of a layer that gives no more than the product with its weights."""
    forward.is_product = True
    return forward


class Linear(nn.Linear):
    """`nn.Linear` with oneDNN-prepacked weights for CPU inference inside `prepacked_weights`."""

    @multiplies
    def forward(self, hidden_states: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """(..., D_in) -> (..., D_out); `bias` (D_out,) replaces the layer's own."""
        bias = self.bias if bias is None else bias
        prepacked = prepacked_layer([self], hidden_states)
        if prepacked is None:
            return nn.functional.linear(hidden_states, self.weight, bias)
        return prepacked.product(hidden_states, bias)

    def train(self, mode: bool = True) -> "Linear":
        """As in torch; training gives the memory of the prepacked weights free."""
        if mode:
            _kept.pop(self, None)
        return super().train(mode)

    def _apply(self, fn, recurse: bool = True) -> "Linear":
        """As in torch: `.to()`, `.half()` and the like, which give the memory of the prepacked weights free, too."""
        _kept.pop(self, None)
        return super()._apply(fn, recurse)


def joint_linear(layers: Sequence[nn.Module], hidden_states: torch.Tensor) -> list[torch.Tensor]:
    """Several layers of one input: (..., D) -> (..., D_i) each; one product where their weights are prepacked.

    A layer with hooks, or with an adapter around it, is called by itself.
    """
    if all(map(is_plain_int8, layers)):
        return joint_int8_linear(layers, hidden_states)
    prepacked = prepacked_layer(layers, hidden_states) if all(map(is_plain, layers)) else None
    if prepacked is None:
        return [layer(hidden_states) for layer in layers]
    outputs = prepacked.product(hidden_states, prepacked.bias)  # (..., sum of D_i)
    return list(outputs.split([layer.out_features for layer in layers], dim=-1))


def is_plain(module: nn.Module) -> bool:
    """Whether a module is a `Linear` as it was built: no adapter around it, no hooks that a call would run."""
    if not isinstance(module, Linear) or module._forward_hooks or module._forward_pre_hooks:
        return False
    return "forward" not in vars(module) and getattr(type(module).forward, "is_product", False)


def is_kept(module: nn.Module) -> bool:
    """Whether a module is a `Linear` whose weights stay in memory: those that accelerate offloads do not."""
    return isinstance(module, Linear) and not hasattr(module, "_hf_hook")


# Attention


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


# The scope


@contextmanager
def prepacked_weights(model: nn.Module) -> Iterator[None]:
    """Scope in which weights and modules of a model do not change, so that `Linear` layers may run on prepacked ones.

    A layer is prepacked at its second product in the scope: one alone does not repay it. Scopes may be nested, and
    several threads may have one each on the same model; none of them, nor another thread, may change weights meanwhile.
    The prepacked weights are kept for the next scope, until the model is gone, in training mode or of another type or
    device; they are used again if the weights' versions and checksums say that these are the same. So every change
    between two scopes is seen, through `.data`, too. Copies, pickles, saved models and forked processes do not contain
    them.
    """
    outer = _scope.get()
    if model in outer:
        yield
        return
    modules = modules_of(model)
    layers = {module: {} for module in modules if is_kept(module) and module not in outer}
    inner = {**outer, model: {}, **layers}
    token = _scope.set(inner)
    try:
        with unchanged_modules(modules):
            yield
    finally:
        _scope.reset(token)
        inner.clear()  # what copied the context in between (a task of asyncio) is outside of the scope, too
        for layer in layers:
            if layer.training:
                _kept.pop(layer, None)


@dataclass
class PrepackedLayer:
    """Prepacked weights of one layer, or of several side by side with their joint bias, and what they were made of."""

    matrix: torch.Tensor
    bias: torch.Tensor | None
    versions: list[tuple[torch.Size, int | None]]
    checksums: list[torch.Tensor]

    def is_of(self, versions: list, checksums: list[torch.Tensor], bias: torch.Tensor | None) -> bool:
        """Whether weights and joint bias are still those that were prepacked."""
        has_bias = self.bias is not None and bias is not None
        is_same = torch.equal(self.bias, bias) if has_bias else self.bias is bias
        return is_same and self.versions == versions and all(map(torch.equal, self.checksums, checksums))

    def product(self, hidden_states: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        return torch.ops.mkldnn._linear_pointwise(hidden_states, self.matrix, bias, "none", [], "")


Layout = Callable[[torch.Tensor], torch.Tensor]  # weights (D_out, D_in) -> as something reads them
Key = tuple[tuple[int, ...], Layout]  # the layers that are side by side, and how


# Of every model in the scope of this thread, and of every Linear: layers side by side, beginning with it -> their
# prepacked weights, None after the first product
_scope: ContextVar[Mapping[nn.Module, dict[Key, PrepackedLayer | None]]] = ContextVar(
    "prepacked_weights", default=MappingProxyType({})
)


def prepacked_layer(layers: Sequence["Linear"], hidden_states: torch.Tensor) -> PrepackedLayer | None:
    """The prepacked weights of layers side by side, or None where the input is to be multiplied by the plain ones."""
    if torch.compiler.is_compiling() or torch.is_grad_enabled():
        return None
    first, key = layers[0], (tuple(map(id, layers)), for_onednn)
    used = _scope.get().get(first)
    if used is None or not is_faster(first.weight, hidden_states, len(layers)):
        return None
    if key not in used:
        used[key] = None
    elif used[key] is None:
        used[key] = prepacked(layers, for_onednn)
    return used[key]


def is_for_kernels(layer: nn.Module) -> bool:
    """Whether the compiled primitives may have the weights of a layer: a plain one in fp32 on a CPU, in the scope."""
    if not is_plain(layer) or layer not in _scope.get() or layer.in_features % MULTIPLE:
        return False
    weight = layer.weight
    has_memory = type(weight) is nn.Parameter and weight.layout is torch.strided  # of its own
    return has_memory and weight.is_cpu and weight.dtype is torch.float32


def kernel_layer(layers: Sequence["Linear"]) -> PrepackedLayer:
    """fp32 weights of layers side by side as `cpu_kernels.c` reads them, with biases of their own or zeros."""
    used, key = _scope.get().get(layers[0], {}), (tuple(map(id, layers)), in_blocks)
    if key not in used:
        used[key] = prepacked(layers, in_blocks)
    return used[key]


def is_faster(weight: torch.Tensor, hidden_states: torch.Tensor, matrices: int = 1) -> bool:
    """Whether a product with so many prepacked matrices of this size is possible, and faster than with plain ones."""
    rows = hidden_states.numel() // hidden_states.shape[-1]
    elements = matrices * weight.numel()
    if weight.dtype is torch.bfloat16:
        faster = rows > 1 or elements >= MIN_MULTIPLICATIONS
    else:
        faster = elements >= MIN_ELEMENTS and rows * elements >= MIN_MULTIPLICATIONS
    return (
        faster
        and ONEDNN
        and hidden_states.is_cpu
        and hidden_states.dtype is weight.dtype
        and weight.dtype in PREPACKED_TYPES
        and not torch.is_autocast_enabled("cpu")
    )


# What is kept between scopes


_kept: WeakKeyDictionary[nn.Module, dict[Key, PrepackedLayer]] = WeakKeyDictionary()
_lock = threading.Lock()


def prepacked(layers: Sequence["Linear"], layout: Layout) -> PrepackedLayer:
    """Layers side by side with their weights (D_i, D_in) as one matrix in a layout: what was kept, or a new one."""
    weights, bias = [layer.weight.detach() for layer in layers], joint_bias(layers)
    if layout is in_blocks:
        bias = whole_blocks(weights[0].new_zeros(sum(map(len, weights))) if bias is None else bias.float())
    versions = [(weight.shape, None if weight.is_inference() else weight._version) for weight in weights]
    checksums, key = [checksum(weight) for weight in weights], (tuple(map(id, layers)), layout)
    with _lock:
        matrices = _kept.setdefault(layers[0], {})
        kept = matrices.get(key)
        if kept is None or not kept.is_of(versions, checksums, bias):
            matrices.pop(key, None)
            matrix = layout(weights[0] if len(weights) == 1 else torch.cat(weights))  # of (sum of D_i, D_in)
            kept = matrices[key] = PrepackedLayer(matrix, bias, versions, checksums)
        return kept


def for_onednn(weight: torch.Tensor) -> torch.Tensor:
    """Weights (D_out, D_in) as oneDNN reads them for few rows."""
    return torch.ops.mkldnn._reorder_linear_weight(weight, LAYOUT_ROWS)


def in_blocks(weight: torch.Tensor) -> torch.Tensor:
    """Weights (D_out, D_in) as the compiled primitives read them, (blocks, D_in, 16)."""
    return whole_blocks(weight).view(-1, BLOCK, weight.shape[1]).transpose(1, 2).contiguous()


def _forget() -> None:
    """In a forked process: no prepacked weights, and a lock that no thread of the parent holds."""
    global _lock
    _lock = threading.Lock()
    _kept.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
