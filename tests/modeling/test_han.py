"""Hierarchical attention networks: the battery, what is context, and where states of earlier translations come from."""

import pytest
import torch
from support.battery import Battery, logits
from support.context_reference import CONTEXT, sentences_of
from support.reference import attention, feed_forward, linear, norm, reference_logits, reference_stack, weights_of
from support.tiny_models import BOS, EOS, PAD, UNK, build, plain_model

from hf_docmt.modeling.configuration_han import HanConfig
from hf_docmt.modeling.context_attention import move_affine
from hf_docmt.modeling.modeling_han import HanDecoder

NO_WORDS = (UNK, BOS, EOS)


class TestHan(Battery):
    architecture = "han"
    cases = {
        "encoder": {"past_context": 2},
        "encoder_future": {"past_context": 1, "future_context": 1, "normalize_before": True},
        "decoder": {"past_context": 2, "hierarchical_attention": "decoder"},
        "decoder_norm_before": {"hierarchical_attention": "decoder", "normalize_before": True, "use_bod": True},
        "joint": {"context_sides": "both", "position_type": "learned", "layernorm_embedding": True},
        "joint_norm_before": {"past_context": 2, "context_sides": "both", "normalize_before": True},
    }
    corners = ("encoder_future", "decoder", "joint", "joint_norm_before")
    neutral_cases = ("encoder_future", "decoder", "decoder_norm_before")
    strategies = ("sentence", "sequential")

    def reach(self, config):
        source = set(range(-config.past_context, config.future_context + 1))
        target = set(range(-config.past_context, 1)) if config.context_sides == "both" else {0}
        return {"source": source, "target": target}

    def reference(self, model, batch):
        return [reference_logits_of(model, row) for row in sentences_of(batch)]

    def plain_backbone(self, model):
        """With the norm before no context; with the norm after a closed gate, and a norm that follows another."""
        plain, batch = plain_model(model), self.collate(model.config, self.examples(model.config))
        if model.config.normalize_before:
            return plain, {name: value for name, value in batch.items() if name not in CONTEXT}
        with torch.no_grad():
            for layer in (stack.layers[-1] for stack in (model.get_encoder(), model.get_decoder())):
                if layer.context is not None:
                    layer.context.gate.bias.fill_(200)  # lambda = 1
                    move_affine(layer.final_layer_norm, layer.context.layer_norm)
        return plain, batch


# The definition, word by word


def reference_logits_of(model, row: dict) -> torch.Tensor:
    context = [{offset: ids for offset, side, ids in row["context"] if side == is_target} for is_target in (0, 1)]
    past = sorted(context[0].keys() & context[1].keys())
    sources = {offset: stack_of(model, "encoder", ids) for offset, ids in sorted(context[0].items())}
    written = {}
    for offset in past:
        ids = [model.config.decoder_start_token_id, *context[1][offset][:-1]]
        written[offset] = (ids, *stack_of(model, "decoder", ids, memory=sources[offset][1])[:1])
    own = [words_of(context[0][offset], states) for offset, (states, _) in sources.items()]
    memory = stack_of(model, "encoder", row["source"], own)[1]
    return reference_logits(
        model, stack_of(model, "decoder", row["target"], [words_of(*written[offset]) for offset in past], memory)[1]
    )


def words_of(ids: list[int], states: torch.Tensor) -> torch.Tensor:
    """The states of words, (L, D), of which no gradient comes."""
    return states[[place for place, token in enumerate(ids) if token not in NO_WORDS]].detach()


def stack_of(model, side: str, ids: list[int], context=(), memory=None) -> tuple[torch.Tensor, torch.Tensor]:
    """h and the last states of a sentence, (T, D) each, with the words of each context sentence, (L, D) each."""
    config, found = model.config, []
    has_context = config.hierarchical_attention in (side, "joint")

    def after_layers(states):
        if has_context:
            states, h = hierarchical(model, side, states, [words for words in context if len(words)])
            found.append(h)
        return states

    last = reference_stack(model, side, ids, memory=memory, after_layers=after_layers)
    return (found[0] if found else last), last


def hierarchical(model, side: str, states: torch.Tensor, context: list[torch.Tensor]):
    """Miculicich et al. (2018), equations 1 to 5, word by word."""
    config, weights = model.config, weights_of(model)
    heads = getattr(config, f"{side}_attention_heads")
    name = f"model.{side}.layers.{getattr(config, f'{side}_layers') - 1}.context"

    def normed(part: str, vectors: torch.Tensor) -> torch.Tensor:
        return norm(weights, f"{name}.{part}", vectors)

    h = normed("layer_norm", states) if config.normalize_before else states
    mixed = []
    for word in h if context else ():
        query = word.detach()[None]
        inputs = normed("word_query_norm", query)
        read = [attention(weights, f"{name}.word_attn", inputs, words, heads) for words in context]
        summaries = normed("word_layer_norm", torch.cat(read))  # (C, D)
        query = normed("sentence_query_norm", query)
        d = attention(weights, f"{name}.sentence_attn", query, summaries, heads)[0]
        d = d + feed_forward(weights, name, normed("final_layer_norm", d), "relu")
        share = torch.sigmoid(linear(weights, f"{name}.gate", torch.cat([word, d])))
        mixed.append(share * word + (1 - share) * d)
    mixed = torch.stack(mixed) if context else states
    return (mixed if config.normalize_before else normed("layer_norm", mixed)), h


def inputs_with(source: list[list[int]], target: list[list[int]]) -> dict:
    """One current sentence; of each side sentences before it, the nearest first, [] = not there."""
    rows = [*source, *target]
    width = max(1, *map(len, rows))
    ids = torch.tensor([[row + [PAD] * (width - len(row)) for row in rows]])
    offsets = [-place - 1 for side in (source, target) for place in range(len(side))]
    return {
        "input_ids": torch.tensor([[7, 8, EOS]]),
        "decoder_input_ids": torch.tensor([[BOS, 9, 10]]),
        "context_input_ids": ids,
        "context_attention_mask": (ids != PAD).long(),
        "context_offsets": torch.tensor([offsets]),
        "context_is_target": torch.tensor([[False] * len(source) + [True] * len(target)]),
    }


@pytest.mark.parametrize("fields", [{"hierarchical_attention": "decoder"}, {"hierarchical_attention": "joint"}])
def test_a_translation_needs_its_source(fields):
    """Its states are made from that; without it the decoder has no context."""
    model = build("han", **fields)
    found = logits(model, inputs_with([[], [7, EOS]], [[11, EOS], [12, EOS]]))
    assert torch.equal(found, logits(model, inputs_with([[], [7, EOS]], [[], [12, EOS]])))
    assert not torch.equal(found, logits(model, inputs_with([[], [7, EOS]], [[11, EOS], [13, EOS]])))
    alone = [logits(model, inputs_with([[word, EOS]], [[]])) for word in (7, 9)]
    assert torch.equal(*alone) == (fields["hierarchical_attention"] == "decoder")


@pytest.mark.parametrize("kind", ["encoder", "decoder", "joint"])
def test_translations_are_read_once(kind, monkeypatch):
    """In a search with a cache, in either search, whatever the number of beams; without a cache at every step."""
    model, calls = build("han", hierarchical_attention=kind), []
    read = HanDecoder.read_translations
    monkeypatch.setattr(HanDecoder, "read_translations", lambda *a, **k: calls.append(len(calls)) or read(*a, **k))
    target = [[11, 12, EOS], [13, EOS]] if kind != "encoder" else []
    inputs = inputs_with([[9, 10, EOS], [7, EOS]], target)
    del inputs["decoder_input_ids"]
    settings, expected = {"max_new_tokens": 4, "min_new_tokens": 4}, int(kind != "encoder")
    for search in ({"num_beams": 1}, {"num_beams": 3}, {"do_sample": True, "num_return_sequences": 2}):
        model.generate(**inputs, **settings, **search)
        assert len(calls) == expected
        calls.clear()
    model.generate(**inputs, **settings, use_cache=False)
    assert len(calls) == 4 * expected


def test_context_sides_set_attention():
    """One of the two fields says the other, also for a model of sentences that becomes one with context."""
    found = [HanConfig(), HanConfig(context_sides="both"), HanConfig(hierarchical_attention="decoder")]
    assert [(config.hierarchical_attention, config.context_sides) for config in found] == [
        ("encoder", "source"),
        ("joint", "both"),
        ("decoder", "both"),
    ]
    assert found[0].past_context == 3
