"""Models with int8 weights: every architecture, saving and loading, and what is refused."""

import copy

import pytest
import torch
from support.battery import logits
from support.errors import refused
from support.tiny_models import EOS, build, word_tokenizer
from torch import nn
from transformers.dynamic_module_utils import get_class_from_dynamic_module

from hf_docmt.engine import quantization
from hf_docmt.engine.int8_linear import Int8Linear
from hf_docmt.loading import registry

BATCH = {"input_ids": torch.tensor([[7, 8, 9, EOS]]), "decoder_input_ids": torch.tensor([[2, 9, 8]])}
DOCUMENTS = [["w7 w8", "w9", "w10 w11 w12"], ["w13"]]
SEARCH = {"max_new_tokens": 6, "num_beams": 2}
INT8 = {"quant_method": "docmt-int8"}


@pytest.fixture
def model():
    return build("concat", past_context=1).quantize("int8")


def translations(model) -> list[list[str]]:
    return model.translate_documents(DOCUMENTS, word_tokenizer(), **SEARCH)


@pytest.mark.parametrize("architecture", registry.ARCHITECTURES)
def test_every_architecture(architecture, tmp_path):
    plain = build(architecture)
    model = copy.deepcopy(plain)
    assert model.quantize("int8") is model
    kinds = {type(module).__name__ for module in model.modules() if "Linear" in type(module).__name__}
    assert kinds == {"Int8Linear"}
    expected, found = logits(plain, BATCH), logits(model, BATCH)
    assert 0 < (found - expected).norm() < 0.1 * expected.norm()
    lines = translations(model)
    assert [len(document) for document in lines] == [3, 1]
    model.save_pretrained(tmp_path)
    loaded, report = type(model).from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values())
    assert torch.equal(logits(loaded, BATCH), found) and translations(loaded) == lines


def test_another_model_of_the_same_configuration_is_unchanged(tmp_path):
    plain = build("concat", past_context=1)
    model = type(plain)(plain.config).eval()
    model.quantize("int8")
    assert model.config.quantization_config and not hasattr(plain.config, "quantization_config")
    assert {id(module.config) for module in model.modules() if hasattr(module, "config")} == {id(model.config)}
    plain.save_pretrained(tmp_path)
    loaded, report = type(plain).from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values())
    assert torch.equal(logits(loaded, BATCH), logits(plain, BATCH))


@pytest.mark.parametrize("tied", [True, False])
def test_embedding_stays(tied):
    plain = build(share_encoder_decoder_embeddings=tied)
    model = copy.deepcopy(plain).quantize("int8")
    for name in ("get_input_embeddings", "get_decoder"):
        found, expected = getattr(model, name)(), getattr(plain, name)()
        table, other = (getattr(module, "embed_tokens", module) for module in (found, expected))
        assert torch.equal(table.weight, other.weight)
    assert model.lm_head.weight.dtype is torch.int8
    model.tie_weights()
    assert model.lm_head.weight.dtype is torch.int8


def test_while_loading(model, tmp_path):
    """From float weights, by the field of transformers; saved again, it is the same."""
    plain = build("concat", past_context=1)
    plain.save_pretrained(tmp_path / "plain")
    loaded = type(plain).from_pretrained(tmp_path / "plain", quantization_config=dict(INT8))
    assert torch.equal(logits(loaded, BATCH), logits(model, BATCH))
    loaded.save_pretrained(tmp_path / "int8")
    again = type(plain).from_pretrained(tmp_path / "int8", quantization_config=quantization.Int8Config())
    assert torch.equal(logits(again, BATCH), logits(model, BATCH))
    half = type(plain).from_pretrained(tmp_path / "int8", dtype=torch.bfloat16)
    assert torch.equal(half.lm_head.weight_scale, model.lm_head.weight_scale)
    assert logits(half, BATCH).dtype is torch.bfloat16


def test_int8_weights_are_read_by_the_package(tmp_path):
    """Its folders' own code would take the integers for weights."""
    plain = build("concat", d_model=256, encoder_layers=1, decoder_layers=1)
    plain.save_pretrained(tmp_path / "plain")
    copy.deepcopy(plain).quantize("int8").save_pretrained(tmp_path / "int8")
    name = "modeling_concat.ConcatForConditionalGeneration"
    for folder, options in (("int8", {}), ("plain", {"quantization_config": dict(INT8)})):
        remote = get_class_from_dynamic_module(name, tmp_path / folder)
        assert not issubclass(remote, type(plain))
        with pytest.raises(ValueError, match="load the folder by hf_docmt.load_model"):
            remote.from_pretrained(tmp_path / folder, **options)


def test_small_layers_stay(monkeypatch, tmp_path):
    monkeypatch.setattr(quantization, "MIN_ELEMENTS", 16 * 20)
    plain = build()
    model = copy.deepcopy(plain).quantize("int8")
    found = {name: type(module) for name, module in model.named_modules() if hasattr(module, "out_features")}
    assert found["model.encoder.layers.0.fc1"] is found["lm_head"] is Int8Linear
    small = [name for name, kind in found.items() if kind is not Int8Linear]
    assert small and all(name.endswith("_proj") for name in small)
    model.save_pretrained(tmp_path)
    monkeypatch.setattr(quantization, "MIN_ELEMENTS", 0)  # the folder says what was left
    assert torch.equal(logits(type(model).from_pretrained(tmp_path), BATCH), logits(model, BATCH))
    monkeypatch.setattr(quantization, "MIN_ELEMENTS", 10**6)
    refused("no layer of the model has 1000000 weights or more", plain.quantize, "int8")


def test_training_is_refused(model):
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert model(**BATCH).logits.grad_fn is None  # no scope is needed
    refused("int8 weights cannot be trained", model.train)
    refused("int8 weights cannot be resized", model.resize_token_embeddings, 40)
    model.model.shared.weight.requires_grad_(True)
    refused("int8 weights give no gradients", model, **BATCH)


def test_unquantizable_models(model):
    refused("expected 'int8', got 'int4'", build().quantize, "int4")
    refused("quantized already, by docmt-int8", model.quantize, "int8")
    with pytest.raises(ValueError, match="in training mode"):
        build().train().quantize("int8")
    with pytest.raises(ValueError, match="got the device meta"):
        build().to("meta").quantize("int8")
    hooked, wrapped = build(), build()
    hooked.model.encoder.layers[0].fc1.register_forward_hook(lambda *_: None)
    wrapped.model.encoder.layers[0].fc2 = type("Other", (nn.Linear,), {"forward": nn.Identity.forward})(24, 16)
    for other, layer in ((hooked, "fc1"), (wrapped, "fc2")):
        refused(f"layers.0.{layer} is not a plain Linear layer", other.quantize, "int8")
        assert not any(isinstance(module, Int8Linear) for module in other.train().modules())


def test_configurations_that_do_not_fit(tmp_path):
    plain = build()
    plain.save_pretrained(tmp_path)

    def load(**options):
        return type(plain).from_pretrained(tmp_path, **options)

    with pytest.raises(ValueError, match="expected 'docmt-int8' and modules_to_not_convert, got bits"):
        load(quantization_config={**INT8, "bits": 4})
    refused("no Linear layer 'head'", load, quantization_config={**INT8, "modules_to_not_convert": ["head"]})
    for device_map in ({"": "cuda"}, "auto", {"model": "cpu", "lm_head": "disk"}, {"": 0}):
        with pytest.raises(ValueError, match="int8 weights are for the CPU, got device_map=.*; omit it"):
            load(quantization_config=dict(INT8), device_map=device_map)
    kept = load(quantization_config={**INT8, "modules_to_not_convert": ["lm_head"]})
    assert kept.lm_head.weight is kept.model.shared.weight
