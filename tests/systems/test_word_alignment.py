"""Word fits by cross-attention: for every architecture and family, against attention that transformers gives itself."""

import numpy as np
import pytest
import torch
from support.language_models import FAMILIES, sentence_model
from support.tiny_models import build, context_fields, word_tokenizer

from hf_docmt.data.word_fits import position_fit, words_of
from hf_docmt.loading import registry
from hf_docmt.systems import DocMTSystem, Seq2SeqSystem

PAIRS = [("w6 w7 w8 w9", "w9 w20 w6"), ("w10", "w11 w12")]


def table(fit, source: str, target: str) -> np.ndarray:
    values = np.zeros((len(words_of(target)), len(words_of(source))))
    for row, column, value in fit:
        values[row, column] = value
    return values


def expected(weights: np.ndarray, source: str, target: str) -> np.ndarray:
    """The formula of the docstring, word by word."""
    words = [text.split() for text in (target, source)]
    weights = weights.copy()
    for row, new in enumerate(words[0]):
        for column, old in enumerate(words[1]):
            weights[row, column] *= 2 if new == old else 1
    weights = weights**3
    fit = np.zeros_like(weights)
    for row in range(len(words[0])):
        for column in range(len(words[1])):
            share = weights[row, column] / weights[row].sum()
            fit[row, column] = share * weights[row, column] / weights[:, column].sum()
    return fit / fit.max(axis=0)


def test_fits_follow_attention():
    """A token is a word here: row t of the attention writes word t, and the end of the sentence is left out."""
    model, tokenizer = build("concat"), word_tokenizer()
    model.set_attn_implementation("eager")
    system = DocMTSystem(model, tokenizer)
    fits = [system.word_fits(*pair) for pair in PAIRS]
    for (source, target), fit in zip(PAIRS, fits):
        ids = tokenizer(source, return_tensors="pt").input_ids
        forced = torch.tensor([[model.config.decoder_start_token_id, *tokenizer(target).input_ids[:-1]]])
        with torch.inference_mode():
            layers = model(input_ids=ids, decoder_input_ids=forced, output_attentions=True).cross_attentions
        weights = torch.stack(layers)[:, 0].mean(dim=(0, 1)).double().numpy()[:-1, :-1]  # (T, S)
        right = expected(weights, source, target)
        np.testing.assert_allclose(table(fit, source, target), np.where(right >= 0.05, right, 0), atol=0.006)


@pytest.mark.parametrize("name", registry.ARCHITECTURES)
@pytest.mark.parametrize("past_context", [0, 1])
def test_every_architecture_gives_fits(name, past_context):
    fields = context_fields(1, **{name: {"use_bod": True}})[name] if past_context else {}
    model = build(name, **fields)
    before = model.config._attn_implementation
    system = DocMTSystem(model, word_tokenizer())
    fits = [system.word_fits(*pair) for pair in PAIRS]
    for (source, target), fit in zip(PAIRS, fits):
        values = table(fit, source, target)
        assert values.max(axis=0).tolist() == [1.0] * values.shape[1]  # each source word has a best one
    assert model.config._attn_implementation == before


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gives_fits(family, tmp_path):
    model, tokenizer, *codes = sentence_model(family, tmp_path)
    options = {"src_lang": codes[0], "tgt_lang": codes[1]} if codes[0] else {"source_prefix": ""}
    source, target = "der hund schläft gut heute", "sie bellt laut"
    fit = Seq2SeqSystem(model, tokenizer, **options).word_fits(source, target)
    assert table(fit, source, target).max(axis=0).tolist() == [1.0] * 5


def test_words():
    text = "It's H2O, 日本 und 42%."
    assert [text[start:end] for start, end in words_of(text)] == ["It's", "H2O", ",", "日", "本", "und", "42", "%", "."]


def test_positions():
    source, target = "a b c d", "e f g d"
    values = table(position_fit(source, target), source, target)
    assert values.argmax(axis=0).tolist() == [0, 1, 2, 3] and values[3, 3] == 1
    moved = table(position_fit("a b c Anna", "Anna e f g"), "a b c Anna", "Anna e f g")
    assert moved.argmax(axis=0)[3] == 0  # the same word
    assert position_fit("", "a") == position_fit("a", "") == []
