"""Fingerprints in config.json: every way that writes a folder leaves right ones, or none."""

import json

import pytest
import torch
from support.errors import refused
from support.tiny_models import EOS, SIZES, build, word_tokenizer
from transformers import AutoModel, AutoModelForSeq2SeqLM

import hf_docmt
from hf_docmt.hub.export import export_model
from hf_docmt.loading import registry
from hf_docmt.loading.model_folders import load_model
from hf_docmt.modeling.fingerprints import add_fingerprints, file_fingerprint

ALL, PLAIN = {"weights", "settings", "tokenizer"}, {"weights", "settings"}
IDS = torch.tensor([[7, 8, 9, EOS]])


def trained(model):
    model.train()
    model(input_ids=IDS, labels=IDS).loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.sub_(parameter.grad if parameter.grad is not None else 0)
    return model.eval()


def resized(model):
    model.resize_token_embeddings(SIZES["vocab_size"] + 8)
    return model


def plain(model, folder, **options):
    """As users of transformers save; in a folder that was exported before."""
    model.save_pretrained(folder, **options)
    word_tokenizer().save_pretrained(folder)


def shards(model, folder):
    (folder / "model.safetensors").unlink()
    plain(model, folder, max_shard_size="5KB")


def half_variant(model, folder):
    model.save_pretrained(folder)
    model.half().save_pretrained(folder, variant="fp16")
    word_tokenizer().save_pretrained(folder)


def configuration_alone(model, folder):
    """Weights of another model, beside which its configuration is saved."""
    build(seed=1).save_pretrained(folder)
    model.config.save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)


def by_auto_class(model, folder):
    model.save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)
    AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.bfloat16).save_pretrained(folder)


WAYS = {  # how a loaded model is written over its folder -> the fingerprints there
    "again": (plain, PLAIN),
    "tokenizer first": (lambda model, folder: (word_tokenizer().save_pretrained(folder), plain(model, folder)), PLAIN),
    "trained": (lambda model, folder: plain(trained(model), folder), PLAIN),
    "bfloat16": (lambda model, folder: plain(model.to(torch.bfloat16), folder), PLAIN),
    "shards": (shards, PLAIN),
    "of a state": (lambda model, folder: plain(model, folder, state_dict=trained(model).state_dict()), PLAIN),
    "resized": (lambda model, folder: plain(resized(model), folder), PLAIN),
    "a variant": (half_variant, set()),
    "configuration alone": (configuration_alone, set()),
    "auto class": (by_auto_class, PLAIN),
}


@pytest.fixture
def exported(tmp_path):
    folder = export_model(build(past_context=1), word_tokenizer(), tmp_path / "exported")
    assert fingerprints(folder) == ALL
    return folder


def fingerprints(folder) -> set[str]:
    return set(json.loads((folder / "config.json").read_text()).get("fingerprints", {}))


@pytest.mark.parametrize("way", WAYS)
def test_ways_of_saving(exported, way):
    write, expected = WAYS[way]
    model, tokenizer = load_model(exported)
    write(model, exported)
    assert fingerprints(exported) == expected
    loaded, tokenizer = load_model(exported)
    loaded.translate_documents([["w7 w8 .", "w9"]], tokenizer, max_new_tokens=4)


@pytest.mark.parametrize("architecture", registry.ARCHITECTURES)
def test_every_class_of_an_architecture(architecture, tmp_path):
    """The model without its head reads the folder with it."""
    model = build(architecture)
    model.save_pretrained(tmp_path)
    hf_docmt.register_all()
    assert fingerprints(tmp_path) == PLAIN
    assert isinstance(AutoModel.from_pretrained(tmp_path), type(model.model))
    model.model.save_pretrained(tmp_path)
    type(model.model).from_pretrained(tmp_path)


def test_changes_on_purpose(exported):
    """Settings that the weights do not depend on, arguments of `from_pretrained`, a tokenizer for new tokens."""
    file = exported / "config.json"
    free = {"dropout": 0.3, "strategy": "full", "target_lang": "fr"}
    file.write_text(json.dumps(json.loads(file.read_text()) | free))
    model, tokenizer = load_model(exported)
    assert type(model).from_pretrained(exported, past_context=0, dtype=torch.float16).config.past_context == 0
    tokenizer.add_tokens(["new"])
    again = type(model).from_pretrained(exported)
    refused(
        "the ids of the tokenizer have changed since they were saved", again.translate_documents, [["w7"]], tokenizer
    )
    resized(again).translate_documents([["w7"]], tokenizer, max_new_tokens=2)
    add_fingerprints(exported, weights="changed")
    refused("the weights have changed since they were saved.* remove 'weights'", load_model, exported)


def test_a_shard_of_another_model(exported):
    model, _ = load_model(exported)
    shards(model, exported)
    first = sorted(exported.glob("model-*"))[1]
    content = bytearray(first.read_bytes())
    content[-2] ^= 64
    first.write_bytes(content)
    refused("the weights have changed since they were saved", load_model, exported)


def test_every_bit_of_a_file_counts(tmp_path):
    file = tmp_path / "file"
    content = bytes(range(256)) * 40 + b"end"
    file.write_bytes(content)
    expected = file_fingerprint(file)
    for place in (0, 7, 4095, 4096, 8191, 9000, len(content) - 1):
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            file.write_bytes(changed)
            assert file_fingerprint(file) != expected


def test_an_adapter_has_its_own(tmp_path, exported):
    peft = pytest.importorskip("peft")
    from hf_docmt.training.low_rank_adaptation import save_adapter

    model, tokenizer = load_model(exported)
    config = peft.LoraConfig(target_modules=["q_proj"], base_model_name_or_path=str(exported))
    wrapped = peft.get_peft_model(model, config)
    folder = tmp_path / "adapter"
    save_adapter(wrapped, peft.get_peft_model_state_dict(wrapped), folder)
    tokenizer.save_pretrained(folder)
    assert fingerprints(folder) == PLAIN
    load_model(folder)
    file = folder / "adapter_model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    refused("adapter: the weights have changed since they were saved", load_model, folder)
