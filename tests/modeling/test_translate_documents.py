"""Document strategies with a scripted model: what they read and what they write."""

from contextlib import suppress
from types import SimpleNamespace

import pytest
import torch
from support.errors import refused
from support.scripted_model import CHUNK, DOCUMENT, TRANSLATION, WINDOW, Scripted, segment
from support.tiny_models import BOD, BOS, EOS, PAD, build, random_text, word_tokenizer
from transformers import GenerationConfig

from hf_docmt.modeling.configuration_docmt import DocMTConfig, SegmentConfig
from hf_docmt.modeling.decoding import Translator
from hf_docmt.modeling.segment_translator import SegmentTranslator

CASES = {
    "sentence": {},
    "window": WINDOW,
    "future": {"past_context": 1, "future_context": 1},
    "source": WINDOW | {"context_sides": "source"},
    "chunk": CHUNK,
    "bod": WINDOW | {"use_bod": True},
    "source_bod": WINDOW | {"use_bod": True, "context_sides": "source"},
    "chunk_bod": CHUNK | {"use_bod": True},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("strategy", [None, "sentence", "sliding", "sequential", "full"])
@pytest.mark.parametrize("batch_size", [1, 16])
def test_one_translation_per_sentence(case, strategy, batch_size):
    if strategy == "full" and CASES[case].get("context_sides") == "source":
        return
    model = Scripted(**CASES[case])
    documents = [DOCUMENT, [], ["", ""], DOCUMENT[::-1], ["w13"], DOCUMENT * 3]
    found, reports = model.translate_documents(
        documents, word_tokenizer(), strategy, batch_size=batch_size, return_report=True
    )
    assert found == [TRANSLATION, [], ["", ""], TRANSLATION[::-1], ["w25"], TRANSLATION * 3]
    assert reports == [[] for _ in documents]
    assert max(map(len, model.calls)) <= batch_size
    assert batch_size < 16 or max(map(len, model.calls)) > 1  # documents are translated together


@pytest.mark.parametrize(
    "character", ["\u200b", "\ufeff", "\u00ad", "\u200e", "\u2060", "\u200d", "\u00a0", "\u2028", "\x00"]
)
def test_a_line_without_a_visible_character_is_empty(character):
    """In and out, and as context."""
    lines, model, other = (
        [*DOCUMENT[:2], f" {character} ", character, *DOCUMENT[2:]],
        *(Scripted(**WINDOW) for _ in "ab"),
    )
    found = model.translate_documents([lines], word_tokenizer())
    assert found == [TRANSLATION[:2] + ["", ""] + TRANSLATION[2:]]
    other.translate_documents([[*DOCUMENT[:2], "", "", *DOCUMENT[2:]]], word_tokenizer())
    assert model.sources == other.sources


@pytest.mark.parametrize(
    ("case", "strategy"),
    [("sentence", "sentence"), ("window", "sliding"), ("future", "sliding"), ("source", "sliding"), ("chunk", "full")],
)
def test_default_strategy(case, strategy):
    models = Scripted(**CASES[case]), Scripted(**CASES[case])
    models[0].translate_documents([DOCUMENT], word_tokenizer())
    models[1].translate_documents([DOCUMENT], word_tokenizer(), strategy)
    assert models[0].calls == models[1].calls


def test_strategies_of_a_model_without_segments():
    """The base class alone knows none of them."""
    refused(
        r"strategy 'sliding' is not one of this model's .sentence", Translator.check_strategy, DocMTConfig(), "sliding"
    )
    refused("set translator_class = SegmentTranslator in its class", Translator.default_strategy, SegmentConfig())


def test_sliding_reads_windows():
    """Blank lines are no context, and the first windows are shorter."""
    model = Scripted(**WINDOW)
    model.translate_documents([DOCUMENT], word_tokenizer(), "sliding")
    assert sorted(model.sources, key=len) == [
        segment("w6 w7"),
        segment("w6 w7", "w8"),
        segment("w8", "w9 w10 w11", "w12"),
        segment("w6 w7", "w8", "w9 w10 w11"),
    ]


def test_future_sentences_that_are_missing():
    """Empty, as in training; also where a sentence is translated alone nothing is put in."""
    model = Scripted(**CASES["future"])
    for strategy in ("sliding", "sequential"):
        model.calls.clear()
        model.translate_documents([["w6 w7", "w8"]], word_tokenizer(), strategy, batch_size=1)
        assert sorted(model.sources) == [segment("w6 w7", "w8"), segment("w6 w7", "w8", "")]
    model.calls.clear()
    model.translate_documents([["w6 w7", "w8"]], word_tokenizer(), "sentence")
    assert model.sources == [segment("w6 w7"), segment("w8")]


def test_full_reads_parts_that_do_not_overlap():
    """Chunks of about equal length; windows side by side."""
    model = Scripted(view="chunk", chunk_tokens=10)
    document = ["w6 w7 w8"] * 6  # 24 tokens with separators: three parts of 8
    model.translate_documents([document], word_tokenizer(), "full")
    assert model.sources == [segment(*["w6 w7 w8"] * 2)] * 3
    model = Scripted(**WINDOW)
    model.translate_documents([document[:4]], word_tokenizer(), "full", batch_size=1)
    assert sorted(model.sources, key=len) == [segment("w6 w7 w8"), segment(*["w6 w7 w8"] * 3)]


def test_parts_of_sentences_longer_than_a_chunk():
    model = Scripted(view="chunk", chunk_tokens=2)
    document = ["w6 w7 w8 w9 w10", "w6", "w7 w8 w9"]
    found = model.translate_documents([document], word_tokenizer(), "full")
    assert found == [["w18 w19 w20 w21 w22", "w18", "w19 w20 w21"]]
    assert sorted(id for source in model.sources for id in source if id > BOD) == [6, 6, 7, 7, 8, 8, 9, 9, 10]


def test_start_of_a_document_is_marked_as_in_training():
    """`<bod>` opens a side that begins with the document's first sentence, source and target each for itself."""
    model = Scripted(**CASES["bod"])
    for strategy in ("sliding", "sequential"):
        model.calls.clear()
        model.translate_documents([["w6", "w7", "w8", "w9"]], word_tokenizer(), strategy, batch_size=1)
        marked = [(source[0] == BOD, prompt[1:2] == [BOD]) for source, prompt in zip(model.sources, model.prompts)]
        assert sorted(marked) == [(False, False), (True, True), (True, True), (True, True)]
    model = Scripted(**CASES["source_bod"])
    for strategy in ("sliding", "sequential"):
        model.calls.clear()
        model.translate_documents([["w6", "w7", "w8", "w9"]], word_tokenizer(), strategy, batch_size=1)
        marked = {tuple(source): prompt for source, prompt in zip(model.sources, model.prompts)}
        assert marked == {
            tuple(segment("w6", start=(BOD,))): [BOS, BOD],
            tuple(segment("w6", "w7", start=(BOD,))): [BOS],
            tuple(segment("w6", "w7", "w8", start=(BOD,))): [BOS],
            tuple(segment("w7", "w8", "w9")): [BOS],
        }


def test_settings_of_the_caller_are_unchanged():
    config = GenerationConfig(num_beams=2, eos_token_id=EOS, pad_token_id=PAD)
    before, arguments = config.to_dict(), {"generation_config": config, "max_new_tokens": 5}
    model = Scripted(**WINDOW)
    SegmentTranslator(model, 4, arguments).translate([], "sliding")
    assert arguments == {"generation_config": config, "max_new_tokens": 5} and config.to_dict() == before


@pytest.mark.parametrize(
    ("own", "strategy"),
    [
        *(({"num_beams": 4}, strategy) for strategy in ("sentence", "sliding", "sequential", "full")),
        *((own, "sliding") for own in ({"repetition_penalty": 3.0}, {"no_repeat_ngram_size": 1})),
    ],
)
def test_missing_settings_come_from_the_model(own, strategy):
    """As in `generate`."""
    model, documents = build(past_context=2), [random_text([5, 3, 8, 4], seed=1), random_text([2, 6, 3], seed=2)]
    plain = model.translate_documents(documents, word_tokenizer(), strategy, max_new_tokens=12)
    model.generation_config.update(**own)
    expected = model.translate_documents(documents, word_tokenizer(), strategy, max_new_tokens=12)
    config = GenerationConfig(max_new_tokens=12)
    assert model.translate_documents(documents, word_tokenizer(), strategy, generation_config=config) == expected
    greedy = GenerationConfig(max_new_tokens=12, num_beams=1, repetition_penalty=1.0, no_repeat_ngram_size=0)
    assert model.translate_documents(documents, word_tokenizer(), strategy, generation_config=greedy) == plain


@pytest.mark.parametrize("strategy", ["sentence", "sliding", "sequential", "full"])
@pytest.mark.parametrize(("way", "beams"), [("of the model", 1), ("argument", 2), ("configuration", 2)])
def test_a_translation_ends_at_each_end_token(strategy, beams, way):
    """As in plain `generate`, whose first search tells which tokens are written."""
    model, tokenizer = build("concat", past_context=1), word_tokenizer()
    model.final_logits_bias[0, EOS] = -100  # it ends where another token does
    plain = model.translate_documents([["w7 w9"]], tokenizer, "sentence", num_beams=1, max_new_tokens=8)[0][0].split()
    assert len(plain) == 8
    end = tokenizer.convert_tokens_to_ids(plain[0])
    settings = {"num_beams": beams, "max_new_tokens": 8}
    if way == "of the model":
        model.generation_config.eos_token_id = [EOS, end]
    elif way == "argument":
        settings["eos_token_id"] = [EOS, end]
    else:
        settings = {"generation_config": GenerationConfig(eos_token_id=[EOS, end], **settings)}
    found, (report,) = model.translate_documents([["w7 w9"] * 2], tokenizer, strategy, return_report=True, **settings)
    assert plain[0] not in " ".join(found[0]).split()
    if strategy == "sentence" and beams == 1:
        assert found == [["", ""]] and not report


def test_where_inputs_of_an_offloaded_model_are_made():
    """Also on a GPU that is known by its number, the first one too."""

    def made_at(place):
        model = SimpleNamespace(device=torch.device("meta"), _hf_hook=SimpleNamespace(execution_device=place))
        return str(Translator.device.fget(SimpleNamespace(model=model)))

    assert [made_at(place) for place in (None, "cpu", "cuda:0")] == ["cpu", "cpu", "cuda:0"]
    with suppress(RuntimeError):  # of a torch without devices that have numbers
        assert made_at(0) != "cpu"
