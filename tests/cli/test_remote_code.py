"""Code in model folders does not run, whatever stands on standard input, unless the user asked for it."""

import json
import shutil
import sys

import pytest
import transformers
from support.errors import refused
from support.language_models import multilingual
from support.pretrained_models import saved

import hf_docmt
from hf_docmt.training.initialization import load_origin, new_tokenizer
from hf_docmt.training.recipe_sections import TokenizerRecipe

PLANTED = """
from pathlib import Path
from transformers import PreTrainedTokenizerFast

Path({marker!r}).write_text("it ran")


class PlantedTokenizer(PreTrainedTokenizerFast):
    pass
"""


@pytest.fixture
def planted(model, tmp_path, monkeypatch):
    """A model folder with a tokenizer of its own code, and the file that this code writes when it runs."""
    monkeypatch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    imported = sys.modules.pop("transformers_modules", None)
    yield plant(model, tmp_path)
    sys.modules.pop("transformers_modules", None)  # a package of this folder, where other tests would look for theirs
    if imported:
        sys.modules["transformers_modules"] = imported


def plant(model, tmp_path):
    folder, marker = tmp_path / "planted", tmp_path / "marker"
    shutil.copytree(model, folder)
    file = folder / "tokenizer_config.json"
    config = json.loads(file.read_text())
    config |= {"tokenizer_class": "PlantedTokenizer", "auto_map": {"AutoTokenizer": [None, "planted.PlantedTokenizer"]}}
    file.write_text(json.dumps(config))
    (folder / "planted.py").write_text(PLANTED.format(marker=str(marker)))
    return folder, marker


def test_standard_input_consents_to_nothing(run, planted):
    """A document with the line `Yes` is a document."""
    folder, marker = planted
    code, out, err = run("translate", folder, "--format", "lines", "--source-lang", "en", stdin="Yes\nYes\n\nYes\n")
    assert code == 1 and out == "" and not marker.exists()
    assert str(folder) in err and "auto_map" in err and "--trust-remote-code" in err and "Traceback" not in err


def test_code_runs_where_the_user_asked(run, planted):
    folder, marker = planted
    arguments = ("translate", folder, "--format", "lines", "--source-lang", "en")
    code, out, _ = run("--trust-remote-code", *arguments, stdin="Yes\nNo\n")
    assert code == 0 and len(out.splitlines()) == 2 and marker.exists()
    code, _, err = run(*arguments, stdin="Yes\n")
    assert code == 1 and "--trust-remote-code" in err  # asked for one call, not for the next


@pytest.mark.parametrize("command", ["info", "evaluate", "contrast", "export", "analyze"])
def test_commands(run, planted, documents, tmp_path, command):
    folder, marker = planted
    run("corpus", tmp_path / "c", "--train", 2, "--validation", 1, "--test", 1, "--suite-items", 2)
    arguments = {
        "info": ("info", folder),
        "evaluate": ("cxmi", folder, documents),
        "contrast": ("contrast", folder, tmp_path / "c" / "ellipsis.json"),
        "export": ("export", folder, tmp_path / "exported"),
        "analyze": ("analyze", "why", folder, documents, "--sentence", 1),
    }
    code, out, err = run(*arguments[command], stdin="Yes\n" * 20)
    assert code == 1 and not marker.exists() and "--trust-remote-code" in err and "Traceback" not in err


@pytest.mark.parametrize("load", [load_origin, hf_docmt.load_model, hf_docmt.load_system])
def test_loaders(planted, load):
    folder, marker = planted
    refused("--trust-remote-code", load, folder)
    assert not marker.exists()


def test_tokenizer_of_a_recipe(planted):
    folder, marker = planted
    with pytest.raises(ValueError, match="--trust-remote-code"):
        new_tokenizer(TokenizerRecipe(path=str(folder)))
    assert not marker.exists()


@pytest.mark.parametrize("load", [hf_docmt.convert_sentence_model, load_origin, hf_docmt.load_system])
def test_models_of_others(tmp_path, load):
    """A pretrained model is converted, continued and scored with the tokenizer class of transformers."""
    model, tokenizer, _ = multilingual("nllb")
    folder, marker = plant(saved(tmp_path / "nllb", model, tokenizer), tmp_path)
    load(folder)
    assert not marker.exists()


@pytest.mark.parametrize("load", [hf_docmt.convert_sentence_model, hf_docmt.load_system])
def test_kernels_of_attention_are_code(tmp_path, load):
    model, tokenizer, _ = multilingual("nllb")
    folder = saved(tmp_path / "nllb", model, tokenizer)
    config = json.loads((folder / "config.json").read_text()) | {"attn_implementation": "someone/kernel"}
    (folder / "config.json").write_text(json.dumps(config))
    refused("attn_implementation is 'someone/kernel', expected one of eager, sdpa", load, folder)
