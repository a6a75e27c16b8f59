"""Decoding on the backbone: caches, and source states that are kept once for all beams of a source."""

import copy

import pytest
import torch
from support.battery import logits, moved, on_device
from support.errors import refused
from support.tiny_models import EOS, PAD, SEP, build, random_text, word_tokenizer
from torch._dynamo.utils import counters
from transformers import CompileConfig, DynamicCache, EncoderDecoderCache
from transformers.cache_utils import DynamicLayer

from hf_docmt.engine.cache import BeamLayer, DecodingCache
from hf_docmt.modeling import layers
from hf_docmt.modeling.layers import CACHE_NAME, batched_attention

SOURCE = torch.tensor([[7, 8, SEP, 10, EOS], [11, 12, EOS, PAD, PAD]])
INPUTS = {"input_ids": SOURCE, "attention_mask": (SOURCE != PAD).long()}
SETTINGS = {"do_sample": False, "no_repeat_ngram_size": 2, "max_new_tokens": 7}


@pytest.fixture(scope="module")
def model():
    return build(past_context=2, segment_encoding="learned", persistent=True)


# The cache of one layer


def keys_and_values(rows: int, length: int):
    return torch.randn(2, rows, 2, length, 3).unbind()


@pytest.mark.parametrize("first", [0, 1, 40])
def test_layer_is_a_dynamic_layer(first):
    """The same keys and values as transformers' own layer after any sequence of changes."""
    found, expected = BeamLayer(), DynamicLayer()
    steps = [
        ("update", keys_and_values(2, first or 1)),
        ("batch_repeat_interleave", (3,)),
        *[("update", keys_and_values(6, 1))] * 3,
        ("reorder_cache", (torch.tensor([1, 1, 0, 5, 3, 3]),)),
        ("update", keys_and_values(6, 2)),
        ("reorder_cache", (torch.tensor([2, 0, 1, 4, 4, 4]),)),
        ("crop", (-2,)),
        ("update", keys_and_values(6, 33)),
        ("reorder_cache", (torch.tensor([2, 0, 1, 4, 4, 4]),)),
        ("batch_select_indices", (torch.tensor([4, 1]),)),
        ("crop", (0,)),
        ("update", keys_and_values(2, 1)),
        ("crop", (-30,)),
        ("update", keys_and_values(2, 5)),
    ]
    for step, arguments in steps:
        results = [getattr(layer, step)(*arguments) for layer in (found, expected)]
        if step == "update":
            assert all(torch.equal(one, other) for one, other in zip(*results))
        assert torch.equal(found.keys, expected.keys) and torch.equal(found.values, expected.values), step
        assert found.get_seq_length() == expected.get_seq_length()


def test_reordered_beams():
    """As transformers' own layer after many reorderings between tokens, of beams that share their beginnings."""
    generator = torch.Generator().manual_seed(3)
    layers = [BeamLayer(), DynamicLayer()]
    for token in range(60):
        states = keys_and_values(8, 1 + token % 3)
        beams = torch.randint(4, (8,), generator=generator) + torch.tensor([0] * 4 + [4] * 4)
        for layer in layers:
            layer.update(*states)
            for _ in range(token % 4):
                layer.reorder_cache(beams)
            if token % 17 == 16:
                layer.crop(-5)
        found, expected = layers
        assert torch.equal(found.keys, expected.keys) and torch.equal(found.values, expected.values), token


def test_kept_rows():
    cache = DecodingCache()
    states = [keys_and_values(6, 5) for _ in range(2)]
    source = keys_and_values(2, 4)
    for number, layer in enumerate(states):
        cache.self_attention_cache.update(*layer, number)
        cache.cross_attention_cache.update(*source, number)
    cache.keep(sources=2, length=2)
    assert cache.get_seq_length() == 2
    for number, layer in enumerate(states):
        kept = cache.self_attention_cache.layers[number]
        assert torch.equal(kept.keys, layer[0][[0, 3], :, :2]) and torch.equal(kept.values, layer[1][[0, 3], :, :2])
        assert torch.equal(cache.cross_attention_cache.layers[number].keys, source[0])


# Fewer source rows than target rows


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_rows_of_one_source_share_it(model, implementation):
    model.set_attn_implementation(implementation)
    target = torch.randint(SEP, 30, (6, 5))
    mask = torch.ones_like(target)
    mask[4, 3:] = 0
    batch = {"decoder_input_ids": target, "decoder_attention_mask": mask}
    encoder_outputs = model.get_encoder()(**INPUTS)
    shared = model(encoder_outputs=encoder_outputs, attention_mask=INPUTS["attention_mask"], **batch)
    repeated = {name: value.repeat_interleave(3, 0) for name, value in INPUTS.items()}
    alone = model(**repeated, **batch)
    torch.testing.assert_close(shared.logits, alone.logits, atol=1e-5, rtol=1e-5)
    gradients = [
        torch.autograd.grad(outputs.logits.sin().sum(), list(model.parameters()), allow_unused=True)
        for outputs in (shared, alone)
    ]
    for one, other in zip(*gradients):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
    model.set_attn_implementation("sdpa")


def test_step_by_step_with_a_cache(model):
    """Any cut of the target into pieces gives the logits of the whole, also where rows are padded on the left."""
    target = torch.randint(SEP, 30, (6, 8))
    mask = torch.ones_like(target)
    mask[1, :2] = mask[5, 1:4] = 0
    encoder_outputs = model.get_encoder()(**INPUTS)
    source = {"encoder_outputs": encoder_outputs, "attention_mask": INPUTS["attention_mask"]}
    sentences = (target == SEP).cumsum(1) - (target == SEP).long()
    whole = logits(model, {**source, "decoder_input_ids": target, "decoder_attention_mask": mask})
    cache, parts = DecodingCache(), []
    for start, stop in ((0, 3), (3, 4), (4, 7), (7, 8)):
        step = {
            "decoder_input_ids": target[:, start:stop],
            "decoder_attention_mask": mask[:, :stop],
            "decoder_sentence_index": sentences[:, start:stop],
            "cache": cache,
            "use_cache": True,
        }
        parts.append(logits(model, source | step))
    kept = mask.bool()
    torch.testing.assert_close(torch.cat(parts, 1)[kept], whole[kept], atol=1e-5, rtol=1e-5)


# generate


@pytest.mark.parametrize(
    "extra",
    [
        {"past_key_values": lambda: EncoderDecoderCache(DynamicCache(), DynamicCache())},
        {"cache": lambda: EncoderDecoderCache(DynamicCache(), DynamicCache())},
        {"cache_implementation": lambda: "dynamic"},
        {"output_hidden_states": lambda: True},
        {"output_attentions": lambda: True},
    ],
    ids=lambda extra: next(iter(extra)),
)
@pytest.mark.parametrize("beams", [1, 3])
def test_other_ways_to_generate(model, extra, beams):
    settings = SETTINGS | {"num_beams": beams, "return_dict_in_generate": True}
    expected = model.generate(**INPUTS, **settings).sequences
    if "output_attentions" in extra:
        model.set_attn_implementation("eager")
    found = model.generate(**INPUTS, **settings, **{name: make() for name, make in extra.items()})
    model.set_attn_implementation("sdpa")
    assert torch.equal(found.sequences, expected)
    if "output_attentions" in extra:
        assert found.decoder_attentions[-1][0].shape[0] == 2 * beams


@torch.no_grad()
@pytest.mark.parametrize("name", ["cache", "past_key_values"])
def test_either_name_of_the_cache(model, name):
    """In `forward` of model, base model and decoder; both at once are refused."""
    batch = {
        **INPUTS,
        "decoder_input_ids": SOURCE[:, :2],
        "decoder_sentence_index": torch.zeros(2, 2, dtype=torch.long),
    }
    states = {"encoder_hidden_states": torch.zeros(2, 3, 16), "input_ids": SOURCE[:, :2]}
    states |= {
        "sentence_index": batch["decoder_sentence_index"],
        "sentence_numbers": torch.ones(2, 2, dtype=torch.long),
    }
    for part, arguments in ((model, batch), (model.model, batch), (model.get_decoder(), states)):
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        assert part(**arguments, **{name: cache})[CACHE_NAME] is cache and cache.get_seq_length() == 2
        with pytest.raises(ValueError, match="the same argument, got both"):
            part(**arguments, cache=cache, past_key_values=copy.deepcopy(cache))


def test_a_training_step_with_checkpoints_fills_no_cache(model):
    noisy = copy.deepcopy(model).train()
    noisy.activation_checkpointing_enable()
    batch = {**INPUTS, "decoder_input_ids": SOURCE[:, :2]}
    with pytest.raises(ValueError, match="computes a layer twice and cannot fill a cache"):
        noisy(**batch, cache=DecodingCache())
    with torch.no_grad():
        cache = DecodingCache()
        noisy(**batch, cache=cache)
    assert cache.get_seq_length() == 2


def test_encoder_outputs_given(model):
    encoder_outputs = model.get_encoder()(**INPUTS)
    source = {"encoder_outputs": encoder_outputs, "attention_mask": INPUTS["attention_mask"]}
    for more in ({"num_beams": 1}, {"num_beams": 3}, {"num_beams": 3, "repetition_penalty": 1.2}):
        found, expected = (model.generate(**inputs, **SETTINGS, **more) for inputs in (source, INPUTS))
        assert torch.equal(found, expected) and encoder_outputs.last_hidden_state.shape[0] == 2


def test_other_cache_kinds_are_refused(model):
    settings = SETTINGS | {"cache_implementation": "quantized"}
    refused("does not support the quantized cache", model.generate, **INPUTS, **settings)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_static_cache(model, implementation, device):
    """Also behind a padded prompt, and for several rows of a source."""
    model, inputs = on_device(copy.deepcopy(model), device), moved(INPUTS, device)
    prompts = {"decoder_input_ids": torch.tensor([[PAD, 2, 9], [2, 9, 8]], device=device)}
    prompts["decoder_attention_mask"] = (prompts["decoder_input_ids"] != PAD).long()
    model.set_attn_implementation(implementation)
    for more in ({}, prompts, {"num_beams": 3}, {"do_sample": True, "num_return_sequences": 2}):
        results = []
        for kind in ("static", "dynamic"):
            torch.manual_seed(1)
            results.append(model.generate(**inputs, **SETTINGS | more, cache_implementation=kind))
        assert torch.equal(*results)


def test_static_cache_with_learned_positions():
    learned = build(position_type="learned", max_position_embeddings=12)
    settings = SETTINGS | {"cache_implementation": "static"}
    assert torch.equal(learned.generate(**INPUTS, **settings), learned.generate(**INPUTS, **SETTINGS))
    with pytest.raises(ValueError, match="learned positions for 12 tokens, got room for 20"):
        learned.generate(**INPUTS, **settings | {"max_new_tokens": 20})


def test_static_cache_in_the_generation_configuration(model):
    """What is translated again sentence by sentence has a cache of its own, which grows."""
    documents, search = [random_text([3, 2, 4], seed=1)], {"strategy": "full", "max_new_tokens": 6}
    expected = model.translate_documents(documents, word_tokenizer(), **search)
    settled = copy.deepcopy(model)
    settled.generation_config.cache_implementation = "static"
    found, reports = settled.translate_documents(documents, word_tokenizer(), **search, return_report=True)
    assert found == expected and reports[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "fields"),
    [
        ("concat", {"segment_encoding": "learned", "persistent": True}),
        ("gtransformer", {"global_layers": 1, "restarts_positions": True}),
        ("lst", {}),
        ("window", {"window": 2, "alignment": "sentence"}),
    ],
)
def test_a_step_is_compiled_whole(architecture, fields, device):
    """One graph without breaks for all steps with a static cache; `backend="eager"` leaves out code generation."""
    model = build(architecture, past_context=2, **fields)
    config = CompileConfig(fullgraph=True, backend="eager", mode=None)
    config._compile_all_devices = True
    model, inputs = on_device(model, device), moved(INPUTS, device)
    expected = model.generate(**inputs, **SETTINGS)
    torch._dynamo.reset()
    counters.clear()
    found = model.generate(**inputs, **SETTINGS, cache_implementation="static", compile_config=config)
    assert torch.equal(found, expected)
    assert counters["stats"]["unique_graphs"] == 1 and not counters["graph_break"]


@pytest.mark.parametrize("is_own", [True, False])
def test_reset_empties_all_sources(is_own):
    """Of a cache of transformers, too."""
    memory_model = build("memory", memory_size=3)
    cache = DecodingCache() if is_own else EncoderDecoderCache(DynamicCache(), DynamicCache())
    first, second = torch.randn(2, 2, 3, memory_model.config.d_model).unbind()
    batch = {**INPUTS, "decoder_input_ids": SOURCE[:, :2]}
    with torch.no_grad():
        memory_model(**batch, decoder_memory=first, cache=cache)
        cache.reset()
        again = memory_model(**batch, decoder_memory=second, cache=cache).logits
        fresh = memory_model(**batch, decoder_memory=second, cache=DecodingCache()).logits
    torch.testing.assert_close(again, fresh, atol=1e-6, rtol=0)


@pytest.mark.parametrize("shape", [(2, 4, 3), (6, 2, 1)], ids=str)
@pytest.mark.parametrize("masked", [False, True])
def test_batched_attention(shape, masked):
    """What sdpa gives, for keys in the layout of either cache."""
    (rows, heads, length), dim = shape, 8
    query = torch.randn(rows, length, heads, dim).transpose(1, 2)
    key, value = (torch.randn(5, rows, heads, dim).permute(1, 2, 0, 3) for _ in range(2))  # time first
    mask = None
    if masked:
        mask = torch.ones(rows, 1, length, 5, dtype=torch.bool)
        mask[-1, ..., 3:] = False
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, scale=0.3).transpose(1, 2)
    for layout in (lambda states: states, torch.Tensor.contiguous):
        found = batched_attention(query, layout(key), layout(value), mask, 0.3)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("beams", [1, 3])
def test_large_batches_are_decoded_alike(model, beams, monkeypatch):
    """Steps through the attention of large batches and through sdpa; the pass over a prompt stays with sdpa."""
    prompt = torch.tensor([[2, 9, 4], [2, 14, 15]])
    settings = SETTINGS | {"num_beams": beams, "decoder_input_ids": prompt}
    expected, lengths = model.generate(**INPUTS, **settings), []
    monkeypatch.setattr(layers, "MIN_BATCHED", 1)
    monkeypatch.setattr(layers, "batched_attention", lambda *a: lengths.append(a[0].shape[2]) or batched_attention(*a))
    assert torch.equal(model.generate(**INPUTS, **settings), expected)
    assert {1, beams} <= set(lengths)
