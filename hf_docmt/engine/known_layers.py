"""The computation of layers of `modeling`, by the functions of their classes; a class with another function is unknown.

The primitives compute the ones here. Any other block of a layer, or one with an adapter or hooks inside, is called.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import nn

from hf_docmt.modeling.context_attention import ContextAttention, ContextDecoder, ContextDecoderLayer, VectorAttention
from hf_docmt.modeling.context_selection import SelectedAttention
from hf_docmt.modeling.layers import SSRU, Attention, DecoderLayer, EncoderLayer, Layer
from hf_docmt.modeling.modeling_concat import ConcatDecoder, ConcatEncoder, PersistentEncodingLayer, SegmentStack
from hf_docmt.modeling.modeling_docmt import Decoder, DocMTForConditionalGeneration, Encoder, Stack
from hf_docmt.modeling.modeling_doct import DocTDecoder, GatedContext, GatedContextBlock
from hf_docmt.modeling.modeling_gtransformer import (
    GroupAttention,
    GroupStack,
    GTransformerDecoder,
    GTransformerEncoder,
    GTransformerModel,
    groups_of,
)
from hf_docmt.modeling.modeling_han import HanDecoder, HanDecoderLayer
from hf_docmt.modeling.modeling_lst import LstAttention
from hf_docmt.modeling.modeling_memory import MemoryDecoder, MemoryDecoderLayer, MemoryUnit
from hf_docmt.modeling.modeling_window import (
    WindowAttention,
    WindowDecoder,
    WindowEncoder,
    WindowForConditionalGeneration,
    WindowModel,
    borders_of,
)
from hf_docmt.modeling.segments import sentence_index
from hf_docmt.modeling.sentence_stack import (
    SentenceAttention,
    SentenceDecoder,
    SentenceEncoder,
    SentenceGeneration,
    SentenceModel,
)


def function(kind: type, name: str) -> Callable | None:
    """A method of a class, without what is wrapped around it: transformers wraps `forward`."""
    found = getattr(kind, name, None)
    while (inner := getattr(found, "__wrapped__", None)) is not None:
        found = inner
    return found


def has_methods(module: nn.Module, kind: type, *names: str) -> bool:
    """Whether these methods of a module are those of a class, and a call of it does no more, as with hooks."""
    return have_same(type(module), kind, *names) and is_unchanged(module, type(module))


def have_same(kind: type, other: type, *names: str) -> bool:
    """Whether both classes have the same methods of these names."""
    return all(function(kind, name) is function(other, name) for name in names)


def is_unchanged(module: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether a module is of this class, with no wrapper around it, and a call of it does no more, as with hooks."""
    is_changed = module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module)
    return type(module) is kind and not is_changed


def has_plain_norms(module: nn.Module) -> bool:
    """Whether the norms of a stack or a layer are those that it was built with."""
    norms = [child for name, child in module.named_children() if name.endswith(("layer_norm", "layernorm_embedding"))]
    return all(is_unchanged(child, nn.LayerNorm) for child in norms)


PROJECTED = "attend self_projections source_queries source_projections".split()
READS = {  # what `forward` reads, and by which methods of which class
    Attention.forward: ("whole", Attention, []),
    LstAttention.forward: ("whole and limited", SentenceAttention, ["attend_sentence"]),
    GroupAttention.forward: ("gated", GroupAttention, ["attend_sentence", "read_self", "read_source"]),
    WindowAttention.forward: ("limited", WindowAttention, ["attend_self", "attend_windows", "keys_and_values"]),
}


def what_it_reads(attention: nn.Module) -> str | None:
    """The reach of attention of a known kind; None for another one.

    "whole", "limited" by the `StepLimits` of a model, "whole and limited", joined by a further projection, or "gated",
    both with projections of their own.
    """
    how, kind, names = READS.get(function(type(attention), "forward"), (None, Attention, []))
    heads = {function(one, "heads_output") for one in (Attention, VectorAttention)}
    is_known = has_methods(attention, kind, *names) and have_same(type(attention), Attention, *PROJECTED)
    return how if is_known and function(type(attention), "heads_output") in heads else None


def is_recurrence(module: nn.Module) -> bool:
    """Whether it is an SSRU, and a call of it does no more."""
    return has_methods(module, SSRU, "forward", "all_states")


class ContextSublayer(NamedTuple):
    """A block of a decoder layer that reads a further source by attention.

    The output of `attention` is added to the states, with a norm before or after if there is one, or mixed in by a gate
    of both, sigmoid(W_x x + W_y y), of two `gates`. `inputs`: the name of the layer input that is read (with
    "context_states" there may be "context_mask" and "context_absent" or "context_present").
    """

    attention: nn.Module
    norm: nn.LayerNorm | None
    inputs: str
    gates: Sequence[nn.Module] = ()


class Block(NamedTuple):
    """A part of the `forward` of a layer.

    `kind`: "self", "source" or "feed_forward", by which `call` gets its arguments; otherwise they are states, the cache
    and the layer inputs. `is_known`: it is the backbone's; `sublayer`: what it does in a context, if known.
    """

    layer: nn.Module
    kind: str
    call: Callable
    is_known: bool = False
    sublayer: ContextSublayer | None = None


KINDS = {"self_attention_block": "self", "cross_attention_block": "source", "feed_forward_block": "feed_forward"}
BACKBONE = {Layer.self_attention_block, DecoderLayer.cross_attention_block, Layer.feed_forward_block}


def blocks_of(layer: nn.Module) -> list[Block] | None:
    """The blocks of a layer in their order; None for one that is not known, with another `forward` or other norms."""
    kind, names = type(layer), list(KINDS)
    if not has_plain_norms(layer) or not has_methods(layer, Layer, "normed", "with_residual"):
        return None
    if have_same(kind, DecoderLayer, "forward"):
        return [block for name in names for block in parts_of(layer, name)]
    if have_same(kind, EncoderLayer, "forward"):
        return [block for name in names[::2] for block in parts_of(layer, name)]
    if layer.side == "decoder" and have_same(kind, HanDecoderLayer, "forward"):
        blocks = [block for name in names for block in parts_of(layer, name)]
        return blocks if layer.context is None else [*blocks, Block(layer, "context", first_of(context_call(layer)))]
    if have_same(kind, MemoryDecoderLayer, "forward", "read_memory"):
        own, *others = ([*parts_of(layer, name)] for name in names)
        if layer.memory_name:
            own.append(Block(layer, "context", first_of(layer.read_memory), sublayer=memory_sublayer(layer)))
        return [*own, *others[0], *others[1]]
    return None


def parts_of(layer: nn.Module, name: str) -> list[Block]:
    """A block of a layer as what it consists of; one that is not known is one part."""
    own, call = function(type(layer), name), getattr(layer, name)
    if own is PersistentEncodingLayer.self_attention_block:
        encoding = [Block(layer, "encoding", layer.add_encoding)] if layer.adds_encoding else []
        return [*encoding, inherited(layer, PersistentEncodingLayer, name)]
    if own is GatedContextBlock.self_attention_block:
        context = Block(layer, "context", context_call(layer, "context_present"), sublayer=gated_sublayer(layer))
        return [inherited(layer, GatedContextBlock, name), context]
    if own is ContextDecoderLayer.cross_attention_block and layer.integration != "parallel":
        source = inherited(layer, ContextDecoderLayer, name)
        if layer.integration == "concatenate":
            return [source]
        call = context_call(layer, "context_absent")
        return [source, Block(layer, "context", call, sublayer=context_sublayer(layer))]
    return [Block(layer, KINDS[name], call, own in BACKBONE)]


def inherited(layer: nn.Module, kind: type, name: str) -> Block:
    """The method that `super()` finds for this method of a class."""
    call = getattr(super(kind, layer), name)
    return Block(layer, KINDS[name], call, call.__func__ in BACKBONE)


def context_call(layer: nn.Module, *names: str) -> Callable:
    """The function `context` of a layer, of states, a cache, and states and mask of the context.

    `names`: the other layer inputs that it reads.
    """
    names = ("context_states", "context_mask", *names)
    return lambda states, cache, **inputs: layer.context(states, *map(inputs.get, names), cache)


def first_of(call: Callable) -> Callable:
    """A call that gives the states alone, of what another one gives."""
    return lambda states, cache, **inputs: call(states, cache, **inputs)[0]


def memory_sublayer(layer: nn.Module) -> ContextSublayer | None:
    """Reading of a memory that is added to the states."""
    memory = layer.memory
    if memory.residual == "none" or not has_methods(memory, MemoryUnit, "read"):
        return None
    return ContextSublayer(memory.output_attn, getattr(memory, "state_layer_norm", None), layer.memory_name)


def gated_sublayer(layer: nn.Module) -> ContextSublayer | None:
    """Gated context attention in a decoder, where nothing is selected."""
    context, selected = layer.context, layer.context.attn
    is_known = has_methods(context, GatedContext, "forward") and has_methods(selected, SelectedAttention, "forward")
    if not is_known or hasattr(selected, "selection"):
        return None
    gates = context.state_gate, context.context_gate
    return ContextSublayer(selected.attn, context.layer_norm, "context_states", gates)


def context_sublayer(layer: nn.Module) -> ContextSublayer | None:
    """Context attention without a gate."""
    context = layer.context
    if not has_methods(context, ContextAttention, "forward") or hasattr(context, "gate"):
        return None
    return ContextSublayer(context.attn, context.layer_norm, "context_states")


STEP_INPUTS = {  # what `layer_inputs` of stacks give to layers in steps of decoding: nothing, the same, or limits
    Stack.layer_inputs: "none",
    ConcatEncoder.layer_inputs: "none",
    ConcatDecoder.layer_inputs: "none",
    ContextDecoder.layer_inputs: "constant",
    DocTDecoder.layer_inputs: "constant",
    HanDecoder.layer_inputs: "constant",
    MemoryDecoder.layer_inputs: "constant",
    SentenceDecoder.layer_inputs: "limits",
    GTransformerDecoder.layer_inputs: "limits",
    WindowDecoder.layer_inputs: "limits",
}
GENERATION_INPUTS = {one.decoder_inputs_for_generation for one in (SentenceGeneration, WindowForConditionalGeneration)}
EMBEDS = "embed_with positions position_encoding".split()
EMBED = {Stack.embed, SegmentStack.embed, GroupStack.embed}  # plain without layer inputs
SEAMS = (*EMBEDS, *"embed layer_inputs attention_mask source_mask source padding_to_mask".split())  # of a decoder
LIMITED = (  # decoders and models whose mechanism is no more than limits of attention
    (GTransformerDecoder, GTransformerModel, ["decoder_inputs", "target_sentences"]),
    (SentenceDecoder, SentenceModel, ["decoder_inputs", "target_sentences"]),
    (WindowDecoder, WindowModel, ["decoder_inputs", "align", "source_ratio", "search_alignment"]),
)


def step_inputs(stack: nn.Module) -> str:
    """The inputs of layers in decoding steps: "none", "constant" inputs, "limits", or "new" ones."""
    found = STEP_INPUTS.get(function(type(stack), "layer_inputs"), "new")
    has_encoding = getattr(stack.config, "segment_encoding", "none") != "none"
    return "new" if has_encoding or getattr(stack.config, "sees_all", False) else found


def is_known_decoder(decoder: nn.Module) -> bool:
    """Whether the decoder's computation outside its layers is known."""
    return has_methods(decoder, Decoder, "forward", "run_layers") and has_plain_norms(decoder)


def embeds_tokens(decoder: nn.Module) -> bool:
    """Whether states of a new token are its scaled embedding plus an encoding of its position, normed or not."""
    is_known = have_same(type(decoder), Stack, *EMBEDS) and function(type(decoder), "embed") in EMBED
    return is_known and is_unchanged(decoder, type(decoder)) and is_unchanged(decoder.embed_tokens, nn.Embedding)


def has_limits(model: nn.Module) -> bool:
    """Whether all that the mechanism of a model does in a step is what `step_limits` says, and limited attention."""
    decoder, kinds = model.get_decoder(), (type(model), type(model.model))
    if step_inputs(decoder) != "limits":
        return False
    for decoder_class, model_class, names in LIMITED:
        if isinstance(decoder, decoder_class):
            is_known = have_same(type(decoder), decoder_class, *SEAMS) and have_same(kinds[1], model_class, *names)
            return is_known and function(kinds[0], "decoder_inputs_for_generation") in GENERATION_INPUTS
    return False


class StepLimits(NamedTuple):
    """The reach of new tokens in a decoding step: a "sentence", a "group" (and its source), or a "window".

    `borders` (S, N + 1): where the sentences of a source begin among its tokens, and the end. `width` is that of a
    window on either side, `ratio` the source tokens per target token along which it goes, 0 = from where a sentence
    begins.
    """

    kind: str
    separator: int | None
    borders: torch.Tensor | None = None
    width: int = 0
    ratio: float = 0.0


def step_limits(model: nn.Module, encoder_outputs) -> StepLimits:
    """The limits of a model that has some."""
    decoder, config = model.get_decoder(), model.config
    if isinstance(decoder, WindowDecoder):
        borders = borders_of(encoder_outputs)
        borders = borders - borders[:, :1]
        return StepLimits("window", config.sep_token_id, borders, config.window, model.model.source_ratio())
    if isinstance(decoder, GTransformerDecoder):  # a separator begins the next sentence, which reads that of its number
        groups = groups_of(encoder_outputs)
        numbers = torch.arange(int(groups.max()) + 1, device=groups.device)
        borders = ((groups[..., None] <= numbers) & (groups[..., None] > 0)).sum(dim=1)  # (B, N + 1)
        return StepLimits("group", config.sep_token_id, borders)
    return StepLimits("sentence", config.sep_token_id)  # a separator ends its sentence


def has_source_limits(encoder: nn.Module) -> bool:
    """Whether all that the mechanism of an encoder does is what `source_limits` says, and limited attention."""
    kind, limited = type(encoder), (SentenceEncoder, GTransformerEncoder, WindowEncoder)
    own = (function(kind, "layer_inputs"), function(kind, "attention_mask"))
    return own in [(function(one, "layer_inputs"), function(one, "attention_mask")) for one in limited]


def is_known_encoder(encoder: nn.Module) -> bool:
    """Whether the encoder's computation outside its layers is known."""
    has_mask = have_same(type(encoder), Encoder, "attention_mask")
    is_known = has_methods(encoder, Encoder, "run_layers") and has_plain_norms(encoder)
    return is_known and (has_mask or has_source_limits(encoder))


def source_limits(encoder: nn.Module, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """The range that every token of (B, S) reads: the first and the one after the last, (B, S, 2), within the mask."""
    tokens = torch.ones_like(ids) if mask is None else mask.long()
    if isinstance(encoder, WindowEncoder):
        width = ids.shape[1] if encoder.config.sees_all else encoder.config.window
        places, count = tokens.cumsum(dim=1) - 1, tokens.sum(dim=1, keepdim=True)
        ends = torch.stack([places - width, places + width + 1], dim=2)
        return ends.clamp(min=0).minimum(count[..., None])
    index = sentence_index(ids, encoder.config.sep_token_id)
    own, others = index[..., None], index[:, None]  # (B, S, 1), (B, 1, S)
    ends = [(is_read * tokens[:, None]).sum(dim=2) for is_read in (others < own, others <= own)]  # (B, S) each
    return torch.stack(ends, dim=2)


def makes_plain_logits(model: nn.Module) -> bool:
    """Whether logits are those of the output projection and a bias."""
    return has_methods(model, DocMTForConditionalGeneration, "logits_of")
