"""The recurrent decoder (SSRU): the battery on architectures that have it, its equations, its cache, refusals."""

import re

import pytest
import torch
from support.battery import GREEDY, ONE_SENTENCE, Battery, logits, rows_of, segment_reach, tokens_of
from support.reference import linear, plain_self_attention, reference_row
from support.tiny_models import build, plain_model, random_text, word_tokenizer

from hf_docmt.engine.cache import DecodingCache
from hf_docmt.loading import registry
from hf_docmt.modeling.layers import CACHE_NAME, RecurrentLayer, linear_recurrence

RECURRENT = {"decoder_autoregression": "ssru"}
WINDOW = RECURRENT | {"past_context": 2, "decoder_ffn_dim": 24}


def recurrence(weights, name: str, states, heads: int, causal: bool, ids: list[int]) -> torch.Tensor:
    """Kim et al. (2019), token by token: (T, D) -> (T, D); the encoder has attention."""
    if not causal:
        return plain_self_attention(weights, name, states, heads, causal, ids)
    state, outputs = torch.zeros(states.shape[1]), []
    for vector in states:
        forget = torch.sigmoid(linear(weights, f"{name}.forget_gate", vector))
        state = forget * state + (1 - forget) * (weights[f"{name}.input_proj.weight"] @ vector)
        outputs.append(torch.relu(state))
    return torch.stack(outputs)


class TestRecurrentDecoder(Battery):
    architecture = "concat"
    cases = {
        "window": WINDOW,
        "chunk": RECURRENT | {"view": "chunk", "chunk_tokens": 12},
        "source": WINDOW | {"context_sides": "source"},
        "norm_before": WINDOW
        | {"normalize_before": True, "layernorm_embedding": True, "position_type": "learned", "position_offset": 2},
    }
    corners = ("window", "norm_before")
    neutral_cases = corners

    def reach(self, config):
        return segment_reach(config)

    def reference(self, model, batch):
        return [reference_row(model, *row, self_attention=recurrence) for row in tokens_of(batch)]

    def plain_backbone(self, model):
        return plain_model(model), ONE_SENTENCE

    def test_assisted_is_greedy(self, model, batch):
        """A state does not go back to fewer tokens: candidates that are not all right are refused."""
        inputs = rows_of(self.generation_inputs(batch), [0])
        greedy, refused = model.generate(**inputs, **GREEDY), []
        for extra in ({"prompt_lookup_num_tokens": 3}, {"assistant_model": model}):
            try:
                assert torch.equal(model.generate(**inputs, **GREEDY, **extra), greedy)
            except ValueError as error:
                refused.append(str(error))
        for message in refused:
            assert re.search("cannot go back to fewer tokens|requires a cache that can be cropped", message)


@pytest.mark.parametrize("architecture", ["caching", "doct", "han", "memory", "multiencoder", "routing"])
def test_other_architectures(architecture):
    """With and without a cache, greedy and with beams, the same translations."""
    model = build(architecture, **RECURRENT, **({} if architecture == "memory" else {"past_context": 1}))
    documents, tokenizer = [random_text([3, 2, 4], seed=1), random_text([2], seed=2)], word_tokenizer()
    for beams in (1, 3):
        settings = {"num_beams": beams, "max_new_tokens": 6, "no_repeat_ngram_size": 2}
        found = model.translate_documents(documents, tokenizer, **settings)
        assert found == model.translate_documents(documents, tokenizer, **settings, use_cache=False)
        assert any(sentence for document in found for sentence in document)
    names = {name for name, _ in model.named_parameters() if ".decoder.layers.0.self_attn." in name}
    assert {name.rpartition("self_attn.")[2] for name in names} == {
        "input_proj.weight",
        "forget_gate.weight",
        "forget_gate.bias",
    }


@pytest.mark.parametrize("architecture", ["gtransformer", "lst", "window"])
def test_mechanism_in_the_decoder(architecture):
    with pytest.raises(ValueError, match=f"leaves no self-attention.*'docmt-{architecture}' is a part: use 'self_att"):
        registry.get(architecture).config_class(**RECURRENT)


def test_wrapped_projection_is_called():
    model, source = build(**RECURRENT), torch.tensor([[7, 8, 3]])
    expected = model.generate(source, **GREEDY)
    for layer in model.get_decoder().layers:
        layer.self_attn.input_proj = torch.nn.Sequential(layer.self_attn.input_proj)
    assert torch.equal(model.generate(source, **GREEDY), expected)


def test_recurrence_of_long_sequences():
    """All tokens at once give what one by one gives, with gates near 0 and 1, in float32 beside float64."""
    torch.manual_seed(0)
    gate, added = torch.sigmoid(6 * torch.randn(2, 300, 8)), torch.randn(2, 300, 8)
    state, states = torch.zeros(2, 8, dtype=torch.float64), []
    for step in range(300):
        state = gate[:, step].double() * state + added[:, step].double()
        states.append(state)
    expected = torch.stack(states, dim=1)
    torch.testing.assert_close(linear_recurrence(gate, added, 300).double(), expected, atol=1e-5, rtol=1e-5)


def test_cache_does_not_grow(monkeypatch):
    monkeypatch.setenv("DOCMT_KERNELS", "0")  # which do not write to it
    model = build(**WINDOW)
    ids, cache, sizes = torch.tensor([[7, 8, 3]]), DecodingCache(), []
    for length in (1, 5, 30):
        model.generate(ids, cache=cache, max_new_tokens=length, min_new_tokens=length)
        layers = cache.self_attention_cache.layers
        assert [layer.get_seq_length() for layer in layers] == [length] * 2  # the last token was not read
        sizes.append([layer.keys.shape for layer in layers])
        cache.self_attention_cache.reset(), cache.cross_attention_cache.reset()
        cache.is_updated.clear()
    assert sizes == [[(1, 16)] * 2] * 3


def test_cache_with_a_prefix():
    model, layer = build(**WINDOW), RecurrentLayer()
    layer.update(torch.ones(1, 16), 1)
    with pytest.raises(ValueError, match="cannot go back to fewer tokens"):
        layer.crop(-1)
    outputs = build(past_context=2)(torch.tensor([[7, 3]]), decoder_input_ids=torch.tensor([[2, 7]]), use_cache=True)
    with pytest.raises(ValueError, match=r"no self-attention that could read the keys.*\(prefix tuning\): use LoRA"):
        model(torch.tensor([[7, 3]]), decoder_input_ids=torch.tensor([[9]]), cache=outputs[CACHE_NAME])


@pytest.mark.slow
def test_export_of_any_length():
    """In an export the number of target tokens is free; what was exported gives the model's logits."""
    model = build(**WINDOW, max_position_embeddings=32)
    example = {"input_ids": torch.tensor([[7, 8, 3]]), "decoder_input_ids": torch.tensor([[2, 7, 8]])}
    shapes = {name: {1: torch.export.Dim.AUTO} for name in example}
    exported = torch.export.export(
        model, (), example | {"use_cache": False}, dynamic_shapes=shapes | {"use_cache": None}
    )
    for length in (2, 19):
        batch = {name: torch.randint(6, 30, (1, length)) for name in example}
        found = exported.module()(**batch, use_cache=False).logits
        torch.testing.assert_close(found, logits(model, batch), atol=1e-5, rtol=1e-5)
