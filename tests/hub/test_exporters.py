"""ONNX and OpenVINO files of every architecture: the same states and logits, for other sentences than were traced."""

import json

import pytest
import torch
from support.tiny_models import build, word_tokenizer

from hf_docmt import registry
from hf_docmt.hub import exporters
from hf_docmt.hub.export import export_model
from hf_docmt.hub.exporters import FIRST, PACKAGES, PARTS, compare_parts

SEGMENTS = {"past_context": 2}
CASES = {
    "caching": ("caching", SEGMENTS | {"shortening": "grouping"}),
    "concat": ("concat", SEGMENTS | {"segment_encoding": "learned"}),
    "doct": ("doct", SEGMENTS),
    "doct-routing": ("doct", {"past_context": 1, "future_context": 1, "selection": "routing"}),
    "gtransformer": ("gtransformer", SEGMENTS | {"global_layers": 1, "restarts_positions": True}),
    "han": ("han", SEGMENTS | {"context_sides": "both"}),
    "lst": ("lst", SEGMENTS),
    "memory": ("memory", {"memory_size": 3}),
    "multiencoder": ("multiencoder", SEGMENTS),
    "routing": ("routing", {}),
    "window": ("window", SEGMENTS | {"window": 2, "alignment": "sentence"}),
}
FAST = ("concat",)  # of the others each takes as long, which is a quarter of a minute


def marked(name: str):
    return pytest.param(*CASES[name], id=name, marks=() if name in FAST else pytest.mark.slow)


@pytest.fixture(params=[pytest.param(name, marks=() if name == "onnx" else pytest.mark.slow) for name in PACKAGES])
def form(request):
    for package in PACKAGES[request.param]:
        pytest.importorskip(package)
    return request.param


def small(architecture, fields):
    return build(architecture, encoder_layers=1, decoder_layers=1, **fields)


@pytest.mark.parametrize(("architecture", "fields"), [marked(name) for name in CASES])
def test_same_states_and_logits(architecture, fields, form, tmp_path):
    """Through three files, for other numbers of rows, lengths and prompts; the check sees other weights."""
    model = small(architecture, fields)
    folder = export_model(model, word_tokenizer(), tmp_path / "parts", form=form)
    assert (folder / "tokenizer.json").is_file() and (folder / "README.md").is_file()
    assert json.loads((folder / "export.json").read_text())["components"].keys() == set(PARTS)
    with torch.no_grad():
        assert max(compare_parts(model, form, folder).values()) < 1e-4
        model.final_logits_bias[0, 7] += 1
        with pytest.raises(ValueError, match=f"{FIRST} differs from the model by 1, expected at most"):
            compare_parts(model, form, folder)


def test_all_architectures_are_here():
    assert {architecture for architecture, _ in CASES.values()} == registry.ARCHITECTURES.keys()


def test_nothing_is_left_of_a_part_that_fails(form, tmp_path, monkeypatch):
    def broken(self, **inputs):
        raise RuntimeError("cannot be traced\nfor many reasons")

    monkeypatch.setattr(exporters.EncoderPart, "forward", broken)
    monkeypatch.setattr(exporters, "traced_parts", lambda model, batch: {"encoder": (exporters.EncoderPart(model), {})})
    with pytest.raises(ValueError, match="part 'encoder' of ConcatForConditionalGeneration cannot be exported"):
        export_model(build(), word_tokenizer(), tmp_path / "parts", form=form)
    assert not list(tmp_path.iterdir())


def test_other_weights_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"dtype: got torch.bfloat16, expected torch.float32"):
        export_model(build().to(torch.bfloat16), word_tokenizer(), tmp_path / "bf16", form="onnx")
    with pytest.raises(ValueError, match="the weights are int8"):
        export_model(build().quantize("int8"), word_tokenizer(), tmp_path / "int8", form="onnx")
    with pytest.raises(ValueError, match="decoder_autoregression: got 'ssru', but the files have room for keys of"):
        export_model(build(decoder_autoregression="ssru"), word_tokenizer(), tmp_path / "ssru", form="openvino")
    assert not list(tmp_path.iterdir())


def test_missing_package(tmp_path, monkeypatch):
    monkeypatch.setitem(PACKAGES, "openvino", ("no_such_package",))
    with pytest.raises(ValueError, match="No module named 'no_such_package'; install it: pip install "):
        export_model(build(), word_tokenizer(), tmp_path / "parts", form="openvino")
    assert not list(tmp_path.iterdir())
