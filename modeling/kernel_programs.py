"""Layers as programs of the primitives in `cpu_kernels.c`, which hold no more than addresses of weights.

States are in buffers, whose numbers stand in operations, so that one program is for all sentences and batches.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import torch
from torch import nn

from .cpu_kernels import EMBEDDING, MULTIPLE, NORM, PRODUCT, RECURRENCE, SELF_ATTENTION, SOURCE_ATTENTION, Operation
from .decoding_step import (
    ATTENTION,
    EMBEDS,
    has_known_blocks,
    has_plain_norms,
    is_backbone,
    is_recurrence,
    is_unchanged,
)
from .int8_linear import is_plain_int8, kernel_weights

STATES, NORMED, READ, PROJECTIONS, INNER, SCORES, LAYERS = range(7)  # buffers of R rows; behind them those of layers
Block = tuple[nn.Module, Callable]  # of a layer: torch runs it


def written(number: int) -> int:
    """The buffer of keys and values that a decoder layer has written, (T, R, 2D); the first D are a recurrent one's."""
    return LAYERS + 2 * number


def source_states(number: int) -> int:
    """The buffer of keys and values of the source that a decoder layer reads, (S, L, 2D)."""
    return LAYERS + 2 * number + 1


@dataclass
class DecoderProgram:
    """A step of decoding: neighbouring primitives side by side, and blocks of another kind.

    The first `embedding` operations give states of tokens at one position, where tokens need no more. `sources` give
    states of the source to the layers in `readers`; self-attention of those in `writers` is a primitive.
    """

    parts: list[ctypes.Array | Block]
    embedding: int
    sources: ctypes.Array
    readers: list[nn.Module]
    writers: list[nn.Module]
    kept: list[torch.Tensor]
    encodings: torch.Tensor = field(default_factory=lambda: torch.empty(0))  # of positions, once they were computed


def decoder_program(decoder: nn.Module, head: nn.Module) -> DecoderProgram | None:
    """The program of a decoder that is known, and an output projection; None where these or their sizes need torch."""
    config, make, table = decoder.config, ProgramMaker(), decoder.embed_tokens
    fits = config.d_model % MULTIPLE == config.decoder_ffn_dim % MULTIPLE == 0
    if not fits or not is_plain_int8(head) or not is_backbone(decoder, "source_mask"):
        return None
    parts: list[Operation | Block] = []
    embeds = is_backbone(decoder, *EMBEDS) and is_unchanged(table, nn.Embedding)
    if embeds and table.weight.dtype is torch.float32 and table.weight.is_contiguous():
        weights, scale = (table.weight.detach(),), decoder.embed_scale
        parts.append(make.operation(EMBEDDING, STATES, STATES, (config.d_model,), weights, scale))
        parts += [make.norm(decoder.layernorm_embedding, STATES)] if config.layernorm_embedding else []
    embedding = len(parts)
    for layer in decoder.layers:
        for block in layer.step_blocks():
            parts += make.block(layer, block) or [(layer, block)]
    parts += [make.norm(decoder.layer_norm, STATES)] if config.normalize_before else []
    parts.append(make.product((head,), STATES, SCORES, has_bias=False))
    return DecoderProgram(neighbours(parts), embedding, array(make.sources), make.readers, make.writers, make.kept)


def with_output(parts: list, head: nn.Module) -> list:
    """The parts of a decoder's program with another output projection, which is to be kept."""
    *operations, _ = parts[-1]
    return [*parts[:-1], array([*operations, ProgramMaker().product((head,), STATES, SCORES, has_bias=False)])]


def encoder_program(encoder: nn.Module) -> tuple[ctypes.Array, list[torch.Tensor]] | None:
    """All layers of an encoder and its last norm, and what they read; None where torch has to run one of them."""
    config, make = encoder.config, ProgramMaker()
    fits = config.d_model % MULTIPLE == config.encoder_ffn_dim % MULTIPLE == 0
    if not fits or not is_backbone(encoder, "run_layers", "attention_mask") or not has_plain_norms(encoder):
        return None
    operations: list[Operation] = []
    for layer in encoder.layers:
        for block in layer.step_blocks() if has_known_blocks(layer) else [None]:
            primitives = make.block(layer, block)
            if primitives is None:
                return None
            operations += primitives
    if config.normalize_before:
        operations.append(make.norm(encoder.layer_norm, STATES))
    return array(operations), make.kept


@dataclass
class ProgramMaker:
    """Makes primitives of modules, and keeps the tensors whose addresses they have."""

    kept: list[torch.Tensor] = field(default_factory=list)
    sources: list[Operation] = field(default_factory=list)
    readers: list[nn.Module] = field(default_factory=list)
    writers: list[nn.Module] = field(default_factory=list)

    def block(self, layer: nn.Module, block: Callable | None) -> list[Operation] | None:
        """A block of a layer; None where torch has to run it."""
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
        if not has_primitives(attention, "q_proj", "k_proj", "v_proj", "out_proj"):
            return None
        dim, size = attention.head_dim, attention.q_proj.out_features
        if layer.side == "decoder":
            self.writers.append(layer)
            kind, sizes = SELF_ATTENTION, (size // dim, dim, written(layer.layer_idx))
        else:
            kind, sizes = SOURCE_ATTENTION, (size // dim, dim, PROJECTIONS, 3 * size, size)
        read = self.operation(kind, PROJECTIONS, READ, sizes, (), attention.scaling)
        return self.sublayer(layer, norm, (attention.q_proj, attention.k_proj, attention.v_proj), read, attention)

    def recurrence(self, layer: nn.Module, unit: nn.Module, norm: nn.LayerNorm) -> list[Operation] | None:
        projections = (unit.input_proj, unit.forget_gate)
        if not all(map(is_plain_int8, projections)):
            return None
        self.writers.append(layer)
        before, states = self.norm_before(layer, norm)
        sizes = (unit.input_proj.out_features, written(layer.layer_idx))
        added = self.operation(RECURRENCE, PROJECTIONS, STATES, sizes, ())
        after = [] if layer.normalize_before else [self.norm(norm, STATES)]
        return [*before, self.product(projections, states, PROJECTIONS), added, *after]

    def source_attention(self, layer: nn.Module) -> list[Operation] | None:
        attention, norm, number = layer.encoder_attn, layer.encoder_attn_layer_norm, layer.layer_idx
        if not has_primitives(attention, "q_proj", "k_proj", "v_proj", "out_proj"):
            return None
        self.readers.append(layer)
        self.sources.append(self.product((attention.k_proj, attention.v_proj), STATES, source_states(number)))
        dim, size = attention.head_dim, attention.q_proj.out_features
        sizes = (size // dim, dim, source_states(number), 2 * size, 0)
        read = self.operation(SOURCE_ATTENTION, PROJECTIONS, READ, sizes, (), attention.scaling)
        return self.sublayer(layer, norm, (attention.q_proj,), read, attention)

    def feed_forward(self, layer: nn.Module) -> list[Operation] | None:
        if not isinstance(layer.activation_fn, nn.ReLU) or not all(map(is_plain_int8, (layer.fc1, layer.fc2))):
            return None
        before, states = self.norm_before(layer, layer.final_layer_norm)
        inner = self.product((layer.fc1,), states, INNER, relu=True)
        return [*before, inner, *self.residual(layer, layer.final_layer_norm, layer.fc2, INNER)]

    def sublayer(self, layer, norm, projections, read: Operation, attention) -> list[Operation]:
        """Attention with its projections, residual and norm."""
        before, states = self.norm_before(layer, norm)
        after = self.residual(layer, norm, attention.out_proj, READ)
        return [*before, self.product(projections, states, PROJECTIONS), read, *after]

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
        self, layers: Sequence[nn.Module], states: int, output: int, has_bias=True, relu=False, adds=False
    ) -> Operation:
        """Layers side by side: states (R, D_in) -> output (R, sum of D_out), with biases of their own or the step's."""
        weights = kernel_weights(layers)[: 3 if has_bias else 2]
        sizes = (layers[0].in_features, sum(layer.out_features for layer in layers), relu, adds)
        return self.operation(PRODUCT, states, output, sizes, weights)

    def operation(self, kind: int, states: int, output: int, sizes: tuple, weights: Sequence, number=0.0) -> Operation:
        self.kept += weights
        return Operation(kind, states, output, sizes, tuple(tensor.data_ptr() for tensor in weights), number)


def has_primitives(attention: nn.Module, *projections: str) -> bool:
    """Whether a module is the backbone's attention, of heads that fit, with plain int8 projections by name."""
    is_known = is_backbone(attention, *ATTENTION) and attention.head_dim % MULTIPLE == 0
    return is_known and all(is_plain_int8(getattr(attention, name)) for name in projections)


def buffers(states: torch.Tensor, scratch: torch.Tensor, *others: torch.Tensor) -> ctypes.Array:
    """Addresses of states (R, D), scratch (R * (5D + F),), scores (R, V), and what was written and read by layer."""
    room, row = scratch.data_ptr(), 4 * states.numel()
    addresses = [states.data_ptr(), room, room + row, room + 2 * row, room + 5 * row]
    addresses += [tensor.data_ptr() for tensor in others]
    return (ctypes.c_void_p * len(addresses))(*addresses)


def neighbours(parts: list[Operation | Block]) -> list[ctypes.Array | Block]:
    """Primitives that stand next to each other in one array."""
    groups = [(kind, list(group)) for kind, group in groupby(parts, key=type)]
    return [part for kind, group in groups for part in ([array(group)] if kind is Operation else group)]


def array(operations: Sequence[Operation]) -> ctypes.Array:
    """Operations as the kernels read them."""
    return (Operation * len(operations))(*operations)
