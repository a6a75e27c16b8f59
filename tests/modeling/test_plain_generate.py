"""`generate` without more than a tokenizer's output: a warning where context is missing, no stop after 20 tokens."""

import logging

import pytest
import torch
from support.tiny_models import EOS, build, word_tokenizer
from transformers.generation import utils as generation

from hf_docmt.loading import registry
from hf_docmt.modeling import generation_mixin

CONTEXT = {"caching": {}, "doct": {}, "multiencoder": {}, "routing": {}, "memory": {"memory_size": 2}}
SENTENCE = word_tokenizer()("w7 w8 w9", return_tensors="pt", return_token_type_ids=False)


@pytest.fixture
def warnings(caplog):
    """The warnings of this test alone, another one may have had them before."""
    logging.Logger.warning_once.cache_clear()
    caplog.set_level(logging.WARNING)
    return caplog


@pytest.mark.parametrize("architecture", CONTEXT)
def test_missing_context(architecture, warnings):
    """Once, with the calls; never in translate_documents, nor where it is said that there is none."""
    model = build(architecture, **CONTEXT[architecture])
    documents = [["w7 w8", "w9"], ["w10"]]
    for strategy in ("sentence", model.default_strategy()):
        model.translate_documents(documents, word_tokenizer(), strategy, max_new_tokens=3)
    model.generate(**SENTENCE, max_new_tokens=3, **{model.context_arguments[0]: None})
    assert "no context" not in warnings.text
    plain = model.generate(**SENTENCE, max_new_tokens=3)
    assert torch.equal(plain, model.generate(**SENTENCE, max_new_tokens=3))
    assert warnings.text.count("got no context") == 1
    assert "model.translate_documents([[" in warnings.text and f"{model.context_arguments[0]}=None" in warnings.text


def test_shown_call(warnings):
    """What the warning says can be called as it stands, and is the context."""
    model, tokenizer = build("doct"), word_tokenizer()
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    model.generate(**SENTENCE, max_new_tokens=3)
    first, call = warnings.text.split("By hand: ")[1].split(". For sentences")[0].split("; ")
    names = {"model": model, "tokenizer": tokenizer, "torch": torch}
    exec(first, names)  # noqa: S102  # the text of the warning
    assert eval(call, names).shape[0] == 1  # noqa: S307
    assert warnings.text.count("got no context") == 1


@pytest.mark.parametrize("architecture", ["concat", "gtransformer", "lst", "window"])
def test_no_warning(architecture, warnings):
    build(architecture).generate(**SENTENCE, max_new_tokens=3)
    model = build("caching", past_context=0)
    model.generate(**SENTENCE, max_new_tokens=3)
    assert not warnings.text


@pytest.mark.parametrize("architecture", registry.ARCHITECTURES)
def test_length(architecture, tmp_path):
    """It goes on to the limit of the configuration, also after saving and loading; max_new_tokens comes before it."""
    model = build(architecture, max_position_embeddings=24)
    model.final_logits_bias[0, EOS] -= 100
    names = dict.fromkeys(model.context_arguments)
    assert model.generate(**SENTENCE, **names).shape[1] == 24 == model.config.max_position_embeddings
    if architecture == "concat":
        model.save_pretrained(tmp_path)
        loaded = registry.get(architecture).model_class.from_pretrained(tmp_path)
        assert loaded.generation_config.max_length == 24
    assert model.generate(**SENTENCE, **names, max_new_tokens=25).shape[1] == 26
    assert model.generate(**SENTENCE, **names, max_length=9).shape[1] == 9
    model.generation_config.max_length = None  # as in folders of 0.1.0
    assert model.generate(**SENTENCE, **names).shape[1] == 24


def test_two_lengths(monkeypatch):
    """A warning where a call has two lengths, in every search; that of the model is none of them."""
    warnings, model = [], build("concat")
    for module in (generation, generation_mixin):
        monkeypatch.setattr(module.logger, "warning", warnings.append)
    for do_sample in (False, True):
        model.generate(**SENTENCE, max_new_tokens=3, do_sample=do_sample)
        assert not warnings
        assert model.generate(**SENTENCE, max_length=9, max_new_tokens=3, do_sample=do_sample).shape[1] <= 4
        assert warnings.pop() == "max_new_tokens=3 and max_length=9 were given; max_new_tokens takes precedence."


def test_length_of_chunks():
    config = registry.get("concat").config_class
    assert config(view="chunk", chunk_tokens=1000).longest_translation == 2000
    assert config(view="chunk", chunk_tokens=1000, position_type="learned").longest_translation == 1024
    assert config(max_position_embeddings=512).longest_translation == 512
