"""Code in a model folder: it runs only if the user allows it, and no prompt asks."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from json import JSONDecodeError
from pathlib import Path
from textwrap import shorten
from typing import Any

from transformers import AutoTokenizer, PreTrainedTokenizerBase
from transformers.utils import is_protobuf_available, is_sentencepiece_available

from hf_docmt.messages import core_command

ATTENTION = ("eager", "sdpa", "flex_attention")  # others are fetched from the Hub where they are not installed
_trusted: ContextVar[bool] = ContextVar("trust_remote_code", default=False)


@contextmanager
def trust_remote_code(trusted: bool = True) -> Iterator[None]:
    """Inside, tokenizers may run the code of their folder: that of `docmt --trust-remote-code COMMAND`.

    Models of this package never need it; their classes are the package's own, whatever `auto_map` names.

    >>> with trust_remote_code():
    ...     model, tokenizer = load_model("runs/concat")
    """
    token = _trusted.set(trusted)
    try:
        yield
    finally:
        _trusted.reset(token)


def is_trusted() -> bool:
    """Whether tokenizers may run the code of their folder here; a new process needs the setting again."""
    return _trusted.get()


def check_attention(config: Any, path: str | Path) -> None:
    """ValueError where a value of `config.json` names a kernel of attention on the Hub: it is code, too."""
    if isinstance(config, list):
        for value in config:
            check_attention(value, path)
    for name, value in config.items() if isinstance(config, dict) else ():
        if name.endswith("attn_implementation"):
            for kernel in value.values() if isinstance(value, dict) else [value]:
                if kernel is not None and kernel not in ATTENTION and not _trusted.get():
                    raise ValueError(
                        f"{path}, config.json: {name} is {kernel!r}, expected one of {', '.join(ATTENTION)}; "
                        "another one may be code from the Hub. Take it out; if you trust it, run docmt "
                        "--trust-remote-code COMMAND"
                    )
        check_attention(value, path)


def load_tokenizer(name: str | Path, revision: str | None = None) -> PreTrainedTokenizerBase:
    """The tokenizer of a folder or Hub name.

    ValueError: it needs code of its folder, and that is not trusted; a package that it needs is not installed; its
    files are broken or do not say what it is.
    """
    try:
        options = {} if revision is None else {"revision": revision}
        silence_sacremoses()
        return AutoTokenizer.from_pretrained(name, trust_remote_code=_trusted.get(), **options)
    except JSONDecodeError as error:
        raise ValueError(f"{name}: a JSON file of the tokenizer is broken ({error}); copy the folder again") from error
    except Exception as error:  # of files that are not as the libraries expect, errors of any kind
        if isinstance(error, OSError):
            raise
        if "trust_remote_code" in str(error) and not _trusted.get():
            raise ValueError(
                f"{name}: the tokenizer needs Python code from the model's folder (auto_map in "
                "tokenizer_config.json), which runs only with your permission. Read it; if you trust it, run docmt "
                "--trust-remote-code COMMAND, or in Python: with hf_docmt.trust_remote_code()"
            ) from None
        raise ValueError(f"{name}: {_tokenizer_problem(error)}") from error


def silence_sacremoses() -> None:
    """Ignore the advice of Marian's tokenizer to install a package that normalizes punctuation."""
    warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")


def _tokenizer_problem(error: Exception) -> str:
    """The reason why a tokenizer cannot be loaded, and the remedy, in one line.

    transformers reports a missing package in many ways: by a missing tokenizer class, with the names of all
    configuration classes that have one, or by a package for another format of the same file.
    """
    packages = {"sentencepiece": is_sentencepiece_available(), "protobuf": is_protobuf_available()}
    missing = [package for package, is_installed in packages.items() if not is_installed]
    if missing:
        return f"the tokenizer cannot be loaded without {' and '.join(missing)}: {core_command(missing)}"
    if str(error).startswith(("Unrecognized configuration class", "Couldn't instantiate the backend tokenizer")):
        return "no tokenizer is there: expected tokenizer.json, or files of a class that tokenizer_config.json names"
    if isinstance(error, TypeError) and "NoneType" in str(error):  # the path of a file
        return "files of the tokenizer's class are missing: copy the folder again"
    kind = "" if isinstance(error, ImportError | ValueError) else f"{type(error).__name__}: "
    return f"the tokenizer cannot be loaded: {kind}{shorten(str(error), 300)}"
