"""Each family with its real tokenizer, from a saved folder into a document model and back from disk."""

import pytest
import torch
from support.language_models import FAMILIES, TEXT, sentence_model

from hf_docmt import registry
from hf_docmt.hub.conversion import convert_sentence_model
from hf_docmt.pretrained.conversion import from_sentence_model

torch.set_num_threads(1)
ARCHITECTURES = dict(zip(FAMILIES, ("concat", "memory", "caching", "multiencoder", "routing", "doct", "lst")))


@pytest.fixture
def source(request, tmp_path):
    """The folder of a sentence-level model with its tokenizer, both, and its languages."""
    (tmp_path / "files").mkdir()
    found = sentence_model(request.param, tmp_path / "files")
    found.model.save_pretrained(tmp_path / "sentence")
    found.tokenizer.save_pretrained(tmp_path / "sentence")
    return request.param, tmp_path / "sentence", found


def languages(found):
    return {name: getattr(found, name) for name in ("source_lang", "target_lang") if getattr(found, name)}


@pytest.mark.parametrize("source", FAMILIES, indirect=True)
def test_plain_generate_after_saving(source, tmp_path):
    """The five lines of a user give what the source model gives, language codes included."""
    family, folder, found = source
    output = tmp_path / "document"
    convert_sentence_model(folder, output, architecture=ARCHITECTURES[family], **languages(found))
    model, tokenizer = registry.load_model(output)
    texts = [">>fra<< " + line for line in TEXT] if family == "marian_multilingual" else TEXT
    search = {"num_beams": 3, "max_new_tokens": 8}
    read = [one(texts, padding=True, return_tensors="pt") for one in (tokenizer, found.tokenizer)]
    for name in ("input_ids", "attention_mask"):
        assert torch.equal(read[0][name], read[1][name]), name
    new = [[model.config.sep_token_id], [model.config.bod_token_id]]
    ours = model.generate(**read[0], **search, bad_words_ids=new)
    assert torch.equal(ours, found.model.generate(**read[1], **search))


@pytest.mark.parametrize("source", ["nllb", "mbart"], indirect=True)
def test_unknown_language(source):
    _, folder, found = source
    with pytest.raises(ValueError, match="source_lang='eng' is none of the .* did you mean"):
        convert_sentence_model(folder, source_lang="eng", target_lang=found.target_lang)


def test_languages_without_a_tokenizer(tmp_path):
    """Not taken for names of languages, by which no code would stand in any sequence."""
    model = sentence_model("nllb", tmp_path).model
    with pytest.raises(ValueError, match="target_lang: got 'deu_Latn', .* give tokenizer= as well"):
        from_sentence_model(model, target_lang="deu_Latn")


@pytest.mark.parametrize("source", ["nllb"], indirect=True)
def test_languages_may_stay_open(source):
    _, folder, found = source
    model, tokenizer = convert_sentence_model(folder)
    assert model.config.target_lang is None
    assert model.generation_config.forced_bos_token_id == found.model.generation_config.forced_bos_token_id
    with pytest.raises(ValueError, match="source_lang is missing"):
        model.config.sequence_format()
