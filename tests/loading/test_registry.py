"""The registry: names and classes of the architectures, and one that another package adds."""

import sys
from typing import Literal, Optional

import numpy as np
import pytest
from support.errors import refused
from support.tiny_run import recipe_mapping, write_corpus_files

from hf_docmt.loading import model_folders, registry
from hf_docmt.loading.registry import ARCHITECTURES, Architecture, register_architecture
from hf_docmt.modeling.configuration_concat import ConcatConfig
from hf_docmt.training.info import describe
from hf_docmt.training.recipe import parse_recipe
from hf_docmt.training.run import train

CONFIGURATION = '''"""Configuration of a toy."""
from hf_docmt.modeling.configuration_concat import ConcatConfig

class ToyConfig(ConcatConfig):
    """As concat, with a number."""
    model_type = "docmt-toy"
    toy_size: int = 3
'''
MODELING = '''"""Model of a toy."""
from hf_docmt.modeling.modeling_concat import ConcatForConditionalGeneration
from .configuration_toy import ToyConfig

class ToyForConditionalGeneration(ConcatForConditionalGeneration):
    """As concat."""
    config_class = ToyConfig
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The architecture `toy` of a package of its own, registered for one test."""
    package = tmp_path / "toy_package"
    package.mkdir()
    for name, text in {"__init__": "", "configuration_toy": CONFIGURATION, "modeling_toy": MODELING}.items():
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    architecture = Architecture("toy", package="toy_package")
    register_architecture(architecture)
    yield architecture
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
    refused("unknown architecture 'cachng': expected one of .* Did you mean 'caching'?", registry.get, "cachng")


def test_architecture_of_another_package(tmp_path, toy):
    """Trained by a recipe, loaded and described as those of this package."""
    corpus = write_corpus_files(tmp_path)
    mapping = recipe_mapping(corpus, tmp_path / "run", {"past_context": 1, "toy_size": 4}, max_steps=1)
    folder = train(parse_recipe(mapping | {"architecture": "toy"}))
    model, tokenizer = model_folders.load_model(folder)
    assert isinstance(model, toy.model_class) and model.config.toy_size == 4
    assert len(model.translate_documents([["Hello.", "Good morning."]], tokenizer, max_new_tokens=3)[0]) == 2
    facts = describe(folder)
    assert facts["architecture"] == "toy" and facts["mechanism"]["toy_size"] == 4
    with pytest.raises(ValueError, match="model.toy_siz: unknown key; did you mean 'toy_size'"):
        parse_recipe(mapping | {"architecture": "toy", "model": {"toy_siz": 4}})


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


def test_missing_class():
    wrong = Architecture("lst", class_prefix="Other")
    with pytest.raises(AttributeError, match="OtherConfig"):
        _ = wrong.config_class


def test_modules_without_a_package(tmp_path, monkeypatch):
    text = CONFIGURATION.replace("docmt-toy", "toy").replace("ToyConfig", "BareConfig")
    (tmp_path / "configuration_bare.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="configuration_bare:BareConfig: model_type is 'toy', expected 'docmt-bare'"):
        _ = Architecture("bare", package="").config_class
