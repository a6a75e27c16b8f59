"""Folders of plain models, read without torch and transformers: configuration, settings, tokenizer, fingerprints.

For a folder that is unusual or was changed, functions return None: `model_folders` loads it, or says what is wrong.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from tokenizers import Tokenizer

from hf_docmt.engine.generation_fields import HARMLESS, PROCESSED, READ, RECORDED, effective_settings
from hf_docmt.modeling.fingerprint_digests import FIELD, FREE, digest, tokenizer_fingerprint
from hf_docmt.modeling.sequence_format import language_codes, sequence_format

FILES = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
PLAIN = {  # values of a configuration with which the layers are those of the plain Transformer
    "model_type": "docmt-concat", "segment_encoding": "none", "persistent": False, "pse_dim": 0,
    "activation_function": "relu", "is_encoder_decoder": True,
}  # fmt: skip
UNCOVERED = FREE | {  # fields that the fingerprint of settings does not cover
    "architectures", "auto_map", "custom_pipelines", "dtype", "quantization_config", "transformers_version", FIELD,
}  # fmt: skip
SUM = 512  # words of 8 bytes that have one sum, as there
TOKENIZERS = ("TokenizersBackend", "PreTrainedTokenizerFast")
ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


class SavedConfig(SimpleNamespace):
    """The fields of config.json."""

    sequence_format, language_codes = sequence_format, language_codes
    name_or_path = ""


class SavedSettings(SimpleNamespace):
    """The fields of generation_config.json that a search reads."""

    def update(self, **settings) -> dict:
        """Set those that are fields; returns the others."""
        known = {name: value for name, value in settings.items() if hasattr(self, name)}
        vars(self).update(known)
        return {name: value for name, value in settings.items() if name not in known}


def read_config(folder: Path) -> SavedConfig | None:
    """The configuration of a folder of a plain model that has its fingerprints."""
    if not all((folder / name).is_file() for name in FILES) or (folder / "adapter_config.json").exists():
        return None
    try:
        values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        is_known = all(values[name] == value for name, value in PLAIN.items())
        quantized = (values.get("quantization_config") or {}).get("quant_method", "docmt-int8")
        fingerprints = values[FIELD]
        same = fingerprints["settings"] == settings_fingerprint(values, folder) and "weights" in fingerprints
        return SavedConfig(**values) if is_known and same and quantized == "docmt-int8" else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def read_settings(folder: Path) -> SavedSettings | None:
    """The settings of generation of a folder; None if they ask for more than greedy or beam search."""
    values = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    values.pop("_from_model_config", None)
    settings = SavedSettings(**dict.fromkeys([*READ, *PROCESSED, *RECORDED]) | values)
    others = effective_settings(settings, {*READ, *HARMLESS, *RECORDED} - {"forced_eos_token_id"})
    is_plain = not others and settings.eos_token_id is not None and settings.num_return_sequences in (None, 1)
    return settings if is_plain and settings.early_stopping in (None, True, False) else None


def settings_fingerprint(values: dict, folder: Path) -> str:
    """As `modeling.fingerprints` has it."""
    search = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    fixed = {name: value for name, value in values.items() if name not in UNCOVERED}
    return digest([fixed, {name: ids for name, ids in search.items() if name.endswith("_token_id")}])


def weights_fingerprint(file: Path) -> str:
    """The fingerprint of a folder whose weights are this file, as `modeling.fingerprints` has it."""
    size = file.stat().st_size
    words = np.memmap(file, np.int64, mode="r", shape=size // 8)
    whole = len(words) // SUM * SUM
    with file.open("rb") as read:
        read.seek(size // 8 * 8)
        end = read.read()
    sums = words[:whole].reshape(-1, SUM).sum(axis=1)
    return digest([f"{size} {hashlib.sha256(sums.tobytes() + words[whole:].tobytes() + end).hexdigest()}"])


class SavedTokenizer:
    """A tokenizer of a folder with what translation calls of one of transformers."""

    def __init__(self, folder: Path, config: dict):
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.splits = config.get("split_special_tokens", False)
        names = {role: config.get(f"{role}_token") for role in ROLES}
        for role, name in names.items():
            setattr(self, f"{role}_token_id", name if name is None else self.tokenizer.token_to_id(name))
        added = self.tokenizer.get_added_tokens_decoder()
        self.all_special_ids = [token for token, each in added.items() if each.special]

    def __call__(self, text=None, *, text_target=None, add_special_tokens=True, split_special_tokens=None, **ignored):
        texts = text_target if text is None else text
        self.tokenizer.encode_special_tokens = self.splits if split_special_tokens is None else split_special_tokens
        is_one = isinstance(texts, str)
        read = self.tokenizer.encode_batch([texts] if is_one else texts, add_special_tokens=add_special_tokens)
        return {"input_ids": read[0].ids if is_one else [each.ids for each in read]}

    def get_vocab(self) -> dict[str, int]:
        return self.tokenizer.get_vocab(with_added_tokens=True)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False, **ignored) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens)


def read_tokenizer(folder: Path, expected: str | None) -> SavedTokenizer | None:
    """The tokenizer of a folder; None for one that is not of a plain kind, or has another fingerprint."""
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    if config.get("tokenizer_class") not in TOKENIZERS or config.get("clean_up_tokenization_spaces"):
        return None
    tokenizer = SavedTokenizer(folder, config)
    return tokenizer if expected in (None, tokenizer_fingerprint(tokenizer)) else None
