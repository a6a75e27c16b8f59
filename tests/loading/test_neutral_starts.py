"""Every architecture starts from every sentence-level model with that model's logits and beams."""

from functools import cache

import pytest
import torch
from support.pretrained_models import VOCABULARY, context_inputs, logits, sentence_model

from hf_docmt.loading import registry
from hf_docmt.loading.pretrained import from_sentence_model, mechanism_parameters

torch.set_num_threads(1)
CASES = {name: ({}, False) for name in registry.ARCHITECTURES} | {  # settings, and whether documents are neutral, too
    "concat": ({"segment_encoding": "learned", "past_context": 1}, False),
    "caching": ({}, True),
    "caching, parallel": ({"integration": "parallel", "context_gate": True}, True),
    "caching, grouping": ({"shortening": "grouping"}, True),
    "doct": ({}, True),
    "doct, routing": ({"selection": "routing"}, True),
    "han": ({}, True),
    "han, joint": ({"context_sides": "both"}, True),
    "memory": ({}, True),
    "multiencoder, sequential": ({"integration": "sequential"}, True),
    "routing": ({}, True),
}
PAIRS = [(family, case) for case in CASES for family in ("marian", "m2m_100")]  # the norm after, and before
PAIRS += [(family, case) for case in ("concat", "caching", "doct") for family in ("bart", "mbart")]


SEARCH = {"num_beams": 3, "max_new_tokens": 10, "no_repeat_ngram_size": 1}


@cache
def original_of(family):
    """A sentence-level model, its logits, a source and the translations of that, for tests that change none of them."""
    original = sentence_model(family)
    source = torch.randint(4, 30, (3, 8), generator=torch.Generator().manual_seed(4))
    expected = logits(original, original.config.pad_token_id)
    return original, expected, source, original.generate(input_ids=source, **SEARCH)


def converted(original, case):
    """A document model of one of the cases."""
    torch.manual_seed(2)
    return from_sentence_model(original, architecture=case.partition(",")[0], **CASES[case][0])[0]


@pytest.mark.parametrize(("family", "case"), PAIRS)
def test_logits_and_beams_are_those_of_the_source(family, case):
    original, expected, source, translations = original_of(family)
    model, pad = converted(original, case), original.config.pad_token_id
    torch.testing.assert_close(logits(model, pad)[..., :VOCABULARY], expected, atol=1e-4, rtol=0)
    if CASES[case][1]:
        bound = 1e-4
        if case.startswith("doct"):  # LayerNorm(x/2), where the epsilon counts more; or a gate that is not wide open
            bound = 0.5 if model.config.normalize_before else 1e-3
        elif case.startswith("han"):  # LayerNorm(h/2)
            bound = 1e-3
        found = logits(model, pad, **context_inputs(model, 3))[..., :VOCABULARY]
        torch.testing.assert_close(found, expected, atol=bound, rtol=0)
    has_separators = registry.get(case.partition(",")[0]).reads_segments
    banned = [[VOCABULARY], [VOCABULARY + 1]] if has_separators else None  # <sep>, <bod>
    found = model.generate(input_ids=source, **SEARCH, bad_words_ids=banned)
    assert torch.equal(found, translations)


@pytest.mark.parametrize("case", ["concat", "lst", "caching", "caching, parallel", "doct", "han", "memory", "routing"])
def test_zero_parameters_learn(case):
    """A neutral part that gets no gradient would stay one for ever."""
    model = converted(sentence_model("mbart" if case == "doct" else "marian"), case)
    new, parameters = mechanism_parameters(model), dict(model.named_parameters())
    zeros = [name for name in new if name.endswith("weight") and not parameters[name].any()]
    inputs = {} if case in ("concat", "lst") else context_inputs(model, 2)
    source = torch.randint(4, 30, (2, 6), generator=torch.Generator().manual_seed(5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):  # behind a zero the gradient comes with the second step
        model(input_ids=source, labels=source, **inputs).loss.backward()
        optimizer.step()
    assert zeros and not [name for name in zeros if not parameters[name].any()]


def test_source_parameters_are_kept():
    original = sentence_model("marian")
    for case in ("caching", "doct"):
        weights, state = original.state_dict(), converted(original, case).state_dict()
        changed = {name for name in weights if name in state and not torch.equal(weights[name], state[name][:40])}
        norm = "encoder_attn_layer_norm" if case == "caching" else "self_attn_layer_norm"
        assert changed - {"final_logits_bias"} and all(norm in name or name[:5] == "final" for name in changed)


def test_context_layers_are_copies():
    original = sentence_model("mbart")
    model = converted(original, "routing")
    for layer in range(2):
        for name, weight in original.model.encoder.layers[layer].state_dict().items():
            assert torch.equal(model.model.encoder.context_layers[layer].state_dict()[name], weight)
    assert torch.equal(model.model.encoder.context_layer_norm.weight, original.model.encoder.layer_norm.weight)


def test_search_settings_are_taken_over():
    original = sentence_model("mbart")
    settings = {"max_length": 77, "num_beams": 5, "no_repeat_ngram_size": 3, "renormalize_logits": True}
    settings |= {"bad_words_ids": [[7]], "forced_bos_token_id": 9, "forced_eos_token_id": 2, "length_penalty": 0.8}
    original.generation_config.update(**settings)
    model, _ = from_sentence_model(original, architecture="memory", decoder_start_token_id=12)
    found = model.generation_config.to_dict()
    assert {name: found[name] for name in settings} == settings
    assert (found["decoder_start_token_id"], found["eos_token_id"]) == (12, 2)
    assert original.generation_config.decoder_start_token_id == 30


def test_special_tokens_of_the_search_are_taken_over():
    original = sentence_model("marian")
    original.generation_config.update(eos_token_id=[original.config.eos_token_id, 7], decoder_start_token_id=6)
    model, _ = from_sentence_model(original)
    assert model.generation_config.eos_token_id == [original.config.eos_token_id, 7]
    assert model.generation_config.decoder_start_token_id == 6
    source = torch.randint(8, 30, (3, 5), generator=torch.Generator().manual_seed(1))
    found, expected = (one.generate(source, num_beams=2, max_new_tokens=8) for one in (model, original))
    assert found.tolist() == expected.tolist()


def test_tokens_that_are_never_written_have_no_probability():
    original = sentence_model("m2m_100")
    for architecture, low in (("caching", True), ("memory", True), ("concat", False)):
        bias = from_sentence_model(original, architecture=architecture)[0].final_logits_bias[0, VOCABULARY:]
        assert (bias < -50).all() if low else (bias == 0).all()


def test_interpolated_positions():
    original = sentence_model("bart")
    model, _ = from_sentence_model(original, max_position_embeddings=63, interpolate_positions=True)
    table, stretched = (one.model.decoder.embed_positions.weight for one in (original, model))
    assert stretched.shape == (65, 16)
    torch.testing.assert_close(stretched[:2], table[:2])
    torch.testing.assert_close(stretched[2::2], table[2:])
    torch.testing.assert_close(stretched[3::2], (table[2:-1] + table[3:]) / 2)


def test_interpolation_without_need_is_refused():
    with pytest.raises(ValueError, match="interpolate_positions .* got no max_position_embeddings"):
        from_sentence_model(sentence_model("bart"), interpolate_positions=True)
    with pytest.raises(ValueError, match="got sinusoidal positions, .* omit it"):
        from_sentence_model(sentence_model("marian"), interpolate_positions=True, max_position_embeddings=64)
    with pytest.raises(ValueError, match="max_position_embeddings: got 64, .* or give interpolate_positions"):
        from_sentence_model(sentence_model("bart"), max_position_embeddings=64)
    assert from_sentence_model(sentence_model("marian"), max_position_embeddings=64)[0].config.max_position_embeddings


def test_base_model_is_a_name_on_the_hub(tmp_path):
    original = sentence_model("marian")
    for name, expected in (("org/opus", "org/opus"), (str(tmp_path), None), ("", None), (str(tmp_path / "gone"), None)):
        original.name_or_path = name
        assert from_sentence_model(original)[0].config.base_model == expected
