"""Layers as programs of the primitives of `cpu_kernels.c`: products, attention, norms.

Programs hold no more than the addresses of weights. States are in buffers, which operations refer to by number, so that
one program serves all sentences and batches.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hf_docmt.engine.cpu_kernels import (
    ALL,
    LIMITED,
    MIXTURE,
    NORM,
    PRODUCT,
    RECURRENCE,
    SELF_ATTENTION,
    SOURCE_ATTENTION,
    Operation,
)

# Buffers of R rows; after them those of layers
STATES, NORMED, READ, PROJECTIONS, PAIR, OTHER, INNER, SCORES, LAYERS = range(9)
Writer = tuple[Any, Any]  # a layer and its self-attention, or one part of that
Reader = tuple[Any, str | None]  # attention, and the layer input that it reads; None: the source


def written(number: int) -> int:
    """The buffer of what one attention has written, (T, R, 2D): keys and values; the first D are a recurrent one's."""
    return LAYERS + 2 * number


def source_states(number: int) -> int:
    """The buffer of keys and values of the source that one attention reads, (S, L, 2D)."""
    return LAYERS + 2 * number + 1


@dataclass
class ProgramMaker:
    """Makes primitives of layers, and keeps what has the memory whose addresses they have.

    Layers have the attributes of the modules of torch. A subclass says where weights are, and which kinds it knows.
    """

    address: ClassVar[Callable[[Any], int]]  # of an array or tensor
    are_products: ClassVar[Callable[[Sequence], bool]]  # whether these layers are of one kind, int8 or fp32
    what_heads_read: ClassVar[Callable[[Any], str | None]]  # see `known_layers.what_it_reads`; None: not known
    are_vectors: ClassVar[Callable[[Any, int], bool]]  # whether a table has those of a window, without changes
    is_recurrence: ClassVar[Callable[[Any], bool]]
    is_relu: ClassVar[Callable[[Any], bool]]

    has_limits: bool = False  # whether limited attention is known, too
    inner: int = 0  # most values between the products of a feed-forward block
    kept: list = field(default_factory=list)
    sources: list[Operation] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    writers: list[Writer] = field(default_factory=list)

    def self_attention(self, layer) -> list[Operation] | None:
        """Self-attention: of a decoder to the tokens written, of an encoder within one source."""
        attention, norm = layer.self_attn, layer.self_attn_layer_norm
        if self.is_recurrence(attention):
            return self.recurrence(layer, attention, norm)
        return self.sublayer(layer, norm, attention, self.read_self)

    def source_attention(self, layer) -> list[Operation] | None:
        return self.sublayer(layer, layer.encoder_attn_layer_norm, layer.encoder_attn, self.read_source)

    def sublayer(self, layer, norm, attention, read) -> list[Operation] | None:
        """Attention with its projections, residual and norm; None for a kind that is not known."""
        how = self.what_heads_read(attention)
        if how is None or how != "whole" and not self.has_limits:
            return None
        relative = getattr(attention, "relative", None)
        if relative is not None and (
            layer.side == "encoder" or not self.are_vectors(relative, attention.config.window)
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

    def gated(self, layer, attention, read, states: int) -> list[Operation]:
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
        """Output of the heads of self-attention, from their projections of states."""
        if layer.side == "decoder":
            self.writers.append((layer, attention))
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        read = self.read_projected(layer, attention, output, is_limited)
        return [self.product(projections, states, PROJECTIONS), read]

    def read_projected(self, layer, attention, output: int, is_limited: bool) -> Operation:
        """Output of these heads over the projections of a source, or over the output of the last of `writers`."""
        (dim, size), relative = sizes_of(attention), getattr(attention, "relative", None)
        if layer.side == "encoder":
            sizes = (size // dim, dim, PROJECTIONS, 3 * size, size, LIMITED if is_limited else ALL)
            return self.operation(SOURCE_ATTENTION, PROJECTIONS, output, sizes, (), attention.scaling)
        vectors = () if relative is None else (relative.weight,)
        sizes = (size // dim, dim, written(len(self.writers) - 1), is_limited, len(vectors[0]) if vectors else 0)
        return self.operation(SELF_ATTENTION, PROJECTIONS, output, sizes, vectors, attention.scaling)

    def read_source(self, layer, attention, states: int, output: int, is_limited: bool) -> list[Operation]:
        """Output of the heads of attention to the source."""
        number, (dim, size) = len(self.readers), sizes_of(attention)
        self.readers.append((attention, None))
        self.sources.append(self.product((attention.k_proj, attention.v_proj), STATES, source_states(number)))
        read = self.attention_to(number, dim, size, output, LIMITED if is_limited else ALL, attention.scaling)
        return [self.product((attention.q_proj,), states, PROJECTIONS), read]

    def attention_to(self, number: int, dim: int, size: int, output: int, which: int, scaling: float) -> Operation:
        """Attention to the states of a reader, by the queries that were projected."""
        sizes = (size // dim, dim, source_states(number), 2 * size, 0, which)
        return self.operation(SOURCE_ATTENTION, PROJECTIONS, output, sizes, (), scaling)

    def recurrence(self, layer, unit, norm) -> list[Operation] | None:
        projections = (unit.input_proj, unit.forget_gate)
        if not self.are_products(projections):
            return None
        before, states = self.norm_before(layer, norm)
        sizes = (unit.input_proj.out_features, written(len(self.writers)))
        self.writers.append((layer, unit))
        added = self.operation(RECURRENCE, PROJECTIONS, STATES, sizes, ())
        after = [] if layer.normalize_before else [self.norm(norm, STATES)]
        return [*before, self.product(projections, states, PROJECTIONS), added, *after]

    def feed_forward(self, layer) -> list[Operation] | None:
        first, last = layer.fc1, layer.fc2
        if not self.is_relu(layer.activation_fn) or not self.are_products((first, last)):
            return None
        if first.out_features != last.in_features or first.out_features > self.inner:
            return None
        before, states = self.norm_before(layer, layer.final_layer_norm)
        inner = self.product((layer.fc1,), states, INNER, relu=True)
        return [*before, inner, *self.residual(layer, layer.final_layer_norm, layer.fc2, INNER)]

    def norm_before(self, layer, norm) -> tuple[list[Operation], int]:
        """The norm before a sublayer, where there is one, and the states that the sublayer reads."""
        return ([self.norm(norm, NORMED)], NORMED) if layer.normalize_before else ([], STATES)

    def residual(self, layer, norm, linear, states: int) -> list[Operation]:
        """The last product of a sublayer, added to the states, and the norm after it, where there is one."""
        added = self.product((linear,), states, STATES, adds=True)
        return [added] if layer.normalize_before else [added, self.norm(norm, STATES)]

    def norm(self, norm, output: int) -> Operation:
        return self.operation(NORM, STATES, output, (len(norm.weight),), (norm.weight, norm.bias), norm.eps)

    def product(
        self,
        layers: Sequence,
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
        return Operation(PRODUCT, states, output, sizes, self.product_weights(layers, has_bias))

    def operation(self, kind: int, states: int, output: int, sizes: tuple, weights: Sequence, number=0.0) -> Operation:
        self.kept += weights
        return Operation(kind, states, output, sizes, tuple(map(self.address, weights)), number)

    def product_weights(self, layers: Sequence, has_bias: bool) -> tuple[int | None, ...]:
        """The addresses of weights, scales and biases of layers side by side, which are kept; without scales floats."""
        raise NotImplementedError


def sizes_of(attention) -> tuple[int, int]:
    """The sizes of a head, and of all heads."""
    return attention.head_dim, attention.q_proj.out_features


def array(operations: Sequence[Operation]) -> ctypes.Array:
    """Operations as the kernels read them."""
    return (Operation * len(operations))(*operations)


def addresses(states: int, size: int, scratch: int, others: Sequence[int]) -> ctypes.Array:
    """Addresses of states (R, D) of `size` bytes, scratch (R * (8D + F),), scores (R, V), what was written and read."""
    rows = [scratch + number * size for number in (0, 1, 2, 5, 7, 8)]  # NORMED to INNER
    return (ctypes.c_void_p * (7 + len(others)))(states, *rows, *others)
