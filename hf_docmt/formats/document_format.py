"""What a document is made of, whatever its format: segments of text with inline markup; and the base of the formats."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.reader import Reader
from hf_docmt.data.readers.running_text import sentence_splitter
from hf_docmt.files import STDIN, DataError, display_path, open_bytes

COLUMN = "markup"  # of the rows: numbers of the sentences that have inline markup


@dataclass(frozen=True)
class Tag:
    """A piece of inline markup: it opens an element, closes one, or stands alone.

    `raw` is written as it is; None: `text`, as the format writes text. `text` is what a reader of the document sees of
    a piece that is not translated (code, a placeholder): the model reads it in its sentence. At a piece that `breaks`,
    such as a line break, a sentence ends.
    """

    kind: Literal["open", "close", "alone"]
    raw: str | None
    text: str = ""
    breaks: bool = False


Piece = str | Tag  # text without escapes, or markup


@dataclass
class Segment:
    """A paragraph, heading, item, cell or string: what is translated as one, with its inline markup well nested.

    `location` is for messages. `part` names the document in a file that holds several, such as chapters, in their
    order; context does not cross from one to the next. `has_translation`: a bilingual file has one, which `--only-missing`
    leaves as it is.
    """

    pieces: list[Piece]
    location: str = ""
    part: str = ""
    has_translation: bool = False

    @property
    def text(self) -> str:
        """What the model reads of it."""
        return "".join(piece if isinstance(piece, str) else piece.text for piece in self.pieces)


@dataclass(frozen=True)
class FormatOptions:
    """How documents are read: languages, placeholders, and which strings of a file are meant.

    `keep` matches what is carried and not translated, besides the `placeholders` of the format. `only_missing`: strings
    of bilingual files that have a translation stay. `columns`: those of a table that are translated, by name or by
    number from 1; None: all that hold text.
    """

    source_lang: str = "en"
    target_lang: str | None = None
    keep: re.Pattern | None = None
    only_missing: bool = False
    columns: tuple[str, ...] | None = None


class DocumentFormat(Reader):
    """A format of documents with markup. A subclass with a `name` registers itself by being defined.

    An instance is for one file: `parse` finds the segments, `write` gives the file again with translated ones in their
    places. Everything else is byte for byte what it was. `placeholders` matches what is carried in all text of the
    format. `takes` are the options besides languages and `keep` that mean something to it.
    """

    output_format = "document"
    document_ids = True
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
        raise NotImplementedError  # written next
