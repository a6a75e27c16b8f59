"""G-Transformer: the battery and what is special to it."""

import torch
from support.battery import ONE_SENTENCE, Battery, segment_reach, tokens_of
from support.reference import attention, linear, position_vector, reference_row
from support.tiny_models import SENTENCES, SEP, build, plain_model

from hf_docmt.modeling.modeling_docmt import start_neutral

WINDOW = {"past_context": 2, "global_layers": 1}


class TestGTransformer(Battery):
    architecture = "gtransformer"
    cases = {
        "sentence": {},
        "window": WINDOW,
        "all": WINDOW | {"global_layers": 2},
        "group": WINDOW | {"global_layers": 0},
        "apart": WINDOW | {"global_layers_encoder": 2, "global_layers_decoder": 0},
        "future": WINDOW | {"past_context": 1, "future_context": 1},
        "chunk": {"view": "chunk", "chunk_tokens": 12, "global_layers": 1},
        "bod": WINDOW | {"use_bod": True, "encoder_layers": 3},
        "norm_before": WINDOW | {"normalize_before": True, "layernorm_embedding": True, "global_layers": 2},
        "learned_positions": WINDOW | {"position_type": "learned", "position_offset": 2},
        "restart": WINDOW | {"restarts_positions": True},
        "restart_chunk": {"view": "chunk", "chunk_tokens": 12, "restarts_positions": True, "position_type": "learned"},
    }
    corners = ("window", "group", "apart", "chunk", "norm_before", "restart")
    neutral_cases = corners

    def reach(self, config):
        parts = {"source": ("encoder", "cross"), "target": ("decoder",)}
        reached = {side: any(map(config.global_layers_of, some)) for side, some in parts.items()}
        return {side: offsets if reached[side] else {0} for side, offsets in segment_reach(config).items()}

    def reference(self, model, batch):
        return [reference_logits(model, *row) for row in tokens_of(batch)]

    def plain_backbone(self, model):
        """In a single sentence group attention is attention, and so is global attention with the same weights."""
        start_neutral(model)
        return plain_model(model), ONE_SENTENCE


def reference_logits(model, source: list[int], target: list[int]) -> torch.Tensor:
    """Bao et al. (2021), section 4: group tags, group attention and, where a layer has it, global attention."""
    source_tags = [source[:position].count(SEP) for position in range(len(source))]  # behind the separators before it
    target_tags = [target[: position + 1].count(SEP) for position in range(len(target))]  # of what is written next

    def self_attention(weights, name, states, heads, causal, ids):
        tags = target_tags if causal else source_tags
        return combined_attention(weights, name, states, states, heads, tags, tags, causal)

    def cross_attention(weights, name, states, memory, heads, ids):
        return combined_attention(weights, name, states, memory, heads, target_tags, source_tags)

    steps = {"self_attention": self_attention, "cross_attention": cross_attention}
    if not model.config.restarts_positions:
        return reference_row(model, source, target, **steps)
    added = (
        [torch.stack([position_vector(model, tags[:place].count(tag), side) for place, tag in enumerate(tags)])]
        for side, tags in (("encoder", source_tags), ("decoder", target_tags))
    )
    return reference_row(model, source, target, *added, **steps)


def combined_attention(weights, name, states, memory, heads, query_tags, key_tags, causal=False) -> torch.Tensor:
    """H_L, or H_L * g + H_G * (1 - g) with g = sigmoid([H_L; H_G] W + b): (T, D) and (S, D) -> (T, D)."""
    every = [range(i + 1) if causal else range(len(memory)) for i in range(len(states))]
    group = [[j for j in keys if key_tags[j] == query_tags[i]] or keys for i, keys in enumerate(every)]
    own = attention(weights, name, states, memory, heads, seen=group)
    if f"{name}.gate.weight" not in weights:
        return own
    whole = attention(weights, f"{name}.global_attn", states, memory, heads, seen=every)
    gate = linear(weights, f"{name}.gate", torch.cat([own, whole], dim=1)).sigmoid()
    return own * gate + whole * (1 - gate)


# What is special to G-Transformer


def test_weights_of_attention():
    """Those of global attention where a layer has it, else of group attention: 0 for other sentences."""
    model = build("gtransformer", **WINDOW)
    model.set_attn_implementation("eager")
    outputs = model(**SENTENCES, output_attentions=True)
    for weights in (outputs.encoder_attentions, outputs.decoder_attentions, outputs.cross_attentions):
        assert len(weights) == 2
    group, whole = outputs.cross_attentions
    assert (group[0, :, 0, 2:] == 0).all() and (group[0, :, 3, 2:5] > 0).all() and (whole > 0).all()


def test_what_is_reached():
    reach = build("gtransformer", **WINDOW).config.context_reach()
    assert reach.endswith("source and target; across sentences in the top 1 layers")
    apart = build("gtransformer", **TestGTransformer.cases["apart"]).config.context_reach()
    assert apart.endswith("in the top 2 (encoder), 0 (decoder), 1 (cross) layers")
    assert "global_layers=0" in build("gtransformer", **WINDOW | {"global_layers": 0}).config.context_reach()
