"""The base of the formats of documents with markup, and what they are asked for."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from hf_docmt.data.language_codes import is_right_to_left
from hf_docmt.data.readers.reader import FileKind
from hf_docmt.data.registration import register
from hf_docmt.files import DataError


@dataclass(frozen=True)
class Tag:
    """A piece of inline markup: it opens an element, closes one, or is a standalone tag.

    `raw` is written unchanged; None: `text`, as the format writes text. `text` is what a reader of the document sees of
    a piece that is not translated (code, a placeholder): the model reads it in its sentence. At a piece that `breaks`,
    such as a line break, a sentence ends. One that is `by_length` is put between words, where the sentence is divided
    as its source: by length. `place` are its characters in a file where text within it is translated, too.
    """

    kind: Literal["open", "close", "alone"]
    raw: str | None
    text: str = ""
    breaks: bool = False
    by_length: bool = False
    place: tuple[int, int] | None = field(default=None, compare=False)


Piece = str | Tag  # text without escapes, or markup


@dataclass
class Segment:
    """A paragraph, heading, item, cell or string: what is translated as one, with its inline markup well nested.

    `location` is for messages. `part` names the document in a file that holds several, such as chapters, in their
    order; context does not cross from one to the next. `has_translation`: a bilingual file has one, which stays
    without `--all`. `is_value`: an attribute or title, which has no markup.
    """

    pieces: list[Piece]
    location: str = ""
    part: str = ""
    has_translation: bool = False
    is_value: bool = False

    def becomes(self, pieces: list[Piece] | None) -> bool:
        """Whether these pieces, if any, are other ones."""
        return pieces is not None and pieces != self.pieces

    @property
    def text(self) -> str:
        """The text of the segment for the model."""
        return "".join(piece if isinstance(piece, str) else piece.text for piece in self.pieces)


class KeptPieces(list[Piece]):
    """The pieces of a segment whose translation stays; `raw` is what is written for them, None: the pieces are."""

    def __init__(self, pieces: Iterable[Piece], raw: str | None = None):
        super().__init__(pieces)
        self.raw = raw


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """The pieces with adjacent texts as one, and no empty ones."""
    made: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and made and isinstance(made[-1], str):
            made[-1] += piece
        elif piece != "":
            made.append(piece)
    return made


def trimmed(pieces: Iterable[Piece], signs: str | None = None) -> list[Piece]:
    """The joined pieces without these signs, or else white space, at both ends."""
    own = joined(pieces)
    for number, strip in ((0, str.lstrip), (-1, str.rstrip)) if own else ():
        own[number] = strip(piece, signs) if isinstance(piece := own[number], str) else piece
    return joined(own)


def unpaired(tags: Iterable[tuple[str, str]]) -> list[int]:
    """The numbers of tags, by kind and name, that open or close nothing, or cross others."""
    stack: list[tuple[int, str]] = []
    lone: list[int] = []
    opened: Counter[str] = Counter()
    for number, (kind, name) in enumerate(tags):
        if kind == "open":
            stack.append((number, name))
            opened[name] += 1
        elif kind == "close" and opened[name]:
            while (last := stack.pop())[1] != name:
                opened[last[1]] -= 1
                lone.append(last[0])
            opened[name] -= 1
        elif kind == "close":
            lone.append(number)
    return sorted([*lone, *(number for number, _ in stack)])


def has_letters(pieces: Iterable[Piece]) -> bool:
    """Whether there is a word outside of the tags."""
    return any(character.isalpha() for piece in pieces if isinstance(piece, str) for character in piece)


@contextmanager
def located(name: str) -> Iterator[None]:
    """Scope in which errors of what is read have its name in front."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{name}: {error}") from error


FORMATS: dict[str, type["DocumentFormat"]] = {}
Remark = tuple[str, str]  # counted strings, and their treatment: ("ICU message", "left alone")


@dataclass(frozen=True)
class FormatOptions:
    """Settings for reading documents: languages, placeholders, and the strings of a file to translate.

    `keep` matches text to copy, in addition to addresses and the `placeholders` of the format.
    `all`: strings of bilingual files that have a translation are translated again. `columns`: those of a table that
    are translated, by name or by number from 1; None: the format says. `bilingual`: each text stays, and its
    translation is written below it. `fuzzy_below`: only translations with a lower score are marked for review.
    """

    source_lang: str = "en"
    target_lang: str | None = None
    keep: re.Pattern | None = None
    all: bool = False
    columns: tuple[str, ...] | None = None
    bilingual: bool = False
    fuzzy_below: float | None = None

    @property
    def is_right_to_left(self) -> bool:
        """Whether the target language is written so."""
        return is_right_to_left(self.target_lang)

    @classmethod
    def of(cls, source_lang: str, target_lang: str | None = None, **texts: str | None) -> "FormatOptions":
        """The options from texts, as in arguments of readers: `all` is yes, `columns` has commas. ValueError."""
        keep, columns, least = (texts.get(name) for name in ("keep", "columns", "fuzzy_below"))
        try:
            pattern = re.compile(keep) if keep else None
        except re.error as error:
            raise DataError(f"keep is {keep!r}, which is not a regular expression ({error}); repair it") from error
        if pattern and pattern.match(""):
            raise DataError(f"keep is {keep!r}, which also matches empty text; use + instead of *")
        names = tuple(name.strip() for name in columns.split(",")) if columns else None
        are_set = {name: texts.get(name) == "yes" for name in ("all", "bilingual")}
        limit = None if least is None else float(least)
        return cls(source_lang, target_lang, pattern, columns=names, fuzzy_below=limit, **are_set)


class DocumentFormat(FileKind, ABC):
    """A format of documents with markup. A subclass with a `name` registers itself in `FORMATS` by being defined.

    An instance is for one file: `parse` finds the segments, `write` returns the file with translated ones in their
    places. All other bytes are unchanged. `placeholders` matches text to copy in all files of the
    format. `takes` are its options other than languages and `keep`: all, columns, fuzzy_below. With
    `in_folders` false its files are read where they are named, since most files of their ending hold no texts. In a
    file that `is_bilingual` translations are next to their sources, even if both are equal.
    """

    placeholders: re.Pattern | None = None
    takes: ClassVar[frozenset[str]] = frozenset()
    in_folders: ClassVar[bool] = True
    is_bilingual: ClassVar[bool] = False
    line_break: ClassVar[Tag | None] = None  # between a text and its translation, in documents with both

    def __init__(self) -> None:
        self.remarks: Counter[Remark] = Counter()  # messages to users about a file
        self.scores: Sequence[float | None] = ()  # of the translations to write, if they are known

    def __init_subclass__(cls, **options):
        if "name" in cls.__dict__:
            register(FORMATS, cls.name, cls, "format")

    @abstractmethod
    def parse(self, data: bytes, options: FormatOptions) -> list[Segment]:
        """The segments of a file, in reading order. DataError: it is broken, with the line or member; no path."""

    @abstractmethod
    def write(self, translations: Sequence[list[Piece] | None]) -> bytes:
        """The parsed file with these pieces instead of those of each segment; None: it stays unchanged.

        All tags of a segment are there again, each once and well nested. Where the format has a place for it, the
        language is set to `options.target_lang`, if any segment was translated.
        """

    def raw_segments(self) -> list[str]:
        """The file's text of each segment; empty if a format writes segments in several places."""
        return []

    def leads(self) -> Sequence[str]:
        """The marks before each segment in its line, such as that of an item; empty without any."""
        return []

    def read_again(self, data: bytes, options: FormatOptions) -> list[Segment]:
        """The segments of the written file."""
        return type(self)().parse(data, options)

    def is_found(self, pieces: Sequence[Piece]) -> bool:
        """Whether `parse` finds a segment that has become these pieces."""
        return has_letters(each.text if isinstance(each, Tag) and each.raw is None else each for each in pieces)

    @classmethod
    def options_taken(cls) -> frozenset[str]:
        """`takes`, and bilingual where there is a line break."""
        return cls.takes | ({"bilingual"} if cls.line_break else set())

    @classmethod
    def tag_name(cls, raw: str) -> str | None:
        """The form of a tag in comparisons with a written file: itself, without the values of attributes.

        None: it does not count, since one may replace two adjacent ones.
        """
        return re.sub(r"\"[^\"]*\"|'[^']*'", "", raw)
