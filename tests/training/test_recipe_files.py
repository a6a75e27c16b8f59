"""Recipe files: bases and how they are merged, circles, packaged recipes by name, errors that name the right file."""

import pytest
import yaml
from support import recipe_files
from support.tiny_run import recipe_mapping

from hf_docmt.training.recipe import load_recipe, parse_recipe
from hf_docmt.training.recipe_files import find_recipe, packaged_recipes
from hf_docmt.training.recipe_schema import RecipeError


@pytest.fixture
def write(tmp_path):
    """Writes a recipe file from text or from a mapping, and returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
        return path

    return write


@pytest.fixture
def base(tmp_path, write):
    """A complete recipe in a folder of its own, for others to inherit from; its path and its values."""
    values = recipe_mapping(tmp_path, tmp_path / "run", clip=1.0, stream=None, adam_betas=[0.8, 0.9])
    return write("shared/base.yaml", values), values


def test_nearer_file_wins_key_by_key(tmp_path, write, base):
    path, values = base
    leaf = write(
        "leaf.yaml",
        "base: shared/base.yaml\noutput_dir: here\nmodel: {dropout: 0.3, past_context: 2}\n"
        "training: {clip: null, adam_betas: [0.7, 0.6]}\ntokenizer: null\n",
    )
    recipe = load_recipe(leaf)
    expected = parse_recipe(
        values
        | {
            "output_dir": "here",
            "model": values["model"] | {"dropout": 0.3, "past_context": 2},
            "training": values["training"] | {"clip": None, "adam_betas": [0.7, 0.6]},
            "tokenizer": None,
        }
    )
    assert recipe == expected and recipe.training.clip is None and recipe.tokenizer is None
    assert load_recipe(path) == parse_recipe(values), "a base is as it was"


def test_chain_of_bases_and_overrides(write, base):
    write("middle.yaml", "base: shared/base.yaml\nseed: 5\ntraining: {max_tokens: 700}\n")
    leaf = write("other/leaf.yaml", "base: ../middle.yaml\ntraining: {max_tokens: 800}\n")
    recipe = load_recipe(leaf)
    assert (recipe.seed, recipe.training.max_tokens, recipe.training.max_steps) == (5, 800, 12)
    changed = load_recipe(leaf, ["training.max_tokens=900", "seed=6", "model={d_model: 32}"])
    assert (changed.seed, changed.training.max_tokens, changed.model) == (6, 900, {"d_model": 32})


def test_files_of_another_format_replace_those_of_the_base(write, base):
    """The keys beside `format` belong to it; without it they are merged as elsewhere."""
    text = "base: shared/base.yaml\ndata: {train: {format: dtag, source: a, target: b}, validation: {path: c}}\n"
    data = load_recipe(write("leaf.yaml", text)).data
    assert data.train == {"format": "dtag", "source": "a", "target": "b"}
    assert data.validation == {"format": "jsonl", "path": "c"}


def test_saved_recipe_has_no_base(tmp_path, write, base):
    recipe = load_recipe(write("leaf.yaml", "base: shared/base.yaml\nseed: 9\n"))
    recipe.save(tmp_path / "saved.yaml")
    saved = yaml.safe_load((tmp_path / "saved.yaml").read_text(encoding="utf-8"))
    assert "base" not in saved and saved["seed"] == 9 and load_recipe(tmp_path / "saved.yaml") == recipe


def test_circle(tmp_path, write):
    write("a.yaml", "base: b.yaml\n")
    write("b.yaml", "base: c.yaml\n")
    write("c.yaml", "base: ./a.yaml\n")
    with pytest.raises(RecipeError) as raised:
        load_recipe(tmp_path / "a.yaml")
    chain = " -> ".join(str(tmp_path / f"{name}.yaml") for name in "abca")
    assert str(raised.value).startswith(f"{tmp_path}/c.yaml: base: the bases form a circle, {chain}; one of them must")
    with pytest.raises(RecipeError, match="form a circle, .*self.yaml -> .*self.yaml;"):
        load_recipe(write("self.yaml", "base: self.yaml\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base: shared/bas.yaml", "leaf.yaml: base: no file .*shared/bas.yaml; give a path relative to .*"),
        ("base: demo_concat5", "leaf.yaml: base: .* did you mean the packaged recipe 'demo_concat4'?"),
        (
            "base: [shared/base.yaml]",
            r"leaf.yaml: base: expected the path of a recipe file, got \['shared/base.yaml'\]",
        ),
        ("base: shared/base.yaml\nbase: shared/base.yaml", "leaf.yaml: not a YAML file.*key 'base' is given twice"),
    ],
)
def test_unusable_base(write, base, text, message):
    with pytest.raises(RecipeError, match=message):
        load_recipe(write("leaf.yaml", text))


@pytest.mark.parametrize(
    ("in_base", "in_leaf", "message"),
    [
        ("- 1\n", "seed: 3", r"^\S+broken.yaml: recipe: expected a mapping of keys to values, got \[1\]"),
        ("trainig: {clip: 1}\n", "seed: 3", r"^\S+broken.yaml \(base of \S+leaf.yaml\): trainig: unknown key; did you"),
        (
            "training: {clp: 1}\n",
            "seed: 3",
            r"^\S+broken.yaml \(base of .*training.clp: unknown key; did you mean 'clip'",
        ),
        (
            "training: {clip: 0, max_steps: 9}\n",
            "seed: 3",
            r"^\S+broken.yaml \(base of .*training.clip: expected more than 0, got 0",
        ),
        ("training: {clip: 0, max_steps: 9}\n", "training: {clp: 1}", r"^\S+leaf.yaml: training.clp: unknown key"),
        ("seed: 1\n", "seed: 3", r"^\S+leaf.yaml: output_dir: missing, and there is no default"),
    ],
)
def test_errors_name_the_file_of_the_key(tmp_path, write, in_base, in_leaf, message):
    write("broken.yaml", in_base)
    with pytest.raises(RecipeError, match=f"(?s){message}"):
        load_recipe(write("leaf.yaml", f"base: broken.yaml\n{in_leaf}\n"))


def test_errors_of_overrides(write, base):
    leaf = write("leaf.yaml", "base: shared/base.yaml\nseed: 3\n")
    for override, message in {
        "training.clip=0": "override 'training.clip=0': training.clip: expected more than 0, got 0",
        "training={clp: 1}": "override 'training={clp: 1}': training.clp: unknown key",
        "trainin.clip=1": "override 'trainin.clip=1': trainin: unknown key",
        "training.epochs=3": r"\S+leaf.yaml: training: expected one of max_steps and epochs",
    }.items():
        with pytest.raises(RecipeError, match=f"^{message}"):
            load_recipe(leaf, ["seed=4", override])
    with pytest.raises(RecipeError, match="override 'base=x.yaml': only a recipe file can name a base"):
        load_recipe(leaf, ["base=x.yaml"])
    with pytest.raises(RecipeError, match="base: unknown key"):
        parse_recipe(base[1] | {"base": "x.yaml"})


def test_packaged_recipes_by_name(tmp_path, monkeypatch, write):
    assert sorted(packaged_recipes().values()) == recipe_files.ALL
    assert load_recipe("lupo2023_ende_s4to4") == load_recipe(recipe_files.FOLDER / "lupo2023_ende_s4to4.yaml")
    assert load_recipe("demo_concat4", ["seed=4"]).seed == 4
    own = load_recipe(write("own.yaml", "base: demo_concat4\noutput_dir: own\n"))
    assert own.model["past_context"] == 3 and own.output_dir == "own"
    with pytest.raises(RecipeError, match="demo_concat: unknown recipe; did you mean the packaged recipe 'demo_con"):
        load_recipe("demo_concat")
    with pytest.raises(RecipeError, match="demo_concat4.yaml: unknown recipe"):
        load_recipe(tmp_path / "demo_concat4.yaml")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo_concat4").mkdir()
    assert find_recipe("demo_concat4").is_dir(), "a file or folder of that name is what was meant"


def test_bases_are_used_and_not_listed():
    """A base that nothing names would be a leftover; none can be trained by name."""
    used = set()
    for path in [*recipe_files.ALL, *recipe_files.BASES]:
        base = yaml.safe_load(path.read_text(encoding="utf-8")).get("base")
        used |= {(path.parent / base).resolve()} if base else set()
    assert set(recipe_files.BASES) <= used
    for path in recipe_files.BASES:
        assert path.stem not in packaged_recipes()
        if yaml.safe_load(path.read_text(encoding="utf-8")).get("data") is None:
            with pytest.raises(RecipeError, match="missing, and there is no default"):
                load_recipe(path)
