"""Texts of tokens, and languages of models."""

from support.errors import refused
from support.tiny_models import build

from hf_docmt.analysis.model_runs import selection_shares, set_languages, token_texts
from hf_docmt.data.tokenizers import train_tokenizer


def test_texts_of_tokens():
    tokenizer = train_tokenizer(["The dog sees the cat."] * 5, "bpe", 300)
    ids = tokenizer("The 他 dog")["input_ids"]
    texts = token_texts(tokenizer, ids, is_target=False)
    assert "".join(text for text in texts if text != "…") == "The␣他dog</s>" and len(texts) == len(ids)
    assert "他" in texts and "…" in texts and not any("\ufffd" in text for text in texts)
    cut = tokenizer("他", add_special_tokens=False)["input_ids"][:-1]
    assert [len(token_texts(tokenizer, some, is_target=True)) for some in (cut, [])] == [len(cut), 0]


def test_words_that_do_not_select():
    refused("words do not select among context sentences", selection_shares, build("doct"), {})


def test_languages():
    """Codes of a family, and languages of a model that has no codes."""
    model = build("concat", past_context=1)
    model.config.source_lang, model.config.target_lang = "en", None
    refused("source_lang='fr': this model has no codes", set_languages, model, "fr", "de")
    set_languages(model, None, "de")
    assert (model.config.source_lang, model.config.target_lang) == ("en", "de")
    family = {"source_format": "[source_lang] X </s>", "target_format": "<start> [target_lang] X </s>"}
    model = build("concat", **family, language_ids={"xx": 26, "yy": 27}, source_lang=None, target_lang=None)
    refused("source_lang is missing", set_languages, model)
    refused("target_lang='de' is not one of the 2 language codes", set_languages, model, "xx", "de")
    set_languages(model, "xx", "yy")
    assert (model.config.source_lang, model.config.target_lang) == ("xx", "yy")
