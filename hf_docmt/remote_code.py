"""Code that a model folder brings along: it runs only where the user asked for it, and nothing asks in between."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from json import JSONDecodeError
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

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
    """Whether tokenizers may run the code of their folder here; a process that is started has to be told."""
    return _trusted.get()


def load_tokenizer(name: str | Path, revision: str | None = None) -> PreTrainedTokenizerBase:
    """The tokenizer of a folder or Hub name. ValueError: it needs code of its folder, and that is not trusted."""
    try:
        given = {} if revision is None else {"revision": revision}
        return AutoTokenizer.from_pretrained(name, trust_remote_code=_trusted.get(), **given)
    except JSONDecodeError as error:
        raise ValueError(f"{name}: a JSON file of the tokenizer is broken ({error}); copy the folder again") from error
    except ValueError as error:
        if _trusted.get() or "trust_remote_code" not in str(error):
            raise
        raise ValueError(
            f"{name}: the tokenizer needs Python code that the model brings along (auto_map in "
            "tokenizer_config.json), and such code is not run unasked. Read it; if you trust it, run docmt "
            "--trust-remote-code COMMAND, or in Python: with hf_docmt.trust_remote_code()"
        ) from None
