"""Layers as primitives of `cpu_kernels.c`: products, attention, norms, with the addresses of their weights."""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from weakref import ref

import torch
from torch import nn

from .cpu_inference import PrepackedLayer, is_for_kernels, kernel_layer
from .cpu_kernels import (
    ADDITION,
    ALL,
    CONTEXT,
    LIMITED,
    MIXTURE,
    MULTIPLE,
    NORM,
    PRODUCT,
    RECURRENCE,
    SELF_ATTENTION,
    SOURCE_ATTENTION,
    Operation,
)
from .decoding_step import ATTENTION, is_backbone, is_recurrence, is_unchanged
from .int8_linear import is_plain_int8, kernel_weights

# Buffers of R rows; behind them those of layers
STATES, NORMED, READ, PROJECTIONS, PAIR, OTHER, INNER, SCORES, LAYERS = range(9)
Block = tuple[nn.Module, Callable]  # of a layer: torch runs it
Writer = tuple[nn.Module, nn.Module]  # a layer and its self-attention, or one part of that
Reader = tuple[nn.Module, str | None]  # attention, and the layer input that it reads; None: the source
Prepacked = tuple[Sequence[nn.Module], "ref[PrepackedLayer]"]  # fp32 layers side by side, and what became of them


def written(number: int) -> int:
    """The buffer of what one attention has written, (T, R, 2D): keys and values; the first D are a recurrent one's."""
    return LAYERS + 2 * number


def source_states(number: int) -> int:
    """The buffer of keys and values of the source that one attention reads, (S, L, 2D)."""
    return LAYERS + 2 * number + 1


OWN_METHODS = {  # of attention that is not the backbone's, by what it reads: they have to be its own
    "limited": "attend_self attend_windows keys_and_values".split(),
    "whole and limited": ["attend_sentence"],
    "gated": "attend_sentence read_self read_source".split(),
}


@dataclass
class ProgramMaker:
    """Makes primitives of modules, and keeps the tensors whose addresses they have, but those of `prepacked` layers."""

    has_limits: bool = False  # whether limited attention is known, too
    inner: int = 0  # most values between the products of a feed-forward block
    kept: list[torch.Tensor] = field(default_factory=list)
    prepacked: list[Prepacked] = field(default_factory=list)
    sources: list[Operation] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    writers: list[Writer] = field(default_factory=list)

    def block(self, layer: nn.Module, block: Callable | None) -> list[Operation] | None:
        """A block of a layer; None where torch has to run it."""
        if not all(is_known_norm(norm) for norm in layer.children() if isinstance(norm, nn.LayerNorm)):
            return None
        if getattr(block, "reads", None) == "context":
            return self.context(layer, layer.context_sublayer()) if layer.side == "decoder" else None
        if not getattr(block, "is_backbone", False):
            return None
        blocks = {
            "self_attention_block": self.self_attention,
            "cross_attention_block": self.source_attention,
            "feed_forward_block": self.feed_forward,
        }
        return blocks[block.__name__](layer)

    def self_attention(self, layer: nn.Module) -> list[Operation] | None:
        """Of a decoder to what it has written, of an encoder among the projections of one source."""
        attention, norm = layer.self_attn, layer.self_attn_layer_norm
        if is_recurrence(attention):
            return self.recurrence(layer, attention, norm)
        return self.sublayer(layer, norm, attention, self.read_self)

    def source_attention(self, layer: nn.Module) -> list[Operation] | None:
        return self.sublayer(layer, layer.encoder_attn_layer_norm, layer.encoder_attn, self.read_source)

    def sublayer(self, layer: nn.Module, norm: nn.Module, attention: nn.Module, read) -> list[Operation] | None:
        """Attention with its projections, residual and norm; None for a kind that is not known."""
        how = what_it_reads(attention)
        if how is None or how != "whole" and not self.has_limits:
            return None
        relative = getattr(attention, "relative", None)
        if relative is not None and (
            layer.side == "encoder" or not are_plain_vectors(relative, attention.config.window)
        ):
            return None
        before, states = self.norm_before(layer, norm)
        after = [] if layer.normalize_before else [self.norm(norm, STATES)]
        if how == "gated":
            return [*before, *self.gated(layer, attention, read, states), *after]
        operations = read(layer, attention, states, READ, how == "limited")
        added = [self.product((attention.out_proj,), READ, STATES, adds=True)]
        if how == "whole and limited":
            operations.append(self.read_projected(layer, attention, OTHER, True))
            added.append(self.product((attention.sentence_proj,), OTHER, STATES, adds=True))
        return [*before, *operations, *added, *after]

    def gated(self, layer: nn.Module, attention: nn.Module, read, states: int) -> list[Operation]:
        """Limited attention and that to all, joined by a gate, which is added to the states."""
        other, gate, size = attention.global_attn, attention.gate, attention.gate.out_features
        return [
            *read(layer, attention, states, READ, True),
            self.product((attention.out_proj,), READ, PAIR, place=(2 * size, 0)),
            *read(layer, other, states, READ, False),
            self.product((other.out_proj,), READ, PAIR, place=(2 * size, size)),
            self.product((gate,), PAIR, OTHER),
            self.operation(MIXTURE, PAIR, STATES, (size, OTHER), ()),
        ]

    def read_self(self, layer, attention, states: int, output: int, is_limited: bool) -> list[Operation]:
        """What the heads of self-attention read, from their projections of states."""
        if layer.side == "decoder":
            self.writers.append((layer, attention))
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        read = self.read_projected(layer, attention, output, is_limited)
        return [self.product(projections, states, PROJECTIONS), read]

    def read_projected(self, layer, attention, output: int, is_limited: bool) -> Operation:
        """What these heads read, among the projections of a source, or of what the last of `writers` has written."""
        (dim, size), relative = sizes_of(attention), getattr(attention, "relative", None)
        if layer.side == "encoder":
            sizes = (size // dim, dim, PROJECTIONS, 3 * size, size, LIMITED if is_limited else ALL)
            return self.operation(SOURCE_ATTENTION, PROJECTIONS, output, sizes, (), attention.scaling)
        vectors = () if relative is None else (relative.weight.detach(),)
        sizes = (size // dim, dim, written(len(self.writers) - 1), is_limited, len(vectors[0]) if vectors else 0)
        return self.operation(SELF_ATTENTION, PROJECTIONS, output, sizes, vectors, attention.scaling)

    def read_source(self, layer, attention, states: int, output: int, is_limited: bool) -> list[Operation]:
        """What the heads of attention to the source read."""
        number, (dim, size) = len(self.readers), sizes_of(attention)
        self.readers.append((attention, None))
        self.sources.append(self.product((attention.k_proj, attention.v_proj), STATES, source_states(number)))
        read = self.attention_to(number, dim, size, output, LIMITED if is_limited else ALL, attention.scaling)
        return [self.product((attention.q_proj,), states, PROJECTIONS), read]

    def context(self, layer: nn.Module, sublayer) -> list[Operation] | None:
        """Attention to a further source, a `ContextSublayer`, added, or mixed in by a gate, where a source has some."""
        if sublayer is None or not all(is_backbone(*called) for called in sublayer.methods):
            return None
        (attention, norm), number = (sublayer.attention, sublayer.norm), len(self.readers)
        has_known_norm = norm is None or is_unchanged(norm, nn.LayerNorm)
        if what_it_reads(attention) != "whole" or not has_known_norm or not are_products(sublayer.gates):
            return None
        self.readers.append((attention, sublayer.inputs))
        dim, size = sizes_of(attention)
        before, states = self.norm_before(layer, norm)
        gates = [
            self.product((gate,), read, PAIR, adds=read == OTHER) for gate, read in zip(sublayer.gates, (states, OTHER))
        ]
        return [
            *before,
            self.product((attention.q_proj,), states, PROJECTIONS),
            self.attention_to(number, dim, size, READ, CONTEXT, attention.scaling),
            self.product((attention.out_proj,), READ, OTHER),
            *gates,
            self.operation(ADDITION, OTHER, STATES, (size, PAIR if gates else 0), ()),
            *([] if layer.normalize_before or norm is None else [self.norm(norm, STATES)]),
        ]

    def attention_to(self, number: int, dim: int, size: int, output: int, which: int, scaling: float) -> Operation:
        """Attention to the states of a reader, by the queries that were projected."""
        sizes = (size // dim, dim, source_states(number), 2 * size, 0, which)
        return self.operation(SOURCE_ATTENTION, PROJECTIONS, output, sizes, (), scaling)

    def recurrence(self, layer: nn.Module, unit: nn.Module, norm: nn.LayerNorm) -> list[Operation] | None:
        projections = (unit.input_proj, unit.forget_gate)
        if not are_products(projections):
            return None
        before, states = self.norm_before(layer, norm)
        sizes = (unit.input_proj.out_features, written(len(self.writers)))
        self.writers.append((layer, unit))
        added = self.operation(RECURRENCE, PROJECTIONS, STATES, sizes, ())
        after = [] if layer.normalize_before else [self.norm(norm, STATES)]
        return [*before, self.product(projections, states, PROJECTIONS), added, *after]

    def feed_forward(self, layer: nn.Module) -> list[Operation] | None:
        first, last = layer.fc1, layer.fc2
        if not is_unchanged(layer.activation_fn, nn.ReLU) or not are_products((first, last)):
            return None
        if first.out_features != last.in_features or first.out_features > self.inner:
            return None
        before, states = self.norm_before(layer, layer.final_layer_norm)
        inner = self.product((layer.fc1,), states, INNER, relu=True)
        return [*before, inner, *self.residual(layer, layer.final_layer_norm, layer.fc2, INNER)]

    def norm_before(self, layer: nn.Module, norm: nn.LayerNorm) -> tuple[list[Operation], int]:
        """The norm before a sublayer, where there is one, and the states that the sublayer reads."""
        return ([self.norm(norm, NORMED)], NORMED) if layer.normalize_before else ([], STATES)

    def residual(self, layer: nn.Module, norm: nn.LayerNorm, linear: nn.Module, states: int) -> list[Operation]:
        """The last product of a sublayer, added to the states, and the norm after it, where there is one."""
        added = self.product((linear,), states, STATES, adds=True)
        return [added] if layer.normalize_before else [added, self.norm(norm, STATES)]

    def norm(self, norm: nn.LayerNorm, output: int) -> Operation:
        weights = (norm.weight.detach(), norm.bias.detach())
        return self.operation(NORM, STATES, output, (len(norm.weight),), weights, norm.eps)

    def product(
        self,
        layers: Sequence[nn.Module],
        states: int,
        output: int,
        has_bias=True,
        relu=False,
        adds=False,
        place: tuple[int, int] = (0, 0),
    ) -> Operation:
        """Layers side by side: states (R, D_in) -> output (R, sum of D_out), with biases of their own or the step's.

        `place`: the length of wider rows, and the column at which outputs begin.
        """
        sizes = (layers[0].in_features, sum(layer.out_features for layer in layers), relu, adds, *place)
        if all(map(is_plain_int8, layers)):
            return self.operation(PRODUCT, states, output, sizes, kernel_weights(layers)[: 3 if has_bias else 2])
        packed = kernel_layer(layers)
        self.prepacked.append((layers, ref(packed)))
        addresses = (packed.matrix.data_ptr(), None, packed.bias.data_ptr() if has_bias else None)
        return Operation(PRODUCT, states, output, sizes, addresses)

    def operation(self, kind: int, states: int, output: int, sizes: tuple, weights: Sequence, number=0.0) -> Operation:
        self.kept += weights
        return Operation(kind, states, output, sizes, tuple(tensor.data_ptr() for tensor in weights), number)


def are_products(layers: Sequence[nn.Module]) -> bool:
    """Whether the primitives know the weights of all these layers, which are of one kind: int8 or fp32."""
    return all(map(is_plain_int8, layers)) or all(map(is_for_kernels, layers))


def are_current(prepacked: Sequence[Prepacked]) -> bool:
    """Whether layers are still what they were packed into."""
    return all(packed() is kernel_layer(layers) for layers, packed in prepacked)


def held(prepacked: Sequence[Prepacked]) -> list[PrepackedLayer] | None:
    """What layers were packed into, to be kept as long as it is read; None where some of it is gone."""
    layers = [packed() for _, packed in prepacked]
    return None if any(layer is None for layer in layers) else layers


def is_known_norm(norm: nn.LayerNorm) -> bool:
    """Whether a norm has a weight and a bias, as the primitives read them."""
    both = (norm.weight, norm.bias)
    return all(one is not None and one.dtype is torch.float32 and one.is_contiguous() and one.is_cpu for one in both)


def what_it_reads(attention: nn.Module) -> str | None:
    """What attention of heads that fit reads, by plain projections; None for a kind that is not known.

    "whole", "limited" by what the model's `step_limits` say, "whole and limited", joined by a further projection, or
    "gated", both with projections of their own.
    """
    is_whole = is_backbone(attention, *ATTENTION)
    how = "whole" if is_whole else getattr(type(attention).forward, "reads", None)
    if how is None or not is_whole and not is_backbone(attention, *ATTENTION[1:], *OWN_METHODS[how]):
        return None
    layers = [attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj]
    if how == "gated" and attention.global_attn is None:
        how = "limited"
    elif how == "gated":
        layers.append(attention.gate)
        how = how if what_it_reads(attention.global_attn) == "whole" else None
    elif how == "whole and limited":
        layers.append(attention.sentence_proj)
    size = attention.config.d_model
    are_square = all(layer.in_features == layer.out_features == size for layer in layers[:4])
    return how if attention.head_dim % MULTIPLE == 0 and are_products(layers) and are_square else None


def are_plain_vectors(table: nn.Module, window: int) -> bool:
    """Whether a module holds the vectors of a window before a token, as it was built."""
    weight = table.weight
    is_plain = is_unchanged(table, nn.Embedding) and weight.dtype is torch.float32 and weight.is_contiguous()
    return is_plain and len(weight) == window + 1


def sizes_of(attention: nn.Module) -> tuple[int, int]:
    """Of a head, and of all of them."""
    return attention.head_dim, attention.q_proj.out_features


def array(operations: Sequence[Operation]) -> ctypes.Array:
    """Operations as the kernels read them."""
    return (Operation * len(operations))(*operations)
