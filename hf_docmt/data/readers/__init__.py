"""File formats of parallel documents: a file and a class for each, which registers itself by being defined.

A new format is one new file here, or in a plugin, with one subclass of `Reader`. Readers change no sentence, keep order
and number, and leave the checks that all formats share to `hf_docmt.data.documents`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hf_docmt.data.documents import checked_languages, checked_rows, collect_documents
from hf_docmt.data.readers.reader import (
    Evidence,
    Reader,
    Sample,
    detect_format,
    get_reader,
    input_argument,
    input_files,
    readers,
)
from hf_docmt.data.readers.running_text import HTML
from hf_docmt.files import DataError
from hf_docmt.messages import closest_hint

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = [
    "Evidence",
    "Reader",
    "Sample",
    "detect_format",
    "get_reader",
    "input_argument",
    "input_files",
    "iterate_documents",
    "read_documents",
    "readers",
]


def read_documents(
    format: str = "auto",
    *,
    source_lang: str,
    target_lang: str | None = None,
    allow_empty: bool = False,
    **files: str | Path | Sequence[str | Path] | None,
) -> Dataset:
    """Documents from files of one format; without `target_lang` the source side only, for translation.

    `files` are the arguments of the format's reader: `path` (jsonl, tsv, commentary, wmt, chat, lines, text), `source`
    and `target` (dtag, blank, sgm, iwslt, voita), these and `index` (dialogue) or `ids` (moses). `-` is standard input,
    `.gz` is unpacked; lines, text and iwslt take lists of files. `translator` chooses among the references of `wmt`.
    With `format="auto"` the arguments, the file's name and its first bytes tell the format (see `detect_format`).
    `allow_empty`: documents may have no sentence.

    Returns a `datasets.Dataset` of the document contract (see `hf_docmt.data.documents`). Raises `DataError`, a
    `ValueError`, with file, line, document and remedy.

    >>> documents = read_documents(path="runs/corpus/test.jsonl", source_lang="en", target_lang="de")
    >>> documents.column_names[:2]
    ['doc_id', 'translation']
    """
    languages = checked_languages(source_lang, target_lang)
    return collect_documents(_located_rows(format, languages, files), source_lang, target_lang, allow_empty)


def iterate_documents(
    format: str = "auto",
    *,
    source_lang: str,
    target_lang: str | None = None,
    allow_empty: bool = False,
    **files: str | Path | Sequence[str | Path] | None,
) -> Iterator[dict]:
    """As `read_documents`, one row at a time: rows `{"doc_id", "translation", ...}` with all their columns.

    Files of any length take the memory of one document and of the ids; formats that are one document a file (lines,
    text), one object (chat) or matched by ids in two files (sgm, iwslt) are read whole. Arguments are checked at once,
    each document when its turn comes.

    >>> rows = iterate_documents(path="runs/corpus/test.jsonl", source_lang="en")
    >>> sorted(next(rows))[:2]
    ['annotations', 'doc_id']
    """
    languages = checked_languages(source_lang, target_lang)
    return checked_rows(_located_rows(format, languages, files), languages, allow_empty)


def _located_rows(format: str, languages: list[str], files: dict) -> Iterator[tuple[str, dict]]:
    files = {name: value for name, value in files.items() if value is not None}
    reader = get_reader(detect_format(files) if format == "auto" else format)
    check_arguments(reader, files)
    located = reader.read(languages, **files)
    return ((location, {name: value for name, value in row.items() if name != HTML}) for location, row in located)


def check_arguments(reader: Reader, files: Mapping) -> None:
    """DataError for arguments that a reader does not take, or needs and did not get."""
    arguments = reader.arguments()
    for name, value in files.items():
        if name not in arguments:
            hint = closest_hint(name, arguments, " (did you mean {!r}?)")
            raise DataError(f"format {reader.name!r} takes no {name!r}{hint}; it takes {', '.join(arguments)}")
        if not isinstance(value, str | Path) and (not reader.several_files or not value):
            raise DataError(f"format {reader.name!r} takes one file as {name!r}, got {value!r}; read each separately")
    for name, needed in arguments.items():
        if needed and name not in files:
            raise DataError(f"format {reader.name!r} needs the file {name!r}, got {sorted(files)}; add it")
