"""Adapters of peft: where a folder has one, what it adapts, and putting it into the weights of that model."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from hf_docmt.messages import install_command

if TYPE_CHECKING:
    from peft import PeftConfig, PeftModel
    from transformers import PreTrainedModel

ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
BASE = "base"  # folder inside that of an adapter with the model that it adapts, where no other folder is that model
ADAPTER = "default"  # peft's name for the one adapter of a model


def import_peft() -> ModuleType:
    """The library. Raises `ValueError` where it is not installed."""
    try:
        import peft
    except ImportError as error:
        raise ValueError(f"adapters need peft, which is not installed: {install_command('peft')}") from error
    return peft


def adapted_model(path: str | Path, revision: str | None = None) -> str | None:
    """Folder or Hub name of the model that the adapter in `path` adapts; None if `path` holds no adapter.

    It is the folder `base` next to the adapter, or the one that `adapter_config.json` names. Raises `ValueError` where
    that file is broken or names none.
    """
    from transformers.utils import find_adapter_config_file

    file = find_adapter_config_file(str(path), revision=revision)
    if file is None:
        return None
    if (Path(path) / BASE / "config.json").is_file():
        return str(Path(path) / BASE)
    try:
        name = json.loads(Path(file).read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} does not describe an adapter ({error!r}); copy the folder again") from error
    if not isinstance(name, str) or not name:
        raise ValueError(f"{file}: base_model_name_or_path is {name!r}, expected the folder or name of a model; add it")
    return name


def with_adapter(model: PreTrainedModel, config: PeftConfig) -> PeftModel:
    """The model with a new adapter around its layers; copies that peft trains of tied weights are tied again."""
    peft = import_peft()
    from hf_docmt.loading.trained_tokens import TrainedTokens

    model.name_or_path = config.base_model_name_or_path
    wrapped = peft.get_peft_model(model, config)
    for name, source in model.all_tied_weights_keys.items():
        tied, original = (model.get_submodule(key.rpartition(".")[0]) for key in (name, source))
        for copies, parameter in (("modules_to_save", "weight"), ("token_adapter", "trainable_tokens_delta")):
            if hasattr(tied, copies) and hasattr(original, copies):
                _tie(getattr(tied, copies), getattr(original, copies), parameter)
    for module in wrapped.modules():
        if hasattr(module, "token_adapter"):
            module.token_adapter.__class__ = TrainedTokens
    return wrapped


def merge_adapter(model: PreTrainedModel, base: str, path: str | Path, revision: str | None = None) -> PreTrainedModel:
    """The model of `base` with the adapter in `path` put into its weights: a model as any other.

    Its generation config is the one next to the adapter, if any. Raises `ValueError` for an adapter of another
    model, and for one without its weights.
    """
    from transformers import GenerationConfig
    from transformers.utils import GENERATION_CONFIG_NAME, cached_file

    peft = import_peft()
    options = {} if revision is None else {"revision": revision}
    config = peft.PeftConfig.from_pretrained(str(path), **options)
    config.inference_mode, config.base_model_name_or_path = True, base
    weights = peft.load_peft_weights(str(path), device="cpu", **options)
    try:
        wrapped = with_adapter(model, config)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: the adapter does not fit {base} ({error}); {REMEDY}") from error
    expected = peft.get_peft_model_state_dict(wrapped, save_embedding_layers=False)
    shapes = [{name: tuple(tensor.shape) for name, tensor in tensors.items()} for tensors in (expected, weights)]
    wrong = sorted(name for name in shapes[0] | shapes[1] if shapes[0].get(name) != shapes[1].get(name))
    if wrong:
        raise ValueError(f"{path}: {len(wrong)} weights of the adapter do not fit {base} ({wrong[0]}); {REMEDY}")
    peft.set_peft_model_state_dict(wrapped, weights)
    tied = model.config.tie_word_embeddings
    with warnings.catch_warnings():  # peft takes tables that differ on the two sides for untied ones
        warnings.filterwarnings("ignore", message="Input and output embeddings are no longer tied")
        merged = wrapped.merge_and_unload()
    merged.config.tie_word_embeddings = tied
    merged.tie_weights()
    if file := cached_file(str(path), GENERATION_CONFIG_NAME, _raise_exceptions_for_missing_entries=False, **options):
        merged.generation_config = GenerationConfig.from_pretrained(Path(file).parent)
    return merged


REMEDY = "give it the model that it was trained on (base_model_name_or_path in adapter_config.json)"


def _tie(tied, original, parameter: str) -> None:
    """Make peft's trained copy of one module that of another one."""
    if parameter == "weight":
        tied[ADAPTER].weight = original[ADAPTER].weight
    elif tied.tied_adapter is None:
        tied.trainable_tokens_delta = original.trainable_tokens_delta
