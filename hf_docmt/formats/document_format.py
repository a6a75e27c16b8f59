"""The base of the formats of documents with markup, and what they are asked for."""

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from hf_docmt.data.readers.reader import Reader
from hf_docmt.files import DataError
from hf_docmt.formats.segment import Piece, Segment, Tag

__all__ = ["DocumentFormat", "FormatOptions", "Piece", "Segment", "Tag"]


@dataclass(frozen=True)
class FormatOptions:
    """How documents are read: languages, placeholders, and which strings of a file are meant.

    `keep` matches what is carried and not translated, besides the `placeholders` of the format. `only_missing`: strings
    of bilingual files that have a translation stay. `columns`: those of a table that are translated, by name or by
    number from 1; None: the format says.
    """

    source_lang: str = "en"
    target_lang: str | None = None
    keep: re.Pattern | None = None
    only_missing: bool = False
    columns: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls,
        source_lang: str,
        target_lang: str | None = None,
        keep: str | None = None,
        only_missing: str | None = None,
        columns: str | None = None,
    ) -> "FormatOptions":
        """Those of texts, as arguments of readers are: `only_missing` is yes, `columns` has commas. ValueError."""
        try:
            pattern = re.compile(keep) if keep else None
        except re.error as error:
            raise DataError(f"keep is {keep!r}, which is no regular expression ({error}); repair it") from error
        if pattern and pattern.match(""):
            raise DataError(f"keep is {keep!r}, which matches nothing at all, too; use + where it has *")
        names = tuple(name.strip() for name in columns.split(",")) if columns else None
        return cls(source_lang, target_lang, pattern, only_missing == "yes", names)


class DocumentFormat(Reader):
    """A format of documents with markup. A subclass with a `name` registers itself by being defined.

    An instance is for one file: `parse` finds the segments, `write` gives the file again with translated ones in their
    places. Everything else is byte for byte what it was. `placeholders` matches what is carried in all text of the
    format. `takes` are the options besides languages and `keep` that mean something to it: only_missing, columns.
    """

    output_format = "document"
    placeholders: ClassVar[re.Pattern | None] = None
    takes: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def parse(self, data: bytes, options: FormatOptions) -> list[Segment]:
        """The segments of a file, in reading order. DataError: it is broken, with the line or member; no path."""

    @abstractmethod
    def write(self, translations: Sequence[list[Piece] | None]) -> bytes:
        """The parsed file with these pieces in place of those of each segment; None: it stays as it is.

        All tags of a segment are there again, each once and well nested. Where the format has a place for it, the
        language is set to `options.target_lang`, if any segment was translated.
        """

    def read(
        self,
        languages: list[str],
        path: str | Path,
        tgt_lang: str | None = None,
        keep: str | None = None,
        only_missing: str | None = None,
        columns: str | None = None,
    ) -> Iterator[tuple[str, dict]]:
        from hf_docmt.formats.document_file import DocumentFile, options_of  # which knows this class

        texts = {"keep": keep, "only_missing": only_missing, "columns": columns}
        options = options_of([type(self)], languages, tgt_lang, **texts)
        yield from DocumentFile(path, Path(path).name, self, options).rows(languages)
