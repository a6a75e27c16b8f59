"""Encoders and decoders of torch modules as programs of the compiled primitives."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

import torch
from torch import nn

from hf_docmt.engine.cpu_kernels import (
    ADDITION,
    CONTEXT,
    EMBEDDING,
    MULTIPLE,
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
from hf_docmt.engine.program_maker import (
    OTHER,
    PAIR,
    PROJECTIONS,
    READ,
    SCORES,
    STATES,
    ProgramMaker,
    Reader,
    Writer,
    addresses,
    array,
    sizes_of,
)
from hf_docmt.engine.scope import is_for_kernels, kernel_layer
from hf_docmt.modeling.modeling_docmt import Decoder


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


@dataclass
class ModuleProgramMaker(ProgramMaker):
    """Makes primitives of the modules of a model in a scope."""

    address = staticmethod(torch.Tensor.data_ptr)
    are_products, what_heads_read = staticmethod(are_products), staticmethod(what_heads_read)
    are_vectors, is_recurrence = staticmethod(are_plain_vectors), staticmethod(is_recurrence)
    is_relu = staticmethod(partial(is_unchanged, kind=nn.ReLU))

    def block(self, block: Block) -> list[Operation] | None:
        """A block of a layer; None where torch has to run it."""
        layer = block.layer
        if block.sublayer is not None and layer.side == "decoder":
            return self.context(layer, block.sublayer)
        if not block.is_known:
            return None
        makers = {"self": self.self_attention, "source": self.source_attention, "feed_forward": self.feed_forward}
        return makers[block.kind](layer)

    def context(self, layer: nn.Module, sublayer: ContextSublayer) -> list[Operation] | None:
        """Attention to a further source, added, or mixed in by a gate, where a source has some."""
        (attention, norm), number = (sublayer.attention, sublayer.norm), len(self.readers)
        has_known_norm = norm is None or is_unchanged(norm, nn.LayerNorm)
        if self.what_heads_read(attention) != "whole" or not has_known_norm or not self.are_products(sublayer.gates):
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

    def product_weights(self, layers: Sequence[nn.Module], has_bias: bool) -> tuple[int | None, ...]:
        if all(map(is_plain_int8, layers)):
            weights = kernel_weights(layers)[: 3 if has_bias else 2]
            self.kept += weights
            return tuple(map(self.address, weights))
        packed = kernel_layer(layers)
        self.kept.append(packed)
        return packed.matrix.data_ptr(), None, packed.bias.data_ptr() if has_bias else None


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
        program = program_of(decoder, model.lm_head, ModuleProgramMaker(has_limits=True, inner=config.decoder_ffn_dim))
        if program is not None and len(program.parts) == 1 and program.embedding:
            return program
    if type(decoder).source_mask is not Decoder.source_mask:
        return None
    return program_of(decoder, model.lm_head, ModuleProgramMaker(inner=config.decoder_ffn_dim))


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
    (*operations, _), make = parts[-1], ModuleProgramMaker()
    operations.append(make.product((head,), STATES, SCORES, has_bias=False))
    return [*parts[:-1], array(operations)], make.kept


def encoder_program(
    encoder: nn.Module, layers: Sequence[nn.Module], norm: nn.LayerNorm | None
) -> tuple[ctypes.Array, bool, list] | None:
    """Layers of an encoder and a last norm, whether they need limits, and the objects to keep alive for them.

    None if torch has to run one of them.
    """
    config, make = encoder.config, ModuleProgramMaker(has_source_limits(encoder), encoder.config.encoder_ffn_dim)
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
    """`addresses` of tensors."""
    return addresses(states.data_ptr(), 4 * states.numel(), scratch.data_ptr(), [one.data_ptr() for one in others])


def neighbours(parts: list[Operation | Block]) -> list[ctypes.Array | Block]:
    """Primitives in one array."""
    groups = [(kind, list(group)) for kind, group in groupby(parts, key=type)]
    return [part for kind, group in groups for part in ([array(group)] if kind is Operation else group)]
