"""The step of decoding of a model with int8 weights on the compiled primitives, see `decoding_step.py`.

States (R, D) stay in one buffer. Neighbouring operations are run by one call; what the primitives do not know, such as
a mechanism's own block or another activation than ReLU, is done by torch in between. Beams do not move what was
written: a table says in which row the state of an earlier token lies.
"""

import ctypes
from itertools import groupby

import torch
from torch import nn

from .cpu_kernels import (
    BLOCK,
    EMBEDDING,
    MULTIPLE,
    NORM,
    PRODUCT,
    SELF_ATTENTION,
    SOURCE_ATTENTION,
    Operation,
    Step,
    are_used,
    run,
)
from .decoding_step import ATTENTION, DecodingStep, is_backbone
from .int8_linear import is_plain_int8, kernel_weights

MOST_SOURCES = 128  # over the number of threads, where there are more than two: the kernels have one
ROOM = 64  # tokens that there is room for at first, besides the prompt


def kernels_fit(state) -> bool:
    """Whether a step behind the prompt that a `DecoderState` has read runs on kernels."""
    model, mask, threads = state.model, state.mask, torch.get_num_threads()
    return (
        are_used()
        and (threads <= 2 or len(state.encoder_outputs[0]) <= MOST_SOURCES // threads)
        and is_plain_int8(model.lm_head)
        and is_backbone(model, "logits_of")
        and is_backbone(model.get_decoder(), "source_mask")
        and state.encoder_outputs[0].is_cpu
        and state.encoder_outputs[0].dtype is torch.float32
        and model.config.d_model % MULTIPLE == model.config.decoder_ffn_dim % MULTIPLE == 0
        and (mask is None or is_left_padded(mask))
    )


def is_left_padded(mask: torch.Tensor) -> bool:
    """Whether all padding of a mask (R, T) stands in front, and every row has a token."""
    return bool((mask[:, -1] == 1).all() and (mask[:, 1:] >= mask[:, :-1]).all())


class KernelStep(DecodingStep):
    """As `DecodingStep`; a builder gives primitives, or what that of torch gives where there are none."""

    def __init__(self, state):
        super().__init__(state)
        self.histories: dict[int, torch.Tensor] = {}  # of layers, (T, R, 2D): keys and values of what was written
        self.called = list(self.cache.self_attention_cache.layers)  # of the cache, that blocks of torch write to

    def build(self, ids: torch.Tensor, mask: torch.Tensor | None) -> None:
        config, rows, self.length = self.model.config, len(ids), ids.shape[1] - 1
        self.states, self.normed, self.read = (torch.empty(rows, config.d_model) for _ in range(3))
        self.projections, self.inner = torch.empty(rows, 3 * config.d_model), torch.empty(rows, config.decoder_ffn_dim)
        self.scores = torch.empty(rows, config.vocab_size)
        self.integers = torch.empty(rows + -rows % BLOCK, max(config.d_model, config.decoder_ffn_dim), dtype=torch.int8)
        self.first = torch.zeros(rows, dtype=torch.int32) if mask is None else mask.int().argmax(dim=1).int()
        self.places = self.numbers = torch.empty(0)
        self.ancestors = torch.arange(rows, dtype=torch.int32).repeat(self.length, 1)  # (T, R)
        self.kept: list[torch.Tensor] = []  # whose addresses operations have
        super().build(ids, mask)
        parts = [part for parts in self.operations for part in (parts if isinstance(parts, list) else [parts])]
        groups = [(kind, list(group)) for kind, group in groupby(parts, key=lambda part: type(part) is Operation)]
        self.parts = [(Operation * len(group))(*group) if is_primitive else group for is_primitive, group in groups]
        self.attentions = [part for group in self.parts if isinstance(group, ctypes.Array) for part in group]
        self.attentions = [part for part in self.attentions if part.kind == SELF_ATTENTION]  # in the arrays
        self.tokens, table = torch.empty(rows, dtype=torch.long), self.decoder.embed_tokens
        self.step = Step(rows=rows, tokens=self.tokens.data_ptr())
        self.embedding: list[Operation] = []  # what gives the states of new tokens at one position
        if self.embeds and table.weight.dtype is torch.float32 and table.weight.is_contiguous():
            tensors = (table.weight.detach(), self.states)
            self.embedding = [self.primitive(EMBEDDING, tensors, config.d_model, number=self.decoder.embed_scale)]
            if config.layernorm_embedding:
                self.embedding.append(self.norm(self.decoder.layernorm_embedding, self.states))
        self.make_room(self.length + ROOM)

    def make_room(self, tokens: int) -> None:
        """Buffers for so many tokens, with what was written."""
        before, self.ancestors = len(self.ancestors), with_room(self.ancestors, tokens)
        self.ancestors[before:] = torch.arange(self.rows, dtype=torch.int32)
        for layer, attention in zip(self.histories, self.attentions):
            self.histories[layer] = with_room(self.histories[layer], tokens)
            attention.tensors[1] = self.histories[layer].data_ptr()
        longest = max(tokens, self.source.shape[1]) + MULTIPLE
        self.numbers, self.places = torch.empty(max(self.rows, longest)), torch.empty(longest, dtype=torch.long)
        for name in ("ancestors", "first", "integers", "numbers", "places"):
            setattr(self.step, name, getattr(self, name).data_ptr())

    def logits(self, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        if not self.operations or not self.embedding or mask is not None:
            return super().logits(ids, mask)
        self.tokens.copy_(ids[:, -1])
        self.step.encoding = self.encoding(ids.shape[1] - 1, torch.float32).data_ptr()
        run(self.embedding, self.step)
        return self.run(self.states)

    def run(self, hidden_states: torch.Tensor) -> torch.Tensor:
        if hidden_states is not self.states:
            self.states.copy_(hidden_states)
        self.length += 1
        if self.length > len(self.ancestors):
            self.make_room(2 * self.length)
        self.step.length = self.length
        for group in self.parts:
            if isinstance(group, ctypes.Array):
                run(group, self.step)
            else:
                for operation in group:
                    self.states.copy_(operation(self.states))
        return self.scores

    def reorder(self, rows: torch.Tensor) -> None:
        if not self.operations:
            super().reorder(rows)
            return
        self.ancestors[: self.length] = self.ancestors[: self.length].index_select(1, rows)
        for layer in self.called:
            layer.reorder_cache(rows)

    def repeat(self, times: int) -> None:
        if not self.operations:
            super().repeat(times)
            return
        for number, states in self.histories.items():
            self.histories[number] = states[: self.length].repeat_interleave(times, dim=1)
        for layer in self.called:
            layer.batch_repeat_interleave(times)
        self.operations = []

    # Builders

    def self_attention(self, layer: nn.Module):
        attention, number = layer.self_attn, layer.layer_idx
        if not self.has_primitives(attention, "q_proj", "k_proj", "v_proj", "out_proj"):
            return super().self_attention(layer)
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        if number not in self.histories:
            self.histories[number] = self.written_so_far(number)
        read = self.primitive(
            SELF_ATTENTION,
            (self.projections, None, self.read),
            self.read.shape[1] // attention.head_dim,
            attention.head_dim,
            number=attention.scaling,
        )
        return self.sublayer(layer, layer.self_attn_layer_norm, projections, self.projections, [read], attention)

    def written_so_far(self, number: int) -> torch.Tensor:
        """What a layer has written, out of the cache: (T, R, 2D)."""
        layer = self.cache.self_attention_cache.layers[number]
        self.called.remove(layer)
        if not layer.get_seq_length():
            return torch.empty(0, self.rows, 2 * self.read.shape[1])
        return torch.cat([states.permute(2, 0, 1, 3).flatten(2) for states in (layer.keys, layer.values)], dim=2)

    def source_attention(self, layer: nn.Module):
        attention, layer_norm = layer.encoder_attn, layer.encoder_attn_layer_norm
        if not self.has_primitives(attention, "q_proj", "out_proj"):
            return super().source_attention(layer)
        key, value = (states.float() for states in attention.source_projections(self.source, self.cache, self.rows))
        if key.stride() != value.stride() or key.stride(3) != 1:
            key, value = key.contiguous(), value.contiguous()  # (S, H, L, Dh)
        queries = self.projections.view(-1)[: self.read.numel()].view_as(self.read)  # (R, D)
        by_source, by_head, by_place, _ = key.stride()
        seen, counts = self.source_places()
        read = self.primitive(
            SOURCE_ATTENTION,
            (queries, key, value, self.read, seen, counts),
            key.shape[1],
            key.shape[3],
            self.rows // self.sources,
            key.shape[2],
            by_source,
            by_head,
            by_place,
            number=attention.scaling,
        )
        return self.sublayer(layer, layer_norm, (attention.q_proj,), queries, [read], attention)

    def source_places(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Which states of a source are seen, first in (S, L) int32, and how many (S,) int32."""
        mask = self.source_padding
        mask = torch.ones(self.source.shape[:2], dtype=torch.bool) if mask is None else mask.bool()
        return mask.sort(dim=1, descending=True, stable=True).indices.int(), mask.sum(dim=1).int()

    def feed_forward(self, layer: nn.Module):
        if not isinstance(layer.activation_fn, nn.ReLU) or not all(map(is_plain_int8, (layer.fc1, layer.fc2))):
            return super().feed_forward(layer)
        before, states = self.norm_before(layer, layer.final_layer_norm)
        inner = self.product_of((layer.fc1,), states, self.inner, relu=True)
        return [*before, inner, *self.residual(layer, layer.final_layer_norm, layer.fc2, self.inner)]

    def final_norm(self):
        return [self.norm(self.decoder.layer_norm, self.states)]

    def output(self):
        bias = self.model.final_logits_bias[0]
        return [self.product_of((self.model.lm_head,), self.states, self.scores, bias=bias)]

    # Primitives

    def has_primitives(self, attention: nn.Module, *projections: str) -> bool:
        """Whether a module is the backbone's attention, of heads that fit, with plain int8 projections by name."""
        is_known = is_backbone(attention, *ATTENTION) and attention.head_dim % MULTIPLE == 0
        return is_known and all(is_plain_int8(getattr(attention, name)) for name in projections)

    def sublayer(self, layer, layer_norm, projections, projected: torch.Tensor, read: list[Operation], attention):
        """Attention with its projections, residual and norm."""
        before, states = self.norm_before(layer, layer_norm)
        after = self.residual(layer, layer_norm, attention.out_proj, self.read)
        return [*before, self.product_of(projections, states, projected), *read, *after]

    def norm_before(self, layer: nn.Module, layer_norm: nn.LayerNorm) -> tuple[list[Operation], torch.Tensor]:
        """The norm before a sublayer, where there is one, and the states that the sublayer reads."""
        if not layer.normalize_before:
            return [], self.states
        return [self.norm(layer_norm, self.normed)], self.normed

    def residual(self, layer: nn.Module, layer_norm: nn.LayerNorm, linear: nn.Module, states: torch.Tensor):
        """The last product of a sublayer, added to the states, and the norm after it, where there is one."""
        added = self.product_of((linear,), states, self.states, adds=True)
        return [added] if layer.normalize_before else [added, self.norm(layer_norm, self.states)]

    def norm(self, layer_norm: nn.LayerNorm, output: torch.Tensor) -> Operation:
        tensors = (self.states, output, layer_norm.weight.detach(), layer_norm.bias.detach())
        return self.primitive(NORM, tensors, output.shape[1], number=layer_norm.eps)

    def product_of(self, layers, states, output, bias=None, relu: bool = False, adds: bool = False) -> Operation:
        """Layers side by side with their own biases, or the one given: states (R, D_in) -> output (R, sum of D_out)."""
        weights = kernel_weights(layers, bias)
        outputs = sum(layer.out_features for layer in layers)
        return self.primitive(PRODUCT, (states, output, *weights), states.shape[1], outputs, relu, adds)

    def primitive(self, kind: int, tensors: tuple, *sizes: int, number: float = 0.0) -> Operation:
        self.kept += [tensor for tensor in tensors if tensor is not None]
        addresses = (ctypes.c_void_p * 8)(*(tensor if tensor is None else tensor.data_ptr() for tensor in tensors))
        return Operation(kind, (ctypes.c_int64 * 8)(*sizes), addresses, number)


def with_room(states: torch.Tensor, tokens: int) -> torch.Tensor:
    """States (T, ...) at the beginning of a tensor (tokens, ...)."""
    larger = states.new_empty(tokens, *states.shape[1:])
    larger[: len(states)] = states
    return larger
