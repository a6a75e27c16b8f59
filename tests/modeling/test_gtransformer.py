"""G-Transformer: the battery and what is special to it."""

import pytest
import torch
from support.battery import ONE_SENTENCE, Battery, logits, segment_reach, tokens_of
from support.reference import attention, linear, position_vector, reference_row
from support.tiny_models import EOS, SENTENCES, SEP, build, plain_model

from hf_docmt.engine.cache import DecodingCache
from hf_docmt.modeling.modeling_gtransformer import GroupAttention
from hf_docmt.modeling.sentence_stack import SentenceStack
from hf_docmt.modeling.training import start_neutral

WINDOW = {"past_context": 2, "global_layers": 1}


class TestGTransformer(Battery):
    architecture = "gtransformer"
    rounding = 3e-6  # other sentences are gathered side by side
    cases = {
        "sentence": {},
        "window": WINDOW,
        "all": WINDOW | {"global_layers": 2},
        "group": WINDOW | {"global_layers": 0},
        "future": WINDOW | {"past_context": 1, "future_context": 1},
        "chunk": {"view": "chunk", "chunk_tokens": 12, "global_layers": 1},
        "bod": WINDOW | {"use_bod": True, "encoder_layers": 3},
        "norm_before": WINDOW | {"normalize_before": True, "layernorm_embedding": True, "global_layers": 2},
        "learned_positions": WINDOW | {"position_type": "learned", "position_offset": 2},
        "restart": WINDOW | {"restarts_positions": True},
        "restart_chunk": {"view": "chunk", "chunk_tokens": 12, "restarts_positions": True, "position_type": "learned"},
    }
    corners = ("window", "all", "chunk", "norm_before", "restart")
    neutral_cases = tuple(cases)

    def reach(self, config):
        return segment_reach(config) if config.global_layers else {"source": {0}, "target": {0}}

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


@torch.no_grad()
def test_sentences_do_not_see_each_other_without_global_layers():
    """States depend on their own sentence alone; the source sentence with its number is part of a target sentence."""
    model = build("gtransformer", past_context=2, global_layers=0)
    for side, position, expected in (
        (
            "input_ids",
            3,
            [False] * 3 + [True] * 3 + [False] * 2,
        ),  # of the target from the separator before it
        ("decoder_input_ids", 4, [False] * 4 + [True] * 2 + [False] * 2),
    ):
        changed = {**SENTENCES, side: SENTENCES[side].masked_fill(torch.arange(8) == position, 20)}
        found = (logits(model, changed) != logits(model, SENTENCES)).any(dim=-1)[0]
        assert found.tolist() == expected


@torch.no_grad()
@pytest.mark.parametrize("shut", ["own", "whole"])
def test_gate(shut):
    """A gate at 1 leaves group attention alone, at 0 global attention, which is that of the backbone."""
    model = build("gtransformer", **WINDOW | {"global_layers": 2})
    grouped = build("gtransformer", **WINDOW | {"global_layers": 0})
    expected = plain_model(model) if shut == "own" else grouped
    for name, module in model.named_modules():
        if isinstance(module, GroupAttention):
            module.gate.bias.fill_(-1e4 if shut == "own" else 1e4)
            if shut == "own":
                module.global_attn.load_state_dict(expected.get_submodule(name).state_dict())
    if shut == "whole":
        grouped.load_state_dict(model.state_dict(), strict=False)
    torch.testing.assert_close(logits(model, SENTENCES), logits(expected, SENTENCES), atol=1e-5, rtol=0)


def test_layers_with_global_attention():
    """The top ones of either side, whatever their number; the rest has the names of the backbone."""
    model = build("gtransformer", encoder_layers=3, decoder_layers=2, global_layers=1)
    names = {name.rpartition(".global_attn")[0] for name, _ in model.named_modules() if name.endswith("global_attn")}
    encoder, decoder = "model.encoder.layers.2.self_attn", "model.decoder.layers.1"
    assert names == {encoder, f"{decoder}.self_attn", f"{decoder}.encoder_attn"}
    plain = plain_model(model).state_dict().keys()
    added = model.state_dict().keys() - plain
    assert plain < model.state_dict().keys() and {name.split("_attn.", 1)[1].split(".")[0] for name in added} == {
        "global_attn",
        "gate",
    }


@torch.no_grad()
def test_as_many_separators_as_tokens():
    """More sentences than the source has: behind its last one the whole source is seen."""
    model, target = build("gtransformer", **WINDOW), [SEP] * 5
    for ids in ([7, 8, EOS], [7, SEP, 8, EOS]):
        found = logits(model, {"input_ids": torch.tensor([ids]), "decoder_input_ids": torch.tensor([target])})[0]
        torch.testing.assert_close(found, reference_logits(model, ids, target), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("cached", [0, 1, 4, 9])
def test_ways_to_the_own_sentence(cached, monkeypatch):
    """Gathered sentences, keys of the latest one, masks: the same logits, for tokens that are cached and for new ones.

    The target has a sentence more than the source.
    """
    model = build("gtransformer", **WINDOW)
    ids = torch.tensor([[2, 9, 11, SEP, 12, SEP, 13, 14, SEP, 15, 16, 17]])
    found = []
    for masked in (True, False):
        monkeypatch.setattr(SentenceStack, "is_masked", masked)
        parts, cache = [], DecodingCache()
        borders = [0, cached, *range(cached + 1, 8 + 1), 12] if cached else [0, 12]
        for start, end in zip(borders, borders[1:]):
            index = model.model.target_sentences(ids[:, :end])
            names = {"decoder_input_ids": ids[:, start:end], "decoder_sentence_index": index, "cache": cache}
            parts.append(model(input_ids=SENTENCES["input_ids"], **names).logits)
        found.append(torch.cat(parts, dim=1))
    torch.testing.assert_close(*found, atol=1e-5, rtol=1e-5)
    expected = reference_logits(model, SENTENCES["input_ids"][0].tolist(), ids[0].tolist())
    torch.testing.assert_close(found[0][0], expected, atol=1e-5, rtol=1e-5)


def test_group_tags():
    """A separator ends a sentence of the source and begins one of the target."""
    model, ids = build("gtransformer", **WINDOW), SENTENCES["input_ids"]
    assert model.model.target_sentences(ids)[0].tolist() == [0, 1, 1, 1, 2, 2, 2, 2]
    mask = torch.tensor([[1] * 7 + [0]])
    found = model.get_encoder()(input_ids=ids, attention_mask=mask).source_groups[0].tolist()
    assert found == [1, 1, 2, 2, 2, 3, 3, 0]


def test_encoder_states_without_groups():
    model = build("gtransformer", **WINDOW)
    states = model.get_encoder()(input_ids=SENTENCES["input_ids"]).last_hidden_state
    with pytest.raises(ValueError, match="must come from this model's encoder: source_groups is missing"):
        model(encoder_outputs=(states,), decoder_input_ids=SENTENCES["decoder_input_ids"])


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
    assert "global_layers=0" in build("gtransformer", **WINDOW | {"global_layers": 0}).config.context_reach()
