"""How families of pretrained models write a sequence, found by their real tokenizer classes."""

import pytest
from support.language_models import sentence_model
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from hf_docmt.data.sequence_formats import sequence_format_fields
from hf_docmt.data.tokenizers import adapt_tokenizer
from hf_docmt.modeling.configuration_docmt import DocMTConfig

FORMATS = {  # family: source and target format, number of language codes
    "marian": (None, None, 0),
    "marian_multilingual": ("[target_lang] X </s>", None, 2),
    "bart": ("<s> X </s>", "<start> <s> X </s>", 0),
    "mbart": ("X </s> [source_lang]", "[target_lang] X </s>", 25),
    "mbart50": ("[source_lang] X </s>", "<start> [target_lang] X </s>", 52),
    "m2m_100": ("[source_lang] X </s>", "<start> [target_lang] X </s>", 100),
    "nllb": ("[source_lang] X </s>", "<start> [target_lang] X </s>", 202),
}


@pytest.mark.parametrize("family", FORMATS)
def test_family(family, tmp_path):
    model, tokenizer, source_lang, target_lang = sentence_model(family, tmp_path)
    adapted, rows = adapt_tokenizer(tokenizer)
    fields = sequence_format_fields(model.config.model_type, adapted)
    codes = fields.get("language_ids") or {}
    assert (fields.get("source_format"), fields.get("target_format"), len(codes)) == FORMATS[family]
    ids = {name: getattr(model.config, name) for name in ("bos_token_id", "eos_token_id", "decoder_start_token_id")}
    config = DocMTConfig(vocab_size=max(rows, model.config.vocab_size), **fields, **ids)
    found = config.sequence_format(source_lang, target_lang)

    text = "der hund schläft"
    plain = tokenizer(text, add_special_tokens=False)["input_ids"]
    written = f">>{target_lang}<< {text}" if family == "marian_multilingual" else text
    assert found.source(plain) == tokenizer(written)["input_ids"]
    assert found.target_before == [
        token for token in [model.generation_config.forced_bos_token_id] if token is not None
    ]
    assert found.start == model.generation_config.decoder_start_token_id

    adapted.save_pretrained(tmp_path / "adapted")
    loaded = AutoTokenizer.from_pretrained(tmp_path / "adapted")
    assert sequence_format_fields(model.config.model_type, loaded) == fields
    new = [loaded.sep_token_id, loaded.convert_tokens_to_ids("<bod>")]
    assert new == [adapted.sep_token_id, adapted.convert_tokens_to_ids("<bod>")]
    assert not {*new} & {*codes.values()}, "a new token has the id of a language code"


def test_marian_names_its_languages(tmp_path):
    fields = sequence_format_fields("marian", sentence_model("marian", tmp_path).tokenizer)
    assert fields == {"source_lang": "en", "target_lang": "de"}


def test_legacy_nllb(tmp_path):
    tokenizer = sentence_model("nllb", tmp_path).tokenizer
    tokenizer.legacy_behaviour = True
    fields = sequence_format_fields("m2m_100", tokenizer)
    assert fields["source_format"] == "X </s> [source_lang]"
    assert fields["target_format"] == "<start> [target_lang] X </s>"


@pytest.mark.parametrize("template, found", [("$A </s>", None), ("<s> $A </s>", "<s> X </s>")])
def test_tokens_around_a_text(template, found):
    assert sequence_format_fields("bart", around(template)).get("source_format") == found


@pytest.mark.parametrize("template", ["$A", "<s> $A", "<s> $A <s> </s>"])
def test_texts_that_do_not_end_in_the_end_token(template):
    with pytest.raises(ValueError, match=r"puts \[.*\] behind a text, expected its eos_token \(</s>\)"):
        sequence_format_fields("bart", around(template))


def around(template):
    """A tokenizer of words with this template."""
    backend = Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "a": 2}, unk_token="a"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = [("<s>", 0), ("</s>", 1)]
    backend.post_processor = processors.TemplateProcessing(template, special_tokens=special)
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="</s>")
