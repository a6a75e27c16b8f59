"""Members of office documents: XML whose texts are replaced, with runs of text in several looks."""

import posixpath
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import groupby
from typing import ClassVar
from xml.sax.saxutils import quoteattr

from hf_docmt.files import DataError
from hf_docmt.formats.document_format import Piece, Segment, Tag
from hf_docmt.formats.segment import has_letters
from hf_docmt.formats.xml_positions import Element, parse_xml
from hf_docmt.formats.zip_archive import ZipArchive

Run = tuple[str, str]  # text, and the markup of its looks


@dataclass
class Slot:
    """A segment and the bytes `start` to `end` it stands at. `looks` are those that most of its text has.

    `head` is the markup before its runs, as the properties of a paragraph.
    """

    start: int
    end: int
    segment: Segment
    looks: str = ""
    head: str = ""
    is_value: bool = False  # of an attribute, with its quotes
    overruled_by: tuple[int, int] | None = None  # bytes that say the text, too, and go when it is changed


class OfficeMember(ABC):
    """A member with text. A subclass finds the slots, and says how a run is written.

    `texts` are the names of the elements that have slots. DataError: broken XML, with the name of the member.
    """

    texts: ClassVar[tuple[str, ...]]
    is_right_to_left = False  # what is written, where the format says so at paragraphs

    def __init__(self, name: str, data: bytes, part: str = ""):
        self.name, self.data, self.part = name, data, part
        self.slots: list[Slot] = []
        self.tags: list[Tag] = []  # kept, so that no other one has the id of one of them
        self.looks: dict[int, str] = {}  # of tags around runs of other looks
        self.places: dict[int, tuple[str, int, int, str]] = {}  # of tags alone: text, bytes, which may have slots, text
        try:
            self.find(parse_xml(data))
        except DataError as error:
            raise DataError(f"{name}: {error}") from error

    @abstractmethod
    def find(self, root: Element) -> None:
        """Add the slots, in the order in which they are read."""

    @abstractmethod
    def run(self, text: str, looks: str) -> str:
        """The markup of a text in these looks."""

    def add(self, start: int, end: int, items: Iterable[Tag | Run], place: str, head: str = "") -> Slot | None:
        """A slot of runs and tags, if any word is in it. Runs of other looks than most characters have get tags."""
        items = list(items)
        counts: Counter[str] = Counter()
        for item in items:
            if not isinstance(item, Tag):
                counts[item[1]] += len(item[0])
        base = counts.most_common(1)[0][0] if counts else ""
        pieces: list[Piece] = []
        for looks, group in groupby(items, key=lambda item: None if isinstance(item, Tag) else item[1]):
            if looks is None:
                pieces += [item for item in group if isinstance(item, Tag)]
                continue
            text = "".join(item[0] for item in group if not isinstance(item, Tag))
            pieces += [text] if looks == base else [self._looks("open", looks), text, self._looks("close", looks)]
        return self._add(Slot(start, end, Segment(pieces, f"{self.name}, {place}", self.part), base, head))

    def add_value(self, element: Element, attribute: str) -> None:
        """A slot of the value of an attribute, if it has any word."""
        start, end = attribute_place(self.data, element, attribute)
        text = unescape(self.data[start + 1 : end - 1].decode())
        self._add(Slot(start, end, Segment([text], f"{self.name}, {attribute}", self.part), is_value=True))

    def _add(self, slot: Slot) -> Slot | None:
        if not has_letters(slot.segment.pieces):
            return None
        self.slots.append(slot)
        return slot

    def _looks(self, kind: str, looks: str) -> Tag:
        tag = Tag("open", looks) if kind == "open" else Tag("close", "")
        self.looks[id(tag)] = looks
        self.tags.append(tag)
        return tag

    def alone(
        self,
        element: Element,
        text: str = "",
        breaks: bool = False,
        last: Element | None = None,
        around: tuple[str, str] = ("", ""),
    ) -> Tag:
        """An element, or all up to the `last`, as a tag that stands alone, with texts around it.

        Its `raw` is the start tag if there are slots inside.
        """
        end = (last or element).end
        raw_end = element.inner_start if any(element.descendants(*self.texts)) else end
        tag = Tag("alone", around[0] + self.data[element.start : raw_end].decode() + around[1], text, breaks)
        self.places[id(tag)] = (around[0], element.start, end, around[1])
        self.tags.append(tag)
        return tag

    def written(self, translations: Sequence[list[Piece] | None]) -> bytes:
        """The member with these pieces in place of those of its slots."""
        self.edits = [
            (slot, pieces)
            for slot, pieces in zip(self.slots, translations, strict=True)
            if pieces is not None and pieces != slot.segment.pieces
        ]
        places = {slot.overruled_by for slot, _ in self.edits if slot.overruled_by}
        self.edits += [(Slot(*place, Segment([], "")), []) for place in places]
        self.edits.sort(key=lambda edit: edit[0].start)
        return self._edited(0, len(self.data))

    def _edited(self, start: int, end: int) -> bytes:
        """Bytes of the member with the edits that lie there; those inside others are theirs."""
        parts, position = [], start
        for slot, pieces in self.edits[bisect_left(self.edits, start, key=lambda edit: edit[0].start) :]:
            if slot.start >= end:
                break
            if position <= slot.start and slot.end <= end:
                parts += [self.data[position : slot.start], self.rendered(slot, pieces).encode()]
                position = slot.end
        return b"".join([*parts, self.data[position:end]])

    def rendered(self, slot: Slot, pieces: Sequence[Piece]) -> str:
        if slot.is_value:
            return quoteattr("".join(piece if isinstance(piece, str) else piece.text for piece in pieces))
        runs = (run if isinstance(run, str) else self.run(*run) for run in self.runs(slot, pieces))
        return "".join([self.head(slot.head), *runs])

    def head(self, head: str) -> str:
        """The markup before the runs of a translated slot."""
        return head

    def runs(self, slot: Slot, pieces: Sequence[Piece]) -> list[Run | str]:
        """Pieces as runs, those of the same looks that meet as one, and markup."""
        runs: list[Run | str] = []
        looks = [slot.looks]
        for piece in pieces:
            if isinstance(piece, Tag) and id(piece) in self.looks:
                looks = [*looks, self.looks[id(piece)]] if piece.kind == "open" else looks[:-1]
            elif isinstance(piece, str) or piece.raw in (None, piece.text):
                text = piece if isinstance(piece, str) else piece.text
                if runs and isinstance(last := runs[-1], tuple) and last[1] == looks[-1]:
                    runs[-1] = (last[0] + text, looks[-1])
                elif text:
                    runs.append((text, looks[-1]))
            elif id(piece) in self.places:
                before, start, end, after = self.places[id(piece)]
                runs.append(before + self._edited(start, end).decode() + after)
            else:
                runs.append(piece.raw or "")
        return runs


def attribute_place(data: bytes, element: Element, attribute: str) -> tuple[int, int]:
    """The bytes of the value of an attribute, with its quotes; the end of the element's name twice: it has none."""
    position = element.start + 1 + len(element.name.encode())
    end = element.inner_start
    while (equals := data.find(b"=", position, end)) >= 0:
        name = data[position:equals].strip().decode()
        start = equals + 1
        while data[start : start + 1].isspace():
            start += 1
        position = data.index(data[start : start + 1], start + 1) + 1
        if name == attribute:
            return start, position
    return (element.start + 1 + len(element.name.encode()),) * 2


def written_members(members: Sequence[OfficeMember], translations: Sequence[list[Piece] | None]) -> dict[str, bytes]:
    """The contents of the members that these pieces change."""
    contents, position = {}, 0
    for member in members:
        data = member.written(translations[position : position + len(member.slots)])
        position += len(member.slots)
        if data != member.data:
            contents[member.name] = data
    return contents


def related(archive: ZipArchive, name: str, kind: str) -> dict[str, str]:
    """The members that one, or the archive (""), is related to by the last word of a type, by ids.

    ECMA-376 part 2, 8.3.
    """
    folder, file = posixpath.split(name)
    relations = posixpath.join(folder, "_rels", f"{file}.rels")
    if relations not in archive.names:
        return {}
    elements = [element.attributes for element in parse_xml(archive.read(relations)).elements()]
    targets = {
        values.get("Id", ""): posixpath.normpath(posixpath.join("/" + folder, values.get("Target", "")))[1:]
        for values in elements
        if values.get("Type", "").endswith(f"/{kind}")
    }
    return {number: target for number, target in targets.items() if target in archive.names}


def main_member(archive: ZipArchive, usual: str, kind: str) -> str:
    """The member that a document of this kind begins with, by the relations of the archive, or else of its usual name.

    DataError: it is not there.
    """
    folder = posixpath.dirname(usual)
    targets = related(archive, "", "officeDocument").values()
    name = next((target for target in targets if posixpath.dirname(target) == folder), usual)
    if name not in archive.names:
        raise DataError(f"{name} is not in it: no {kind}")
    return name
