"""SD (Herold and Ney 2023, section 3.4) against one search for each sentence with exactly the window of the formula."""

import pytest
from support.errors import refused
from support.scripted_model import CHUNK, DOCUMENT, TRANSLATION, WINDOW, Scripted, segment
from support.slow_translation import Slow, settings
from support.tiny_models import build, random_text, word_tokenizer

BEAMS = {"greedy": {"num_beams": 1}, "beams": {"num_beams": 3, "length_penalty": 0.6, "early_stopping": True}}
DOCUMENTS = [random_text(lengths, seed) for seed, lengths in enumerate([[3, 1, 2, 4, 2, 1], [5, 2, 1], [2]])]
CHUNK_12 = {"view": "chunk", "chunk_tokens": 12}
MODELS = {
    "concat": ("concat", CHUNK_12 | {"segment_encoding": "sinusoidal", "persistent": True}),
    "concat shift, bod": ("concat", CHUNK_12 | {"segment_encoding": "shift", "segment_shift": 3, "use_bod": True}),
    "gtransformer": ("gtransformer", CHUNK_12),
    "lst": ("lst", CHUNK_12 | {"chunk_tokens": 8, "use_bod": True}),
    "window": ("window", CHUNK_12 | {"window": 3}),
    "window that sees all": ("window", CHUNK_12 | {"window": 3, "sees_all": True}),
    "window linear": ("window", CHUNK_12 | {"window": 2, "alignment": "linear", "length_ratio": 0.8, "use_bod": True}),
    "window of sentences": ("window", {"past_context": 3, "window": 3, "use_bod": True}),
    "concat of sentences": ("concat", {"past_context": 3, "segment_encoding": "learned"}),
}


@pytest.mark.parametrize(
    ("name", "beams", "k"),
    [
        *((name, beams, None) for name in MODELS for beams in BEAMS),
        *((name, "beams", 1) for name in ("concat shift, bod", "lst", "window of sentences")),
    ],
)
def test_sequential_is_the_formula(name, beams, k):
    architecture, fields = MODELS[name]
    model = build(architecture, **fields)
    options = settings(BEAMS[beams])
    found = model.translate_documents(DOCUMENTS, word_tokenizer(), "sequential", past_context=k, **options)
    slow = Slow(model, BEAMS[beams])
    assert found == [slow.in_order(document, "sequential", k) for document in DOCUMENTS]
    assert len({sentence for document in found for sentence in document}) > 2


@pytest.mark.parametrize("fields", [CHUNK, WINDOW | {"past_context": 3}])
def test_past_context(fields):
    """k as an argument, whatever fits into a chunk; k of the configuration; none at all."""
    model, sources = Scripted(**fields), []
    for k in (0, 1, 3):
        model.calls.clear()
        assert model.translate_documents([DOCUMENT], word_tokenizer(), "sequential", past_context=k) == [TRANSLATION]
        sources.append(model.sources)
    assert sources[0] == [segment(sentence) for sentence in ("w6 w7", "w8", "w9 w10 w11", "w12")]
    assert sources[1][2:] == [segment("w8", "w9 w10 w11"), segment("w9 w10 w11", "w12")]
    assert sources[2][3] == segment("w6 w7", "w8", "w9 w10 w11", "w12")
    model = Scripted(**fields, decoding_past_context=1)
    model.translate_documents([DOCUMENT], word_tokenizer(), "sequential")
    assert model.sources == sources[1]
    model.calls.clear()
    model.translate_documents([DOCUMENT], word_tokenizer(), "full")
    assert len(model.sources) == (2 if "view" in fields else 1)  # k is none of its business


def test_past_context_of_sliding():
    model = Scripted(**CHUNK)
    assert model.translate_documents([DOCUMENT], word_tokenizer(), "sliding", past_context=1) == [TRANSLATION]
    assert sorted(model.sources)[0] == segment("w6 w7") and segment("w9 w10 w11", "w12") in model.sources


@pytest.mark.parametrize(
    ("fields", "arguments", "message"),
    [
        (CHUNK, {"strategy": "full", "past_context": 2}, "'sliding' and 'sequential' read, got 2 with strategy 'full'"),
        (CHUNK, {"strategy": "sequential", "past_context": -1}, "must be a whole number >= 0, got -1"),
        (CHUNK, {"strategy": "sequential", "past_context": True}, "must be a whole number >= 0, got True"),
        (WINDOW, {"strategy": "sequential", "past_context": 3}, "at most 2, as in training, got 3"),
        (WINDOW, {"strategy": "chunk_sequential"}, "is for models of chunks .*: use 'sequential' or 'sliding'"),
        (WINDOW, {"alignment": "linear"}, "alignment='linear' is for window models"),
    ],
)
def test_settings_that_do_not_fit(fields, arguments, message):
    model = Scripted(**fields)
    refused(message, model.translate_documents, [DOCUMENT], word_tokenizer(), **arguments)
    assert not model.calls


def test_settings_of_other_models():
    for architecture, arguments, message in (
        ("memory", {"past_context": 2, "strategy": "sequential"}, "this model's memory holds all previous sentences"),
        ("memory", {"strategy": "chunk_sequential"}, "translates several sentences as one sequence"),
        ("caching", {"strategy": "chunk_sequential"}, "is for models of chunks"),
    ):
        refused(message, build(architecture).translate_documents, [["w6"]], word_tokenizer(), **arguments)
    for architecture in ("concat", "caching"):
        model = build(architecture, past_context=1, decoding_past_context=3)
        with pytest.raises(ValueError, match="past_context must be at most 1, as in training"):
            model.translate_documents([["w6"] * 5], word_tokenizer(), "sliding")
    refused("decoding_past_context must be a whole number >= 0, got -1", build, decoding_past_context=-1)


def test_past_context_of_separate_context():
    """A model of two encoders that looks back less far is the same as one that was made so."""
    model, other = build("multiencoder", past_context=2), build("multiencoder", past_context=1)
    other.load_state_dict(model.state_dict())
    found = model.translate_documents([DOCUMENTS[0]], word_tokenizer(), past_context=1, **settings(BEAMS["greedy"]))
    assert found == other.translate_documents([DOCUMENTS[0]], word_tokenizer(), **settings(BEAMS["greedy"]))
    assert found != model.translate_documents([DOCUMENTS[0]], word_tokenizer(), **settings(BEAMS["greedy"]))


def test_search_alignment_is_for_one_call():
    """It takes the place of the configuration's, which stays, after errors as well."""
    fields = {"window": 2, "length_ratio": 0.6} | CHUNK_12
    for alignment in ("one_to_one", "linear", "sentence"):
        model, other = build("window", **fields), build("window", alignment=alignment, **fields)
        own = model.config.alignment
        arguments = {"strategy": "sequential"} | settings(BEAMS["greedy"])
        found = model.translate_documents(DOCUMENTS, word_tokenizer(), alignment=alignment, **arguments)
        assert found == other.translate_documents(DOCUMENTS, word_tokenizer(), **arguments)
        plain = model.translate_documents(DOCUMENTS, word_tokenizer(), **arguments)
        assert (found == plain) == (alignment == own == model.config.alignment)
    with pytest.raises(ValueError, match="alignment must be one of one_to_one, linear, sentence, got 'diagonal'"):
        model.translate_documents(DOCUMENTS, word_tokenizer(), alignment="diagonal")
    assert model.config.alignment == own
