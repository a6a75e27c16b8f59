"""The Transformer of Vaswani et al. (2017) in its slowest, most obvious form: one row, one head, no padding, no cache.

The formulas are written out here; only the weights are those of the model under test, so that gradients can be
compared, too.
"""

import math

import torch
from torch.nn import functional as F
from transformers.activations import ACT2FN


def sine_vector(position: float, dim: int, formula: str = "sinusoidal") -> torch.Tensor:
    """Section 3.5, number by number: sines first, then cosines."""
    half = dim // 2
    steps = half if formula == "sinusoidal" else half - 1
    angles = [position / 10000 ** (j / steps) for j in range(half)]
    return torch.tensor([math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles])


def position_vector(model, position: int, side: str) -> torch.Tensor:
    config = model.config
    if config.position_type == "learned":
        table = dict(model.named_parameters())[f"model.{side}.embed_positions.weight"]
        return table[position + config.position_offset]
    return sine_vector(position + config.position_offset, config.d_model, config.position_type)


def reference_row(model, source: list[int], target: list[int], source_added=None, target_added=None, **steps):
    """Logits (T, V) of one row. `added[i]` (length, D) is added to the input of layer i (None = nothing).

    `self_attention(weights, name, states, heads, causal, ids)` replaces the plain one, `cross_attention(weights, name,
    states, memory, heads, ids)` the one to the source, and
    `after_self_attention(side, number, states)` is what follows it in a layer.
    """
    memory = reference_stack(model, "encoder", source, source_added, **steps)
    return reference_logits(model, reference_stack(model, "decoder", target, target_added, memory, **steps))


def reference_logits(model, states: torch.Tensor) -> torch.Tensor:
    """The decoder's states (T, D) -> (T, V)."""
    return states @ model.lm_head.weight.T + model.final_logits_bias[0]


def reference_stack(
    model,
    side: str,
    ids: list[int],
    added=None,
    memory=None,
    self_attention=None,
    cross_attention=None,
    after_self_attention=None,
    after_cross_attention=None,
    after_layers=None,
    layers=None,
) -> torch.Tensor:
    """Encoder or decoder: ids of length T -> (T, D).

    `after_cross_attention(number, before, after)` follows attention to the source, with the states before and after
    it, `after_layers(states)` the last layer, before the last norm; `layers` is the name of the list of layers.
    """
    self_attention = self_attention or plain_self_attention
    if added is None:
        added = [torch.stack([position_vector(model, t, side) for t in range(len(ids))])]
    layers = layers or f"model.{side}.layers"
    config, weights = model.config, weights_of(model)
    heads = getattr(config, f"{side}_attention_heads")
    states = torch.stack([weights[f"model.{side}.embed_tokens.weight"][id] for id in ids])  # (T, D)
    states = states * (math.sqrt(config.d_model) if config.scale_embedding else 1) + added[0]
    if config.layernorm_embedding:
        states = norm(weights, f"model.{side}.layernorm_embedding", states)
    depth = getattr(config, f"{side}_layers")
    for number in range(getattr(config, "context_layers", depth) if "context" in layers else depth):
        name = f"{layers}.{number}"
        if number > 0 and len(added) > 1:
            states = states + added[number]
        for step in ("self_attn", "encoder_attn", "final") if memory is not None else ("self_attn", "final"):
            before = states
            layer_norm = f"{name}.{step}_layer_norm"
            inputs = norm(weights, layer_norm, states) if config.normalize_before else states
            if step == "final":
                outputs = feed_forward(weights, name, inputs, config.activation_function)
            elif step == "encoder_attn":
                read = cross_attention or plain_cross_attention
                outputs = read(weights, f"{name}.encoder_attn", inputs, memory, heads, ids)
            else:
                outputs = self_attention(weights, f"{name}.self_attn", inputs, heads, memory is not None, ids)
            states = states + outputs
            if not config.normalize_before:
                states = norm(weights, layer_norm, states)
            if step == "self_attn" and after_self_attention is not None:
                states = after_self_attention(side, number, states)
            if step == "encoder_attn" and after_cross_attention is not None:
                states = after_cross_attention(number, before, states)
    states = states if after_layers is None else after_layers(states)
    last = layers.replace("layers", "layer_norm")
    return norm(weights, last, states) if config.normalize_before else states


def weights_of(model) -> dict[str, torch.Tensor]:
    """Parameters by all their names, tied ones several times."""
    return dict(model.named_parameters(remove_duplicate=False))


def linear(weights, name: str, states: torch.Tensor) -> torch.Tensor:
    return states @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def norm(weights, name: str, states: torch.Tensor) -> torch.Tensor:
    mean, variance = states.mean(-1, keepdim=True), states.var(-1, unbiased=False, keepdim=True)
    return (states - mean) / (variance + 1e-5).sqrt() * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def feed_forward(weights, name: str, states: torch.Tensor, activation: str) -> torch.Tensor:
    return linear(weights, f"{name}.fc2", ACT2FN[activation](linear(weights, f"{name}.fc1", states)))


def plain_self_attention(weights, name: str, states, heads: int, causal: bool, ids: list[int]) -> torch.Tensor:
    return attention(weights, name, states, states, heads, causal)


def plain_cross_attention(weights, name: str, states, memory, heads: int, ids: list[int]) -> torch.Tensor:
    return attention(weights, name, states, memory, heads)


def attention(weights, name: str, states, memory, heads: int, causal: bool = False, **reads) -> torch.Tensor:
    """Section 3.2: (T, D) and (S, D) -> (T, D)."""
    if causal:
        reads["seen"] = [range(i + 1) for i in range(len(states))]
    return linear(weights, f"{name}.out_proj", attention_heads(weights, name, states, memory, heads, **reads))


def attention_heads(weights, name: str, states, memory, heads: int, seen=None, added_keys=None) -> torch.Tensor:
    """What the heads read, side by side, query by query and head by head: (T, D) and (S, D) -> (T, D).

    Query i reads the keys `seen[i]`, else all of them, to which `added_keys[i]` (keys, D) are added.
    """
    query, key, value = (
        linear(weights, f"{name}.{part}_proj", x) for part, x in (("q", states), ("k", memory), ("v", memory))
    )
    rows = []
    for i in range(len(states)):
        read = slice(None) if seen is None else list(seen[i])
        keys = key[read] if added_keys is None else key[read] + added_keys[i]
        parts = []
        for q, k, v in zip(*(x.split(len(query[i]) // heads, dim=-1) for x in (query[i], keys, value[read]))):
            scores = k @ q / math.sqrt(len(q))  # (S,)
            parts.append(F.softmax(scores, dim=0) @ v)
        rows.append(torch.cat(parts))
    return torch.stack(rows)
