"""Fingerprints of the weights, settings and tokenizer of a saved folder, kept in its config.json.

They are written after the files and compared with them after loading. A configuration in memory never holds them: code
that writes config.json in other ways leaves a folder without, which loads as one of an earlier version.
"""

import hashlib
import json
from inspect import get_annotations
from pathlib import Path

import torch
from transformers import PreTrainedConfig, PreTrainedTokenizerBase
from transformers.utils import (
    ADAPTER_SAFE_WEIGHTS_NAME,
    CONFIG_NAME,
    GENERATION_CONFIG_NAME,
    SAFE_WEIGHTS_INDEX_NAME,
    SAFE_WEIGHTS_NAME,
    cached_file,
)

from .fingerprint_digests import BLOCK, FIELD, FREE, digest, tokenizer_fingerprint, told

WEIGHTS = (SAFE_WEIGHTS_NAME, SAFE_WEIGHTS_INDEX_NAME, ADAPTER_SAFE_WEIGHTS_NAME, "ctranslate2/model.bin")
LOOKED_UP = {"cache_dir", "revision", "subfolder", "token"}  # arguments of `from_pretrained` that say where files are


def write_fingerprints(folder: str | Path, config_class: type[PreTrainedConfig]) -> None:
    """Put those of weights and settings into the config.json of a folder that was just saved, if it has one."""
    files = {name: Path(folder) / name for name in (CONFIG_NAME, GENERATION_CONFIG_NAME)}
    if files[CONFIG_NAME].is_file():
        settings = settings_fingerprint(*files.values(), config_class)
        add_fingerprints(folder, weights=weights_fingerprint(folder), settings=settings)


def add_fingerprints(folder: str | Path, **fingerprints: str | None) -> None:
    """Add these to those in config.json."""
    file = Path(folder) / CONFIG_NAME
    values = json.loads(file.read_text(encoding="utf-8"))
    values[FIELD] = values.get(FIELD, {}) | {name: value for name, value in fingerprints.items() if value}
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(values, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    unfinished.replace(file)


def check_fingerprints(path: str | Path, config_class: type[PreTrainedConfig], **options) -> str | None:
    """Compare a folder or Hub name with its fingerprints, after loading; returns that of the tokenizer.

    `options` are those of `from_pretrained`. What has no fingerprint is not compared, nor are weights in other files
    than safetensors and those of a `variant`. ValueError if something has changed since it was saved.
    """
    config = found_file(path, CONFIG_NAME, options)
    saved = json.loads(Path(config).read_text(encoding="utf-8")).get(FIELD) if config else None
    if not isinstance(saved, dict):
        return None
    if "settings" in saved:
        generation = found_file(path, GENERATION_CONFIG_NAME, options)
        if settings_fingerprint(config, generation, config_class) != saved["settings"]:
            raise ValueError(told(f"{path}: config.json or generation_config.json", "settings"))
    if "weights" in saved and not options.get("variant"):
        weights = weights_fingerprint(path, options)
        if weights not in (None, saved["weights"]):
            raise ValueError(told(f"{path}: the weights", "weights"))
    return saved.get("tokenizer")


def found_file(path: str | Path, name: str, options: dict) -> str | None:
    """A file of a folder, or of a Hub name if it was fetched; None if it is missing."""
    try:
        known = {option: value for option, value in options.items() if option in LOOKED_UP and value is not None}
        return cached_file(path, name, local_files_only=True, **known)
    except OSError:
        return None


def weights_fingerprint(path: str | Path, options: dict | None = None) -> str | None:
    """Fingerprint of the files of weights, see `file_fingerprint`; None if any of them is missing."""
    files = [file for name in WEIGHTS if (file := found_file(path, name, options or {}))][:1]
    if files and files[0].endswith(".json"):
        names = sorted(set(json.loads(Path(files[0]).read_text(encoding="utf-8"))["weight_map"].values()))
        files = [found_file(path, name, options or {}) for name in names]
    return digest([file_fingerprint(file) for file in files]) if files and None not in files else None


def file_fingerprint(file: str | Path) -> str:
    """The fingerprint of all bytes of a file: a fast hash of sums of blocks; every changed bit changes a sum."""
    size = Path(file).stat().st_size
    words = torch.from_file(str(file), size=size // 8, dtype=torch.int64)
    whole = len(words) // BLOCK * BLOCK
    sums = [*words[:whole].view(-1, BLOCK).sum(1, keepdim=True).split(2**20), words[whole:]]
    with open(file, "rb") as read:
        read.seek(size // 8 * 8)
        end = read.read()
    hashed = hashlib.sha256(b"".join([*(part.numpy().tobytes() for part in sums), end]))
    return f"{size} {hashed.hexdigest()}"


def settings_fingerprint(config: str | Path, generation: str | Path | None, config_class: type) -> str:
    """Fingerprint of the fields of config.json that the weights depend on, and of a search's tokens in the other file.

    Only fields of `config_class` that are in the file count.
    """
    values = json.loads(Path(config).read_text(encoding="utf-8"))
    classes = config_class.__mro__[: config_class.__mro__.index(PreTrainedConfig)]
    names = {"model_type", *(name for cls in classes for name in get_annotations(cls))} - FREE
    search = {}
    if generation is not None and Path(generation).is_file():
        search = json.loads(Path(generation).read_text(encoding="utf-8"))
    fixed = {name: values[name] for name in names if name in values}
    return digest([fixed, {name: ids for name, ids in search.items() if name.endswith("_token_id")}])


def add_tokenizer_fingerprint(folder: str | Path, tokenizer: PreTrainedTokenizerBase) -> None:
    """Put that of the tokenizer into the config.json of a saved model, if it is there: an adapter has none."""
    if (Path(folder) / CONFIG_NAME).is_file():
        add_fingerprints(folder, tokenizer=tokenizer_fingerprint(tokenizer))
