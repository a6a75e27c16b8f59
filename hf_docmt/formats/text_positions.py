"""Text or bytes with the places of segments and their tags, so that parts of it are replaced and all others stay."""

import re
from abc import abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, AnyStr, ClassVar, Generic, Literal

from hf_docmt.files import DataError
from hf_docmt.formats.document_format import DocumentFormat, FormatOptions, Piece, Segment, Tag

Edit = tuple[int, int, str]  # from, to, and the text in its place
LEAD = re.compile(r"(?:<[^<>\n]*>|[^\w\r\n])*\Z")  # marks before a segment
MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


@dataclass
class Slot:
    """A segment at the characters `start` to `end`. `escape` converts its text to the form of the file."""

    start: int
    end: int
    segment: Segment
    escape: Callable[[str], str] = str

    def rendered(self, pieces: Sequence[Piece], raw: Callable[[Tag], str]) -> str:
        """Pieces as the file has them; `raw` gives the markup of a tag."""
        parts = []
        for piece in pieces:
            if isinstance(piece, Tag) and piece.raw is not None:
                parts.append(raw(piece))
            else:
                parts.append(self.escape(piece if isinstance(piece, str) else piece.text))
        return "".join(parts)


class TextPositions(Generic[AnyStr]):
    """A text, or bytes of text, and its slots. A slot may be inside a tag of another one, as with an image.

    The `raw` of a tag is then its markup without that text, which is put back when it is written.
    """

    def __init__(self, text: AnyStr, line_end: str = "\n"):
        self.text, self.line_end = text, line_end
        self.slots: list[Any] = []
        self.values: list[tuple[int, int]] = []  # characters of the slots inside tags, sorted

    @cached_property
    def line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer(self.line_end, self.text))]  # type: ignore[call-overload]

    def line(self, position: int) -> int:
        """The number of the line, from 1."""
        return bisect_right(self.line_starts, position)

    def line_span(self, number: int) -> tuple[int, int]:
        """The characters of a line, its end among them; the first line is 0."""
        start, end = [*self.line_starts[number : number + 2], len(self.text)][:2]
        return start, end

    def add_value(self, slot: Slot) -> None:
        """Add a slot inside a tag, before the tag is made."""
        self.slots.append(slot)
        insort(self.values, (slot.start, slot.end))

    def tag(self, kind: Literal["open", "close", "alone"], start: int, end: int, text: str = "", breaks=False) -> Tag:
        """The tag at these characters, without those of slots."""
        own = self.values[bisect_left(self.values, (start, start)) : bisect_left(self.values, (end, end))]
        raw = replaced(self.text[start:end], [(first - start, last - start, "") for first, last in own])
        return Tag(kind, raw, text, breaks, place=(start, end))  # type: ignore[arg-type]

    def segments(self) -> list[Segment]:
        """The segments of the slots, in the order of the text; sorts the slots."""
        self.slots.sort(key=lambda slot: (slot.start, -slot.end))
        return [slot.segment for slot in self.slots]

    def raw_segments(self) -> list[AnyStr]:
        """The text of each slot."""
        return [self.text[slot.start : slot.end] for slot in self.slots]

    def written(self, translations: Sequence[list[Piece] | None], others: Iterable[Edit] = ()) -> AnyStr:
        """The text with these pieces in the slots, and other edits outside of them if there are any translations."""
        self.edits: list[tuple[int, int, Any, Any]] = [  # a text or a slot, and its pieces
            (slot.start, slot.end, slot, pieces)
            for slot, pieces in zip(self.slots, translations, strict=True)
            if slot.segment.becomes(pieces)
        ]
        if self.edits:
            self.edits += [(start, end, new, None) for start, end, new in others]
            self.edits.sort(key=lambda edit: (edit[0], -edit[1]))
        return self.edited(0, len(self.text))

    def edited(self, start: int, end: int) -> AnyStr:
        """Characters of the text with the edits within them; those within another edit belong to it."""
        edits, position = [], start
        for number in range(bisect_left(self.edits, start, key=lambda edit: edit[0]), len(self.edits)):
            first, last, new, pieces = self.edits[number]
            if first > end:
                break
            if position <= first and last <= end:
                raw = new if pieces is None else getattr(pieces, "raw", None)  # see `KeptPieces`
                edits.append((first - start, last - start, self.rendered(new, pieces) if raw is None else raw))
                position = last
        return replaced(self.text[start:end], edits)

    def rendered(self, slot: Any, pieces: Sequence[Piece]) -> str:
        """The text that replaces a slot with these pieces."""

        def raw(tag: Tag) -> str:
            return str(self.edited(*tag.place)) if tag.place else tag.raw or ""

        return slot.rendered(pieces, raw)


def replaced(data: AnyStr, edits: Iterable[Edit]) -> AnyStr:
    """The text or bytes with another text in each of these ranges, which do not overlap and may be in any order."""
    parts: list[Any] = []
    position = 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        parts += [data[position:start], new.encode("utf-8") if isinstance(data, bytes) else new]
        position = end
    return data[:0].join([*parts, data[position:]])


class TextFormat(DocumentFormat):
    """A format of text files. A subclass adds the slots of its text to `page`."""

    line_end: ClassVar[str] = "\n"
    errors: ClassVar[str] = "strict"  # of characters that the encoding of a file does not have

    def parse(self, data: bytes, options: FormatOptions) -> list[Segment]:
        text, self.encoding, self.mark = decoded(data, self.charset(data))
        self.options, self.page = options, TextPositions(text, self.line_end)
        self.locales: list[Edit] = []  # of keys that name the language of the file
        self.find(text)
        return self.page.segments()

    def charset(self, data: bytes) -> str:
        """The encoding of a file without byte order mark."""
        return "utf-8"

    @abstractmethod
    def find(self, text: str) -> None:
        """Add the slots."""

    def language_edits(self) -> Iterable[Edit]:
        """Edits that set the target language of the file."""
        return self.locales

    def raw_segments(self) -> list[str]:
        return self.page.raw_segments()

    def leads(self) -> Sequence[str]:
        found = (LEAD.search(self.page.text, max(0, slot.start - 40), slot.start) for slot in self.page.slots)
        return [match[0] if match else "" for match in found]

    def write(self, translations: Sequence[list[Piece] | None]) -> bytes:
        return self.mark + self.page.written(translations, self.language_edits()).encode(self.encoding, self.errors)


def decoded(data: bytes, encoding: str) -> tuple[str, str, bytes]:
    """The text of a file, its encoding and its byte order mark, which comes before `encoding`. DataError: another."""
    mark, encoding = next(((mark, name) for mark, name in MARKS if data.startswith(mark)), (b"", encoding))
    try:
        text = data[len(mark) :].decode(encoding)
        same = text.encode(encoding) == data[len(mark) :]
    except (UnicodeError, LookupError) as error:
        raise DataError(f"it is not {encoding}, as it should be ({error}); save it as UTF-8") from error
    if "\0" in text:
        raise DataError("it is not text, since it has a NUL character; remove that, or save the file as UTF-8")
    if not same:
        raise DataError(f"it is not text in {encoding}; save it as UTF-8")
    return text, encoding, mark
