"""One model in several threads and in training mode: same translations, and nothing of a call left on the model."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from support.tiny_models import build, random_text, word_tokenizer
from torch import nn

from hf_docmt.modeling.generation_mixin import WithoutDropout, inference
from hf_docmt.modeling.layers import dropout

DOCUMENTS = [random_text(lengths, seed) for seed, lengths in enumerate([[3, 1, 2], [4, 2], [2]])]
CHUNK = {"view": "chunk", "chunk_tokens": 9}
PAST = {"past_context": 2}
CASES = {
    "concat": ("concat", PAST, ("sentence", "sliding", "sequential", "full")),
    "concat_chunk": ("concat", CHUNK, ("full", "sequential", "chunk_sequential")),
    "gtransformer": ("gtransformer", PAST, ("sliding", "sequential")),
    "han": ("han", PAST | {"context_sides": "both"}, ("sequential",)),
    "lst": ("lst", PAST, ("sliding", "sequential")),
    "window": ("window", CHUNK | {"window": 3}, ("full", "sequential", "chunk_sequential")),
    "multiencoder": ("multiencoder", PAST, ("sliding", "sentence")),
    "doct": ("doct", PAST, ("sliding",)),
    "routing": ("routing", {"past_context": 1, "future_context": 1}, ("sliding",)),
    "caching": ("caching", PAST | {"context_sides": "both"}, ("sequential",)),
    "memory": ("memory", {"memory_size": 3}, ("stream", "sentence")),
}
SETTINGS = {"batch_size": 2, "num_beams": 2, "max_new_tokens": 6, "no_repeat_ngram_size": 1}
STREAM = {name: value for name, value in SETTINGS.items() if name != "batch_size"}
DROPOUT = {"dropout": 0.5, "attention_dropout": 0.5, "activation_dropout": 0.5}


def modes(model) -> dict[str, bool]:
    return {name: module.training for name, module in model.named_modules()}


def in_training_mode(model, frozen: str = "encoder"):
    """Training mode but for one part, as where it is not trained."""
    model.train()
    getattr(model.model, frozen).eval()
    return model


def calls_of(name: str):
    """A model in training mode, calls of it, and what each of them is expected to return."""
    architecture, fields, strategies = CASES[name]
    model, tokenizer = build(architecture, **fields | DROPOUT), word_tokenizer()
    calls = [partial(model.translate_documents, DOCUMENTS, tokenizer, strategy, **SETTINGS) for strategy in strategies]
    if "stream" in strategies:
        calls.append(lambda: list(model.translate_stream(DOCUMENTS[0], tokenizer, **STREAM)))
    if architecture == "window":
        calls.append(partial(calls[-1], alignment="one_to_one"))
    return model, calls, [call() for call in calls]


NAMES = [name if name in ("lst", "window", "memory") else pytest.param(name, marks=pytest.mark.slow) for name in CASES]


@pytest.mark.parametrize("name", NAMES)
def test_threads_on_a_model_in_training_mode(name):
    """8 threads, all strategies, the tokenizer shared: as one call after the other in evaluation mode."""
    model, calls, expected = calls_of(name)
    if name != "concat_chunk":  # its documents fit into a chunk, of which the last two strategies write the same
        assert str(expected[-1]) not in map(str, expected[:-1])
    before, config = modes(in_training_mode(model)), model.config.to_dict()
    assert {True, False} == set(before.values())
    torch.manual_seed(5)
    state = torch.get_rng_state()
    with ThreadPoolExecutor(8) as pool:
        order = [number % len(calls) for number in range(8)]
        for number, found in zip(order, pool.map(lambda number: calls[number](), order)):
            assert found == expected[number]
    assert modes(model) == before and model.config.to_dict() == config
    assert torch.equal(torch.get_rng_state(), state)  # nothing was drawn


@pytest.mark.slow
@pytest.mark.parametrize("name", ["concat_chunk", "memory"])
def test_training_with_checkpointing_while_translating(name):
    """Dropout works for the thread that trains, while others translate; its layers have no cache, theirs have one."""
    model, calls, expected = calls_of(name)
    model.activation_checkpointing_enable()
    model.train()
    batch = {"input_ids": torch.randint(6, 30, (2, 7)), "labels": torch.randint(6, 30, (2, 5))}
    losses, done = [], threading.Event()

    def train():
        while not done.is_set():
            loss = model(**batch).loss
            loss.backward()
            losses.append(float(loss.detach()))

    trainer = threading.Thread(target=train)
    trainer.start()
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda call: call(), calls * 2))
    done.set()
    trainer.join()
    assert found == expected * 2 and all(modes(model).values())
    assert len(set(losses)) > 1  # dropout


def test_error_leaves_the_mode():
    model = in_training_mode(build(**PAST))
    before = modes(model)
    with pytest.raises(KeyError):
        model.translate_documents(DOCUMENTS, lambda *_, **__: {}["input_ids"])
    with pytest.raises(ZeroDivisionError), inference(model):
        _ = 1 / 0
    assert modes(model) == before


def test_dropout_is_off_for_all_kinds_of_modules():
    """Those of adapters, too."""
    values = torch.ones(2, 3, 40)
    modules = [nn.Dropout(0.5), nn.AlphaDropout(0.5), nn.Dropout1d(0.5), nn.FeatureAlphaDropout(0.5)]
    with WithoutDropout():
        assert all(torch.equal(module(values), values) for module in modules)
        assert torch.equal(nn.functional.dropout(input=values, p=0.9, training=True), values)
        assert torch.equal(dropout(values, 0.9, True), values)
        attend = nn.functional.scaled_dot_product_attention
        query = torch.randn(1, 2, 3, 4)
        assert torch.equal(attend(query, query, query, dropout_p=0.9), attend(query, query, query))
        assert torch.equal(attend(query, query, query, None, 0.9, False), attend(query, query, query))
    assert not any(torch.equal(module(values), values) for module in modules)


def test_long_segments_of_window_models():
    """Their attention in blocks has dropout of its own."""
    model, ids = build("window", view="chunk", window=3, **DROPOUT), torch.randint(6, 30, (2, 150))
    with torch.no_grad():
        expected = model.get_encoder()(ids)[0]
        in_training_mode(model, frozen="decoder")
        with inference(model):
            assert torch.equal(model.get_encoder()(ids)[0], expected)
        assert not torch.equal(model.get_encoder()(ids)[0], expected)


def test_generate_in_training_mode_is_that_of_transformers():
    model = build(**DROPOUT).train()
    inputs = {"input_ids": torch.tensor([[7, 8, 9, 3]]), "max_new_tokens": 8, "do_sample": False}
    assert len({str(model.generate(**inputs).tolist()) for _ in range(20)}) > 1 and all(modes(model).values())
