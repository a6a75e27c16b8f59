"""What a model or a recipe is: architecture, parameters, context reach, sizes, tokenizer, languages."""

import dataclasses
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoTokenizer, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt import registry
from hf_docmt.training.initialization import load_origin, model_config, new_tokenizer
from hf_docmt.training.recipe import Recipe, load_recipe
from hf_docmt.training.recipe_files import SUFFIXES, find_recipe, similar_recipe
from hf_docmt.training.recipe_sections import TokenizerRecipe

BASE_CONFIG = "hf_docmt.modeling.configuration_docmt:DocMTConfig"
BACKBONE = "hf_docmt.modeling.modeling_docmt:DocMTForConditionalGeneration"
SIZES = ("vocab_size", "d_model") + tuple(
    f"{side}_{size}" for side in ("encoder", "decoder") for size in ("layers", "attention_heads", "ffn_dim")
)


def describe(target: str | Path) -> dict[str, Any]:
    """Facts about a model folder, a model on the Hub or a recipe, as values that JSON can hold.

    No weights are read: parameters follow from the configuration. The vocabulary of a recipe whose tokenizer is still
    to be trained is the size asked for, which a small corpus does not fill; `tokenizer.trained` is then false.

    Raises `ValueError` for a missing file or folder, a recipe that cannot be used, and a model of another kind.
    """
    recipe_file = find_recipe(target)
    if recipe_file.suffix in SUFFIXES or recipe_file.is_file():
        kind, (config, tokenizer) = "recipe", of_recipe(load_recipe(recipe_file))
    else:
        kind, (config, tokenizer) = "model", of_model(target)
    architecture = registry.for_config(config)
    with torch.device("meta"):
        model = architecture.model_class(config)
    return {
        "name": str(target),
        "kind": kind,
        "architecture": architecture.name,
        "context_reach": architecture.reach(config),
        "strategy": model.default_strategy(),
        "source_lang": config.source_lang,
        "target_lang": config.target_lang,
        "parameters": count_parameters(model),
        "sizes": {name: getattr(config, name) for name in SIZES},
        "mechanism": mechanism_fields(config),
        "tokenizer": tokenizer,
    }


def render(facts: dict[str, Any]) -> str:
    """What `describe` returns, as text for a terminal."""
    parameters, tokenizer = facts["parameters"], facts["tokenizer"]
    parts = ", ".join(f"{name} {count:,}" for name, count in parameters.items() if name != "total" and count)
    languages = " to ".join(facts[name] or "not recorded" for name in ("source_lang", "target_lang"))
    state = "" if tokenizer["trained"] else " at most, to be trained"
    lines = {
        facts["kind"]: facts["name"],
        "architecture": facts["architecture"],
        "context": facts["context_reach"],
        "strategy": facts["strategy"],
        "languages": languages,
        "parameters": f"{parameters['total']:,} ({parts})",
        "sizes": _listed(facts["sizes"]),
        "mechanism": _listed(facts["mechanism"]),
        "tokenizer": f"{tokenizer['kind']}, {tokenizer['size']:,} tokens{state}",
    }
    width = max(map(len, lines))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines.items())


def of_model(target: str | Path) -> tuple[PreTrainedConfig, dict[str, Any]]:
    """Configuration and tokenizer facts of a model folder or a model on the Hub."""
    folder = Path(target)
    if folder.exists() and not (folder / "config.json").is_file():
        raise ValueError(f"{target} holds no model: config.json is missing; give a model folder or a recipe (.yaml)")
    registry.register_all()
    try:
        config = AutoConfig.from_pretrained(target)
        registry.for_config(config)
        return config, tokenizer_facts(AutoTokenizer.from_pretrained(target))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ValueError(
            f"{target} cannot be read as a model of this package: {reason}. Give a model folder, a name on the Hub or "
            f"a recipe (.yaml){similar_recipe(target)}."
        ) from error


def of_recipe(recipe: Recipe) -> tuple[PreTrainedConfig, dict[str, Any]]:
    """Configuration and tokenizer facts of what a recipe trains; no training data are read."""
    languages = (recipe.data.source_lang, recipe.data.target_lang)
    if recipe.init_from:
        model, tokenizer = load_origin(recipe.init_from)
        return model_config(recipe, tokenizer, model.config), tokenizer_facts(tokenizer)
    plan = recipe.tokenizer or TokenizerRecipe()
    if plan.path is not None:
        tokenizer = new_tokenizer(plan, None, languages)
        return model_config(recipe, tokenizer), tokenizer_facts(tokenizer)
    config = registry.get(recipe.architecture).config_class(
        vocab_size=plan.vocab_size, source_lang=languages[0], target_lang=languages[1], **recipe.model
    )
    return config, {"kind": plan.model, "size": plan.vocab_size, "trained": False}


def tokenizer_facts(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """Kind of the vocabulary and number of its tokens, special ones included."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    kind = type(tokenizer).__name__ if backend is None else type(backend.model).__name__.lower()
    return {"kind": kind, "size": len(tokenizer), "trained": True}


def count_parameters(model: PreTrainedModel) -> dict[str, int]:
    """Number of parameters, shared ones once: all, and those of embeddings, encoder, decoder and mechanism.

    `embeddings` are the tables of tokens, of learned positions and of the output; `mechanism` is what the architecture
    adds to the backbone.
    """
    with torch.device("meta"):
        backbone = {name for name, _ in registry.load(BACKBONE)(model.config).named_parameters()}
    counts = dict.fromkeys(("total", "embeddings", "encoder", "decoder", "mechanism"), 0)
    for name, parameter in model.named_parameters():
        counts["total"] += parameter.numel()
        counts[_part(name, backbone)] += parameter.numel()
    return counts


def mechanism_fields(config: PreTrainedConfig) -> dict[str, Any]:
    """The fields that the architecture's configuration adds to the common one."""
    common = {field.name for field in dataclasses.fields(registry.load(BASE_CONFIG))}
    return {field.name: getattr(config, field.name) for field in dataclasses.fields(config) if field.name not in common}


def _part(name: str, backbone: set[str]) -> str:
    if name not in backbone:
        return "mechanism"
    if any(table in name for table in ("shared.", "embed_tokens.", "embed_positions.", "lm_head.")):
        return "embeddings"
    return "encoder" if ".encoder." in name else "decoder"


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)
