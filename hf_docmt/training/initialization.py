"""The start of training: a new model, or a trained one with the mechanism added (two-stage training)."""

import copy
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tokenizers
from datasets import Dataset
from tokenizers import Tokenizer
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.data.tokenized_documents import sample_texts
from hf_docmt.data.tokenizers import adapt_tokenizer, train_tokenizer, trained_tokenizer
from hf_docmt.files import write_text
from hf_docmt.journal import value_digest
from hf_docmt.loading import model_folders, registry
from hf_docmt.loading.pretrained import (
    add_neutral_mechanism,
    from_sentence_model,
    is_sentence_model,
    mechanism_parameters,
    set_search_languages,
    set_tokenizer_languages,
)
from hf_docmt.loading.remote_code import load_tokenizer
from hf_docmt.messages import __version__
from hf_docmt.training.recipe import SET_ELSEWHERE, Recipe, config_fields
from hf_docmt.training.recipe_sections import TokenizerRecipe

CONTEXT_FIELDS = ("past_context", "future_context", "context_sides", "view", "chunk_tokens")


def recipe_origin(recipe: Recipe) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Model and tokenizer of the recipe's `init_from`, see `load_origin`; the tokenizer gets the recipe's languages.

    ValueError also for languages that are not codes of the model.
    """
    languages = {"source_lang": recipe.data.source_lang, "target_lang": recipe.data.target_lang}
    model, tokenizer = load_origin(recipe.init_from, recipe.architecture, **recipe.model, **languages)
    set_tokenizer_languages(tokenizer, model.config.language_codes(**languages))
    return model, tokenizer


def untrained_parameters(recipe: Recipe, origin: PreTrainedModel) -> frozenset[str]:
    """Names of the untrained parameters of the recipe's origin: those added when a model was converted."""
    return mechanism_parameters(origin) if is_sentence_model(recipe.init_from) else frozenset()


def load_origin(
    folder: str | Path, architecture: str = "concat", **fields
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Model and tokenizer of `init_from`: a folder with a model of this package, or of Marian, BART, mBART, M2M-100.

    The latter becomes a model of this architecture with these fields, and starts neutral. Raises `ValueError` for a
    folder without a model, a checkpoint of another architecture and weights that cannot be read.
    """
    if not (Path(folder) / "config.json").is_file():
        raise ValueError(f"init_from: {folder} has no config.json; give the folder of a trained model")
    try:
        model_type = model_folders.read_config(folder).get("model_type")
        if registry.is_ours(model_type):
            return model_folders.load_model(folder)
        return from_sentence_model(folder, architecture=architecture, **fields)
    except ValueError as error:
        raise ValueError(f"init_from: {error}") from error


def new_tokenizer(
    recipe: TokenizerRecipe, documents: Dataset | None = None, cache: Path | None = None
) -> PreTrainedTokenizerBase:
    """The tokenizer that the recipe names, with `<sep>` and `<bod>`, or one trained on both sides of the documents.

    A trained one is kept in the folder `cache`; documents and folder are for training alone.
    """
    if recipe.path is not None:
        if not Path(recipe.path).is_dir():
            raise ValueError(f"tokenizer.path: no folder {recipe.path}; give the folder of a saved tokenizer")
        registry.register_all()
        return adapt_tokenizer(load_tokenizer(recipe.path))[0]
    versions = [__version__, tokenizers.__version__]
    key = {"documents": documents._fingerprint, "recipe": asdict(recipe), "versions": versions}
    file = cache / f"tokenizer-{value_digest(key)[:32]}.json"
    if not file.exists():
        texts = sample_texts(documents, recipe.sample)
        trained = train_tokenizer(texts, recipe.model, recipe.vocab_size, recipe.lowercase)
        write_text(trained.backend_tokenizer.to_str(pretty=True), file)
    return trained_tokenizer(Tokenizer.from_file(str(file)))


def model_config(
    recipe: Recipe, tokenizer: PreTrainedTokenizerBase, origin: PreTrainedConfig | None = None
) -> PreTrainedConfig:
    """The config that the recipe describes; what it does not name comes from the config of `init_from`, if any.

    The context settings of a model that reads context in its own segment are not those of one that reads separate
    context sentences, or one sentence at a time: its own defaults hold.
    """
    architecture = registry.get(recipe.architecture)
    values = _token_ids(tokenizer)
    if origin is not None:
        earlier = registry.for_config(origin)
        newly_separate = architecture.separate_context and not earlier.separate_context
        newly_stateful = architecture.carries_state and not earlier.carries_state
        names = config_fields(recipe.architecture).keys() - (CONTEXT_FIELDS if newly_separate or newly_stateful else ())
        changed = {name for name, value in recipe.model.items() if value != getattr(origin, name, None)}
        names = names.difference(*(architecture.config_class.dependent_fields.get(name, ()) for name in changed))
        values = {name: getattr(origin, name) for name in names if hasattr(origin, name)}
    values |= recipe.model
    values |= {"source_lang": recipe.data.source_lang, "target_lang": recipe.data.target_lang}
    values |= {"label_smoothing": recipe.training.label_smoothing}
    try:
        return architecture.config_class(**values)
    except ValueError as error:
        raise ValueError(f"model: {error}") from error


def build_model(
    config: PreTrainedConfig, origin: PreTrainedModel | None = None, neutral: bool = False
) -> tuple[PreTrainedModel, frozenset[str]]:
    """A model of this config with the weights of `origin` that have the same names, and the names of the other ones.

    `model.adapt_state_dict` changes what differs in the weights of `origin` for this config. New parameters are drawn;
    with `neutral` they leave the output unchanged. Raises `ValueError` for a weight of `origin` that the model does
    not have, for one of another size, and for a mechanism of `origin` that a neutral start would undo.
    """
    model = registry.for_config(config).model_class(config)
    if origin is None:
        return model, frozenset()
    theirs, new = model.adapt_state_dict(origin.state_dict(), origin.config)
    ours = model.state_dict()
    lost = [name for name in theirs if name not in ours]
    other = [
        f"{name} {'x'.join(map(str, tensor.shape))} there, {'x'.join(map(str, ours[name].shape))} here"
        for name, tensor in theirs.items()
        if name in ours and tensor.shape != ours[name].shape
    ]
    for problem, names, remedy in (
        ("weights that this model has not", lost, "use the values of the checkpoint, or start from another one"),
        ("weights of other sizes", other, "remove the sizes from the model section, they follow from the checkpoint"),
    ):
        if names:
            some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            raise ValueError(
                f"init_from: the checkpoint has {problem} ({some}); {_differences(origin.config, config)}: {remedy}"
            )
    model.load_state_dict(theirs, strict=False)
    if neutral:
        add_neutral_mechanism(model, origin)
    model.generation_config = copy.deepcopy(origin.generation_config)
    set_search_languages(model)
    return model, frozenset(new)


def train_only(model: PreTrainedModel, names: Collection[str]) -> None:
    """Freeze all parameters but those named: the second step of two (Zhang et al. 2018, section 3.4)."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in names)


def _token_ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    names = [f"{name}_token_id" for name in ("pad", "unk", "bos", "eos", "sep")]
    values = {name: getattr(tokenizer, name) for name in names}
    start = values["pad_token_id"] if values["bos_token_id"] is None else values["bos_token_id"]
    return values | {
        "bod_token_id": tokenizer.convert_tokens_to_ids("<bod>"),
        "decoder_start_token_id": start,
        "vocab_size": max(tokenizer.get_vocab().values()) + 1,
    }


def _differences(before: PreTrainedConfig, now: PreTrainedConfig) -> str:
    """The fields that a recipe sets in which two configs differ."""
    there, here = (registry.for_config(config).name for config in (before, now))
    fields = {"architecture": (there, here)}
    for name in config_fields(there).keys() & config_fields(here).keys() - SET_ELSEWHERE.keys():
        fields[name] = getattr(before, name), getattr(now, name)
    differences = [f"{name} {old!r} there, {new!r} here" for name, (old, new) in sorted(fields.items()) if old != new]
    return "; ".join(differences) or "its settings are the same"
