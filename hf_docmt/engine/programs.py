"""Encoders and decoders as programs of the primitives of `cpu_kernels.c`: products, attention, norms.

They hold no more than the addresses of weights. States are in buffers, which operations refer to by number, so that one
program serves all sentences and batches.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

import torch
from torch import nn

from hf_docmt.engine.cpu_kernels import (
    ADDITION,
    ALL,
    CONTEXT,
    EMBEDDING,
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
from hf_docmt.engine.int8_linear import is_plain_int8, kernel_weights
from hf_docmt.engine.known_layers import (
    Block,
    ContextSublayer,
    blocks_of,
    embeds_tokens,
    has_limits,
    has_source_limits,
    is_known_encoder,
    is_recurrence,
    is_unchanged,
    what_it_reads,
)
from hf_docmt.engine.scope import is_for_kernels, kernel_layer
from hf_docmt.modeling.modeling_docmt import Decoder

# Buffers of R rows; after them those of layers
STATES, NORMED, READ, PROJECTIONS, PAIR, OTHER, INNER, SCORES, LAYERS = range(9)
Writer = tuple[nn.Module, nn.Module]  # a layer and its self-attention, or one part of that
Reader = tuple[nn.Module, str | None]  # attention, and the layer input that it reads; None: the source


def written(number: int) -> int:
    """The buffer of what one attention has written, (T, R, 2D): keys and values; the first D are a recurrent one's."""
    return LAYERS + 2 * number


def source_states(number: int) -> int:
    """The buffer of keys and values of the source that one attention reads, (S, L, 2D)."""
    return LAYERS + 2 * number + 1


@dataclass
class ProgramMaker:
    """Makes primitives of modules, and keeps what has the memory whose addresses they have."""

    has_limits: bool = False  # whether limited attention is known, too
    inner: int = 0  # most values between the products of a feed-forward block
    kept: list = field(default_factory=list)
    sources: list[Operation] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    writers: list[Writer] = field(default_factory=list)

    def block(self, block: Block) -> list[Operation] | None:
        """A block of a layer; None where torch has to run it."""
        layer = block.layer
        if block.sublayer is not None and layer.side == "decoder":
            return self.context(layer, block.sublayer)
        if not block.is_known:
            return None
        makers = {"self": self.self_attention, "source": self.source_attention, "feed_forward": self.feed_forward}
        return makers[block.kind](layer)

    def self_attention(self, layer: nn.Module) -> list[Operation] | None:
        """Self-attention: of a decoder to the tokens written, of an encoder within one source."""
        attention, norm = layer.self_attn, layer.self_attn_layer_norm
        if is_recurrence(attention):
            return self.recurrence(layer, attention, norm)
        return self.sublayer(layer, norm, attention, self.read_self)

    def source_attention(self, layer: nn.Module) -> list[Operation] | None:
        return self.sublayer(layer, layer.encoder_attn_layer_norm, layer.encoder_attn, self.read_source)

    def sublayer(self, layer: nn.Module, norm: nn.Module, attention: nn.Module, read) -> list[Operation] | None:
        """Attention with its projections, residual and norm; None for a kind that is not known."""
        how = what_heads_read(attention)
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
        vectors = () if relative is None else (relative.weight.detach(),)
        sizes = (size // dim, dim, written(len(self.writers) - 1), is_limited, len(vectors[0]) if vectors else 0)
        return self.operation(SELF_ATTENTION, PROJECTIONS, output, sizes, vectors, attention.scaling)

    def read_source(self, layer, attention, states: int, output: int, is_limited: bool) -> list[Operation]:
        """Output of the heads of attention to the source."""
        number, (dim, size) = len(self.readers), sizes_of(attention)
        self.readers.append((attention, None))
        self.sources.append(self.product((attention.k_proj, attention.v_proj), STATES, source_states(number)))
        read = self.attention_to(number, dim, size, output, LIMITED if is_limited else ALL, attention.scaling)
        return [self.product((attention.q_proj,), states, PROJECTIONS), read]

    def context(self, layer: nn.Module, sublayer: ContextSublayer) -> list[Operation] | None:
        """Attention to a further source, added, or mixed in by a gate, where a source has some."""
        (attention, norm), number = (sublayer.attention, sublayer.norm), len(self.readers)
        has_known_norm = norm is None or is_unchanged(norm, nn.LayerNorm)
        if what_heads_read(attention) != "whole" or not has_known_norm or not are_products(sublayer.gates):
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
        self.kept.append(packed)
        addresses = (packed.matrix.data_ptr(), None, packed.bias.data_ptr() if has_bias else None)
        return Operation(PRODUCT, states, output, sizes, addresses)

    def operation(self, kind: int, states: int, output: int, sizes: tuple, weights: Sequence, number=0.0) -> Operation:
        self.kept += weights
        return Operation(kind, states, output, sizes, tuple(tensor.data_ptr() for tensor in weights), number)


def are_products(layers: Sequence[nn.Module]) -> bool:
    """Whether the primitives know the weights of all these layers, which are of one kind: int8 or fp32."""
    return all(map(is_plain_int8, layers)) or all(map(is_for_kernels, layers))


def is_known_norm(norm: nn.LayerNorm) -> bool:
    """Whether a norm has a weight and a bias, as the primitives read them."""
    both = (norm.weight, norm.bias)
    return all(one is not None and one.dtype is torch.float32 and one.is_contiguous() and one.is_cpu for one in both)


def what_heads_read(attention: nn.Module) -> str | None:
    """`what_it_reads` of attention whose heads fit and whose projections are plain; otherwise None."""
    how = what_it_reads(attention)
    if how is None:
        return None
    layers = [attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj]
    if how == "gated" and attention.global_attn is None:
        how = "limited"
    elif how == "gated":
        layers.append(attention.gate)
        how = how if what_heads_read(attention.global_attn) == "whole" else None
    elif how == "whole and limited":
        layers.append(attention.sentence_proj)
    size = attention.config.d_model
    are_square = all(layer.in_features == layer.out_features == size for layer in layers[:4])
    return how if attention.head_dim % MULTIPLE == 0 and are_products(layers) and are_square else None


def are_plain_vectors(table: nn.Module, window: int) -> bool:
    """Whether a module holds the vectors of a window before a token, without changes."""
    weight = table.weight
    is_plain = is_unchanged(table, nn.Embedding) and weight.dtype is torch.float32 and weight.is_contiguous()
    return is_plain and len(weight) == window + 1


def sizes_of(attention: nn.Module) -> tuple[int, int]:
    """The sizes of a head, and of all heads."""
    return attention.head_dim, attention.q_proj.out_features


def array(operations: Sequence[Operation]) -> ctypes.Array:
    """Operations as the kernels read them."""
    return (Operation * len(operations))(*operations)


@dataclass
class DecoderProgram:
    """A step of decoding: neighbouring primitives side by side, and blocks of another kind.

    The first `embedding` operations give states of tokens at one position, where tokens need no more. `sources` give
    states of the source to the attention in `readers`; self-attention of `writers` is a primitive. `has_limits`: some
    of these read no more than the model's `step_limits` say.
    """

    parts: list[ctypes.Array | Block]
    embedding: int
    sources: ctypes.Array
    readers: list[Reader]
    writers: list[Writer]
    kept: list
    has_limits: bool
    encodings: torch.Tensor = field(default_factory=lambda: torch.empty(0))  # of positions, once they were computed


def decoder_program(model: nn.Module) -> DecoderProgram | None:
    """The program of a decoder that is known, and its output projection; None where these or their sizes need torch."""
    decoder = model.get_decoder()
    config = decoder.config
    if config.d_model % MULTIPLE or config.decoder_ffn_dim % MULTIPLE or not are_products([model.lm_head]):
        return None
    if not all(is_known_norm(norm) for norm in decoder.children() if isinstance(norm, nn.LayerNorm)):
        return None
    if has_limits(model):
        program = program_of(decoder, model.lm_head, ProgramMaker(has_limits=True, inner=config.decoder_ffn_dim))
        if program is not None and len(program.parts) == 1 and program.embedding:
            return program
    if type(decoder).source_mask is not Decoder.source_mask:
        return None
    return program_of(decoder, model.lm_head, ProgramMaker(inner=config.decoder_ffn_dim))


def primitives_of(layer: nn.Module, blocks: list[Block], make: ProgramMaker) -> list[Operation | Block]:
    """The blocks of a layer as primitives, or unchanged; all unchanged if its norms are of other kinds."""
    if not all(is_known_norm(norm) for norm in layer.children() if isinstance(norm, nn.LayerNorm)):
        return list(blocks)
    return [part for block in blocks for part in make.block(block) or [block]]


def program_of(decoder: nn.Module, head: nn.Module, make: ProgramMaker) -> DecoderProgram | None:
    """The program of a decoder; where it has limits, its first part is whole only if it embeds tokens.

    None where a layer is not known.
    """
    config, table = decoder.config, decoder.embed_tokens
    parts: list[Operation | Block] = []
    embeds = embeds_tokens(decoder) or make.has_limits and is_unchanged(table, nn.Embedding)
    if embeds and table.weight.dtype is torch.float32 and table.weight.is_contiguous():
        weights, sizes = (table.weight.detach(),), (config.d_model, getattr(config, "restarts_positions", False))
        parts.append(make.operation(EMBEDDING, STATES, STATES, sizes, weights, decoder.embed_scale))
        parts += [make.norm(decoder.layernorm_embedding, STATES)] if config.layernorm_embedding else []
    embedding = len(parts)
    for layer in decoder.layers:
        blocks = blocks_of(layer)
        if blocks is None:
            return None
        parts += primitives_of(layer, blocks, make)
    parts += [make.norm(decoder.layer_norm, STATES)] if config.normalize_before else []
    parts.append(make.product((head,), STATES, SCORES, has_bias=False))
    found = array(make.sources), make.readers, make.writers, make.kept, make.has_limits
    return DecoderProgram(neighbours(parts), embedding, *found)


def with_output(parts: list, head: nn.Module) -> tuple[list, list]:
    """The parts of a decoder's program with another output projection, and the objects to keep alive for it."""
    (*operations, _), make = parts[-1], ProgramMaker()
    operations.append(make.product((head,), STATES, SCORES, has_bias=False))
    return [*parts[:-1], array(operations)], make.kept


def encoder_program(
    encoder: nn.Module, layers: nn.ModuleList, norm: nn.LayerNorm | None
) -> tuple[ctypes.Array, bool, list] | None:
    """Layers of an encoder and a last norm, whether they need limits, and the objects to keep alive for them.

    None if torch has to run one of them.
    """
    config, make = encoder.config, ProgramMaker(has_source_limits(encoder), encoder.config.encoder_ffn_dim)
    fits = config.d_model % MULTIPLE == config.encoder_ffn_dim % MULTIPLE == 0
    if not fits or not is_known_encoder(encoder) or not (norm is None or is_known_norm(norm)):
        return None
    operations: list[Operation] = []
    for layer in layers:
        blocks = blocks_of(layer)
        parts = [] if blocks is None else primitives_of(layer, blocks, make)
        if not parts or any(isinstance(part, Block) for part in parts):
            return None
        operations += parts
    if norm is not None:
        operations.append(make.norm(norm, STATES))
    return array(operations), make.has_limits, make.kept


def buffers(states: torch.Tensor, scratch: torch.Tensor, *others: torch.Tensor) -> ctypes.Array:
    """Addresses of states (R, D), scratch (R * (8D + F),), scores (R, V), and what was written and read."""
    room, row = scratch.data_ptr(), 4 * states.numel()
    addresses = [states.data_ptr(), *(room + place * row for place in (0, 1, 2, 5, 7, 8))]
    addresses += [tensor.data_ptr() for tensor in others]
    return (ctypes.c_void_p * len(addresses))(*addresses)


def neighbours(parts: list[Operation | Block]) -> list[ctypes.Array | Block]:
    """Primitives in one array."""
    groups = [(kind, list(group)) for kind, group in groupby(parts, key=type)]
    return [part for kind, group in groups for part in ([array(group)] if kind is Operation else group)]
