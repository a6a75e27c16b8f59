"""What is written back: lines, running text, subtitles and documents with markup, told by the endings of their names.

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
    """The reader of an input, by the name of a format, or by the ending of a file, then by what its first bytes say.

    Readers of corpora are asked where an ending is theirs or shared; a folder with files of formats is read as a whole.
    `DataError`: no such format, or nothing tells it.
    """
    given = {name: value for name, value in files.items() if value is not None}
    sample = Sample(given)
    if format == "auto" and sample.argument == "path" and sample.ending.lower() in ROW_BY_ROW:
        reader = ROW_BY_ROW[sample.ending.lower()]
        is_other = any(other().recognize(sample) for other in plugin_readers())
        if reader is LinesReader:
            is_other = is_other or NO_PLAIN_TEXT.match(sample.head) or other_format(sample)
        if not is_other:
            return reader()
    formats = document_formats()
    if format in formats:
        return _document_reader(formats[format])
    if format != "auto":
        return get_reader(format, others=formats)
    if sample.argument == "path":
        kinds = [*readers().values(), *formats.values()]  # of equals the first
        evidence = [kind().recognize(sample) for kind in kinds]
        best = kinds[evidence.index(max(evidence))]
        if best in formats.values() and max(evidence) is not Evidence.NONE:
            return _document_reader(best)
        if max(evidence) is Evidence.NONE and Path(str(sample.path)).is_dir():
            from hf_docmt.formats.document_file import DocumentReader, folder_files

            if any(folder_files(str(sample.path))):
                return DocumentReader()
    return get_reader(detect_format(given))


def _document_reader(format: "type[DocumentFormat]") -> Reader:
    from hf_docmt.formats.document_file import DocumentReader

    return DocumentReader(format)
