"""Language codes of encoder-decoder systems: NLLB, mBART, Marian; tokens and the text they stand for."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from sentencepiece import SentencePieceProcessor
from support.errors import refused
from support.language_models import multilingual
from support.marian_files import spm_file
from support.pretrained_models import SIZES, randomised
from support.systems import WORDS, assert_close, item, log_probabilities, pieces
from transformers import M2M100Tokenizer, MarianConfig, MarianMTModel, MarianTokenizer

from hf_docmt.systems import Seq2SeqSystem
from hf_docmt.systems.model_system import piece_spans, piece_texts, word_spans


@pytest.mark.filterwarnings("ignore:.*did not end before")
@pytest.mark.parametrize("family", ["nllb", "mbart"])
@pytest.mark.parametrize("past", [0, 1])
def test_language_codes(family, past):
    """Codes are where the tokenizer puts them in labels and are not scored; decoding starts with the same tokens."""
    model, tokenizer, (src, tgt) = multilingual(family)
    system = Seq2SeqSystem(
        model, tokenizer, src_lang=src, tgt_lang=tgt, past_context=past, context_sides="both", max_new_tokens=6
    )
    one = replace(item(1), source=("a b", "c de f"), target_context=("b",), candidates=("ab c", "d"))
    code, eos, sep = tokenizer.convert_tokens_to_ids(tgt), tokenizer.eos_token_id, tokenizer.sep_token_id
    tokenizer.src_lang, tokenizer.tgt_lang = src, tgt
    expected = []
    for candidate in one.candidates:
        labels = tokenizer(text_target=candidate)["input_ids"]
        source = tokenizer(one.source[-1])["input_ids"]
        if past:
            before, position = pieces(tokenizer, "b") + [sep], labels.index(code) + 1 if family == "nllb" else 0
            labels = labels[:position] + before + labels[position:]
            position = source.index(tokenizer.convert_tokens_to_ids(src)) + 1 if family == "nllb" else 0
            source = source[:position] + pieces(tokenizer, "a b") + [sep] + source[position:]
        current = len(pieces(tokenizer, candidate)) + 1
        stop = len(labels) - labels[::-1].index(eos)
        expected.append(log_probabilities(model, source, labels, range(stop - current, stop)))
    assert_close(system.token_log_probabilities([one]), [expected])
    if not past:
        inputs = tokenizer(one.source[-1], return_tensors="pt")
        forced = {"decoder_start_token_id": code} if family == "mbart" else {"forced_bos_token_id": code}
        output = model.generate(**inputs, **forced, max_new_tokens=6 if family == "mbart" else 7, num_beams=1)
        (found,) = system.translate([[one.source[-1]]])
        assert found == [tokenizer.decode(output[0], skip_special_tokens=True).strip()]


def test_unknown_language_codes(tokenizer, marian):
    model, nllb, _ = multilingual("nllb")
    with pytest.raises(ValueError, match="tgt_lang: 'french' is not a language code of NllbTokenizer"):
        Seq2SeqSystem(model, nllb, src_lang="eng_Latn", tgt_lang="french")
    refused("src_lang is 'en', but .* has no language codes", Seq2SeqSystem, marian, tokenizer, src_lang="en")


@pytest.mark.parametrize("family", ["nllb", "mbart"])
def test_language_codes_are_asked_for(family):
    """What the tokenizer would take instead is English on both sides."""
    model, tokenizer, (src, tgt) = multilingual(family)
    with pytest.raises(ValueError, match="Tokenizer has language codes, but src_lang is not given; give src_lang and"):
        Seq2SeqSystem(model, tokenizer, tgt_lang=tgt)
    refused("Tokenizer has language codes, but tgt_lang is not given", Seq2SeqSystem, model, tokenizer, src_lang=src)


@pytest.fixture(scope="module")
def marian_tokenizer(tmp_path_factory):
    """Marian's own, with one sentencepiece model for each side."""
    folder, sides = tmp_path_factory.mktemp("marian"), (("source_spm", WORDS[:10]), ("target_spm", WORDS[10:]))
    models = {side: str(spm_file(folder, side, [" ".join(words)])) for side, words in sides}
    processors = [SentencePieceProcessor(model_file=model) for model in models.values()]
    pieces = [model.id_to_piece(index) for model in processors for index in range(model.get_piece_size())]
    names = [*dict.fromkeys(pieces), ">>deu<<", "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")
        return MarianTokenizer(**models, vocab=str(folder / "vocab.json"))


@pytest.mark.filterwarnings("ignore:.*did not end before")
def test_marian_tokenizer(marian_tokenizer):
    """Sources and targets are cut by different models; the language mark stands before the source."""
    tokenizer, size = marian_tokenizer, len(marian_tokenizer)
    ends = {"pad_token_id": size - 1, "eos_token_id": 0, "decoder_start_token_id": size - 1}
    model = randomised(MarianMTModel(MarianConfig(**SIZES, **ends, vocab_size=size, decoder_vocab_size=size)))
    system = Seq2SeqSystem(model, tokenizer, source_prefix=">>deu<<", max_new_tokens=7)
    one = replace(item(1, context=0), source=("der Hund schläft",), candidates=("rot und groß", "nie"))
    expected = []
    for candidate in one.candidates:
        labels = tokenizer(text_target=candidate)["input_ids"]
        source = tokenizer(f">>deu<< {one.source[0]}")["input_ids"]
        expected.append(log_probabilities(model, source, labels, range(len(labels))))
    assert_close(system.token_log_probabilities([one]), [expected])
    assert "".join(system.token_texts([one])[0][0]) == "rot und groß</s>"
    inputs = tokenizer(f">>deu<< {one.source[0]}", return_tensors="pt")
    output = model.generate(**inputs, max_new_tokens=7, num_beams=1)[0]
    assert system.translate([[one.source[0], ""]]) == [[tokenizer.decode(output, skip_special_tokens=True).strip(), ""]]
    refused(
        "tokens of target languages, such as '>>deu<<', but source_prefix is not given", Seq2SeqSystem, model, tokenizer
    )
    assert not Seq2SeqSystem(model, tokenizer, source_prefix="").collate.prefix
    files = {"spm_file": tokenizer.spm_files[0], "vocab_file": Path(tokenizer.spm_files[0]).with_name("vocab.json")}
    with pytest.raises(ValueError, match="M2M100Tokenizer has language codes, but tgt_lang is not given"):
        Seq2SeqSystem(model, M2M100Tokenizer(**files), src_lang="en")
    spans = piece_spans(tokenizer, "rot und groß", is_target=True)  # the word's index for each of its tokens
    assert sorted(set(spans)) == [(0, 3), (4, 7), (8, 12)] and len(spans) == len(expected[0]) - 1


def test_pieces(tokenizer):
    sentence = "Der schläft, der Hund!"
    ids = pieces(tokenizer, sentence)
    texts = piece_texts(tokenizer, ids)
    assert len(texts) == len(ids) and "".join(texts).replace("\ufffd", "") == sentence
    spans = piece_spans(tokenizer, sentence, is_target=False)
    assert len(spans) == len(ids) and spans[-1][1] == len(sentence)
    assert all(sentence[start:end].strip() for start, end in spans)
    assert word_spans("l'ami -- là!") == [(0, 1), (1, 2), (2, 5), (6, 8), (9, 11), (11, 12)]
    assert word_spans("") == []
