"""The base of the formats of documents with markup, and what they are asked for."""

import os
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from hf_docmt.data.readers.reader import Reader
from hf_docmt.data.registration import register
from hf_docmt.files import DataError
from hf_docmt.formats.document_file import DocumentFile, FormatOptions, Remark
from hf_docmt.formats.segment import Piece, Segment, Tag, has_letters

__all__ = ["DocumentFormat", "FormatOptions", "Piece", "Segment", "Tag"]


FORMATS: dict[str, type["DocumentFormat"]] = {}
KEPT_BYTES = 16 << 20  # of files that stay parsed; that is looked at before one is added


class DocumentReader(Reader):
    """Reads files with markup: one of a format, or those of a folder."""

    output_format = "document"

    def __init__(self) -> None:
        self.kept: dict[tuple, DocumentFile] = {}

    def read(
        self,
        languages: list[str],
        path: str | Path,
        tgt_lang: str | None = None,
        keep: str | None = None,
        only_missing: str | None = None,
        columns: str | None = None,
    ) -> Iterator[tuple[str, dict]]:
        for file in self.files(languages, path, tgt_lang, keep=keep, only_missing=only_missing, columns=columns):
            yield from file.rows(languages)

    @abstractmethod
    def files(
        self, languages: Sequence[str], path: str | Path, tgt_lang: str | None = None, **texts: str | None
    ) -> Iterator[DocumentFile]:
        """The files, read one at a time; the arguments are those of `read`."""

    def file(self, path: str | Path, name: str, format: type["DocumentFormat"], options: FormatOptions) -> DocumentFile:
        """A file. The first ones stay parsed until they change, since a job asks for each three times."""
        key = (str(path), format, options, *_time_and_size(path))
        if key in self.kept:
            return self.kept[key]
        document = DocumentFile.read(path, name, format(), options)
        if sum(file.size for file in self.kept.values()) < KEPT_BYTES:
            self.kept[key] = document
        return document


class DocumentFormat(DocumentReader):
    """A format of documents with markup. A subclass with a `name` registers itself in `FORMATS` by being defined.

    An instance is for one file: `parse` finds the segments, `write` gives the file again with translated ones in their
    places. Everything else is byte for byte what it was. `placeholders` matches what is carried in all text of the
    format. `takes` are the options besides languages and `keep` that mean something to it: only_missing, columns. With
    `in_folders` false its files are read where they are named, since most files of their ending hold no texts.
    """

    placeholders: ClassVar[re.Pattern | None] = None
    takes: ClassVar[frozenset[str]] = frozenset()
    in_folders: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.remarks: Counter[Remark] = Counter()  # what users are told of a file

    def __init_subclass__(cls, **options):  # beside the readers of parallel documents, not among them
        if "name" in cls.__dict__:
            register(FORMATS, cls.name, cls, "format")

    @abstractmethod
    def parse(self, data: bytes, options: FormatOptions) -> list[Segment]:
        """The segments of a file, in reading order. DataError: it is broken, with the line or member; no path."""

    @abstractmethod
    def write(self, translations: Sequence[list[Piece] | None]) -> bytes:
        """The parsed file with these pieces in place of those of each segment; None: it stays as it is.

        All tags of a segment are there again, each once and well nested. Where the format has a place for it, the
        language is set to `options.target_lang`, if any segment was translated.
        """

    def is_found(self, pieces: Sequence[Piece]) -> bool:
        """Whether `parse` finds a segment that has become these pieces."""
        return has_letters(pieces)

    @classmethod
    def tag_name(cls, raw: str) -> str | None:
        """What a tag counts as when a written file is read again: itself, without the values of attributes.

        None: not at all, since one may stand for two that meet.
        """
        return re.sub(r"\"[^\"]*\"|'[^']*'", "", raw)

    def files(
        self, languages: Sequence[str], path: str | Path, tgt_lang: str | None = None, **texts: str | None
    ) -> Iterator[DocumentFile]:
        options = options_of([type(self)], languages, tgt_lang, **texts)
        yield self.file(path, Path(path).name, type(self), options)


def options_of(
    formats: Collection[type[DocumentFormat]], languages: Sequence[str], tgt_lang: str | None, **texts: str | None
) -> FormatOptions:
    """The options of files of these formats. DataError: one that means nothing to any of them."""
    for name in ("only_missing", "columns"):
        if texts.get(name) and not any(name in format.takes for format in formats):
            takers = [format.name for format in FORMATS.values() if name in format.takes]
            names = ", ".join(sorted({format.name for format in formats}))
            raise DataError(f"{name} is for {', '.join(takers)}, got {names}; leave it out")
    return FormatOptions.of(languages[0], tgt_lang, **texts)


def _time_and_size(path: str | Path) -> tuple[int, ...]:
    """What changes with a file; nothing where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size
