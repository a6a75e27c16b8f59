"""Every example runs, every recipe describes a model, and so does every override that a recipe names."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hf_docmt import registry
from hf_docmt.data.readers import FORMATS
from hf_docmt.training.recipe import load_recipe

ROOT = Path(__file__).resolve().parents[1] / "examples"
RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))
SCRIPTS = sorted(ROOT.glob("*.py"))
SYSTEMS = ("base", "s4to4", "s4to4_cd", "s4to4_cd_shift_pers", "s4to4_cd_lrn_pers", "s4to4_cd_sin_pers_pse")


def config_of(recipe):
    return registry.get(recipe.architecture).config_class(**recipe.model)


def test_all_recipes_are_there():
    names = {f"lupo2023_{pair}_{system}" for pair in ("enru", "ende") for system in SYSTEMS}
    names |= {f"{data}_{system}" for data in ("demo", "ende_docs") for system in ("sentence", "concat4")}
    assert {path.stem for path in RECIPES} == names


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe(path):
    recipe = load_recipe(path)
    config = config_of(recipe)
    assert config.past_context == (0 if path.stem.endswith(("base", "sentence")) else 3)
    assert all(part["format"] in FORMATS for part in (recipe.data.train, recipe.data.validation, recipe.data.test))
    assert recipe.output_dir.split("/")[1] in (path.stem, path.stem.removeprefix("demo_"))
    if path.stem.startswith("lupo2023"):
        assert (config.d_model, config.encoder_layers, config.dropout) == (512, 6, 0.3)
        assert recipe.training.context_discount == (0.01 if "_cd" in path.stem else 1.0)
        assert recipe.training.learning_rate == (9e-4 if "_cd" in path.stem else 1e-3)
        assert recipe.training.max_tokens * recipe.training.accumulation == (64000 if "enru" in path.stem else 32000)


@pytest.mark.parametrize(
    ("stem", "rows"), [("lupo2023_enru_s4to4", 14), ("lupo2023_enru_s4to4_cd", 11), ("lupo2023_ende_s4to4_cd", 8)]
)
def test_rows_of_the_paper_by_overrides(stem, rows):
    """The rows of Tables 1 to 3 beside base, s4to4 and s4to4+CD, as the header of the recipe names them."""
    path = ROOT / "recipes" / f"{stem}.yaml"
    found = re.findall(r"^#   (.+?) +(model\..+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    encodings = {"shift": "shift", "1hot": "onehot", "sin": "sinusoidal", "lrn": "learned"}
    configs = set()
    for label, overrides in found:
        config = config_of(load_recipe(path, overrides.split()))
        encoding, *more = label.split()
        assert config.segment_encoding == encodings[encoding]
        assert config.persistent == ("pers" in more) and config.pse_dim == (4 if "PSE" in more else 0)
        assert config.segment_shift == ((8 if "enru" in stem else 21) if encoding == "shift" else None)
        configs.add(config.to_json_string())
    assert len(configs) == rows


@pytest.mark.parametrize("stem", SYSTEMS[3:])
@pytest.mark.parametrize("pair", ["enru", "ende"])
def test_recipes_that_are_such_rows(pair, stem):
    """A file of its own and the override in the header of s4to4_cd are the same system."""
    folder = ROOT / "recipes"
    label = {"shift_pers": "shift pers", "lrn_pers": "lrn pers", "sin_pers_pse": "sin pers PSE"}[stem[9:]]
    base = folder / f"lupo2023_{pair}_s4to4_cd.yaml"
    overrides = re.search(rf"^#   {label} +(model\..+)$", base.read_text(encoding="utf-8"), re.MULTILINE)[1].split()
    recipe = load_recipe(folder / f"lupo2023_{pair}_{stem}.yaml")
    assert load_recipe(base, [*overrides, f"output_dir={recipe.output_dir}"]) == recipe


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path, tmp_path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 80 and f"python examples/{path.name}" in text.split('"""')[1]
    command = [sys.executable, str(path), "--output", str(tmp_path / "model"), "--steps", "3", "--documents", "12"]
    done = subprocess.run(
        command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    translated = [line for line in done.stdout.splitlines() if "\t" in line]
    assert len(translated) >= 6, "the sentences of one document of the corpus"
    model, tokenizer = registry.load_model(tmp_path / "model")
    assert model.config.past_context == 3 and model.config.use_cache
    assert len(model.translate_documents([["Hello."]], tokenizer, num_beams=1, max_new_tokens=3)[0]) == 1
