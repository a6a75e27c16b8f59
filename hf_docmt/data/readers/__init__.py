"""File formats of parallel documents, one reader a file.

Every reader is a function `read_<format>(languages, **files)` that yields (place for messages, row). Readers change no
sentence, keep order and count, and leave the checks that all formats share to `hf_docmt.data.documents`.
"""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path

from datasets import Dataset

from hf_docmt.data.documents import checked_languages, collect_documents
from hf_docmt.data.readers.blank import read_blank
from hf_docmt.data.readers.chat import read_chat
from hf_docmt.data.readers.commentary import read_commentary
from hf_docmt.data.readers.detection import detect_format
from hf_docmt.data.readers.dialogue import read_dialogue
from hf_docmt.data.readers.dtag import read_dtag
from hf_docmt.data.readers.iwslt import read_iwslt
from hf_docmt.data.readers.jsonl import read_jsonl
from hf_docmt.data.readers.lines import read_lines_files
from hf_docmt.data.readers.moses import read_moses
from hf_docmt.data.readers.sgm import read_sgm
from hf_docmt.data.readers.text import read_text
from hf_docmt.data.readers.tsv import read_tsv
from hf_docmt.data.readers.voita import read_voita
from hf_docmt.data.readers.wmt import read_wmt
from hf_docmt.files import DataError
from hf_docmt.messages import closest_hint

FORMATS: dict[str, Callable] = {
    "jsonl": read_jsonl,
    "dtag": read_dtag,
    "blank": read_blank,
    "tsv": read_tsv,
    "commentary": read_commentary,
    "sgm": read_sgm,
    "wmt": read_wmt,
    "iwslt": read_iwslt,
    "moses": read_moses,
    "chat": read_chat,
    "dialogue": read_dialogue,
    "voita": read_voita,
    "text": read_text,
    "lines": read_lines_files,
}

SIDED = ("dtag", "blank", "sgm", "iwslt", "voita")  # one file a side, and none besides
SEVERAL = ("lines", "text", "iwslt")  # take lists of files


def read_documents(
    format: str = "auto",
    *,
    source_lang: str,
    target_lang: str | None = None,
    **files: str | Path | Sequence[str | Path] | None,
) -> Dataset:
    """Documents from files of one format; without `target_lang` the source side only, for translation.

    `files` are the arguments of the format's reader: `path` (jsonl, tsv, commentary, wmt, chat, lines, text), `source`
    and `target` (`SIDED`: dtag, blank, sgm, iwslt, voita), these and `index` (dialogue) or `ids` (moses). `-` is
    standard input, `.gz` is unpacked; those of `SEVERAL` take several files. DataError says file, line,
    document and remedy. `translator` chooses among the references of `wmt`.
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
    for name, value in files.items():
        if name not in names:
            raise DataError(f"format {format!r} takes no {name!r}{_hint(name, names)}; it takes {', '.join(names)}")
        if not isinstance(value, str | Path) and (format not in SEVERAL or not value):
            raise DataError(f"format {format!r} takes one file as {name!r}, got {value!r}; read others apart")
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name not in files:
            raise DataError(f"format {format!r} needs the file {parameter.name!r}, got {sorted(files)}; add it")


def _hint(name: str, known) -> str:
    return closest_hint(name, known, " (did you mean {!r}?)")
