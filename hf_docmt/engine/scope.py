"""Scope in which the weights of a model do not change, with these weights as oneDNN and the primitives read them.

Decoding multiplies a few rows by large matrices: up to five times as fast with weights in the layout of oneDNN, or of
the compiled primitives. Outside of the scope, with gradients, in autocast, under `torch.compile` and on other devices a
product is that of torch. Results differ by rounding only.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from hf_docmt.engine.cpu_kernels import BLOCK, MULTIPLE
from hf_docmt.engine.int8_linear import joint_bias, whole_blocks
from hf_docmt.engine.tensor_kernels import checksum_of
from hf_docmt.modeling.layers import is_plain

ONEDNN = torch.backends.mkldnn.is_available()
BF16 = ONEDNN and torch.ops.mkldnn._is_mkldnn_bf16_supported()  # the processor has instructions for it
PACKED_TYPES = (torch.float32, torch.bfloat16) if BF16 else (torch.float32,)
MIN_ELEMENTS = 2**17  # of an fp32 matrix; the oneDNN product takes some 50 microseconds to begin
MIN_MULTIPLICATIONS = 2**22  # elements times rows
SUMMED = 251  # words of 8 bytes that a checksum sums up; prime, so that blocks do not line up with rows of a matrix
LANES = 4096  # words of 4 bytes after which the next one of a weighted sum comes; more than are summed up
LAYOUT_ROWS = 4  # the number of rows that the layout is chosen for; others run well on it, too

Made = TypeVar("Made")
Layout = Callable[[torch.Tensor], torch.Tensor]  # weights (D_out, D_in) -> as something reads them
Key = tuple[tuple[int, ...], Layout]  # the layers that are side by side, and how


@dataclass
class PackedLayers:
    """Weights of one layer, or of several side by side with their joint bias, and what they were made of."""

    matrix: torch.Tensor
    bias: torch.Tensor | None
    versions: list[tuple[torch.Size, int | None]]
    checksums: list[torch.Tensor]

    def is_of(self, versions: list, checksums: list[torch.Tensor], bias: torch.Tensor | None) -> bool:
        """Whether weights and joint bias are still those that were packed."""
        has_bias = self.bias is not None and bias is not None
        is_same = torch.equal(self.bias, bias) if has_bias else self.bias is bias
        return is_same and self.versions == versions and all(map(torch.equal, self.checksums, checksums))


@dataclass(eq=False)
class Scope:
    """The scope of one model in one thread: its linear layers with packed weights, and objects made from modules."""

    layers: dict[nn.Module, dict[Key, PackedLayers | None]]  # None: it was multiplied once
    by_weight: dict[int, nn.Module]  # of plain products
    may_be_compiled: bool  # which is not to see modes of torch
    has_hooks: bool = False  # before layers, as of an adapter
    made: dict[tuple[nn.Module, ...], object] = field(default_factory=dict)


_scopes: ContextVar[Mapping[nn.Module, Scope]] = ContextVar("scopes", default=MappingProxyType({}))  # by module


@contextmanager
def unchanged_weights(model: nn.Module) -> Iterator[None]:
    """Scope in which weights and modules of a model do not change, nor by another thread.

    Scopes may be nested, and several threads may have one each on the same model. Packed weights are kept for the next
    scope, until the model is gone or in training mode; they are used again if their versions and checksums say that
    these are the same. So every change between two scopes is seen, through `.data`, too. Copies, pickles, saved models
    and forked processes do not contain them.
    """
    outer = _scopes.get()
    if model in outer:
        yield
        return
    modules = modules_of(model)
    linear = [module for module in modules if isinstance(module, nn.Linear) and not hasattr(module, "_hf_hook")]
    is_compiled = any(module._compiled_call_impl is not None or "forward" in vars(module) for module in modules)
    by_weight, has_hooks = {id(layer.weight): layer for layer in linear}, any(one._forward_pre_hooks for one in modules)
    scope = Scope({layer: {} for layer in linear}, by_weight, is_compiled, has_hooks)
    inner = {**outer, **dict.fromkeys(modules, scope)}
    token = _scopes.set(inner)
    try:
        yield
    finally:
        _scopes.reset(token)
        inner.clear()  # what copied the context in between (a task of asyncio) is outside of the scope, too
        if model.training:
            forget(model)


def modules_of(*roots: nn.Module) -> list[nn.Module]:
    """These modules and all inside of them, in any order; shared ones may come twice."""
    found, rest = [], list(roots)
    while rest:
        module = rest.pop()
        if module is not None:
            found.append(module)
            rest += module._modules.values()
    return found


def made_once(owner: nn.Module, make: Callable[[], Made], *parts: nn.Module) -> Made:
    """The result of `make` for a module, or for these parts of it, computed once in a scope."""
    made, key = _scopes.get()[owner].made, (owner, *parts)
    if key not in made:
        made[key] = make()
    return made[key]


def has_hooks(model: nn.Module) -> bool:
    """Whether something is called before a layer of a model in a scope."""
    return _scopes.get()[model].has_hooks


def is_in_scope(module: nn.Module) -> bool:
    """Whether a module is one of a model whose weights do not change; never under `torch.compile`, which cannot ask."""
    return not torch.compiler.is_compiling() and module in _scopes.get()


def is_inference(stack: nn.Module) -> bool:
    """Whether a stack is called for its states alone, and attends in the ways that the primitives have."""
    return (
        stack.config._attn_implementation in ("sdpa", "eager")
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and not torch.nn.modules.module._has_any_global_hook()
    )


def packed_products(model: nn.Module) -> AbstractContextManager:
    """Within it products with the weights of a model in a scope are those of oneDNN, where these are faster."""
    scope = _scopes.get().get(model)
    is_possible = scope is not None and ONEDNN and not scope.may_be_compiled
    return PackedProducts(scope) if is_possible else nullcontext()


class PackedProducts(TorchFunctionMode):
    """Products with the weights of linear layers by oneDNN, from the second one on: one alone does not repay packing.

    It slows every call of torch down a little, and is for what is not run by the primitives.
    """

    def __init__(self, scope: Scope):
        super().__init__()
        self.scope = scope

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is nn.functional.linear and not kwargs:
            packed = self.packed(*args[:2])
            if packed is not None:
                bias = args[2] if len(args) > 2 else None
                return torch.ops.mkldnn._linear_pointwise(args[0], packed.matrix, bias, "none", [], "")
        return func(*args, **(kwargs or {}))

    def packed(self, states: torch.Tensor, weight: torch.Tensor) -> PackedLayers | None:
        """The packed weights of a layer, or None to multiply states (..., D_in) by the plain ones."""
        layer = self.scope.by_weight.get(id(weight))
        if layer is None or torch.is_grad_enabled() or not is_faster(weight, states):
            return None
        used, key = self.scope.layers[layer], ((id(layer),), for_onednn)
        if key not in used:
            used[key] = None
        elif used[key] is None:
            used[key] = packed_layers([layer], for_onednn)
        return used[key]


def is_faster(weight: torch.Tensor, states: torch.Tensor) -> bool:
    """Whether a product of states with a packed matrix is possible, and faster than with a plain one."""
    rows, elements = states.numel() // states.shape[-1], weight.numel()
    if weight.dtype is torch.bfloat16:
        faster = rows > 1 or elements >= MIN_MULTIPLICATIONS
    else:
        faster = elements >= MIN_ELEMENTS and rows * elements >= MIN_MULTIPLICATIONS
    is_possible = states.is_cpu and states.dtype is weight.dtype and weight.dtype in PACKED_TYPES
    return faster and is_possible and not torch.is_autocast_enabled("cpu")


def is_for_kernels(layer: nn.Module) -> bool:
    """Whether the compiled primitives may have the weights of a layer: a plain one in fp32 on a CPU, in the scope."""
    scope = _scopes.get().get(layer)
    if scope is None or layer not in scope.layers or not is_plain(layer) or layer.in_features % MULTIPLE:
        return False
    weight = layer.weight
    has_memory = type(weight) is nn.Parameter and weight.layout is torch.strided  # of its own
    return has_memory and weight.is_cpu and weight.dtype is torch.float32


def kernel_layer(layers: Sequence[nn.Module]) -> PackedLayers:
    """fp32 weights of layers side by side as `cpu_kernels.c` reads them, with biases of their own or zeros."""
    scope, key = _scopes.get().get(layers[0]), (tuple(map(id, layers)), in_blocks)
    used = {} if scope is None else scope.layers.get(layers[0], {})
    if key not in used:
        used[key] = packed_layers(layers, in_blocks)
    return used[key]


_kept: WeakKeyDictionary[nn.Module, dict[Key, PackedLayers]] = WeakKeyDictionary()
_lock = threading.Lock()


def packed_layers(layers: Sequence[nn.Module], layout: Layout) -> PackedLayers:
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
            kept = matrices[key] = PackedLayers(matrix, bias, versions, checksums)
        return kept


def checksum(weight: torch.Tensor) -> torch.Tensor:
    """Checksums of a matrix, for changes that torch does not count: `.data`, memory shared with other processes.

    The kernels compute them. Without kernels: sums of blocks of words of 8 bytes, and weighted sums of every 4096th
    word of 4 bytes: words of one of these are never in one block. A change is missed only if it
    preserves all sums of both kinds.
    """
    whole = checksum_of(weight)
    if whole is not None:
        return whole
    words = weight.reshape(-1)
    size = words.numel() * words.itemsize
    if words.storage_offset() * words.itemsize % 8 or size % 8:
        words = torch.cat([words, words.new_zeros(-words.numel() % 8)])  # a copy: aligned, whole words
    blocks, lanes = words.view(torch.int64), words.view(torch.int32)
    end, rows = blocks.numel() // SUMMED * SUMMED, lanes.numel() // LANES
    odd = torch.randint(-(2**31), 2**31, (rows,), generator=torch.Generator().manual_seed(1), device="cpu") | 1
    weighted = odd.to(torch.int32) @ lanes[: rows * LANES].view(rows, LANES)  # (LANES,)
    return torch.cat([blocks[:end].view(-1, SUMMED).sum(dim=1), blocks[end:], weighted, lanes[rows * LANES :]])


def for_onednn(weight: torch.Tensor) -> torch.Tensor:
    """Weights (D_out, D_in) as oneDNN reads them for few rows."""
    return torch.ops.mkldnn._reorder_linear_weight(weight, LAYOUT_ROWS)


def in_blocks(weight: torch.Tensor) -> torch.Tensor:
    """Weights (D_out, D_in) as the compiled primitives read them, (blocks, D_in, 16)."""
    return whole_blocks(weight).view(-1, BLOCK, weight.shape[1]).transpose(1, 2).contiguous()


def forget(model: nn.Module) -> None:
    """Give the memory of packed weights free, as in training."""
    for module in modules_of(model):
        _kept.pop(module, None)


def _forget_all() -> None:
    """In a forked process: no packed weights, and a lock that no thread of the parent holds."""
    global _lock
    _lock = threading.Lock()
    _kept.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
