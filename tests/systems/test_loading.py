"""Systems from folders, of the kind that the configuration has."""

import copy

import pytest
import torch
from support.errors import refused
from support.pretrained_models import saved
from support.systems import DOCUMENTS, ITEMS, LANGUAGES, assert_close

from hf_docmt.hub.export import convert_sentence_model
from hf_docmt.loading import model_folders
from hf_docmt.systems import CausalSystem, DocMTSystem, Seq2SeqSystem, load_system
from hf_docmt.systems.devices import check_device, checked_dtype


def test_load_system(tmp_path, marian, llama, tokenizer):
    converted, adapted = convert_sentence_model(marian, tokenizer=tokenizer, past_context=1)
    folders = {
        "seq2seq": saved(tmp_path / "marian", marian, tokenizer),
        "causal": saved(tmp_path / "llama", llama, tokenizer),
        "docmt": saved(tmp_path / "ours", converted, adapted),
    }
    classes = {"seq2seq": Seq2SeqSystem, "causal": CausalSystem, "docmt": DocMTSystem}
    for kind, folder in folders.items():
        options = LANGUAGES if kind == "causal" else {}
        system = load_system(folder, attn_implementation="eager", **options)
        assert type(system) is classes[kind] and system.name == str(folder)
        assert system.model.config._attn_implementation == "eager" and not system.model.training
        direct = {"seq2seq": marian, "causal": llama, "docmt": converted}[kind]
        expected = classes[kind](direct, tokenizer, **options).token_log_probabilities(ITEMS[:2])
        assert_close(system.token_log_probabilities(ITEMS[:2]), expected)
        facts = system.describe()
        assert facts["name"] == str(folder) and facts["parameters"] == direct.num_parameters()
    assert load_system(folders["docmt"], dtype="int8").model.is_quantized
    assert {load_system(folders["docmt"], dtype=name).model.dtype for name in ("bf16", "bfloat16")} == {torch.bfloat16}
    with pytest.raises(ValueError, match="'past_contxt' of a seq2seq system; did you mean 'past_context'"):
        load_system(folders["seq2seq"], past_contxt=1)


def test_load_system_bad_folders(tmp_path, marian):
    refused("unknown dtype 'float8'", load_system, tmp_path, dtype="float8")
    refused("holds no model: config.json is missing", load_system, tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert", "architectures": ["BertModel"]}')
    refused("a model of type 'bert' with BertModel, expected an encoder-decoder", load_system, tmp_path)
    marian.config.save_pretrained(tmp_path)
    refused("cannot load a model from", load_system, tmp_path)


def test_sampling_of_a_folder_is_switched_off(tmp_path, marian, tokenizer, caplog):
    """What is asked for in Python stays."""
    marian = copy.deepcopy(marian)
    marian.generation_config.update(do_sample=True, top_k=0, repetition_penalty=1.5)
    folder = saved(tmp_path / "marian", marian, tokenizer)
    system = load_system(folder, max_new_tokens=6)
    assert caplog.text.count("do_sample=True, which makes runs differ") == 1
    assert system.describe()["config"]["generation"]["repetition_penalty"] == 1.5
    first = system.translate(DOCUMENTS)
    assert system.translate(DOCUMENTS) == first == load_system(folder, max_new_tokens=6).translate(DOCUMENTS)
    outputs = [load_system(folder, max_new_tokens=6, do_sample=True).translate(DOCUMENTS) for _ in range(2)]
    assert outputs[0] != outputs[1]


def test_tables_of_sines_may_be_missing(marian):
    """As in checkpoints of FSMT."""
    loading = {"missing_keys": {"model.encoder.embed_positions.weight"}, "unexpected_keys": set()}
    model_folders.check_loading(marian, loading, "m")
    loading["missing_keys"].add("model.encoder.layers.0.fc1.weight")
    refused("1 weights are missing or do not belong", model_folders.check_loading, marian, loading, "m")


def test_linear_layers_of_zeros_are_refused(tmp_path, marian, tokenizer):
    """As a download leaves them that was cut off in a preallocated file."""
    damaged = copy.deepcopy(marian)
    damaged.model.decoder.layers[0].fc1.weight.data.zero_()
    folder = saved(tmp_path / "m", damaged, tokenizer)
    refused("model.decoder.layers.0.fc1.weight are all zero", load_system, folder)


def test_dtype_that_a_device_does_not_compute(monkeypatch):
    def linear(*_):
        raise RuntimeError('"addmm" not implemented for Half\nmore')

    assert checked_dtype(None, "cpu") is None and check_device("cpu") == "cpu"
    monkeypatch.setattr(torch.nn.functional, "linear", linear)
    refused("cpu does not compute in fp16 .*for Half.*; choose another dtype", checked_dtype, "fp16", "cpu")


def test_checks_before_weights_are_loaded(tmp_path, marian, tokenizer):
    """Between which languages a model translates, and whether context changes what it writes."""
    for options, alone in (({}, True), ({"past_context": 1}, False), ({"chunk_sentences": 2}, False)):
        assert CausalSystem.reads_sentences_alone("model", options) is alone
    assert CausalSystem.language_options("model", "en", None) == ({"source_lang": "en"}, ("en", None))
    folder = saved(tmp_path / "marian", marian, tokenizer)
    assert Seq2SeqSystem.language_options(folder, "en", "de") == ({}, ("en", "de"))  # its tokenizer has no codes
    converted, adapted = convert_sentence_model(marian, tokenizer=tokenizer, source_lang="en", target_lang="de")
    ours = saved(tmp_path / "ours", converted, adapted)
    assert DocMTSystem.language_options(ours, None, None) == ({}, ("en", "de"))
    refused("--source-lang is 'fr', but .* translates from 'en'", DocMTSystem.language_options, ours, "fr", None)
    assert DocMTSystem.reads_sentences_alone(ours, {"strategy": "sentence"})
