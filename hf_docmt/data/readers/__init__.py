"""File formats of parallel documents, one reader a file.

Every reader is a function `read_<format>(languages, **files)` that yields (place for messages, row). Readers change no
sentence, keep order and count, and leave the checks that all formats share to `hf_docmt.data.documents`.
"""

import difflib
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path

from datasets import Dataset

from ..documents import DataError, checked_languages, collect_documents
from .blank import read_blank
from .chat import read_chat
from .detection import detect_format
from .dialogue import read_dialogue
from .dtag import read_dtag
from .jsonl import read_jsonl
from .lines import read_lines_files
from .text import read_text
from .tsv import read_tsv
from .voita import read_voita

FORMATS: dict[str, Callable] = {
    "jsonl": read_jsonl,
    "dtag": read_dtag,
    "blank": read_blank,
    "tsv": read_tsv,
    "chat": read_chat,
    "dialogue": read_dialogue,
    "voita": read_voita,
    "text": read_text,
    "lines": read_lines_files,
}


def read_documents(
    format: str = "auto",
    *,
    source_lang: str,
    target_lang: str | None = None,
    **files: str | Path | Sequence[str | Path] | None,
) -> Dataset:
    """Documents from files of one format; without `target_lang` the source side only, for translation.

    `files` are the arguments of the format's reader: `path` (jsonl, tsv, chat, lines, text), `source` and `target`
    (dtag, blank, voita), or these and `index` (dialogue). `-` is standard input, `.gz` is unpacked; `lines` and `text`
    take several paths. DataError says file, line, document and remedy.
    """
    languages = checked_languages(source_lang, target_lang)
    files = {name: value for name, value in files.items() if value is not None}
    if format == "auto":
        format = detect_format(files)
    if format not in FORMATS:
        raise DataError(
            f"unknown format {format!r}{_hint(str(format), FORMATS)}; the formats are {', '.join(FORMATS)} and auto"
        )
    _check_files(format, files)
    return collect_documents(FORMATS[format](languages, **files), source_lang, target_lang)


def _check_files(format: str, files: dict) -> None:
    parameters = list(inspect.signature(FORMATS[format]).parameters.values())[1:]
    names = [parameter.name for parameter in parameters]
    for name in files:
        if name not in names:
            raise DataError(f"format {format!r} takes no {name!r}{_hint(name, names)}; it takes {', '.join(names)}")
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name not in files:
            raise DataError(f"format {format!r} needs the file {parameter.name!r}, got {sorted(files)}; add it")


def _hint(name: str, known) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
