"""The recipe: everything about a training run, read from one YAML file and the files that it is based on."""

import dataclasses
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from inspect import get_annotations
from typing import Any

import yaml
from transformers import PreTrainedConfig

from hf_docmt.data.examples import DOCUMENT
from hf_docmt.files import write_text
from hf_docmt.loading import registry
from hf_docmt.training.recipe_files import find_recipe, overridden, read_recipe, source_of
from hf_docmt.training.recipe_schema import RecipeError, build, check_keys, convert
from hf_docmt.training.recipe_sections import DataRecipe, DecodingRecipe, PeftRecipe, TokenizerRecipe, TrainingRecipe

# Fields of a model config that follow from another key of the recipe.
SET_ELSEWHERE = {
    "label_smoothing": "training.label_smoothing",
    "strategy": "decoding.strategy",
    "decoding_past_context": "decoding.past_context",
    "source_lang": "data.source_lang",
    "target_lang": "data.target_lang",
    "vocab_size": "tokenizer.vocab_size",
    "source_format": "init_from",
    "target_format": "init_from",
    "language_ids": "init_from",
    "base_model": "init_from",
}


@dataclass
class Recipe:
    """One training run. `model` holds fields of the architecture's config."""

    output_dir: str
    data: DataRecipe
    training: TrainingRecipe
    architecture: str = "concat"
    model: dict[str, Any] = field(default_factory=dict)
    init_from: str | None = None  # folder of a trained model to start from, of this package or Marian
    tokenizer: TokenizerRecipe | None = None  # null = a new one, or that of `init_from`
    peft: PeftRecipe | None = None  # null = all weights are trained
    decoding: DecodingRecipe = field(default_factory=DecodingRecipe)
    seed: int = 1

    def __post_init__(self):
        if not self.output_dir.strip():
            raise RecipeError("output_dir", f"expected a folder, got {self.output_dir!r}")
        if not 0 <= self.seed < 2**32:  # as numpy takes them
            raise RecipeError("seed", f"expected 0 to {2**32 - 1}, got {self.seed}")
        if self.init_from is not None and self.tokenizer is not None:
            raise RecipeError("tokenizer", "must be null with init_from, whose tokenizer is taken; remove it")
        if self.peft is not None and self.init_from is None:
            raise RecipeError("peft", "needs init_from, the model whose weights stay; without it all of them are new")
        if self.peft is not None and self.training.freeze:
            raise RecipeError("training.freeze", "with peft the weights of init_from are frozen anyway; remove it")
        for name in self.training.second_stage_settings:
            if self.init_from is None:
                raise RecipeError(f"training.{name}", "needs init_from; without it all parameters are new")
        if self.decoding.strategy == "full" and self.model.get("context_sides") == "source":
            raise RecipeError(
                "decoding.strategy", "'full' writes all sentences, but model.context_sides is 'source'; use 'sliding'"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, in the order of the fields, from which `parse_recipe` makes the same recipe."""
        values = dataclasses.asdict(self)
        values["training"]["adam_betas"] = list(self.training.adam_betas)
        return values

    def save(self, path: str | os.PathLike) -> None:
        """Write YAML, all values spelled out, without a base; an existing file is replaced at once or not at all."""
        write_text(yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True), path)


def load_recipe(target: str | os.PathLike, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe, merge it into its base and apply overrides `section.key=value`, the value in YAML.

    `target` is the path of a YAML file, or the name of a recipe that comes with the package
    (`load_recipe("lupo2023_ende_s4to4")`); see `hf_docmt.training.recipe_files.read_recipe` for how a base is merged.

    Raises `RecipeError` (a `ValueError`) that names the file or override, the key, the value and the allowed ones.

    >>> recipe = load_recipe("lupo2023_ende_s4to4", ["training.max_steps=1000", "training.epochs=null"])
    >>> recipe.architecture, recipe.model["past_context"]
    ('concat', 3)
    """
    path, overrides = find_recipe(target), list(overrides)
    values, sources = read_recipe(path)
    try:
        return parse_recipe(values, overrides)
    except RecipeError as error:
        keys = {override: f"{override.partition('=')[0]}." for override in overrides}
        inside = [override for override, key in keys.items() if f"{error.key}.".startswith(key)]
        around = [override for override, key in keys.items() if key.startswith(f"{error.key}.")]
        if inside or around and error.key not in sources:
            raise RecipeError(f"override {[*around, *inside][-1]!r}", str(error)) from error
        file = path if around else source_of(error.key, sources, path)
        where = str(path) if file == path else f"{file} (base of {path})"
        raise RecipeError(where, str(error)) from error


def parse_recipe(values: Mapping[str, Any], overrides: Iterable[str] = ()) -> Recipe:
    """Make a recipe from the mapping that a YAML file without a base holds; see `load_recipe`."""
    for override in overrides:
        values = overridden(values, override)
    _check_likely_mistakes(values)
    recipe = build(Recipe, values)
    recipe.model = _model_fields(recipe.architecture, recipe.model)
    _check_training(recipe.training, recipe.architecture)
    if recipe.init_from is None:  # otherwise missing fields follow from the checkpoint
        _check_model(recipe)
    return recipe


def config_fields(architecture: str) -> dict[str, Any]:
    """Name and type of the fields that the configs of this package add to those of transformers."""
    kind = registry.get(architecture).config_class
    own = {name for base in kind.__mro__[: kind.__mro__.index(PreTrainedConfig)] for name in get_annotations(base)}
    return {item.name: item.type for item in dataclasses.fields(kind) if item.name in own}


def _check_likely_mistakes(values: Any) -> None:
    """RecipeError for a key that belongs in a section, such as `max_steps`, and for a file as `data.train`."""
    sections = (DecodingRecipe, DataRecipe, TokenizerRecipe, TrainingRecipe)
    full = {item.name: f"{kind.key}.{item.name}" for kind in sections for item in dataclasses.fields(kind)}
    own = {item.name for item in dataclasses.fields(Recipe)}
    values = values if isinstance(values, Mapping) else {}
    for name in values.keys() - own:
        architecture = values.get("architecture", "concat")
        model = config_fields(architecture) if architecture in registry.ARCHITECTURES else ()
        if key := f"model.{name}" if name in model and name not in SET_ELSEWHERE else full.get(name):
            value = yaml.safe_dump(values[name], default_flow_style=True).partition("\n")[0]
            raise RecipeError(name, f"unknown key; did you mean {key}={value}?")
    data = values.get("data")
    for part in ("train", "validation", "test"):
        if isinstance(data, Mapping) and isinstance(path := data.get(part), str):
            raise RecipeError(
                f"data.{part}", f"expected a mapping, got {path!r}; did you mean data.{part}.path={path}?"
            )


def _model_fields(architecture: str, values: dict[str, Any]) -> dict[str, Any]:
    """The values of the `model` section, checked against the config class of the architecture."""
    for name in values:
        if name in SET_ELSEWHERE:
            raise RecipeError(f"model.{name}", f"follows from {SET_ELSEWHERE[name]}; set that and remove this")
    try:
        kinds = config_fields(architecture)
    except ValueError as error:
        raise RecipeError("architecture", str(error)) from error
    check_keys(values, sorted(kinds.keys() - SET_ELSEWHERE.keys()), "model")
    return {name: convert(value, kinds[name], f"model.{name}") for name, value in values.items()}


def _check_training(training: TrainingRecipe, name: str) -> None:
    """Raise `RecipeError` for settings with which the architecture of this name cannot be trained."""
    architecture, text = registry.get(name), f"architecture {name!r}"
    if training.stream is not None and not architecture.carries_state:
        raise RecipeError("training.stream", f"{text} carries no state from sentence to sentence; remove it")
    ordered = {"coword_dropout": 0.0, "target_noise": 0.0, "dynamic_context": False, "resolutions": "null"}
    for key, default in ordered.items():
        if getattr(training, key) and architecture.carries_state:
            problem = f"{text} reads documents in order with a state, expected {default}, got {getattr(training, key)}"
            raise RecipeError(f"training.{key}", f"{problem}; remove it")
    if training.resolutions and architecture.separate_context:
        raise RecipeError("training.resolutions", f"{text} reads one sentence with its context, no segments; remove it")


def check_examples(training: TrainingRecipe, config: PreTrainedConfig) -> None:
    """Raise `RecipeError` for settings that do not fit the examples which a model of this configuration reads."""
    _check_context_discount(training, config)
    view = registry.for_config(config).view(config)
    if training.dynamic_context and view == "sentence":
        raise RecipeError(
            "training.dynamic_context",
            f"expected a window or chunk with context to draw from, got the view {view!r}; set model.past_context or "
            "model.future_context, or model.view to chunk",
        )
    if training.resolutions:
        _check_resolutions(training.resolutions, view, config)
    sides = getattr(config, "context_sides", "source")
    if training.target_noise and (sides == "source" or view != "chunk" and not config.past_context):
        problem = f"the model reads no earlier translations (context of {sides}, past_context={config.past_context})"
        raise RecipeError("training.target_noise", f"{problem}; remove it")


def _check_resolutions(resolutions: list[int | str], view: str, config: PreTrainedConfig) -> None:
    key = "training.resolutions"
    if view == "sentence":
        problem = "the model reads single sentences, expected a model of windows or chunks"
        raise RecipeError(key, f"{problem}; set model.view to chunk, or model.past_context")
    if config.context_sides == "source":
        problem = "a segment is translated whole, but model.context_sides is 'source'"
        raise RecipeError(key, f"{problem}; remove one of them")
    longer = [one for one in resolutions if view == "window" and (one == DOCUMENT or one > config.window_size)]
    if longer:
        problem = f"the model reads windows of {config.window_size} sentences, got {longer[0]!r}"
        raise RecipeError(key, f"{problem}; remove it, or set model.view to chunk")


def _check_context_discount(training: TrainingRecipe, config: PreTrainedConfig) -> None:
    """Raise `RecipeError` for a discount of context that the model of this configuration does not write."""
    architecture, view = registry.for_config(config), registry.for_config(config).view(config)
    if training.context_discount != 1 and training.resolutions:
        problem = "with training.resolutions every sentence of a segment is learned, expected 1, got"
        raise RecipeError("training.context_discount", f"{problem} {training.context_discount}; remove one of them")
    writes = architecture.reads_segments and view == "window" and config.context_sides != "source"
    if training.context_discount != 1 and not writes:
        raise RecipeError(
            "training.context_discount",
            f"it weighs the context in the target of windows, which a model of architecture {architecture.name!r}, "
            f"view {view!r} and context_sides {config.context_sides!r} does not write, expected 1, got "
            f"{training.context_discount}; remove it",
        )


def _check_model(recipe: Recipe) -> None:
    architecture = registry.get(recipe.architecture)
    try:
        config = architecture.config_class(**recipe.model)
    except ValueError as error:
        raise RecipeError("model", str(error)) from error
    check_examples(recipe.training, config)
