"""Facts about a model or a recipe: architecture, parameters, context reach, sizes, tokenizer, languages."""

import dataclasses
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.loading import model_folders, registry
from hf_docmt.loading.model_files import check_model_files
from hf_docmt.loading.remote_code import load_tokenizer
from hf_docmt.modeling.configuration_docmt import DocMTConfig
from hf_docmt.training.initialization import model_config, new_tokenizer, recipe_origin
from hf_docmt.training.recipe import Recipe, load_recipe
from hf_docmt.training.recipe_files import SUFFIXES, find_recipe, similar_recipe
from hf_docmt.training.recipe_sections import TokenizerRecipe

SIZES = ("vocab_size", "d_model") + tuple(
    f"{side}_{size}" for side in ("encoder", "decoder") for size in ("layers", "attention_heads", "ffn_dim")
)


def describe(target: str | Path, overrides: Iterable[str] = ()) -> dict[str, Any]:
    """Facts about a model folder, a model on the Hub or a recipe (a file, or the name of a packaged one).

    `overrides` of a recipe are `section.key=value`, as in training.

    Returns a dict of values that JSON can hold: name, kind (`model`, `recipe`), architecture, context_reach, strategy,
    source_lang, target_lang, parameters (how many in each part, see `count_parameters`), sizes, mechanism (the fields
    that the architecture adds to the configuration) and tokenizer (kind, size, trained); of quantized weights also
    quantization, how. `render` makes a text of it.

    Parameters follow from the configuration; no weights are read but those of a recipe's `init_from`, which has to be
    there. The vocabulary of a recipe whose tokenizer is still to be trained is the size asked for, which a small corpus
    does not fill; `tokenizer.trained` is then false.

    Raises `ValueError` for a missing file or folder, a recipe that cannot be used, and a model of another kind.

    >>> describe("lupo2023_ende_s4to4")["context_reach"]
    '3 past and 0 future sentences, source and target'
    """
    recipe_file, overrides = find_recipe(target), list(overrides)
    if recipe_file.suffix in SUFFIXES or recipe_file.is_file():
        recipe = load_recipe(recipe_file, overrides)
        kind, (config, tokenizer) = "recipe", _recipe_facts(recipe)
        config.strategy = recipe.decoding.strategy  # as training sets it
    else:
        if overrides:
            raise ValueError(f"{overrides[0]}: overrides change recipes only, and this is a model; remove it")
        kind, (config, tokenizer) = "model", _model_facts(target)
    architecture, quantization = registry.for_config(config), getattr(config, "quantization_config", None)
    with torch.device("meta"):
        model = architecture.model_class(config)
    common = {field.name for field in dataclasses.fields(DocMTConfig)}
    own = [field.name for field in dataclasses.fields(config) if field.name not in common]
    return {
        "name": str(target),
        "kind": kind,
        "architecture": architecture.name,
        "context_reach": config.context_reach(),
        "strategy": model.default_strategy(),
        "source_lang": config.source_lang,
        "target_lang": config.target_lang,
        "parameters": count_parameters(model),
        "sizes": {name: getattr(config, name) for name in SIZES},
        "mechanism": {name: getattr(config, name) for name in own},
        "tokenizer": tokenizer,
        **({"quantization": quantization["quant_method"]} if quantization else {}),
    }


def render(facts: dict[str, Any]) -> str:
    """The result of `describe` as text for a terminal."""
    parameters, tokenizer = facts["parameters"], facts["tokenizer"]
    parts = ", ".join(f"{name} {count:,}" for name, count in parameters.items() if name != "total" and count)
    languages = " to ".join(facts[name] or "not recorded" for name in ("source_lang", "target_lang"))
    addition = "" if tokenizer["trained"] else " at most, to be trained"
    lines = {
        facts["kind"]: facts["name"],
        "architecture": facts["architecture"],
        "context": facts["context_reach"],
        "strategy": facts["strategy"],
        "languages": languages,
        "parameters": f"{parameters['total']:,} ({parts})",
        "sizes": _joined(facts["sizes"]),
        "mechanism": _joined(facts["mechanism"]),
        "tokenizer": f"{tokenizer['kind']}, {tokenizer['size']:,} tokens{addition}",
    }
    if "quantization" in facts:
        lines["weights"] = f"of linear layers {facts['quantization']}"
    width = max(map(len, lines))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines.items())


def count_parameters(model: PreTrainedModel) -> dict[str, int]:
    """Number of parameters, shared ones once: all, and those of embeddings, encoder, decoder and mechanism.

    `embeddings` are the tables of tokens, of learned positions and of the output; `mechanism` is what the architecture
    adds to the backbone.
    """
    backbone = dict(model_folders.backbone(model.config).named_parameters())
    counts = dict.fromkeys(("total", "embeddings", "encoder", "decoder", "mechanism"), 0)
    for name, parameter in model.named_parameters():
        counts["total"] += parameter.numel()
        counts[_part(name, backbone)] += parameter.numel()
    return counts


def _model_facts(target: str | Path) -> tuple[PreTrainedConfig, dict[str, Any]]:
    """Configuration and tokenizer facts of a model folder or a model on the Hub."""
    try:
        config = model_folders.load_config(target)  # which fails at once if the Hub is unreachable
        check_model_files(target)
        return config, _tokenizer_facts(load_tokenizer(target))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ValueError(
            f"{target} cannot be read as a model of this package: {reason}. Give a model folder, a name on the Hub or "
            f"a recipe (.yaml){similar_recipe(target) or '.'}"
        ) from error


def _recipe_facts(recipe: Recipe) -> tuple[PreTrainedConfig, dict[str, Any]]:
    """Configuration and tokenizer facts of what a recipe trains; no training data are read."""
    languages = (recipe.data.source_lang, recipe.data.target_lang)
    if recipe.init_from:
        model, tokenizer = recipe_origin(recipe)
        return model_config(recipe, tokenizer, model.config), _tokenizer_facts(tokenizer)
    planned = recipe.tokenizer or TokenizerRecipe()
    if planned.path is not None:
        tokenizer = new_tokenizer(planned)
        return model_config(recipe, tokenizer), _tokenizer_facts(tokenizer)
    config = registry.get(recipe.architecture).config_class(
        vocab_size=planned.vocab_size, source_lang=languages[0], target_lang=languages[1], **recipe.model
    )
    return config, {"kind": planned.model, "size": planned.vocab_size, "trained": False}


def _tokenizer_facts(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """Kind of the vocabulary and number of its tokens, special ones included."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    kind = type(tokenizer).__name__ if backend is None else type(backend.model).__name__.lower()
    return {"kind": kind, "size": len(tokenizer), "trained": True}


def _part(name: str, backbone: Collection[str]) -> str:
    if name not in backbone:
        return "mechanism"
    if any(table in name for table in ("shared.", "embed_tokens.", "embed_positions.", "lm_head.")):
        return "embeddings"
    return "encoder" if ".encoder." in name else "decoder"


def _joined(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)
