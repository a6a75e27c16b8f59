"""Low-rank adaptation of a model: its layers, the modules that are fully trained in addition, and its base model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.files import atomic_folder
from hf_docmt.loading import model_folders, registry
from hf_docmt.loading.adapters import BASE, import_peft, with_adapter
from hf_docmt.messages import closest_hint
from hf_docmt.modeling.fingerprints import add_tokenizer_fingerprint, write_fingerprints
from hf_docmt.training.checkpoints import save_whole
from hf_docmt.training.recipe import config_fields
from hf_docmt.training.recipe_sections import PeftRecipe

if TYPE_CHECKING:
    from peft import PeftModel

TRAINING_FIELDS = {  # of a configuration, that change no logits outside of training
    "dropout", "attention_dropout", "activation_dropout", "label_smoothing", "strategy", "decoding_past_context",
}  # fmt: skip


def add_adapter(model: PreTrainedModel, recipe: PeftRecipe, base: str) -> tuple[PeftModel, frozenset[str]]:
    """The model with an adapter, and the names of fully trained parameters; `base` is the place of the model.

    Fully trained are the modules that the architecture adds to the backbone, and of the embeddings the rows of tokens
    that a segment of several sentences has. Raises `ValueError` for missing layers, or without peft.
    """
    mechanism, tokens = mechanism_modules(model), trained_tokens(model)
    tables = ["model.encoder.embed_tokens"]  # of tied ones peft needs the encoder's alone
    if not model.config.has_shared_table:
        tables += ["model.decoder.embed_tokens", "lm_head"]
    config = import_peft().LoraConfig(
        task_type="SEQ_2_SEQ_LM",
        base_model_name_or_path=base,
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        lora_dropout=recipe.dropout,
        target_modules=adapted_layers(model, recipe.target_modules, mechanism),
        modules_to_save=mechanism or None,
        trainable_token_indices=dict.fromkeys(tables, tokens) if tokens else None,
    )
    model = with_adapter(model, config)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    return model, frozenset(name for name in trained if ".lora_" not in name)


def mechanism_modules(model: PreTrainedModel) -> list[str]:
    """Names of the innermost modules whose parameters the backbone does not have.

    Raises `ValueError` for parameters of a module that has others inside, which cannot be trained without them.
    """
    common = dict(model_folders.backbone(model.config).named_parameters(remove_duplicate=False))
    mechanism = []
    for name, module in model.named_modules():
        own = [f"{name}.{key}" for key, _ in module.named_parameters(recurse=False)]
        new = [key for key in own if key not in common]
        if new and next(module.children(), None) is not None:
            raise ValueError(f"peft: {new[0]} is next to other modules; put it into a separate module")
        mechanism += [name] * bool(new)
    return mechanism


def adapted_layers(model: PreTrainedModel, endings: list[str], mechanism: list[str]) -> list[str]:
    """Full names of the linear layers of encoder and decoder that end in one of `endings`, without the mechanism."""
    linear = [
        name
        for name, module in model.model.named_modules(prefix="model")
        if isinstance(module, nn.Linear) and name not in mechanism
    ]
    layers = []
    for ending in endings:
        matching = [name for name in linear if f".{name}".endswith(f".{ending}")]
        if not matching:
            endings_there = sorted({name.rpartition(".")[2] for name in linear})
            raise ValueError(
                f"peft.target_modules: no linear layer {ending!r}{closest_hint(ending, endings_there)}; expected "
                f"{', '.join(endings_there)}, or longer ends of names such as encoder_attn.q_proj"
            )
        layers += matching
    return list(dict.fromkeys(layers))


def trained_tokens(model: PreTrainedModel) -> list[int]:
    """Tokens that a sentence-level model has not met: `<sep>` of segments of several sentences, `<bod>` if used."""
    config, architecture = model.config, registry.for_config(model.config)
    alone = not architecture.reads_segments or architecture.view(config) == "sentence"
    return [config.sep_token_id] * (not alone) + [config.bod_token_id] * config.use_bod


def save_base(
    model: PreTrainedModel, origin: PreTrainedModel, init_from: str, tokenizer: PreTrainedTokenizerBase, output: Path
) -> str:
    """Folder of the model that an adapter of this run adapts: `init_from` if it is this model, otherwise a new `base`.

    It is this model if all settings except those of training are the same.
    """
    if origin.name_or_path == init_from and origin.config.model_type == model.config.model_type:
        names = config_fields(registry.for_config(model.config).name).keys() - TRAINING_FIELDS
        if all(getattr(origin.config, name) == getattr(model.config, name) for name in names):
            return init_from
    base = output / BASE
    if not base.exists():
        with atomic_folder(base) as unfinished:
            model.save_pretrained(unfinished)
            tokenizer.save_pretrained(unfinished)
            add_tokenizer_fingerprint(unfinished, tokenizer)
    return str(base)


def save_adapter(model: PeftModel, weights: dict[str, torch.Tensor], folder: str | Path) -> None:
    """Save these weights of an adapter in the folder of a run, with the configurations of its model."""
    import_peft().set_peft_model_state_dict(model, weights)
    save_whole(model, folder)
    (Path(folder) / "README.md").unlink()  # peft's, with nothing filled in
    model.config.to_json_file(Path(folder) / "config.json")
    model.generation_config.save_pretrained(folder)
    write_fingerprints(folder, type(model.config))


def is_adapted(model: torch.nn.Module) -> bool:
    """Whether a model has an adapter around it."""
    return hasattr(model, "peft_config")
