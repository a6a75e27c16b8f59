"""The registry: names and classes of the architectures, and one that another package adds."""

import sys
from importlib import import_module
from typing import Literal, Optional

import numpy as np
import pytest
from support.errors import refused
from support.tiny_run import recipe_mapping, write_corpus_files

from hf_docmt.loading import model_folders, registry
from hf_docmt.loading.new_architecture import write_architecture
from hf_docmt.loading.registry import ARCHITECTURES, Architecture, register_architecture
from hf_docmt.modeling.configuration_concat import ConcatConfig
from hf_docmt.training.info import describe
from hf_docmt.training.recipe import parse_recipe
from hf_docmt.training.run import train


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The architecture `toy` in its own package, registered for one test."""
    write_architecture("toy", tmp_path / "toy_package")
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("toy_package")
    ARCHITECTURES.pop("toy")
    for name in [name for name in sys.modules if name.startswith("toy_package")]:
        del sys.modules[name]


def test_names_and_classes():
    assert list(ARCHITECTURES) == sorted(ARCHITECTURES)
    for name, architecture in ARCHITECTURES.items():
        assert registry.get(name) is architecture and architecture.model_type == f"docmt-{name}"
        assert architecture.config_class.model_type == architecture.model_type
        assert architecture.model_class.config_class is architecture.config_class
        assert registry.for_config(architecture.config_class()) is architecture
    refused("unknown architecture 'cachng': expected one of .*; did you mean 'caching'?", registry.get, "cachng")


def test_architecture_of_another_package(tmp_path, toy):
    """Trained by a recipe, loaded and described as those of this package."""
    corpus = write_corpus_files(tmp_path)
    mapping = recipe_mapping(corpus, tmp_path / "run", {"past_context": 1}, max_steps=1) | {"architecture": "toy"}
    folder = train(parse_recipe(mapping))
    model, tokenizer = model_folders.load_model(folder)
    assert isinstance(model, registry.get("toy").model_class) and type(model).__module__ == "toy_package.modeling_toy"
    assert len(model.translate_documents([["Hello.", "Good morning."]], tokenizer, max_new_tokens=3)[0]) == 2
    facts = describe(folder)
    assert facts["architecture"] == "toy" and facts["mechanism"]["past_context"] == 1
    with pytest.raises(ValueError, match="model.past_contex: unknown key; did you mean 'past_context'"):
        parse_recipe(mapping | {"model": {"past_contex": 1}})


def test_types_of_fields_of_other_packages():
    """Others write annotations as text, with `Optional` or `Literal`; values may be numbers of numpy."""

    class GatedConfig(ConcatConfig):
        gate_size: "int" = 3
        gate_bias: Optional[float] = None  # noqa: UP045
        gate_kind: Literal["a", "b"] = "a"

    assert GatedConfig(gate_size=4, gate_bias=1, gate_kind="b", dropout=np.float64(0.1)).gate_size == 4
    for wrong, message in (({"gate_size": "4"}, "gate_size must be of type int, got '4'"),
                           ({"gate_bias": True}, "gate_bias must be of type float or null, got True")):  # fmt: skip
        refused(message, GatedConfig, **wrong)


def test_registering_twice(toy):
    register_architecture(Architecture("toy", package="toy_package"))
    with pytest.raises(ValueError, match="architecture 'toy' already exists, in toy_package; give the new one"):
        register_architecture(Architecture("toy", package="elsewhere"))


def test_modules_without_a_package(tmp_path, monkeypatch):
    (tmp_path / "configuration_bare.py").write_text("class BareConfig:\n    model_type = 'toy'\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="configuration_bare:BareConfig: model_type is 'toy', expected 'docmt-bare'"):
        _ = Architecture("bare", package="").config_class
