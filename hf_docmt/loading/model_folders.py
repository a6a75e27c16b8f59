"""Models and tokenizers from folders and from the Hub: what is broken, or of another model, is refused in one line."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import cached_file

from hf_docmt.loading import registry
from hf_docmt.loading.adapters import adapted_model, merge_adapter
from hf_docmt.loading.hub_access import check_within_reach
from hf_docmt.loading.model_files import CONFIG, check_model_files, reading_model
from hf_docmt.loading.remote_code import load_tokenizer
from hf_docmt.modeling.fingerprints import check_fingerprints
from hf_docmt.modeling.modeling_docmt import DocMTForConditionalGeneration

LAYER, NOTHING = r"\.(layers?|block|h)\.\d+\.", "(?!)"  # names of weights


def load_model(
    path: str | Path, revision: str | None = None
) -> tuple[DocMTForConditionalGeneration, PreTrainedTokenizerBase]:
    """Model and tokenizer from a folder or the Hub, as `(model, tokenizer)`, the model in evaluation mode on the CPU.

    `revision` is a branch, tag or commit on the Hub, of which configuration, weights and tokenizer are taken. An
    adapter of peft is put into the weights of the model that it adapts. Raises
    `ValueError` for a checkpoint of another kind, one that cannot be read, and one whose weights are not those of its
    `config.json`.

    >>> model, tokenizer = load_model("runs/concat")
    >>> len(model.translate_documents([["Here is a lamp.", "It is old."]], tokenizer)[0])
    2
    """
    config = load_config(path, revision)
    if (Path(path) / "ctranslate2" / "model.bin").exists():
        raise ValueError(f"{path} holds weights of CTranslate2 alone; translate with --engine ctranslate2")
    base, model_class = adapted_model(path, revision), registry.for_config(config).model_class
    check_model_files(path, revision)
    if base is not None:
        check_model_files(base)
    with reading_model(path):
        model = load_weights(model_class, base or path, None if base else revision, config=config)
        tokenizer = load_tokenizer(path, revision)
        if base is not None:
            model = merge_adapter(model, base, path, revision)
            check_weights(model, path)
            model.tokenizer_fingerprint = check_fingerprints(path, type(config), **_version(revision))
        model.check_tokenizer(tokenizer)
    check_token_ids(model, tokenizer, path)
    return model.eval(), tokenizer


def load_config(path: str | Path, revision: str | None = None) -> PreTrainedConfig:
    """The configuration of a model's folder or Hub name; `ValueError` if it cannot be read or is of another package.

    An adapter without one has that of its base model.
    """
    values = read_config(path, revision)
    with reading_model(path):
        try:
            architecture = registry.for_model_type(values.get("model_type"))
            architecture.register()
            return architecture.config_class.from_dict(values)
        except ValueError as error:
            raise ValueError(f"{path}, config.json: {error}") from error


def read_config(path: str | Path, revision: str | None = None) -> dict[str, Any]:
    """The content of `config.json` of a model of any package; ValueError as `load_config`."""
    check_within_reach(path, revision)
    if revision is not None and Path(path).exists():
        raise ValueError(f"{path} is a folder, and only models on the Hub have revisions, got {revision!r}; omit it")
    base = adapted_model(path, revision)
    missing_ok = {"_raise_exceptions_for_missing_entries": False, **_version(revision)}
    if base is not None and cached_file(path, CONFIG, **missing_ok) is None:
        return read_config(base)
    if Path(path).exists() and not (Path(path) / CONFIG).exists():
        raise ValueError(f"{path} holds no model: config.json is missing; give a model folder or a name on the Hub")
    check_model_files(path, revision, (CONFIG,))
    with reading_model(path):
        try:
            return PreTrainedConfig.get_config_dict(path, **_version(revision))[0]
        except ValueError as error:
            raise ValueError(f"{path}, config.json: {error}") from error


def load_weights(model_class: Any, path: str | Path, revision: str | None = None, **options) -> Any:
    """The model from a class's `from_pretrained`, in evaluation mode; ValueError for missing or broken weights.

    Models of other packages may have further weights, of heads that the class does not have.
    """
    options |= {"trust_remote_code": False, **_version(revision)}
    model, loading = model_class.from_pretrained(path, output_loading_info=True, **options)
    leftovers = LAYER if model.config.is_encoder_decoder else NOTHING
    check_loading(model, loading, path, "" if registry.is_ours(model.config.model_type) else leftovers)
    check_weights(model, path)
    return model.eval()


def _version(revision: str | None) -> dict[str, str]:
    return {} if revision is None else {"revision": revision}


def check_loading(model: PreTrainedModel, loading: Mapping[str, Any], path: str | Path, leftovers: str = "") -> None:
    """ValueError for weights that are missing, or left over with such a name; `loading` as transformers tells it.

    Tables of sines, which some models compute and never save, may be missing.
    """
    modules = {f"{name}.weight": type(module).__name__ for name, module in model.named_modules()}
    missing = [name for name in loading["missing_keys"] if "Sinusoidal" not in modules.get(name, "")]
    wrong = sorted([*missing, *(name for name in loading["unexpected_keys"] if re.search(leftovers, name))])
    if wrong:
        raise ValueError(
            f"cannot load a model from {path}: {len(wrong)} weights are missing or do not belong to a model of its "
            f"config.json ({', '.join(wrong[:3])}{', ...' * (len(wrong) > 3)}). Copy or train the checkpoint again."
        )


def give_weights(model: PreTrainedModel, weights: Mapping[str, torch.Tensor], path: str | Path, remedy: str) -> None:
    """Give a model its weights by name; ValueError where names or shapes are not all those of the model."""
    try:
        model.load_state_dict(weights, assign=model.device.type == "meta")
    except RuntimeError as error:
        raise ValueError(f"{path}: {' '.join(str(error).split())} {remedy}") from error


def check_weights(model: PreTrainedModel, path: str | Path) -> None:
    """ValueError for weights that are nan or infinite, and for those that are all zero, with the name of the first one.

    Search would not report all of them: kernels of attention treat NaN scores as masked. A download that
    was cut off in a preallocated file leaves zeros. Only parameters that an architecture adds to the backbone may be
    zero, which is its neutral start. In models of other packages linear layers are checked, except adapters.
    """
    zeros = []
    for name, weight in model.named_parameters():
        extremes = [value.item() for value in weight.detach().aminmax()]
        if not all(map(math.isfinite, extremes)):
            raise ValueError(
                f"{path}: the weights {name} are not all finite numbers: the file is damaged, or training diverged. "
                "Copy the checkpoint again, or use an earlier one."
            )
        if not any(extremes) and not name.endswith("bias"):
            zeros.append(name)
    if zeros:
        linear = {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Linear)}
        never_zero = {name for name in linear if "lora_" not in name}  # LoRA begins with zeros
        if registry.is_ours(model.config.model_type):
            never_zero = {name for name, _ in backbone(model.config).named_parameters()}
        for name in sorted(never_zero.intersection(zeros)):
            raise ValueError(f"{path}: the weights {name} are all zero: the file was not copied whole. Copy it again.")


def backbone(config: PreTrainedConfig) -> DocMTForConditionalGeneration:
    """The plain Transformer of a configuration, without memory for its weights."""
    with torch.device("meta"):
        return DocMTForConditionalGeneration(config)


def check_token_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, path: str | Path) -> None:
    """ValueError for ids above the vocabulary, and for a generation config with which no translation ends."""
    size = model.config.vocab_size
    if tokenizer is not None and len(tokenizer) > size:
        raise ValueError(
            f"{path}: the tokenizer has {len(tokenizer)} tokens, the model's vocab_size is {size}; put the tokenizer "
            "that the model was trained with into the folder"
        )
    for name, config in (("config.json", model.config), ("generation_config.json", model.generation_config)):
        for field in [field for field in vars(config) if field.endswith("_token_id")]:
            ids = getattr(config, field)
            for token in ids if isinstance(ids, list) else [ids]:
                if token is not None and (not isinstance(token, int) or not 0 <= token < size):
                    raise ValueError(f"{path}: {field} of {name} is {ids!r}, expected ids from 0 to {size - 1}")
    if model.generation_config.eos_token_id is None:
        raise ValueError(f"{path}: generation_config.json has no eos_token_id, at which a translation ends; add it")
