"""Marian models whose source and target have vocabularies of their own (some of Opus-MT)."""

import json

import pytest
import torch
from support.language_models import TEXT, pieces
from support.pretrained_models import SIZES, randomised
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

from hf_docmt.analysis.model_runs import token_texts
from hf_docmt.data.tokenizers import adapt_tokenizer
from hf_docmt.hub.export import convert_sentence_model
from hf_docmt.loading import model_folders

torch.set_num_threads(1)


@pytest.fixture(params=[(40, 34, True), (34, 40, True), (36, 40, False)], ids=["larger source", "target", "untied"])
def source(request, tmp_path):
    """The folder of a model with vocabularies of two sizes, the model and its tokenizer; pieces have other ids."""
    (tmp_path / "files").mkdir()
    words = pieces(tmp_path / "files")
    rows, target_rows, tied = request.param
    vocabularies = {"vocab.json": words[: rows - 3], "target_vocab.json": words[::-1][: target_rows - 3]}
    for name, some in vocabularies.items():
        vocabulary = ["</s>", "<unk>", "<pad>", *some]
        (tmp_path / "files" / name).write_text(json.dumps({token: index for index, token in enumerate(vocabulary)}))
    spm, vocab, target_vocab = (str(tmp_path / "files" / name) for name in ("source.spm", *vocabularies))
    tokenizer = MarianTokenizer(spm, spm, vocab, target_vocab_file=target_vocab, separate_vocabs=True)
    tables = {"vocab_size": rows, "decoder_vocab_size": target_rows, "share_encoder_decoder_embeddings": False}
    ids = {"pad_token_id": 2, "eos_token_id": 0, "decoder_start_token_id": 2, "forced_eos_token_id": None}
    model = randomised(MarianMTModel(MarianConfig(**SIZES, **tables, **ids, tie_word_embeddings=tied)))
    model.save_pretrained(tmp_path / "sentence")
    tokenizer.save_pretrained(tmp_path / "sentence")
    return tmp_path / "sentence", model, tokenizer


@pytest.mark.parametrize("architecture", ["concat", "caching"])
def test_same_logits_and_translations(source, tmp_path, architecture):
    folder, original, tokenizer = source
    convert_sentence_model(folder, tmp_path / "document", architecture=architecture)
    model, adapted = model_folders.load_model(tmp_path / "document")
    read, again = (one(TEXT, padding=True, return_tensors="pt") for one in (tokenizer, adapted))
    assert torch.equal(read["input_ids"], again["input_ids"])
    target = tokenizer(text_target=TEXT, padding=True, return_tensors="pt")["input_ids"]
    assert torch.equal(target, adapted(text_target=TEXT, padding=True, return_tensors="pt")["input_ids"])
    with torch.no_grad():
        expected = original(**read, decoder_input_ids=target).logits
        found = model(**read, decoder_input_ids=target).logits
    torch.testing.assert_close(found[..., : expected.shape[-1]], expected, atol=1e-4, rtol=0)
    beams = 1 if architecture == "concat" else 2  # <sep> takes some of the probability of 40 words
    search = {"num_beams": beams, "max_new_tokens": 10, "no_repeat_ngram_size": 1}
    new = {"bad_words_ids": [[model.config.sep_token_id], [model.config.bod_token_id]]}
    translations = model.translate_documents([TEXT], adapted, strategy="sentence", **search, **new)[0]
    expected = [original.generate(**tokenizer([text], return_tensors="pt"), **search) for text in TEXT]
    assert translations == [tokenizer.batch_decode(ids, skip_special_tokens=True)[0] for ids in expected]


def test_ids_of_new_tokens(source):
    """They stand behind both vocabularies, and mean the same on both sides."""
    _, original, tokenizer = source
    adapted, rows = adapt_tokenizer(tokenizer)
    sizes = (original.config.vocab_size, original.config.decoder_vocab_size)
    assert (adapted.sep_token_id, rows) == (max(sizes), max(sizes) + 2)
    ids = list(range(3, sizes[1]))
    assert adapted.convert_ids_to_tokens(ids) == tokenizer.convert_ids_to_tokens(ids)
    assert adapt_tokenizer(adapted)[1] == rows


def test_texts_of_tokens_by_side(source):
    """What analyses write beside a token: its text on the side that it is of."""
    tokenizer = adapt_tokenizer(source[2])[0]
    for known, side in ((tokenizer.encoder, "text"), (tokenizer.target_encoder, "text_target")):
        texts = token_texts(tokenizer, tokenizer(**{side: TEXT[0]})["input_ids"], is_target=side == "text_target")
        pieces = [piece if piece in known else "<unk>" for piece in tokenizer.tokenize(TEXT[0])]
        assert texts == [piece.strip("▁") or "␣" for piece in pieces] + ["</s>"]


def test_only_words_are_written(source):
    """Rows that fill up the smaller table have no probability."""
    _, original, tokenizer = source
    model, _ = convert_sentence_model(original, tokenizer=tokenizer)
    known, size = original.config.decoder_vocab_size, model.config.vocab_size
    assert (model.final_logits_bias[0, known : size - 2] < -50).all()
    assert (model.final_logits_bias[0, size - 2 :] > -50).all()
