"""The recipe: one YAML file that says everything about a training run."""

import dataclasses
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from inspect import get_annotations
from pathlib import Path
from typing import Any, Literal

import yaml
from transformers import PreTrainedConfig

from hf_docmt import registry
from hf_docmt.training.recipe_schema import RecipeError, build, check_keys, convert

# Fields of a model config that have their own place in a recipe, or follow from the tokenizer.
ELSEWHERE = {
    "label_smoothing": "training.label_smoothing",
    "strategy": "decoding.strategy",
    "source_lang": "data.source_lang",
    "target_lang": "data.target_lang",
    "vocab_size": "tokenizer.vocab_size",
}


@dataclass
class TokenizerRecipe:
    """A tokenizer to load (`path`), or one trained on both sides of the training data."""

    path: str | None = None
    model: Literal["bpe", "unigram"] | None = None  # null = bpe
    vocab_size: int | None = None  # null = 32000
    lowercase: bool = False

    def __post_init__(self):
        if self.path is None:
            self.model, self.vocab_size = self.model or "bpe", 32000 if self.vocab_size is None else self.vocab_size
        elif self.model or self.vocab_size or self.lowercase:
            raise RecipeError("tokenizer: with path its vocabulary is taken as it is; leave the other keys out")


@dataclass
class DataRecipe:
    """Documents: for each part a mapping of `format` and the files that its reader takes."""

    source_lang: str
    target_lang: str
    train: dict[str, Any]
    validation: dict[str, Any]
    test: dict[str, Any] | None = None

    def __post_init__(self):
        for part in ("train", "validation", "test"):
            files = getattr(self, part)
            for name, value in (files or {}).items():
                several = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
                if name in ("source_lang", "target_lang"):
                    raise RecipeError(f"data.{part}.{name}: the languages are the same for all parts; set data.{name}")
                if not isinstance(value, str) and not several:
                    raise RecipeError(f"data.{part}.{name}: expected a text or a list of texts, got {value!r}")


@dataclass
class StreamRecipe:
    """Batches of models that carry a state from sentence to sentence; they take the place of `max_tokens`."""

    documents: int = 16  # side by side
    window: int = 10  # most sentences of each in one batch; how many is drawn at random
    memory_gradient: int = 2  # sentences through which the gradient of a loss flows, the current one included

    def __post_init__(self):
        for name, least in (("documents", 1), ("window", 1), ("memory_gradient", 2)):
            if getattr(self, name) < least:
                raise RecipeError(f"training.stream.{name}: expected at least {least}, got {getattr(self, name)}")


@dataclass
class TrainingRecipe:
    """Optimisation. One update = `max_tokens` x `accumulation` x processes, source and target tokens with padding."""

    max_tokens: int = 8000
    accumulation: int = 1
    max_steps: int | None = None
    epochs: float | None = None
    learning_rate: float = 5e-4
    new_learning_rate: float | None = None  # of parameters that `init_from` does not have
    freeze: bool = False  # train those alone, at `learning_rate`; what `init_from` has stays as it is
    scheduler: Literal["inverse_sqrt", "linear"] = "inverse_sqrt"
    warmup_steps: int = 4000
    adam_betas: tuple[float, float] = (0.9, 0.98)
    adam_epsilon: float = 1e-8
    weight_decay: float = 0.0
    clip: float | None = None  # largest gradient norm
    label_smoothing: float = 0.1
    context_discount: float = 1.0  # weight of context tokens in the loss
    coword_dropout: float = 0.0  # probability of a current source token to be masked
    dynamic_context: bool = False  # draw the number of context sentences anew for every example, up to the model's
    eval_steps: int | None = None  # updates between validations (and checkpoints); null = every epoch
    patience: int | None = None  # validations without a better loss before training stops
    average: int = 4  # checkpoints after the best one that are averaged with it
    stream: StreamRecipe | None = None  # of architectures that carry a state; null = the defaults
    bf16: bool = False
    workers: int = 0  # processes that load data
    log_steps: int = 100
    report_to: Literal["none", "tensorboard", "trackio"] = "none"

    def __post_init__(self):
        if (self.max_steps is None) == (self.epochs is None):
            raise RecipeError(
                f"training: expected one of max_steps and epochs, got max_steps={self.max_steps}, "
                f"epochs={self.epochs}; set one and leave the other null"
            )
        for name in ("max_tokens", "accumulation", "max_steps", "eval_steps", "patience", "log_steps"):
            self._check(name, lambda value: value >= 1, "at least 1")
        for name in ("learning_rate", "new_learning_rate", "epochs", "clip"):
            self._check(name, lambda value: value > 0, "more than 0")
        for name in ("warmup_steps", "weight_decay", "average", "workers"):
            self._check(name, lambda value: value >= 0, "at least 0")
        if not all(0 <= beta < 1 for beta in self.adam_betas):
            raise RecipeError(f"training.adam_betas: expected two numbers in [0, 1), got {list(self.adam_betas)}")
        for name in ("label_smoothing", "coword_dropout"):
            self._check(name, lambda value: 0 <= value < 1, "in [0, 1)")
        self._check("context_discount", lambda value: 0 <= value <= 1, "in [0, 1]")
        if self.freeze and self.new_learning_rate is not None:
            raise RecipeError(
                "training.new_learning_rate: with freeze only new parameters are trained, at learning_rate; set that "
                "and leave this out"
            )

    @property
    def about_new(self) -> list[str]:
        """The settings in use that tell new parameters from those of `init_from`."""
        return [name for name in ("new_learning_rate", "freeze") if getattr(self, name)]

    def _check(self, name: str, allowed, expected: str) -> None:
        value = getattr(self, name)
        if value is not None and not allowed(value):
            raise RecipeError(f"training.{name}: expected {expected}, got {value}")


@dataclass
class DecodingRecipe:
    """What the trained model does by default when it translates."""

    strategy: Literal["sentence", "sliding", "sequential", "full", "stream"] | None = (
        None  # null = the architecture's own
    )
    num_beams: int = 4
    length_penalty: float = 1.0

    def __post_init__(self):
        if self.num_beams < 1:
            raise RecipeError(f"decoding.num_beams: expected at least 1, got {self.num_beams}")
        if self.num_beams == 1 and self.length_penalty != 1:
            raise RecipeError(
                f"decoding.length_penalty: it weighs beams, got {self.length_penalty} with num_beams=1; leave it out, "
                "or raise num_beams"
            )


@dataclass
class Recipe:
    """One training run. `model` holds fields of the architecture's config."""

    output_dir: str
    data: DataRecipe
    training: TrainingRecipe
    architecture: str = "concat"
    model: dict[str, Any] = field(default_factory=dict)
    init_from: str | None = None  # folder of a trained model to start from, ours or Marian
    tokenizer: TokenizerRecipe | None = None  # null = a new one, or that of `init_from`
    decoding: DecodingRecipe = field(default_factory=DecodingRecipe)
    seed: int = 1

    def __post_init__(self):
        if self.init_from is not None and self.tokenizer is not None:
            raise RecipeError("tokenizer: must be null with init_from, whose tokenizer is taken; leave it out")
        for name in self.training.about_new:
            if self.init_from is None:
                raise RecipeError(f"training.{name}: needs init_from; without it all parameters are new")
        if self.decoding.strategy == "full" and self.model.get("context_sides") == "source":
            raise RecipeError(
                "decoding.strategy: 'full' writes all sentences, but model.context_sides is 'source'; use 'sliding'"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, in the order of the fields, from which `parse_recipe` makes the same recipe."""
        plain = dataclasses.asdict(self)
        plain["training"]["adam_betas"] = list(self.training.adam_betas)
        return plain

    def save(self, path: str | os.PathLike) -> None:
        """Write YAML, all values spelled out; a file that is there is replaced at once or not at all."""
        path = Path(path)
        partial = path.with_name(path.name + ".partial")
        partial.write_text(yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True), encoding="utf-8")
        os.replace(partial, path)


def load_recipe(path: str | os.PathLike, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe and apply overrides `section.key=value`, the value in YAML.

    Raises `RecipeError` (a `ValueError`) naming file, place, what was found and what is allowed.
    """
    path = Path(path)
    if not path.is_file():
        raise RecipeError(f"{path}: no such recipe; check the path, or start from one of examples/recipes")
    try:
        mapping = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: not a YAML file in UTF-8: {error}") from error
    try:
        return parse_recipe(mapping, overrides)
    except RecipeError as error:
        raise RecipeError(f"{path}: {error}") from error


def parse_recipe(mapping: Any, overrides: Iterable[str] = ()) -> Recipe:
    """Make a recipe from the mapping that a YAML file holds; see `load_recipe`."""
    for override in overrides:
        mapping = _overridden(mapping, override)
    recipe = build(Recipe, mapping, "")
    recipe.model = _model_fields(recipe.architecture, recipe.model)
    _check_training(recipe.training, recipe.architecture)
    if recipe.init_from is None:  # otherwise the fields that are left out follow from the checkpoint
        _check_model(recipe)
    return recipe


def config_fields(architecture: str) -> dict[str, Any]:
    """Name and type of the fields that the configs of this package add to those of transformers."""
    kind = registry.get(architecture).config_class
    own = {name for base in kind.__mro__[: kind.__mro__.index(PreTrainedConfig)] for name in get_annotations(base)}
    return {item.name: item.type for item in dataclasses.fields(kind) if item.name in own}


def _model_fields(architecture: str, values: dict[str, Any]) -> dict[str, Any]:
    """The values of the `model` section, checked against the config class of the architecture."""
    for name in values:
        if name in ELSEWHERE:
            raise RecipeError(f"model.{name}: follows from {ELSEWHERE[name]}; set that and leave this out")
    try:
        kinds = config_fields(architecture)
    except ValueError as error:
        raise RecipeError(f"architecture: {error}") from error
    check_keys(values, sorted(kinds.keys() - ELSEWHERE.keys()), "model")
    return {name: convert(value, kinds[name], f"model.{name}") for name, value in values.items()}


def _check_training(training: TrainingRecipe, name: str) -> None:
    """What the architecture of this name cannot be trained with."""
    carries_state = registry.get(name).carries_state
    if training.stream is not None and not carries_state:
        raise RecipeError(
            f"training.stream: architecture {name!r} carries no state from sentence to sentence; leave it out"
        )
    if training.context_discount != 1 and (registry.get(name).separate_context or carries_state):
        raise RecipeError(
            f"training.context_discount: it weighs the context in the target, which architecture {name!r} does not "
            f"write, expected 1, got {training.context_discount}; leave it out"
        )
    for key in ("coword_dropout", "dynamic_context"):
        if getattr(training, key) and carries_state:
            raise RecipeError(
                f"training.{key}: architecture {name!r} reads documents in order with a state, expected "
                f"{TrainingRecipe.__dataclass_fields__[key].default}, got {getattr(training, key)}; leave it out"
            )


def _check_model(recipe: Recipe) -> None:
    architecture = registry.get(recipe.architecture)
    try:
        config = architecture.config_class(**recipe.model)
    except ValueError as error:
        raise RecipeError(f"model: {error}") from error
    if recipe.training.dynamic_context and architecture.view(config) != "window":
        raise RecipeError(
            "training.dynamic_context: expected a window with context to draw from, got the view "
            f"{architecture.view(config)!r}; set model.view to window and model.past_context or model.future_context"
        )


def _overridden(mapping: Any, override: str) -> Any:
    place, equals, text = override.partition("=")
    if not equals or not place:
        raise RecipeError(f"override {override!r}: expected key=value, for example training.max_steps=1000")
    try:
        value = yaml.load(text, Loader=_UniqueKeys)
    except yaml.YAMLError as error:
        raise RecipeError(f"override {override!r}: the value is not YAML: {error}") from error
    head, _, rest = place.partition(".")
    mapping = dict(mapping or {}) if isinstance(mapping, dict | None) else mapping
    if not isinstance(mapping, dict):
        raise RecipeError(f"override {override!r}: {head!r} is inside {mapping!r}, which is not a mapping")
    mapping[head] = _overridden(mapping.get(head), f"{rest}={text}") if rest else value
    return mapping


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a key that is given twice is an error, not a silent choice of the last one."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        for place, key in enumerate(keys):
            if key in keys[:place]:
                raise yaml.MarkedYAMLError(problem=f"key {key!r} is given twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)
