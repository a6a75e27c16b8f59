"""The JSON files of a model folder before anything is made of them: what they may hold, one line for what is broken.

A folder is what a stranger wrote. Files of weights are read without code of theirs (`safetensors`, `weights_only`);
here is what JSON alone could do: ask for a kernel, for files outside the folder, for sizes that no memory holds.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from pickle import UnpicklingError
from textwrap import shorten
from typing import Any

from safetensors import SafetensorError
from transformers.utils import GENERATION_CONFIG_NAME, SAFE_WEIGHTS_INDEX_NAME, WEIGHTS_INDEX_NAME, cached_file

from hf_docmt.loading.remote_code import check_attention
from hf_docmt.messages import first_line

CONFIG, TOKENIZER_CONFIG = "config.json", "tokenizer_config.json"
INDEXES = (SAFE_WEIGHTS_INDEX_NAME, WEIGHTS_INDEX_NAME)
CHECKED = (CONFIG, "tokenizer.json", TOKENIZER_CONFIG, "special_tokens_map.json", "added_tokens.json",
           "adapter_config.json", *INDEXES, GENERATION_CONFIG_NAME)  # fmt: skip
LARGEST = {  # fields of config.json by their endings, and the largest value that a model would have
    "layers": 1000,
    "layer": 1000,
    "heads": 4096,
    "head_dim": 2**16,
    "d_model": 2**18,
    "ffn_dim": 2**20,
    "hidden_size": 2**18,
    "intermediate_size": 2**20,
    "vocab_size": 2**24,
    "position_embeddings": 2**24,
    "context": 2**20,
    "length": 2**24,
}
UNLIMITED = 1e29  # tokenizers write 1e30 for a length without a limit


@contextmanager
def reading_model(path: str | Path) -> Iterator[None]:
    """Within it, an error of files that cannot be read is a `ValueError` with one line."""
    try:
        yield
    except ValueError:
        raise
    except Exception as error:  # every library that reads the files has errors of its own kinds, plain ones too
        is_told = isinstance(error, OSError | RuntimeError | SafetensorError | UnpicklingError)
        if "ignore_mismatched_sizes" in str(error):
            reason = "weights have other shapes than its config.json says"
        else:
            reason = first_line(error) if is_told else f"{type(error).__name__}: {shorten(str(error), 200)}"
        raise ValueError(f"cannot load a model from {path}: {reason}. Copy or train the checkpoint again.") from error


def check_model_files(path: str | Path, revision: str | None = None, names: Sequence[str] = CHECKED) -> None:
    """ValueError, one line with the file, for JSON files of a model's folder or Hub name that hold what none should.

    Each has an object in it. `config.json` names no kernel of attention, no quantization of another package for a
    model of this one, and sizes that exist; an index of weights names files of the folder.
    """
    for name in names:
        file = _file(path, name, revision)
        if file is None:
            continue
        where = f"{path}, {name}"
        try:
            values = json.loads(Path(file).read_text(encoding="utf-8"))
            check_depth(values)
        except RecursionError as error:
            raise ValueError(f"{where}: nested too deeply; copy the folder again") from error
        except ValueError as error:
            if name == GENERATION_CONFIG_NAME:  # transformers passes over it
                raise ValueError(f"{where}: it is not a JSON file ({error}); copy the folder again") from error
            continue  # which the library that reads it says in its own words
        if not isinstance(values, dict):
            raise ValueError(
                f"{where}: expected a JSON object, got {type(values).__name__} {values!r:.40}; copy the folder again"
            )
        if name == CONFIG:
            heads, model_type = values.get("architectures") or [], values.get("model_type") or ""
            if not isinstance(model_type, str):
                raise ValueError(f"{where}: model_type is {model_type!r:.40}, expected a name; correct it")
            if not isinstance(heads, list) or not all(isinstance(head, str) for head in heads):
                raise ValueError(f"{where}: architectures is {heads!r:.40}, expected a list of class names; correct it")
            check_attention(values, path)
            check_quantization(values, where)
            check_sizes(values, where)
        elif name == TOKENIZER_CONFIG:
            if not isinstance(length := values.get("model_max_length", 0), int | float | None):
                raise ValueError(f"{where}: model_max_length is {length!r:.40}, expected a number; correct it")
        elif name == GENERATION_CONFIG_NAME:
            for field in [field for field in values if field.endswith("_token_id")]:
                ids = values[field]
                if not all(isinstance(token, int | None) for token in (ids if isinstance(ids, list) else [ids])):
                    raise ValueError(f"{path}: {field} of {name} is {ids!r:.40}, expected ids of tokens; correct it")
        elif name in INDEXES:
            check_index(values, where)


def check_depth(values: Any, levels: int = 100) -> None:
    """RecursionError for lists and objects that are nested deeper than `deepest`."""
    inner = [values] if isinstance(values, dict | list) else []
    while inner:
        if not levels:
            raise RecursionError
        lists = (list(value.values()) if isinstance(value, dict) else value for value in inner)
        inner, levels = [value for some in lists for value in some if isinstance(value, dict | list)], levels - 1


def _file(path: str | Path, name: str, revision: str | None) -> str | Path | None:
    if Path(path).is_dir():
        return Path(path) / name if (Path(path) / name).is_file() else None
    options: dict[str, Any] = {} if revision is None else {"revision": revision}
    try:
        return cached_file(str(path), name, _raise_exceptions_for_missing_entries=False, **options)
    except (OSError, ValueError):
        return None  # as the library that loads the model will say


def check_index(values: dict, where: str) -> None:
    """ValueError for an index of weights that names files in other folders."""
    files = values.get("weight_map")
    if not isinstance(files, dict):
        raise ValueError(f"{where}: weight_map must be an object, got {files!r:.40}; copy the folder again")
    for file in set(map(str, files.values())):
        if PurePosixPath(file).name != file or PureWindowsPath(file).name != file:
            raise ValueError(f"{where}: weight_map names {file!r:.80}, expected a file next to it; fetch it again")


def check_quantization(values: dict, where: str) -> None:
    """ValueError where a model of this package asks for another quantization than its own."""
    asked = values.get("quantization_config")
    method = asked.get("quant_method") if isinstance(asked, dict) else asked
    if str(values.get("model_type")).startswith("docmt-") and method not in (None, "docmt-int8"):
        raise ValueError(f"{where}: quant_method is {method!r:.40}, expected docmt-int8; remove quantization_config")


def check_sizes(values: Any, where: str, name: str = "") -> None:
    """ValueError for numbers of layers, heads, dimensions, tokens and positions, however nested, that no model has."""
    if isinstance(values, dict):
        for key, value in values.items():
            check_sizes(value, where, key)
    elif isinstance(values, list):
        for value in values:
            check_sizes(value, where, name)
    elif isinstance(values, int | float) and not isinstance(values, bool):
        limit = next((limit for ending, limit in LARGEST.items() if name.endswith(ending)), None)
        if limit is not None and not values <= limit and not (name.endswith("length") and values >= UNLIMITED):
            raise ValueError(f"{where}: {name} is {values!r:.40}, expected {limit} at most; correct it")
