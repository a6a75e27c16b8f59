"""Folders of plain models, read without torch and transformers: configuration, settings, tokenizer, fingerprints.

For a folder that is unusual or was changed, functions return None: `model_folders` loads it, or says what is wrong.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from hf_docmt.engine.cpu_kernels import MOST_BEAMS
from hf_docmt.engine.generation_fields import HARMLESS, PROCESSED, READ, RECORDED, effective_settings
from hf_docmt.modeling.fingerprint_digests import BLOCK, FIELD, FREE, digest, tokenizer_fingerprint
from hf_docmt.modeling.sequence_format import LANGUAGES, language_codes, sequence_format
from hf_docmt.modeling.translation_jobs import STRATEGIES

FILES = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
PLAIN = {  # values of a configuration with which the layers are those of the plain Transformer
    "model_type": "docmt-concat", "segment_encoding": "none", "persistent": False, "pse_dim": 0,
    "activation_function": "relu", "is_encoder_decoder": True,
}  # fmt: skip
UNCOVERED = FREE | {  # fields that the fingerprint of settings does not cover
    "architectures", "auto_map", "custom_pipelines", "dtype", "quantization_config", "transformers_version", FIELD,
}  # fmt: skip
NEEDED = (  # fields without which older versions have other defaults, see `ConcatConfig`
    "bod_token_id bos_token_id chunk_tokens context_sides d_model decoder_attention_heads decoder_ffn_dim "
    "decoder_layers decoder_start_token_id encoder_attention_heads encoder_ffn_dim encoder_layers eos_token_id "
    "future_context language_ids layer_norm_eps layernorm_embedding max_position_embeddings normalize_before "
    "past_context position_offset position_type scale_embedding sep_token_id source_format target_format use_bod view "
    "vocab_size"
).split()
RATES = ("dropout", "attention_dropout", "activation_dropout", "label_smoothing")
CHOICES = {  # of fields without a fingerprint
    "strategy": (None, *STRATEGIES), "init": ("normal", "fairseq", "fairseq_0.9"), "dtype": ("float32",),
    "architectures": (["ConcatForConditionalGeneration"],),
}  # fmt: skip
OTHERS = (  # files that change what `model_folders` loads
    "adapter_config.json added_tokens.json special_tokens_map.json model.safetensors.index.json ctranslate2/model.bin"
).split()
TOKENIZERS = ("TokenizersBackend", "PreTrainedTokenizerFast")
ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
TOKENIZER_FIELDS = {f"{role}_token" for role in ROLES} | {  # others change what transformers loads
    "backend", "clean_up_tokenization_spaces", "extra_special_tokens", "is_local", "local_files_only",
    "model_input_names", "model_max_length", "split_special_tokens", "tokenizer_class",
}  # fmt: skip


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
    if not all((folder / name).is_file() for name in FILES) or any((folder / name).exists() for name in OTHERS):
        return None
    try:
        values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        is_known = all(values[name] == value for name, value in PLAIN.items())
        quantized = values.get("quantization_config")
        is_known &= quantized is None or quantized["quant_method"] == "docmt-int8" and len(quantized) == 2
        fingerprints = values[FIELD]
        same = fingerprints["settings"] == settings_fingerprint(values, folder) and "weights" in fingerprints
        is_known &= len(values["target_format"].split()) == 3  # without tokens that `generate` forces
        return SavedConfig(**values) if is_known and same and is_valid(values) else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def is_valid(values: dict) -> bool:
    """Whether all fields are there, and those without a fingerprint hold what `DocMTConfig.validate` takes."""
    past, deviation, texts = values["decoding_past_context"], values["init_std"], ("base_model", *LANGUAGES)
    return (
        values.keys() >= set(NEEDED)
        and all(values[name] in choices for name, choices in CHOICES.items())
        and all(isinstance(values[name], str | None) for name in texts)
        and all(type(values[name]) in (int, float) and 0 <= values[name] < 1 for name in RATES)
        and (past is None or type(past) is int and past >= 0)
        and (type(deviation) in (int, float) and 0 <= deviation < math.inf)
        and type(values["use_cache"]) is bool
        and are_tokens(values, values["vocab_size"])
        and "AutoTokenizer" not in values.get("auto_map", {}).keys()
    )


def are_tokens(values: dict, size: int) -> bool:
    """Whether the ids among these fields are those of a vocabulary of this size."""
    given = [value for name, value in values.items() if name.endswith("_token_id") and value is not None]
    ids = [token for value in given for token in (value if isinstance(value, list) else [value])]
    return all(type(token) is int and 0 <= token < size for token in ids)


def read_settings(folder: Path) -> SavedSettings | None:
    """The settings of generation of a folder; None if they ask for more than greedy or beam search."""
    values = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    values.pop("_from_model_config", None)
    settings = SavedSettings(**dict.fromkeys([*READ, *PROCESSED, *RECORDED]) | values)
    others = effective_settings(settings, {*READ, *HARMLESS, *RECORDED} - {"forced_eos_token_id"})
    is_plain = not others and settings.eos_token_id is not None and settings.num_return_sequences in (None, 1)
    return settings if is_plain and is_plain_search(vars(settings)) else None


def is_plain_search(settings: Mapping[str, Any]) -> bool:
    """Whether the number of beams and others are such that the compiled search takes them."""
    counts = [settings[name] for name in ("num_beams", "max_new_tokens") if settings.get(name) is not None]
    are_counts = all(type(count) is int and count > 0 for count in counts)
    is_known = isinstance(settings.get("early_stopping"), bool | None)
    return are_counts and is_known and (settings.get("num_beams") or 1) <= MOST_BEAMS


def settings_fingerprint(values: dict, folder: Path) -> str:
    """As `modeling.fingerprints` has it."""
    search = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    fixed = {name: value for name, value in values.items() if name not in UNCOVERED}
    return digest([fixed, {name: ids for name, ids in search.items() if name.endswith("_token_id")}])


def weights_fingerprint(file: Path) -> str:
    """The fingerprint of a folder whose weights are this file, as `modeling.fingerprints` has it."""
    size = file.stat().st_size
    if size < 8:
        return ""  # which cannot be mapped
    words = np.memmap(file, np.int64, mode="r", shape=size // 8)
    whole = len(words) // BLOCK * BLOCK
    with file.open("rb") as read:
        read.seek(size // 8 * 8)
        end = read.read()
    sums = words[:whole].reshape(-1, BLOCK).sum(axis=1)
    return digest([f"{size} {hashlib.sha256(sums.tobytes() + words[whole:].tobytes() + end).hexdigest()}"])


class WeightReader:
    """Weights of a file by name, and whether any were not finite or all zero, which `check_weights` refuses."""

    def __init__(self, file):
        self.file, self.names, self.is_damaged = file, set(), False

    def __call__(self, name: str) -> np.ndarray:
        weights = self.file.get_tensor(name)
        self.names.add(name)
        if weights.dtype == np.float32:
            square = np.vdot(weights, weights)
            self.is_damaged |= not np.isfinite(square) or square == 0 and not name.endswith("bias")
        return weights


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
        special = {added[token].content for token in self.all_special_ids}
        named = {name for name in names.values() if name is not None} | set(config.get("extra_special_tokens", ()))
        is_known = config.keys() <= TOKENIZER_FIELDS and isinstance(config.get("model_max_length", 0), int | float)
        self.is_plain = is_known and special == named

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
    try:
        config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        if config.get("tokenizer_class") not in TOKENIZERS or config.get("clean_up_tokenization_spaces"):
            return None
        tokenizer = SavedTokenizer(folder, config)
    except Exception:  # tokenizers raises plain ones
        return None
    return tokenizer if tokenizer.is_plain and expected in (None, tokenizer_fingerprint(tokenizer)) else None
