"""Encoders and decoders as programs of primitives, which hold no more than addresses of weights.

States are in buffers, whose numbers stand in operations, so that one program is for all sentences and batches.
"""

import ctypes
from dataclasses import dataclass, field
from itertools import groupby

import torch
from torch import nn

from .cpu_inference import PrepackedLayer
from .cpu_kernels import EMBEDDING, MULTIPLE, Operation
from .decoding_step import EMBEDS, declares, has_known_blocks, has_limits, has_plain_norms, is_backbone, is_unchanged
from .kernel_primitives import (
    SCORES,
    STATES,
    Block,
    Prepacked,
    ProgramMaker,
    Reader,
    Writer,
    are_products,
    array,
    is_known_norm,
)


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
    kept: list[torch.Tensor]
    prepacked: list[Prepacked]
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
        if len(program.parts) == 1 and program.embedding:
            return program
    if not is_backbone(decoder, "source_mask"):
        return None
    return program_of(decoder, model.lm_head, ProgramMaker(inner=config.decoder_ffn_dim))


def program_of(decoder: nn.Module, head: nn.Module, make: ProgramMaker) -> DecoderProgram:
    """The program of a decoder; where it has limits, its first part is whole only if it embeds tokens."""
    config, table = decoder.config, decoder.embed_tokens
    parts: list[Operation | Block] = []
    embeds = (make.has_limits or is_backbone(decoder, *EMBEDS)) and is_unchanged(table, nn.Embedding)
    if embeds and table.weight.dtype is torch.float32 and table.weight.is_contiguous():
        weights, sizes = (table.weight.detach(),), (config.d_model, getattr(config, "restarts_positions", False))
        parts.append(make.operation(EMBEDDING, STATES, STATES, sizes, weights, decoder.embed_scale))
        parts += [make.norm(decoder.layernorm_embedding, STATES)] if config.layernorm_embedding else []
    embedding = len(parts)
    for layer in decoder.layers:
        for block in layer.step_blocks():
            parts += make.block(layer, block) or [(layer, block)]
    parts += [make.norm(decoder.layer_norm, STATES)] if config.normalize_before else []
    parts.append(make.product((head,), STATES, SCORES, has_bias=False))
    found = array(make.sources), make.readers, make.writers, make.kept, make.prepacked, make.has_limits
    return DecoderProgram(neighbours(parts), embedding, *found)


def with_output(parts: list, head: nn.Module) -> tuple[list, PrepackedLayer | None]:
    """The parts of a decoder's program with another output projection; it and its packed weights are to be kept."""
    (*operations, _), make = parts[-1], ProgramMaker()
    operations.append(make.product((head,), STATES, SCORES, has_bias=False))
    return [*parts[:-1], array(operations)], next((kept() for _, kept in make.prepacked), None)


def encoder_program(
    encoder: nn.Module, layers: nn.ModuleList, norm: nn.LayerNorm | None
) -> tuple[ctypes.Array, bool, list[torch.Tensor], list[Prepacked]] | None:
    """Layers of an encoder and a last norm, whether limits are to be given, and what they read.

    None where torch has to run one of them.
    """
    config, kind = encoder.config, type(encoder)
    has_limits = hasattr(encoder, "source_limits") and declares(kind, "source_limits", "layer_inputs", "attention_mask")
    make = ProgramMaker(has_limits, config.encoder_ffn_dim)
    fits = config.d_model % MULTIPLE == config.encoder_ffn_dim % MULTIPLE == 0
    is_known = is_backbone(encoder, "run_layers") and (has_limits or is_backbone(encoder, "attention_mask"))
    is_known = is_known and has_plain_norms(encoder) and (norm is None or is_known_norm(norm))
    if not fits or not is_known:
        return None
    operations: list[Operation] = []
    for layer in layers:
        for block in layer.step_blocks() if has_known_blocks(layer) else [None]:
            primitives = make.block(layer, block)
            if primitives is None:
                return None
            operations += primitives
    if norm is not None:
        operations.append(make.norm(norm, STATES))
    return array(operations), has_limits, make.kept, make.prepacked


def buffers(states: torch.Tensor, scratch: torch.Tensor, *others: torch.Tensor) -> ctypes.Array:
    """Addresses of states (R, D), scratch (R * (8D + F),), scores (R, V), and what was written and read."""
    room, row = scratch.data_ptr(), 4 * states.numel()
    addresses = [states.data_ptr(), *(room + place * row for place in (0, 1, 2, 5, 7, 8))]
    addresses += [tensor.data_ptr() for tensor in others]
    return (ctypes.c_void_p * len(addresses))(*addresses)


def neighbours(parts: list[Operation | Block]) -> list[ctypes.Array | Block]:
    """Primitives that stand next to each other in one array."""
    groups = [(kind, list(group)) for kind, group in groupby(parts, key=type)]
    return [part for kind, group in groups for part in ([array(group)] if kind is Operation else group)]
