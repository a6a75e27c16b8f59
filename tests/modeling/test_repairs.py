"""Translations that have to be repaired, with a scripted model, and arguments that are refused."""

import pytest
from support.scripted_model import CHUNK, DOCUMENT, TRANSLATION, WINDOW, Scripted, prefix, segment, sentences_of
from support.tiny_models import EOS, SEP, build, word_tokenizer

from hf_docmt.data.tokenizers import train_tokenizer


def test_window_with_other_separators_is_translated_alone():
    faults = {tuple(segment("w6 w7", "w8")): segment("w18 w19 w20"), tuple(segment("w6 w7", "w8", "w9 w10 w11")): [EOS]}
    model = Scripted(faults, **WINDOW)
    (found,), (report,) = model.translate_documents([DOCUMENT], word_tokenizer(), return_report=True)
    assert found == TRANSLATION
    assert [(repair["sentence"], repair["kind"]) for repair in report] == [(1, "separators"), (3, "separators")]
    assert report[0]["detail"] == "1 sentences for 2: translated again by strategy sentence"
    assert segment("w8") in model.sources and segment("w12") not in model.sources


@pytest.mark.parametrize("fault", [segment("w18 w19"), segment("w18", "w19", "w20"), segment("w18 w19", "w20", end=())])
def test_chunk_with_other_separators_is_translated_in_order(fault):
    """Also one that stops before its end."""
    source = segment("w6 w7", "w8")

    class Faulty(Scripted):
        def answer(self, ids, written, stops):
            whole = SEP not in stops and ids == source
            return fault if whole else super().answer(ids, written, stops)

    model = Faulty(**CHUNK)
    (found,), (report,) = model.translate_documents([DOCUMENT], word_tokenizer(), return_report=True)
    assert found == TRANSLATION
    kind = "separators" if fault[-1] == EOS else "length"
    assert [(repair["sentence"], repair["kind"]) for repair in report] == [(0, kind), (1, kind)]
    assert "translated again sentence by sentence" in report[0]["detail"]
    assert model.sources.count(source) == 3 and model.prompts[-1] == prefix("w18 w19")


@pytest.mark.parametrize("context_sides", ["both", "source"])
def test_separators_in_a_sentence_alone_are_taken_out_and_reported(context_sides):
    fields = {"context_sides": context_sides} | (WINDOW if context_sides == "source" else {})
    model = Scripted({tuple(segment("w6 w7")): segment("w18", "w19")}, **fields)
    (found,), (report,) = model.translate_documents([["w6 w7", "w8"]], word_tokenizer(), return_report=True)
    assert found == ["w18 w19", "w20"]
    assert [(repair["sentence"], repair["kind"]) for repair in report] == [(0, "separators")]


@pytest.mark.parametrize(
    ("strategy", "fields"),
    [
        ("sentence", {}),
        ("sliding", WINDOW),
        ("sequential", WINDOW),
        ("sequential", CHUNK),
        ("full", CHUNK),
    ],
)
def test_translation_without_end_is_reported(strategy, fields):
    model = Scripted(**fields)
    document = ["w6 w7 w8 w9"]
    (found,), (report,) = model.translate_documents(
        [document], word_tokenizer(), strategy, max_new_tokens=3, return_report=True
    )
    assert found == ["w18 w19 w20"]
    times = 2 if strategy == "full" else 1  # the chunk, then its sentence
    assert [(repair["sentence"], repair["kind"]) for repair in report] == [(0, "length")] * times
    assert "stopped after 3 tokens without an end" in report[-1]["detail"]


def test_end_forced_by_generation_settings_does_not_count():
    """Pretrained models force the end at the last position; what is cut off is reported all the same."""
    model = build()
    model.generation_config.forced_eos_token_id = EOS
    model.final_logits_bias[0, EOS] = -100
    for strategy in ("sentence", "sequential"):
        _, (report,) = model.translate_documents(
            [["w6 w7"]], word_tokenizer(), strategy, max_new_tokens=4, return_report=True
        )
        assert [repair["kind"] for repair in report] == ["length"]


@pytest.mark.parametrize("strategy", ["sentence", "sliding", "sequential", "full"])
def test_long_sentence_is_split_and_joined(strategy):
    long = "w6 w7 w8 w9 w10 w11 w12"
    model = Scripted(**WINDOW)
    (found,), (report,) = model.translate_documents(
        [["w13", long, "w14"]], word_tokenizer(), strategy, max_sentence_tokens=3, return_report=True
    )
    assert found == ["w25", "w18 w19 w20 w21 w22 w23 w24", "w26"]
    assert report == [{"sentence": 1, "kind": "split", "detail": "7 tokens, limit 3: translated in 3 parts"}]
    assert all(len(sentence) <= 3 for source in model.sources for sentence in sentences_of(source))


@pytest.mark.parametrize(("text", "limit", "parts"), [("a" * 40, 16, 4), ("𝒳" * 8, 3, 8)])
def test_word_that_is_too_long(text, limit, parts):
    """Without a blank it is cut in the middle, and a single character of more tokens is left as it is."""
    tokenizer = train_tokenizer(["b c"] * 3, vocab_size=300)  # every byte is a token
    model = Scripted()
    _, (report,) = model.translate_documents([[text]], tokenizer, max_sentence_tokens=limit, return_report=True)
    read = [tokenizer.decode(source[:-1]) for source in model.sources]
    assert len(read) == parts and "".join(read) == text
    assert [repair["kind"] for repair in report] == ["split"]


def test_room_for_the_translation():
    """Twice the longest source and 32 tokens, unless asked for otherwise; other arguments go to generate."""
    model = Scripted(**WINDOW)
    model.translate_documents([["w6 w7", "w8"]], word_tokenizer(), num_beams=5)
    (((_, _, length, options), _),) = model.calls
    assert length == 2 * 5 + 32 and options["num_beams"] == 5
    model.calls.clear()
    model.translate_documents([["w6 w7"]], word_tokenizer(), max_new_tokens=9)
    assert model.calls[0][0][2] == 9


def test_long_sources_go_first_and_together():
    model = Scripted()
    model.translate_documents(
        [["w6", "w7 w8 w9", "w10 w11"], ["w12 w13 w14 w15", "w16"]], word_tokenizer(), batch_size=2
    )
    assert [[len(source) for source, *_ in call] for call in model.calls] == [[5, 4], [3, 2], [2]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"strategy": "beam"},
            "strategy must be one of sentence, sliding, sequential, chunk_sequential, full, stream, got 'beam'",
        ),
        ({"documents": "w6 w7"}, "got a plain string"),
        ({"documents": ["w6", "w7"]}, "documents must be a list of documents, each a list of sentences"),
        ({"documents": [["w6"], ["w6", None]]}, "sentence 1 of document 1 must be a string, got NoneType"),
        ({"documents": {"a": ["w6"]}}, "documents must be a list of documents, .* got dict"),
        ({"documents": None}, "documents must be a list of documents, .* got NoneType"),
        ({"documents": [["w6"], {"en": "w6"}]}, "document 1 must be a list of sentences, got dict"),
        ({"documents": [["w6"], None]}, "document 1 must be a list of sentences, got NoneType"),
        ({"documents": [iter(["w6"])]}, "document 0 must be a list of sentences, got list_iterator"),
        ({"documents": [["w6", {"en": "w6"}]]}, "sentence 1 of document 0 must be a string, got dict"),
        ({"documents": [["w6"], ["w7", "a\ud800b"]]}, r"sentence 1 of document 1 holds half of .*'\\ud800'"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"batch_size": "4"}, "batch_size must be a whole number, got '4'"),
        ({"batch_size": 2.5}, "batch_size must be a whole number, got 2.5"),
        ({"batch_size": True}, "batch_size must be a whole number, got True"),
        ({"batch_tokens": 0}, "batch_tokens must be at least 1, got 0"),
        ({"batch_tokens": 9.5}, "batch_tokens must be a whole number, got 9.5"),
        ({"max_sentence_tokens": 0}, "max_sentence_tokens must be at least 1, got 0"),
        ({"max_sentence_tokens": None}, "max_sentence_tokens must be a whole number, got None"),
        ({"max_length": 9}, "give max_new_tokens instead"),
        ({"num_return_sequences": 2}, "leave num_return_sequences at 1"),
        ({"decoder_input_ids": 1}, "decoder_input_ids is made from the documents: omit it"),
        ({"encoder_outputs": 1, "input_ids": 1}, "encoder_outputs is made from the documents"),
    ],
)
def test_bad_arguments(arguments, message):
    model = Scripted(**WINDOW)
    with pytest.raises(ValueError, match=message):
        model.translate_documents(**{"documents": [DOCUMENT], "tokenizer": word_tokenizer()} | arguments)
    assert not model.calls


def test_full_needs_a_target_with_all_sentences():
    with pytest.raises(ValueError, match="context_sides='source': use 'sliding' or 'sentence'"):
        Scripted(**WINDOW, context_sides="source").translate_documents([DOCUMENT], word_tokenizer(), "full")


def test_blanks_around_a_sentence_that_is_split():
    model = Scripted()
    (found,), (report,) = model.translate_documents(
        [["  w6w7w8   "]], word_tokenizer(), max_sentence_tokens=1, return_report=True
    )
    assert all(source != [EOS] for source in model.sources) and len(found) == 1


def test_name_of_a_special_token_in_a_sentence_is_text():
    model = Scripted()
    model.translate_documents([["w6 <sep> w7 </s>"]], word_tokenizer())
    (source,) = model.sources
    assert source.count(SEP) == 0 and source.count(EOS) == 1
