"""Inference on a CPU with oneDNN-prepacked weights, inside a scope in which the weights do not change.

Decoding multiplies a few rows by large matrices: up to five times as fast with weights in oneDNN's own layout.
`prepacked_weights(model)` is the scope; `generate` and `translate_documents` enter it. Outside of it, with gradients,
in autocast, under `torch.compile` and on other devices a `Linear` is an `nn.Linear`. Results differ by rounding only.
"""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from weakref import WeakKeyDictionary

import torch
from torch import nn

ONEDNN = torch.backends.mkldnn.is_available()
BF16 = ONEDNN and torch.ops.mkldnn._is_mkldnn_bf16_supported()  # the processor has instructions for it
PREPACKED_TYPES = (torch.float32, torch.bfloat16) if BF16 else (torch.float32,)
MIN_ELEMENTS = 2**17  # of an fp32 matrix; the oneDNN product takes some 50 microseconds to begin
MIN_MULTIPLICATIONS = 2**22  # elements times rows
LAYOUT_ROWS = 4  # the number of rows that the layout is chosen for; others run well on it, too
BLOCK = 251  # words that are summed for the checksum; prime, so that blocks do not line up with rows of a matrix


class Linear(nn.Linear):
    """`nn.Linear` with oneDNN-prepacked weights for CPU inference inside `prepacked_weights`."""

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


def joint_linear(layers: Sequence[nn.Module], hidden_states: torch.Tensor) -> list[torch.Tensor]:
    """Several layers of one input: (..., D) -> (..., D_i) each; one product where their weights are prepacked.

    A layer with hooks, or with an adapter around it, is called by itself.
    """
    prepacked = prepacked_layer(layers, hidden_states) if all(map(is_plain, layers)) else None
    if prepacked is None:
        return [layer(hidden_states) for layer in layers]
    outputs = prepacked.product(hidden_states, prepacked.bias)  # (..., sum of D_i)
    return list(outputs.split([layer.out_features for layer in layers], dim=-1))


def is_plain(module: nn.Module) -> bool:
    """Whether a module is a `Linear` as it was built: no adapter around it, no hooks that a call would run."""
    return type(module) is Linear and not (module._forward_hooks or module._forward_pre_hooks)


# The scope


@contextmanager
def prepacked_weights(model: nn.Module) -> Iterator[None]:
    """Scope in which the weights of a model do not change, so that its `Linear` layers may run on prepacked ones.

    A layer is prepacked at its second product in the scope: one alone does not repay it. Scopes may be nested, and
    several threads may have one each on the same model. The prepacked weights are kept for the next scope, until the
    model is gone or put into training mode; they are used again if a checksum over all weights of the layer says that
    these are the same. So every change between two scopes is seen, through `.data` and by optimizers, too. Copies,
    pickles, saved models and forked processes do not contain them.
    """
    outer = _scope.get()
    layers = {module: {} for module in model.modules() if isinstance(module, Linear) and module not in outer}
    token = _scope.set({**outer, **layers} if layers else outer)
    try:
        yield
    finally:
        _scope.reset(token)


@dataclass
class PrepackedLayer:
    """Prepacked weights of one layer, or of several side by side with their joint bias, while a scope lasts."""

    matrix: torch.Tensor
    bias: torch.Tensor | None

    def product(self, hidden_states: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        return torch.ops.mkldnn._linear_pointwise(hidden_states, self.matrix, bias, "none", [], "")


# Of every Linear in the scope of this thread: number of layers side by side, beginning with it -> their prepacked
# weights, None after the first product
_scope: ContextVar[Mapping[nn.Module, dict[int, PrepackedLayer | None]]] = ContextVar(
    "prepacked_weights", default=MappingProxyType({})
)


def prepacked_layer(layers: Sequence["Linear"], hidden_states: torch.Tensor) -> PrepackedLayer | None:
    """The prepacked weights of layers side by side, or None where the input is to be multiplied by the plain ones."""
    if torch.compiler.is_compiling() or torch.is_grad_enabled():
        return None
    first, count = layers[0], len(layers)
    used = _scope.get().get(first)
    if used is None or not is_faster(first.weight, hidden_states, count):
        return None
    if count not in used:
        used[count] = None
    elif used[count] is None:
        used[count] = PrepackedLayer(prepacked_matrix(layers), joint_bias(layers))
    return used[count]


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


@dataclass
class KeptMatrix:
    """A prepacked matrix, and shapes and checksums of the weights that it was made of."""

    matrix: torch.Tensor
    shapes: list[torch.Size]
    checksums: list[torch.Tensor]


_kept: WeakKeyDictionary[nn.Module, dict[int, KeptMatrix]] = WeakKeyDictionary()
_lock = threading.Lock()


def prepacked_matrix(layers: Sequence["Linear"]) -> torch.Tensor:
    """The weights (D_i, D_in) of layers side by side as one prepacked matrix: the one that was kept, or a new one."""
    weights = [layer.weight.detach() for layer in layers]
    shapes, checksums = [weight.shape for weight in weights], [checksum(weight) for weight in weights]
    with _lock:
        matrices = _kept.setdefault(layers[0], {})
        kept = matrices.get(len(layers))
        if kept is None or kept.shapes != shapes or not all(map(torch.equal, kept.checksums, checksums)):
            matrices.pop(len(layers), None)
            weight = weights[0] if len(weights) == 1 else torch.cat(weights)  # (sum of D_i, D_in)
            matrix = torch.ops.mkldnn._reorder_linear_weight(weight, LAYOUT_ROWS)
            kept = matrices[len(layers)] = KeptMatrix(matrix, shapes, checksums)
        return kept.matrix


def checksum(weight: torch.Tensor) -> torch.Tensor:
    """Sums of the bits of a matrix, as integers, over blocks of consecutive words; in the time of reading it once.

    A change of values in one block is missed only if it leaves the exact sum of their bits as it was, a permutation of
    rows or columns only if it moves none across the end of a block.
    """
    words = weight.reshape(-1)
    if words.storage_offset() * words.itemsize % 8 == 0 and words.numel() * words.itemsize % 8 == 0:
        words = words.view(torch.int64)
    else:
        words = words.view(torch.int32 if words.itemsize == 4 else torch.int16)
    end = words.numel() // BLOCK * BLOCK
    return torch.cat([words[:end].view(-1, BLOCK).sum(dim=1), words[end:]])


def joint_bias(layers: Sequence["Linear"]) -> torch.Tensor | None:
    """The biases (D_i,) of layers that all have one as (sum of D_i,)."""
    return None if layers[0].bias is None else torch.cat([layer.bias.detach() for layer in layers])


def _forget() -> None:
    """In a forked process: no prepacked weights, and a lock that no thread of the parent holds."""
    global _lock
    _lock = threading.Lock()
    _kept.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
