"""Digests (SHA-256, hexadecimal) of texts, files, arrays and tokenizers."""

import hashlib
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

BLOCK = 2**22  # values of an array that are read at a time


def text_digest(text: str) -> str:
    """Digest of a text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def array_digest(array) -> str:
    """Digest of type, number and values of a one-dimensional array; it need not be in memory."""
    digest = hashlib.sha256(f"{np.dtype(array.dtype).str} {len(array)} ".encode())
    for start in range(0, len(array), BLOCK):
        digest.update(np.ascontiguousarray(array[start : start + BLOCK]).data)
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """Digest of the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_digest(files: Iterable[Path]) -> str:
    """Digest of names and bytes of files, in the order given."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name} {file_digest(path)}\n".encode())
    return digest.hexdigest()


def tokenizer_digest(tokenizer: PreTrainedTokenizerBase) -> str:
    """Digest of what the tokenizer saves: equal tokenizers give equal tokens."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        return files_digest(sorted(Path(folder).iterdir()))
