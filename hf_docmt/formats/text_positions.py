"""Text with the places of its segments and their tags, so that parts of it are replaced and all others stay."""

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hf_docmt.files import DataError
from hf_docmt.formats.document_format import Piece, Segment, Tag

Edit = tuple[
    int, int, "str | Slot", list[Piece]
]  # characters from, to; a text in their place, or a slot and its pieces
MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


@dataclass
class Slot:
    """A segment and the characters `start` to `end` it stands at. `escape` makes its text what the file has."""

    start: int
    end: int
    segment: Segment
    escape: Callable[[str], str]
    places: dict[int, tuple[int, int]] = field(default_factory=dict)  # id of a tag -> its characters

    def rendered(self, pieces: Sequence[Piece], raw: Callable[[Tag], str]) -> str:
        """Pieces as the file has them; `raw` gives the markup of a tag."""
        parts = []
        for piece in pieces:
            if isinstance(piece, Tag) and piece.raw is not None:
                parts.append(raw(piece))
            else:
                parts.append(self.escape(piece if isinstance(piece, str) else piece.text))
        return "".join(parts)


class TextPositions:
    """A text and its slots. A slot may lie within a tag of another one, as the text of an image does.

    The `raw` of a tag is then its markup without that text, which is put back when it is written.
    """

    def __init__(self, text: str, line_end: str = "\n"):
        self.text = text
        self.slots: list[Slot] = []
        self.values: list[tuple[int, int]] = []  # characters of the slots that lie within tags, sorted
        self.line_starts = [0, *(match.end() for match in re.finditer(line_end, text))]

    def line(self, position: int) -> int:
        """The number of the line, from 1."""
        return bisect_right(self.line_starts, position)

    def add_value(self, slot: Slot) -> None:
        """Add a slot that lies within a tag, before the tag is made."""
        self.slots.append(slot)
        insort(self.values, (slot.start, slot.end))

    def tag(self, kind: Literal["open", "close", "alone"], start: int, end: int, text: str = "", breaks=False) -> Tag:
        """The tag at these characters, without those of slots."""
        own = self.values[bisect_left(self.values, (start, start)) : bisect_left(self.values, (end, end))]
        return Tag(kind, self._edited(start, end, [(*value, "", []) for value in own]), text, breaks)

    def segments(self) -> list[Segment]:
        """Those of the slots in the order of the text, in which the slots are put."""
        self.slots.sort(key=lambda slot: (slot.start, -slot.end))
        return [slot.segment for slot in self.slots]

    def written(self, translations: Sequence[list[Piece] | None], others: Sequence[Edit] = ()) -> str:
        """The text with these pieces in the slots, and other edits outside of them if there are any translations."""
        edits: list[Edit] = [
            (slot.start, slot.end, slot, pieces)
            for slot, pieces in zip(self.slots, translations, strict=True)
            if pieces is not None and pieces != slot.segment.pieces
        ]
        edits = sorted([*edits, *others], key=lambda edit: (edit[0], -edit[1])) if edits else []
        return self._edited(0, len(self.text), edits)

    def _edited(self, start: int, end: int, edits: list[Edit]) -> str:
        """Characters of the text with the edits that lie within them; those within another edit are its own."""
        parts, position = [], start
        for first, last, new, pieces in edits[bisect_left(edits, start, key=lambda edit: edit[0]) :]:
            if first > end:
                break
            if position <= first and last <= end:
                parts += [self.text[position:first], new if isinstance(new, str) else self._filled(new, pieces, edits)]
                position = last
        return "".join([*parts, self.text[position:end]])

    def _filled(self, slot: Slot, pieces: list[Piece], edits: list[Edit]) -> str:
        def raw(tag: Tag) -> str:
            place = slot.places.get(id(tag))
            return self._edited(*place, edits) if place else tag.raw or ""

        return slot.rendered(pieces, raw)


def decoded(data: bytes, encoding: str) -> tuple[str, str, bytes]:
    """The text of a file, its encoding and its byte order mark, which comes before `encoding`. DataError: another."""
    mark, encoding = next(((mark, name) for mark, name in MARKS if data.startswith(mark)), (b"", encoding))
    try:
        text = data[len(mark) :].decode(encoding)
        same = text.encode(encoding) == data[len(mark) :]
    except (UnicodeError, LookupError) as error:
        raise DataError(f"it is not {encoding}, as it should be ({error}); save it as UTF-8") from error
    if "\0" in text:
        raise DataError("it is no text, since it has a NUL character; take it out, or save it as UTF-8")
    if not same:
        raise DataError(f"it is no text in {encoding}; save it as UTF-8")
    return text, encoding, mark
