"""What identifies a translation job: model, options, input and versions; a job goes on only where all are the same."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers

from hf_docmt import __version__
from hf_docmt.adapters import ADAPTER_CONFIG, BASE, adapted_model
from hf_docmt.data.readers.reader import NO_FILES
from hf_docmt.store import differences, file_digest, text_digest
from hf_docmt.translation.group_translation import TranslationSettings

MODEL_FILES = (
    "config.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json", "pytorch_model*.bin*",
    "*token*.json", "*vocab*", "merges.txt", "*.spm", "*.model", "*.py", "ctranslate2/*",
    "adapter_config.json", "base/*.safetensors*",
)  # fmt: skip  # of a folder: what its translations follow from


def job_identity(
    settings: TranslationSettings, inputs: Mapping[str, str | None] | None, **options: Any
) -> dict[str, Any]:
    """What identifies a job, as JSON values; `options` are those that change its output besides the settings.

    `inputs` are the arguments of the reader, of which files and folders count by their content, and others, such as the
    name of a data set on the Hub, as they are; None is an input that cannot be read again.
    """
    chosen = asdict(settings) | options
    return {
        "model": model_checksums(chosen.pop("model"), settings.revision),
        "options": chosen,
        "input": None if inputs is None else input_identity(inputs),
        "versions": {"hf-docmt": __version__, "torch": torch.__version__, "transformers": transformers.__version__},
    }


def input_identity(inputs: Mapping[str, str | None]) -> dict[str, str | None]:
    """The arguments of a reader, of which files and folders are their checksums."""
    return {name: value if name in NO_FILES else input_checksum(value) for name, value in inputs.items()}


def model_checksums(model: str, revision: str | None = None) -> dict[str, str]:
    """SHA-256 of each file of a model's folder that its translations follow from; of a Hub name its commit.

    Those of an adapter come with those of the model that it adapts. Empty where there is no such model, as loading it
    will say.
    """
    folder = Path(model)
    if folder.is_dir():
        found = {path for pattern in MODEL_FILES for path in folder.glob(pattern) if path.is_file()}
        checksums = {path.relative_to(folder).as_posix(): file_digest(path) for path in sorted(found)}
        base = adapted_model(folder) if ADAPTER_CONFIG in checksums else None
        adapted = model_checksums(base) if base and Path(base) != folder / BASE else {}
        return checksums | {f"adapted model: {name}": digest for name, digest in adapted.items()}
    try:
        return {"commit": Path(transformers.utils.cached_file(model, "config.json", revision=revision)).parent.name}
    except (OSError, ValueError):
        return {}


def input_checksum(value: str | None) -> str | None:
    """The SHA-256 of a file, or of the names and files of a folder; any other value is itself."""
    if value is None or not Path(value).exists():
        return value
    path = Path(value)
    if path.is_file():
        return file_digest(path)
    files = {str(one.relative_to(path)): file_digest(one) for one in sorted(path.rglob("*")) if one.is_file()}
    return text_digest(json.dumps(files))


def changes(before: Any, now: Any) -> str:
    """In words, what differs in the identities of two jobs; empty where nothing does."""
    return "; ".join(
        f"{' '.join(names)} changed" if is_digest(new) else f"{' '.join(names)} was {old!r}, is {new!r}"
        for names, old, new in differences(before, now)
    )


def is_digest(value: Any) -> bool:
    """Whether a value says nothing to the reader."""
    return isinstance(value, str) and len(value) == 64
