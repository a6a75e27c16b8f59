"""Formats that are written back: lines, running text, subtitles and documents with markup, recognised by file names.

A new format is one new file here with one subclass of `DocumentFormat`, which registers itself by being defined.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from hf_docmt.data.readers.lines import LinesReader
from hf_docmt.data.readers.reader import (
    Evidence,
    Reader,
    Sample,
    detect_format,
    get_reader,
    other_format,
    plugin_readers,
    readers,
)
from hf_docmt.data.readers.subtitles import SubtitlesReader
from hf_docmt.data.registration import registered

if TYPE_CHECKING:
    from hf_docmt.formats.document_format import DocumentFormat

ROW_BY_ROW = {".txt": LinesReader} | dict.fromkeys(SubtitlesReader.endings, SubtitlesReader)  # are written so
NO_PLAIN_TEXT = re.compile(SubtitlesReader.first_bytes.pattern + rb"|\s*[<{[]|[^\n]*(\t|_eos)")  # of other formats


def document_formats() -> "dict[str, type[DocumentFormat]]":
    """All formats with markup by their names: those of this folder, and those from outside that were imported."""
    from hf_docmt.formats.document_format import FORMATS

    return registered(FORMATS, "hf_docmt.formats")


def find_reader(files: dict[str, str | None], format: str = "auto") -> Reader:
    """The reader of an input, by the name of a format, or by the ending of a file, then by its first bytes.

    Readers of corpora are asked where an ending is theirs or shared; a folder with files of formats is read as a whole.
    `DataError`: an unknown format, or one that cannot be detected.
    """
    given = {name: value for name, value in files.items() if value is not None}
    sample = Sample(given)
    if format == "auto" and sample.argument == "path" and sample.ending.lower() in ROW_BY_ROW:
        reader = ROW_BY_ROW[sample.ending.lower()]
        marked = reader is LinesReader and (NO_PLAIN_TEXT.match(sample.head) or other_format(sample))
        if not marked and not any(other().recognize(sample) for other in plugin_readers()):
            return reader()
    formats = document_formats()
    if format in formats:
        return _document_reader(formats[format])
    if format != "auto":
        return get_reader(format, others=formats)
    if sample.argument == "path":
        others = max(reader().recognize(sample) for name, reader in readers().items() if name not in formats)
        evidence = {format: format().recognize(sample) for format in formats.values()}
        best = max(evidence, key=lambda format: evidence[format])
        if evidence[best] > others:
            return _document_reader(best)
        if others is Evidence.NONE and Path(str(sample.path)).is_dir():
            from hf_docmt.formats.document_reader import DocumentReader, folder_files

            folder_files(str(sample.path))
            return DocumentReader()
    return get_reader(detect_format(given))


def _document_reader(format: "type[DocumentFormat]") -> Reader:
    from hf_docmt.formats.document_reader import DocumentReader

    return DocumentReader(format)
