"""A step of decoding as a flat list of operations, built once a search from the modules that are there.

The blocks that the backbone has become products, attention and norms over states (R, D), one new token a row: no module
is called, nothing is looked up while the list runs. A block of another kind, or with an adapter or hooks inside, is
called as `forward` calls it. Results are those of `forward`, up to rounding.
"""

from collections.abc import Callable
from functools import partial
from inspect import unwrap

import torch
from torch import nn

from .attention_kernels import without_cudnn
from .cpu_inference import faster_attention, is_plain, prepacked_layer
from .int8_linear import int8_product, is_plain_int8, joint_bias

Operation = Callable[[torch.Tensor], torch.Tensor]  # states (R, D) -> (R, D)
POSITIONS = 64  # encodings that are computed at once


def may_step(state) -> bool:
    """Whether a search may run a list behind the prompt that a `DecoderState` has read, in place of `forward`."""
    model, device = state.model, state.encoder_outputs[0].device
    are_known = state.cache is not None and is_backbone(model) and is_backbone(model.model)
    return are_known and is_inference(model.get_decoder(), device)


def is_inference(stack: nn.Module, device: torch.device) -> bool:
    """Whether a stack is called for its states alone, on a device, and attends in the ways that lists have."""
    return (
        stack.config._attn_implementation in ("sdpa", "eager")
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled(device.type)
        and not torch.compiler.is_compiling()
        and not torch.nn.modules.module._has_any_global_hook()
    )


def has_list(decoder: nn.Module) -> bool:
    """Whether it is known what the modules of a decoder do in a step."""
    is_known = is_backbone(decoder, "forward", "run_layers") and has_plain_norms(decoder)
    return is_known and all(map(has_known_blocks, decoder.layers))


class DecodingStep:
    """Logits of what follows one new token a row, of the words that a `DecoderState` scores."""

    goes_on = False  # whether it runs several steps at once, by `go_on`
    is_prompt = False  # whether it still has to read the prompt

    def __init__(self, state):
        self.model, self.encoder_outputs, self.cache = state.model, state.encoder_outputs, state.cache
        self.decoder, self.inputs = state.model.get_decoder(), dict(state.inputs)
        self.head, self.output_bias = state.output()
        stores = self.cache.self_attention_cache
        missing = len(self.decoder.layers) - len(stores.layers)
        stores.layers += [stores.layer_class_to_replicate() for _ in range(missing)]  # as its first use would
        self.source, self.source_padding = self.encoder_outputs[0], self.inputs.pop("attention_mask", None)
        self.encoded = self.source, self.source_padding
        self.source_mask = self.self_mask = None  # as attention takes them
        self.layer_inputs: dict[str, torch.Tensor] = {}
        self.operations: list[Operation] = []
        self.has_calls = False  # whether there are blocks that are called
        self.embeds = is_backbone(self.decoder, *EMBEDS) and is_unchanged(self.decoder.embed_tokens, nn.Embedding)
        self.embeds = self.embeds and self.decoder.step_inputs in ("none", "constant")
        self.encodings = torch.empty(0)  # (positions, D) from the first one on

    def reads_prompt(self, ids: torch.Tensor) -> bool:
        """Whether a step may read prompts (B, T) of which nothing was read, by itself those of one token."""
        return ids.shape[1] == 1

    def logits(self, ids: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Of all target ids (R, T) so far, of which the last one is new, and their mask -> (R, N)."""
        past = ids.shape[1] - 1
        if not self.operations:
            hidden_states = self.inputs_of(ids, mask, past)[:, 0]
            self.build(ids, mask)
        elif not self.embeds or mask is not None and self.has_calls:
            hidden_states = self.inputs_of(ids, mask, past)[:, 0]
        else:
            self.self_mask = None if mask is None else mask.bool()[:, None, None, :]  # (R, 1, 1, T)
            hidden_states = self.embed(ids[:, -1], past if mask is None else mask.long().sum(dim=1) - 1)
        return self.run(hidden_states)

    def run(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """States (R, D) of the new tokens -> (R, N)."""
        for operation in self.operations:
            hidden_states = operation(hidden_states)
        return hidden_states

    def reorder(self, rows: torch.Tensor) -> None:
        """Targets go on from these rows (R,)."""
        self.cache.reorder_cache(rows)

    def repeat(self, times: int) -> None:
        """Of every target so many rows; the list is built again."""
        self.cache.batch_repeat_interleave(times)
        self.operations = []

    def embed(self, tokens: torch.Tensor, positions: int | torch.Tensor) -> torch.Tensor:
        """Tokens (R,) at one position, or at positions (R,) -> states (R, D), as `Stack.embed`."""
        decoder = self.decoder
        states = nn.functional.embedding(tokens, decoder.embed_tokens.weight) * decoder.embed_scale
        states = states + self.encoding(positions, states.dtype)
        return decoder.layernorm_embedding(states) if decoder.config.layernorm_embedding else states

    def encoding(self, positions: int | torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Encodings of positions, (D,) or (R, D); ValueError where the table of learned ones ends."""
        last = positions if isinstance(positions, int) else int(positions.max())
        if last >= len(self.encodings):
            decoder, end = self.decoder, last + POSITIONS
            decoder.positions(torch.empty(1, 1), None, last)
            if decoder.config.position_type == "learned":
                end = min(end, decoder.config.max_position_embeddings)
            every = torch.arange(end, device=self.source.device)[None]
            self.encodings = decoder.position_encoding(every)[0].to(dtype)
        return self.encodings[positions]

    def inputs_of(self, ids: torch.Tensor, mask: torch.Tensor | None, past: int) -> torch.Tensor:
        """States (R, 1, D) of the last of target ids (R, T), by the seams of the model; keeps layer inputs and mask."""
        model, decoder, new = self.model, self.decoder, ids[:, -1:]
        known = {"decoder_input_ids": new, "decoder_attention_mask": mask, "encoder_outputs": self.encoder_outputs}
        known |= {"attention_mask": self.source_padding, "cache": self.cache, **self.inputs}
        known = {name: value for name, value in known.items() if value is not None}
        known |= model.decoder_inputs_for_generation(ids, known)
        own = {name: known[name] for name in model.model.decoder_input_names if name in known}
        inputs = model.model.decoder_inputs(new, mask, self.encoder_outputs, self.cache, **own)
        if not self.operations:
            self.source, self.source_padding = decoder.source(*self.encoded, **inputs)
        arguments = {"attention_mask": mask, "encoder_hidden_states": self.source, "cache": self.cache}
        mask = decoder.padding_to_mask(mask, past)
        positions = decoder.positions(new, mask, past)
        self.layer_inputs = decoder.layer_inputs(new, positions, **arguments, **inputs)
        hidden_states = decoder.embed(new, positions, **self.layer_inputs)  # (R, 1, D)
        self.self_mask = decoder.attention_mask(hidden_states, mask, self.cache)
        return hidden_states

    # The list

    def build(self, ids: torch.Tensor, mask: torch.Tensor | None) -> None:
        """Fill the list for the rows of target ids (R, T) and their mask."""
        self.prepare(len(ids))
        for layer in self.decoder.layers:
            self.operations += [self.operation(layer, block) for block in layer.step_blocks()]
        if self.decoder.config.normalize_before:
            self.operations.append(self.final_norm())
        self.operations.append(self.output())

    def prepare(self, rows: int) -> None:
        """What the operations of so many rows have together."""
        self.rows, self.sources = rows, len(self.source)
        self.source_mask = self.decoder.source_mask(self.source, self.source_padding, (rows, 1))
        self.example = self.source.new_empty(rows, 1)

    def operation(self, layer: nn.Module, block: Callable) -> Operation:
        """A block of a layer over states (R, D)."""
        builder = getattr(self, BUILDERS[block.__name__]) if getattr(block, "is_backbone", False) else None
        operation = builder(layer) if builder is not None else None
        return self.call(block) if operation is None else operation

    def call(self, block: Callable) -> Operation:
        """A block as `forward` calls it."""
        name, cache, self.has_calls = block.__name__, self.cache, True

        def called(hidden_states: torch.Tensor) -> torch.Tensor:
            if name == "self_attention_block":
                arguments = (self.self_mask, cache)
            elif name == "cross_attention_block":
                arguments = (self.source, self.source_mask, cache)
            else:
                arguments = (cache,)
            return block(hidden_states[:, None], *arguments, **self.layer_inputs)[:, 0]

        return called

    def self_attention(self, layer: nn.Module) -> Operation | None:
        attention = layer.self_attn
        if is_recurrence(attention):
            return self.recurrence(layer, attention)
        if not is_backbone(attention, *ATTENTION):
            return None
        inputs = self.product((attention.q_proj, attention.k_proj, attention.v_proj))
        output, residual = self.product((attention.out_proj,)), residual_norm(layer, layer.self_attn_layer_norm)
        before = norm_operation(layer.self_attn_layer_norm) if layer.normalize_before else same
        kept = self.cache.self_attention_cache.layers[layer.layer_idx]
        heads, dim, scaling = -1, attention.head_dim, attention.scaling

        def attend(hidden_states: torch.Tensor) -> torch.Tensor:
            projected = inputs(before(hidden_states))  # (R, 3D)
            query, key, value = projected.view(len(projected), 3, heads, 1, dim).unbind(1)  # (R, H, 1, Dh) each
            key, value = kept.update(key, value)  # (R, H, T, Dh)
            read = attention_output(query, key, value, self.self_mask, scaling)  # (R, 1, H, Dh)
            return residual(hidden_states, output(read.reshape(hidden_states.shape)))

        return attend

    def recurrence(self, layer: nn.Module, unit: nn.Module) -> Operation:
        inputs, layer_norm = self.product((unit.input_proj, unit.forget_gate)), layer.self_attn_layer_norm
        before = norm_operation(layer_norm) if layer.normalize_before else same
        residual, kept = residual_norm(layer, layer_norm), unit.recurrent_layer(self.cache)

        def recur(hidden_states: torch.Tensor) -> torch.Tensor:
            added, gate = inputs(before(hidden_states)).float().chunk(2, dim=1)  # (R, D) each
            past = torch.zeros_like(added) if kept.keys is None else kept.keys
            kept.update(torch.lerp(added, past, gate.sigmoid()), 1)
            return residual(hidden_states, torch.relu(kept.keys).to(hidden_states.dtype))

        return recur

    def source_attention(self, layer: nn.Module) -> Operation | None:
        attention, layer_norm = layer.encoder_attn, layer.encoder_attn_layer_norm
        if not is_backbone(attention, *ATTENTION):
            return None
        queries, output = self.product((attention.q_proj,)), self.product((attention.out_proj,))
        before = norm_operation(layer_norm) if layer.normalize_before else same
        residual = residual_norm(layer, layer_norm)
        key, value = attention.source_projections(self.source, self.cache, self.rows)  # (S, H, L, Dh)
        shape, scaling = (self.sources, self.rows // self.sources, -1, attention.head_dim), attention.scaling

        def attend(hidden_states: torch.Tensor) -> torch.Tensor:
            query = queries(before(hidden_states)).view(shape).transpose(1, 2)  # (S, H, rows of one, Dh)
            read = attention_output(query, key, value, self.source_mask, scaling)  # (S, rows of one, H, Dh)
            return residual(hidden_states, output(read.reshape(hidden_states.shape)))

        return attend

    def feed_forward(self, layer: nn.Module) -> Operation:
        inner, outer = self.product((layer.fc1,)), self.product((layer.fc2,))
        before = norm_operation(layer.final_layer_norm) if layer.normalize_before else same
        residual, activation = residual_norm(layer, layer.final_layer_norm), layer.activation_fn
        activation = torch.relu if is_unchanged(activation, nn.ReLU) else activation
        return lambda hidden_states: residual(hidden_states, outer(activation(inner(before(hidden_states)))))

    def final_norm(self) -> Operation:
        """The norm behind the last layer."""
        return norm_operation(self.decoder.layer_norm)

    def output(self) -> Operation:
        """States to logits, with their bias."""
        if is_plain_int8(self.head) or is_plain(self.head):
            return self.product((self.head,), self.output_bias)
        return lambda hidden_states: self.model.logits_of(hidden_states[:, None])[:, 0]

    def product(self, layers: tuple[nn.Module, ...], bias: torch.Tensor | None = None) -> Operation:
        """Layers of one input side by side, (R, D_in) -> (R, sum of D_out), with their own biases or the one given."""
        if all(map(is_plain_int8, layers)):
            return partial(int8_product, layers, bias=bias, own_bias=bias is None)
        if not all(map(is_plain, layers)):
            return lambda states: torch.cat([layer(states[:, None])[:, 0] for layer in layers], dim=-1)
        example = self.example.expand(-1, layers[0].in_features)
        prepacked = prepacked_layer(layers, example) or prepacked_layer(layers, example)  # at its second product
        if prepacked is not None:
            bias = prepacked.bias if bias is None else bias
            return lambda states: torch.ops.mkldnn._linear_pointwise(states, prepacked.matrix, bias, "none", [], "")
        weight = layers[0].weight if len(layers) == 1 else torch.cat([layer.weight for layer in layers])
        bias = joint_bias(layers) if bias is None else bias
        return lambda states: nn.functional.linear(states, weight, bias)


def same(hidden_states: torch.Tensor) -> torch.Tensor:
    """The states themselves."""
    return hidden_states


def norm_operation(layer_norm: nn.LayerNorm) -> Operation:
    """A norm over states (R, D)."""
    shape, weight, bias, eps = list(layer_norm.normalized_shape), layer_norm.weight, layer_norm.bias, layer_norm.eps
    return lambda states: torch.layer_norm(states, shape, weight, bias, eps)


def residual_norm(layer: nn.Module, layer_norm: nn.LayerNorm) -> Callable:
    """What follows a sublayer: x + f(norm(x)) with the norm before, norm(x + f(x)) with the norm after."""
    if layer.normalize_before:
        return torch.add
    after = norm_operation(layer_norm)
    return lambda hidden_states, output: after(hidden_states + output)


def attention_output(query, key, value, mask: torch.Tensor | None, scaling: float) -> torch.Tensor:
    """Queries (B, H, T, Dh), keys and values (B, H, S, Dh) -> (B, T, H, Dh)."""
    output = faster_attention(query, key, value, mask, scaling)
    if output is not None:
        return output
    with without_cudnn(query):
        output = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling)
    return output.transpose(1, 2)


BUILDERS = {
    "self_attention_block": "self_attention",
    "cross_attention_block": "source_attention",
    "feed_forward_block": "feed_forward",
}
ATTENTION = "forward heads_output attend self_projections source_queries source_projections".split()
EMBEDS = "embed_with positions position_encoding".split()
SEAMS = (*EMBEDS, *"embed layer_inputs attention_mask source_mask source padding_to_mask".split())  # of a decoder
MODEL_SEAMS = "decoder_inputs target_sentences align".split()


def is_backbone(module: nn.Module, *names: str) -> bool:
    """Whether these methods of a module are the backbone's own, and a call of it does no more, as with hooks."""
    is_own = all(getattr(getattr(type(module), name), "is_backbone", False) for name in names)
    return is_own and is_unchanged(module, type(module))


def has_limits(model: nn.Module) -> bool:
    """Whether all that the mechanism of a model does in a step is what its `step_limits` say, and limited attention."""
    decoder = model.get_decoder()
    known = decoder.step_inputs == "limits" and declares(type(decoder), "step_inputs", *SEAMS)
    known = known and is_backbone(model, "decoder_inputs_for_generation")
    return known and declares(type(model.model), "step_limits", *MODEL_SEAMS)


def declares(kind: type, name: str, *others: str) -> bool:
    """Whether no class below the one that declares an attribute declares one of the others."""
    owner = {attribute: index for index, one in reversed([*enumerate(kind.__mro__)]) for attribute in vars(one)}
    return all(owner[name] <= owner.get(other, owner[name]) for other in others)


def is_unchanged(module: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether a module is of this class, with no wrapper around it, and a call of it does no more, as with hooks."""
    is_changed = module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module)
    return type(module) is kind and not is_changed


def is_recurrence(module: nn.Module) -> bool:
    """Whether it is an SSRU, and a call of it does no more."""
    parts = [getattr(type(module), name, None) for name in ("forward", "all_states")]
    return all(getattr(part, "is_recurrence", False) for part in parts) and is_unchanged(module, type(module))


def has_plain_norms(module: nn.Module) -> bool:
    """Whether the norms of a decoder or a layer are those that it was built with."""
    norms = [child for name, child in module.named_children() if name.endswith(("layer_norm", "layernorm_embedding"))]
    return all(is_unchanged(child, nn.LayerNorm) for child in norms)


def has_known_blocks(layer: nn.Module) -> bool:
    """Whether `step_blocks` says what `forward` of a layer does: no later class has another `forward`."""
    classes = type(layer).__mro__
    owner = next((index for index, owner in enumerate(classes) if "step_blocks" in vars(owner)), None)
    if owner is None or not is_backbone(layer, "normed", "with_residual") or not has_plain_norms(layer):
        return False
    declared = next(vars(owner)["forward"] for owner in classes[owner:] if "forward" in vars(owner))
    return unwrap(type(layer).forward) is unwrap(declared)  # transformers wraps that of every class
