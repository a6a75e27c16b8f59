"""Pretrained sentence-level models give the same logits as concatenation models."""

import json

import pytest
import torch
from support.errors import refused
from support.pretrained_models import SENTENCE_MODELS, VOCABULARY, logits, sentence_model
from transformers import AutoModelForSeq2SeqLM, M2M100Config, PreTrainedTokenizerFast, T5Config

from hf_docmt.data.tokenizers import train_tokenizer
from hf_docmt.hub.export import convert_sentence_model
from hf_docmt.loading import model_folders
from hf_docmt.loading.pretrained import config_from_pretrained
from hf_docmt.systems import load_system

FAMILIES = pytest.mark.parametrize("family", SENTENCE_MODELS)


@FAMILIES
@pytest.mark.parametrize("scale", [True, False])
def test_logits_are_those_of_the_sentence_model(family, scale):
    model = sentence_model(family, scale_embedding=scale)
    converted, _ = convert_sentence_model(model)
    pad = model.config.pad_token_id
    found = logits(converted, pad)
    assert found.shape[-1] == VOCABULARY + 2
    torch.testing.assert_close(found[..., :VOCABULARY], logits(model, pad), atol=1e-5, rtol=1e-5)


def test_separate_embedding_tables_are_kept():
    for family, fields in (
        ("marian", {"share_encoder_decoder_embeddings": False}),
        ("bart", {"tie_word_embeddings": False}),
    ):
        model = sentence_model(family, **fields)
        converted, _ = convert_sentence_model(model)
        encoder, decoder = converted.model.encoder.embed_tokens.weight, converted.model.decoder.embed_tokens.weight
        assert not torch.equal(encoder, decoder)
        pad = model.config.pad_token_id
        torch.testing.assert_close(logits(converted, pad)[..., :VOCABULARY], logits(model, pad), atol=1e-5, rtol=1e-5)


def test_new_tokens_start_as_the_mean():
    model = sentence_model("marian")
    converted, tokenizer = convert_sentence_model(model)
    assert tokenizer is None
    assert (converted.config.sep_token_id, converted.config.bod_token_id) == (VOCABULARY, VOCABULARY + 1)
    table = converted.model.shared.weight
    torch.testing.assert_close(table[VOCABULARY], model.model.shared.weight.mean(0))
    torch.testing.assert_close(converted.final_logits_bias[0, -1], model.final_logits_bias.mean())
    assert converted.lm_head.weight is table


@FAMILIES
def test_separators_start_as_mean_of_sentence_ends_and_starts(family):
    """The end, and what the decoder reads before the first word: its start, or the code of the language."""
    converted, _ = convert_sentence_model(sentence_model(family), past_context=1)
    config, format = converted.config, converted.config.sequence_format()
    first = [format.start, *format.target_before][-1]
    for table in (converted.model.encoder.embed_tokens.weight, converted.lm_head.weight):
        expected = (table[format.source_after[0]] + table[first]) / 2
        torch.testing.assert_close(table[config.sep_token_id], expected)
    bias = converted.final_logits_bias[0]
    assert bias[config.sep_token_id] == bias[format.source_after[0]]


@pytest.fixture(scope="module")
def tokenizer():
    backend = train_tokenizer(["a small text", "ein kleiner Text"] * 5, vocab_size=300).backend_tokenizer
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


@pytest.fixture
def checkpoint(tokenizer, tmp_path):
    special = {"vocab_size": len(tokenizer), "pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 0}
    sentence_model("marian", **special).save_pretrained(tmp_path / "sentence")
    tokenizer.save_pretrained(tmp_path / "sentence")
    return tmp_path / "sentence"


def test_folder_in_folder_out(checkpoint, tokenizer, tmp_path):
    converted, adapted = convert_sentence_model(checkpoint, tmp_path / "document", past_context=1)
    assert (adapted.sep_token, adapted.sep_token_id) == ("<sep>", converted.config.sep_token_id)
    assert converted.config.vocab_size == len(tokenizer)  # both names are in this vocabulary already
    assert converted.dtype == torch.float32
    again, _ = model_folders.load_model(tmp_path / "document")
    assert torch.equal(logits(again, 0), logits(converted, 0))
    expected = logits(AutoModelForSeq2SeqLM.from_pretrained(checkpoint), 0)
    torch.testing.assert_close(logits(again, 0), expected, atol=1e-5, rtol=1e-5)


def test_larger_embedding_table_keeps_its_rows(tokenizer):
    special = {"vocab_size": len(tokenizer) + 7, "pad_token_id": 0, "eos_token_id": 3}
    converted, _ = convert_sentence_model(sentence_model("m2m_100", **special), tokenizer=tokenizer)
    assert converted.config.vocab_size == len(tokenizer) + 7


def test_truncated_weights_are_named(checkpoint):
    path = checkpoint / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    refused("cannot load a model from", convert_sentence_model, checkpoint)


@pytest.mark.parametrize("load", [convert_sentence_model, load_system])
@pytest.mark.parametrize("layers", [-1, 1])
def test_other_layers_than_those_of_the_config(checkpoint, load, layers):
    """transformers draws what is missing, and passes over what is left."""
    config = json.loads((checkpoint / "config.json").read_text())
    config["decoder_layers"] += layers
    (checkpoint / "config.json").write_text(json.dumps(config))
    refused("weights are missing or do not belong to a model of its config.json", load, checkpoint)


def test_damaged_files_are_not_converted(checkpoint):
    model = AutoModelForSeq2SeqLM.from_pretrained(checkpoint)
    model.generation_config.eos_token_id = 999
    model.save_pretrained(checkpoint)
    refused("eos_token_id of generation_config.json is 999", convert_sentence_model, checkpoint)
    (checkpoint / "generation_config.json").write_text('{"num_beams": ')
    for load in (convert_sentence_model, load_system):
        refused("generation_config.json: it is not a JSON file", load, checkpoint)
    (checkpoint / "generation_config.json").unlink()
    model.model.encoder.layers[0].fc1.weight.data[0, 0] = torch.nan
    model.save_pretrained(checkpoint)
    refused("model.encoder.layers.0.fc1.weight are not all finite", convert_sentence_model, checkpoint)
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps(config | {"encoder_ffn_dim": config["encoder_ffn_dim"] + 1}))
    refused("weights have other shapes than its config.json says", convert_sentence_model, checkpoint)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"past_contxt": 3}, "did you mean 'past_context'"),
        ({"d_model": 32}, "d_model: got 32, but the pretrained weights need 16"),
        ({"normalize_before": True}, "normalize_before"),
    ],
)
def test_overrides_that_do_not_fit_are_rejected(overrides, message):
    refused(message, convert_sentence_model, sentence_model("marian"), **overrides)


def test_start_token_must_be_known():
    model = sentence_model("mbart", decoder_start_token_id=None)
    refused("decoder_start_token_id: got none", convert_sentence_model, model)
    assert convert_sentence_model(model, decoder_start_token_id=30)[0].config.decoder_start_token_id == 30


def test_other_models_are_rejected(tmp_path):
    T5Config().save_pretrained(tmp_path)
    refused("model type 't5', expected one of marian, bart, mbart, m2m_100", convert_sentence_model, tmp_path)
    with pytest.raises(ValueError, match="unknown model_type 't5'"):
        config_from_pretrained(T5Config())
    for name in ("pad_token_id", "eos_token_id"):
        with pytest.raises(ValueError, match=f"{name}: got None, expected a token id; add it to config.json"):
            config_from_pretrained(M2M100Config(**{name: None}))
