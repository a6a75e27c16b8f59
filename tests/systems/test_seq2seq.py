"""Encoder-decoder systems: scores equal to one candidate at a time, translation N in N out, bad input."""

import pytest
from support.errors import refused
from support.pretrained_models import randomised
from support.systems import DOCUMENTS, ITEMS, TOKENS, assert_close, item, log_probabilities, one_at_a_time, pieces, text
from support.tiny_models import word_tokenizer
from transformers import T5Config, T5ForConditionalGeneration

from hf_docmt.systems import Seq2SeqSystem


def t5(tokenizer):
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2}
    return randomised(T5ForConditionalGeneration(T5Config(**sizes, **TOKENS, vocab_size=len(tokenizer))))


@pytest.mark.parametrize(("past", "sides"), [(0, "source"), (2, "source"), (2, "both")])
@pytest.mark.parametrize("kind", ["marian", "t5"])
def test_seq2seq_equals_one_candidate_at_a_time(marian, tokenizer, kind, past, sides):
    model = marian if kind == "marian" else t5(tokenizer)
    separator = " der " if kind == "t5" else None  # a text, or the tokenizer's own token
    ids = pieces(tokenizer, separator) if separator else [tokenizer.sep_token_id]
    system = Seq2SeqSystem(model, tokenizer, past_context=past, context_sides=sides, separator=separator)
    assert system.target_context == ("none" if past and sides == "source" else "reference")
    expected = [one_at_a_time(model, tokenizer, one, past, sides, ids) for one in ITEMS]
    assert_close(system.token_log_probabilities(ITEMS), expected)


def test_seq2seq_future_context_ends_in_a_separator(marian, tokenizer):
    """The reference is the future sentence's; the mark after the current sentence is the separator, if one follows."""
    after = item(1, context=1, source_after=("das Haus",), target_after=("die Katze",))
    system = Seq2SeqSystem(marian, tokenizer, past_context=1, future_context=1, context_sides="both")
    sep, eos = [tokenizer.sep_token_id], [tokenizer.eos_token_id]
    source = pieces(tokenizer, after.source[0]) + sep + pieces(tokenizer, after.source[1]) + sep
    source += pieces(tokenizer, "das Haus") + eos
    before = pieces(tokenizer, after.target_context[0]) + sep
    expected = []
    for candidate in after.candidates:
        current = pieces(tokenizer, candidate) + sep
        labels = before + current + pieces(tokenizer, "die Katze") + eos
        scored = range(len(before), len(before) + len(current))
        expected.append(log_probabilities(marian, source, labels, scored))
    last = item(2, context=1)
    expected_last = one_at_a_time(marian, tokenizer, last, 1, "both", sep)
    assert_close(system.token_log_probabilities([after, last]), [expected, expected_last])
    assert [row[0][-1] for row in system.token_texts([after, last])] == ["<sep>", "</s>"]


def test_batches_and_order_do_not_matter(marian, tokenizer):
    encoded = []
    hook = marian.get_encoder().register_forward_hook(lambda module, inputs, output: encoded.append(len(output[0])))
    scores = {}
    for budget in (1, 300, 100_000):
        encoded.clear()
        system = Seq2SeqSystem(marian, tokenizer, past_context=2, batch_tokens=budget)
        scores[budget] = system.token_log_probabilities(ITEMS)
        assert sum(encoded) == len(ITEMS)  # each source once, for all its candidates
    hook.remove()
    assert_close(scores[1], scores[300])
    assert_close(scores[1], scores[100_000])
    assert_close(system.token_log_probabilities(ITEMS[::-1])[::-1], scores[1])
    assert not marian.training


@pytest.mark.filterwarnings("ignore:.*did not end before")
@pytest.mark.parametrize("settings", [{}, {"past_context": 2}, {"past_context": 1, "context_sides": "both"}], ids=str)
def test_seq2seq_translation(marian, tokenizer, settings, monkeypatch):
    """N in, N out; blank sentences stay empty; batches do not matter; separators are not in the text.

    Nothing is said of the `max_length` that the model has.
    """
    found = {}
    monkeypatch.setattr(marian.generation_config, "max_length", 64)
    monkeypatch.setattr("transformers.generation.utils.logger.warning", pytest.fail)
    for size in (1, 3):
        system = Seq2SeqSystem(marian, tokenizer, batch_size=size, max_new_tokens=9, **settings)
        found[size] = system.translate(DOCUMENTS)
    assert found[1] == found[3]
    assert [len(document) for document in found[1]] == [4, 0, 1, 2]
    assert found[1][0][1] == "" and found[1][2] == [""] and found[1][0][0] and found[1][3][1]
    assert "<sep>" not in str(found)


def test_bad_seq2seq(marian, tokenizer):
    refused("past_context is -1", Seq2SeqSystem, marian, tokenizer, past_context=-1)
    with pytest.raises(ValueError, match="unknown context_sides 'target'"):
        Seq2SeqSystem(marian, tokenizer, past_context=1, context_sides="target")
    refused("context needs a separator", Seq2SeqSystem, marian, tokenizer, past_context=1, separator="")
    words = word_tokenizer()
    with pytest.raises(ValueError, match=r"separator is '<brk>', of which \w+ makes \['<unk>'\], with an unk"):
        Seq2SeqSystem(marian, words, past_context=1, separator="<brk>")
    with pytest.raises(ValueError, match=r"^f\.json, item 7: .* tokens with their context, but .* positions for 128"):
        long = item(7, context=1, source=(text(1, 200), text(2, 3)), location="f.json, item 7")
        Seq2SeqSystem(marian, tokenizer, past_context=1).token_log_probabilities([long])
    refused("each a list of sentences; got a plain string", Seq2SeqSystem(marian, tokenizer).translate, [["a"], "b"])
