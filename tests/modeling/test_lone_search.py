"""A search for one source after the other finds what a call of `generate` for each of them finds."""

import pytest
import torch
from support.errors import refused
from support.int8_models import SIZES, plain_int8_model
from support.tiny_models import EOS, build, random_text, word_tokenizer

from hf_docmt.engine import generation
from hf_docmt.engine.cpu_kernels import kernels
from hf_docmt.engine.lone_search import LoneSearch
from hf_docmt.modeling.decoding import Translator
from hf_docmt.modeling.row_processors import NonFiniteScoresError

pytestmark = pytest.mark.skipif(kernels() is None, reason="the kernels were not built, or need AVX2")
DOCUMENT = random_text([3, 1, 9, 2, 130, 4, 1, 6], seed=3)  # one is too long, and so are the windows with it
MODELS = [
    {},
    {"position_type": "learned", "max_position_embeddings": 60, "position_offset": 2, "normalize_before": False},
    {"layernorm_embedding": True, "decoder_autoregression": "ssru", "scale_embedding": False, "use_bod": True},
]
SEARCHES = [{}, {"num_beams": 3}, {"num_beams": 2, "early_stopping": True, "length_penalty": 0.5, "max_new_tokens": 3}]


@pytest.fixture
def found(monkeypatch):
    """What this search found, each time it was called."""
    found, call = [], LoneSearch.__call__
    monkeypatch.setattr(LoneSearch, "__call__", lambda *given: found.append(call(*given)) or found[-1])
    return found


@pytest.mark.parametrize(
    ("precision", "fields"), [*(("float32", fields) for fields in MODELS), ("int8", MODELS[0])], ids=str
)
def test_sentences_one_after_the_other(monkeypatch, found, precision, fields):
    fields = SIZES | fields | {"past_context": 2}
    model = build(**fields) if precision == "float32" else plain_int8_model(monkeypatch, "concat", fields)
    for settings in SEARCHES:
        settings = settings | {"eos_token_id": [EOS, 8, 17], "return_scores": True, "max_sentence_tokens": 200}
        arguments = [DOCUMENT], word_tokenizer(), "sequential"
        found.clear()
        (kept,) = model.translate_documents(*arguments, **settings)
        assert any(found) and (None in found) == ("position_type" not in fields)
        with monkeypatch.context() as patch:
            patch.setattr(generation, "lone_search", lambda *_: None)
            (new,) = model.translate_documents(*arguments, **settings)
        assert kept == new and len(set(kept)) > 2
        tolerance = 1e-4 if precision == "float32" else 0.1
        assert [line.score for line in kept] == pytest.approx([line.score for line in new], abs=tolerance)


def test_what_torch_has_to_search(found):
    """Settings, models and callers that the kernels do not know, and scores that are NaN."""
    model, arguments = build(**SIZES, past_context=2), ([DOCUMENT[:3]], word_tokenizer(), "sequential")
    for settings in {"no_repeat_ngram_size": 2}, {"nbest": 2, "num_beams": 2}, {"forced_eos_token_id": 9}:
        model.translate_documents(*arguments, **settings)
    build(**SIZES, past_context=2, segment_encoding="learned").translate_documents(*arguments)
    model.train().translate_documents(*arguments)
    assert not found
    model.eval().translate_documents(*arguments)
    assert len(found) == 3 and all(found)
    with torch.no_grad():
        model.get_decoder().layers[1].fc2.bias[0] = torch.nan
    refused("sentence 0", model.translate_documents, *arguments, error=NonFiniteScoresError)
    assert found[3:] == [None]
    small = build(**SIZES | {"vocab_size": 12}, past_context=2)
    refused("out of range", small.translate_documents, *arguments, error=IndexError)


@pytest.mark.parametrize("word", [9, 21])  # the latter ties in all beams of all sources of a batch
def test_searches_go_on_after_one_in_which_beams_tie(found, word):
    model, document = build(**SIZES, past_context=2), random_text([3, 1, 9, 2, 4, 1, 6, 3, 2, 5], seed=3)
    with torch.no_grad():
        model.get_decoder().embed_tokens.weight[word] = model.get_decoder().embed_tokens.weight[word + 1]
    model.translate_documents([document], word_tokenizer(), "sequential", num_beams=2, max_new_tokens=2)
    assert any(found[found.index(None) :])


def test_weights_may_change_after_a_translation(found):
    model = build(**SIZES, past_context=2)
    translator = model.translator_class(model, 1, {})
    translator.translate([], "sequential")
    assert translator.searches is None and Translator.searches is None
