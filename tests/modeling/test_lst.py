"""Long-short term attention: the battery and what is special to it."""

import pytest
import torch
from support.battery import ONE_SENTENCE, Battery, segment_reach, tokens_of
from support.reference import attention_heads, reference_row
from support.tiny_models import PAD, SEP, build, plain_model

from hf_docmt.engine.cache import DecodingCache
from hf_docmt.modeling import limited_attention, sentence_stack

WINDOW = {"past_context": 2}


class TestLst(Battery):
    architecture = "lst"
    cases = {
        "sentence": {},
        "window": WINDOW,
        "future": {"past_context": 1, "future_context": 1},
        "source": WINDOW | {"context_sides": "source"},
        "chunk": {"view": "chunk", "chunk_tokens": 12},
        "bod": WINDOW | {"use_bod": True},
        "norm_before": WINDOW | {"normalize_before": True, "layernorm_embedding": True},
        "learned_positions": WINDOW | {"position_type": "learned", "position_offset": 2},
    }
    corners = ("window", "source", "chunk", "norm_before")
    neutral_cases = corners

    def reach(self, config):
        return segment_reach(config)

    def reference(self, model, batch):
        return [reference_row(model, *row, self_attention=long_short_attention) for row in tokens_of(batch)]

    def plain_backbone(self, model):
        """The projection passes the whole segment's branch; in a single sentence that is the other one, too."""
        for attention in self_attentions(model):
            torch.nn.init.zeros_(attention.sentence_proj.weight)
        return plain_model(model), ONE_SENTENCE


def long_short_attention(weights, name: str, states, heads: int, causal: bool, ids: list[int]) -> torch.Tensor:
    """Herold and Ney (2023), section 3.2: (T, D) -> (T, D)."""
    sentence = [ids[:position].count(SEP) for position in range(len(ids))]  # s(i)
    whole = [[j for j in range(len(ids)) if j <= i or not causal] for i in range(len(ids))]
    own = [[j for j in seen if sentence[j] == sentence[i]] for i, seen in enumerate(whole)]
    context = [attention_heads(weights, name, states, states, heads, seen) for seen in (whole, own)]
    projection = torch.cat([weights[f"{name}.out_proj.weight"], weights[f"{name}.sentence_proj.weight"]], dim=1)
    return torch.cat(context, dim=1) @ projection.T + weights[f"{name}.out_proj.bias"]


def self_attentions(model) -> list:
    return [layer.self_attn for stack in (model.get_encoder(), model.get_decoder()) for layer in stack.layers]


# What is special to long-short term attention


@pytest.mark.parametrize("cached", [0, 1, 4, 9])
@pytest.mark.parametrize("architecture", ["gtransformer", "lst"])
def test_ways_to_the_own_sentence(architecture, cached, monkeypatch):
    """Masks and limits of sentences: the same logits, for tokens that are cached and for new ones.

    One row has padding on the left and a hole of it, one padding on the right; new tokens come one by one and together.
    """
    model = build(architecture, **WINDOW)
    ids = torch.tensor(
        [[2, 9, 11, SEP, 12, SEP, 13, 14, SEP, 15, 16, 17], [PAD, PAD, 2, 9, SEP, 9, 9, 12, 8, 7, SEP, 9]]
    )
    batch = {"input_ids": torch.where(ids == 2, 20, ids), "attention_mask": (ids != PAD).long()}
    batch["attention_mask"][0, 10:] = 0
    seen = batch["attention_mask"].clone()
    seen[0], seen[1, 5] = 1, 0
    found = []
    for few_keys in (256, 0):
        for module in (limited_attention, sentence_stack):
            monkeypatch.setattr(module, "FEW_KEYS", few_keys)
        parts, cache = [], DecodingCache()
        borders = [0, cached, *range(cached + 1, 8 + 1), 12] if cached else [0, 12]
        for start, end in zip(borders, borders[1:]):
            names = {"decoder_input_ids": ids[:, start:end], "decoder_attention_mask": seen[:, :end]}
            names["decoder_sentence_index"] = model.model.target_sentences(ids[:, :end])
            parts.append(model(**batch, **names, cache=cache).logits)
        found.append(torch.cat(parts, dim=1)[seen.bool()])
    torch.testing.assert_close(*found, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("implementation", ["flash_attention_2", "flash_attention_3"])
def test_attention_without_masks_of_sentences(implementation):
    with pytest.raises(ValueError, match="LstForConditionalGeneration does not support"):
        build("lst", **WINDOW).set_attn_implementation(implementation)
