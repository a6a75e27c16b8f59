"""Members of office documents: XML whose texts are replaced, with runs of text in several looks."""

import posixpath
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import groupby, islice
from typing import ClassVar
from xml.sax.saxutils import quoteattr

from hf_docmt.files import DataError
from hf_docmt.formats.document_format import (
    DocumentFormat,
    FormatOptions,
    Piece,
    Remark,
    Segment,
    Tag,
    has_letters,
    located,
)
from hf_docmt.formats.text_positions import Edit, Slot, TextPositions
from hf_docmt.formats.xml_positions import Element, parse_xml
from hf_docmt.formats.zip_archive import ZipArchive

COMMENT = re.compile(rb"<(?:\w+:)?(?:comment|cm|annotation)[\s/>]")
COMMENTS = re.compile(
    r"content\.xml|(?:word|ppt|xl)/(?:\w+/)?(?:\w+C|c)omments?[^/]*\.xml"
)  # members that may have some
LOOKED_UP = ("looked-up text", "left alone")
Run = tuple[str, str]  # text, and the markup of its looks
ATTRIBUTE = re.compile(rb"""([^\s="'<>/]+)\s*=\s*("[^"]*"|'[^']*')""")


@dataclass(frozen=True)
class OfficeTag(Tag):
    """A tag around a run in other looks, or an element with the markup `around` it."""

    looks: str | None = None
    around: tuple[str, str] = ("", "")


@dataclass
class OfficeSlot(Slot):
    """A segment and its bytes. `looks` are those that most of its text has, `head` is the markup before its runs."""

    looks: str = ""
    head: str = ""  # as the properties of a paragraph
    is_value: bool = False  # of an attribute, with its quotes
    overruled_by: tuple[int, int] | None = None  # bytes that say the text, too, and go when it is changed


class OfficeMember(TextPositions[bytes], ABC):
    """A member with text. A subclass finds the slots, and says how a run is written.

    `texts` are the names of the elements that have slots, `breaks` the characters that begin a line or a column.
    DataError: broken XML, with the name of the member.
    """

    texts: ClassVar[tuple[str, ...]]
    breaks: ClassVar[str] = ""
    options = FormatOptions()  # the output depends on the target language

    def __init__(self, name: str, data: bytes, part: str = ""):
        super().__init__(data)
        self.name, self.data, self.part = name, data, part
        with located(name):
            self.find(parse_xml(data))

    @abstractmethod
    def find(self, root: Element) -> None:
        """Add the slots, in the order in which they are read."""

    @abstractmethod
    def run(self, text: str, looks: str) -> str:
        """The markup of a text in these looks."""

    def add(self, start: int, end: int, items: Iterable[Tag | Run], place: str, head: str = "") -> OfficeSlot | None:
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
            lines = [
                Tag("alone", part, part, breaks=True) if self.breaks and part in self.breaks else part
                for part in re.split(f"([{self.breaks}])" if self.breaks else "(?!)", text)
                if part
            ]
            opening, closing = OfficeTag("open", looks, looks=looks), OfficeTag("close", "", looks=looks)
            pieces += lines if looks == base else [opening, *lines, closing]
        segment = Segment(pieces, f"{self.name}, {place}", self.part)
        return self._add(OfficeSlot(start, end, segment, looks=base, head=head))

    def add_paragraph(self, element: Element, inner: Sequence[Element], items: Iterable[Tag | Run], place: str) -> None:
        """A slot of these elements in a paragraph, and of its properties, if it has any before them."""
        if inner:
            start = next(element.elements()).start
            self.add(start, inner[-1].end, items, place, self.data[start : inner[0].start].decode())

    def add_value(self, element: Element, attribute: str = "descr") -> None:
        """A slot of the value of an attribute, if it has any word."""
        start, end = attribute_place(self.data, element, attribute)
        text = unescape(self.data[start + 1 : end - 1].decode())
        segment = Segment([text], f"{self.name}, {attribute}", self.part)
        segment.is_value = True
        self._add(OfficeSlot(start, end, segment, is_value=True))

    def _add(self, slot: OfficeSlot) -> OfficeSlot | None:
        if not has_letters(slot.segment.pieces):
            return None
        self.slots.append(slot)
        return slot

    def container(self, element: Element, content: Element, items: Iterable[Tag | Run]) -> Iterator[Tag | Run]:
        """An element around these items, which are in its `content`; an empty one is a standalone tag."""
        if content.inner_start == content.end:
            yield self.alone(element)
            return
        yield Tag("open", self.data[element.start : content.inner_start].decode())
        yield from items
        yield Tag("close", self.data[content.inner_end : element.end].decode())

    def alone(
        self,
        element: Element,
        text: str = "",
        breaks: bool = False,
        last: Element | None = None,
        around: tuple[str, str] = ("", ""),
    ) -> Tag:
        """An element, or all up to the `last`, as a standalone tag, with texts around it.

        Its `raw` is the start tag if there are slots inside.
        """
        end = (last or element).end
        raw_end = element.inner_start if any(element.descendants(*self.texts)) else end
        raw = self.data[element.start : raw_end].decode().join(around)
        return OfficeTag("alone", raw, text, breaks, place=(element.start, end), around=around)

    def written(self, translations: Sequence[list[Piece] | None], others: Iterable[Edit] = ()) -> bytes:
        pairs = zip(self.slots, translations, strict=True)
        places = {slot.overruled_by for slot, pieces in pairs if slot.overruled_by and slot.segment.becomes(pieces)}
        return super().written(translations, [*others, *((*place, "") for place in places)])

    def rendered(self, slot: OfficeSlot, pieces: Sequence[Piece]) -> str:
        if slot.is_value:
            return quoteattr("".join(piece if isinstance(piece, str) else piece.text for piece in pieces))
        runs = (run if isinstance(run, str) else self.run(*run) for run in self.runs(slot, pieces))
        return "".join([self.head(slot.head), *runs])

    def head(self, head: str) -> str:
        """The markup before the runs of a translated slot."""
        return head

    def runs(self, slot: OfficeSlot, pieces: Sequence[Piece]) -> list[Run | str]:
        """Pieces as runs, those of the same looks that meet as one, and markup."""
        runs: list[Run | str] = []
        looks = [slot.looks]
        for piece in pieces:
            if isinstance(piece, OfficeTag) and piece.looks is not None:
                looks = [*looks, piece.looks] if piece.kind == "open" else looks[:-1]
            elif isinstance(piece, str) or piece.raw in (None, piece.text):
                text = piece if isinstance(piece, str) else piece.text
                if runs and isinstance(last := runs[-1], tuple) and last[1] == looks[-1]:
                    runs[-1] = (last[0] + text, looks[-1])
                elif text:
                    runs.append((text, looks[-1]))
            elif isinstance(piece, OfficeTag) and piece.place:
                runs.append(self.edited(*piece.place).decode().join(piece.around))
            else:
                runs.append(piece.raw or "")
        return runs


class OfficeFormat(DocumentFormat):
    """A format of archives with members. `looks` is how the markup of the looks of a run begins."""

    looks: ClassVar[str] = ""

    @classmethod
    def tag_name(cls, raw: str) -> str | None:
        """None for the formatting of runs."""
        return None if cls.looks and (not raw or raw.startswith(cls.looks)) else super().tag_name(raw)

    def parse(self, data: bytes, options: FormatOptions) -> list[Segment]:
        self.options, self.archive = options, ZipArchive(data)
        self.remarks = comments(self.archive)
        self.members = self.find()
        for member in self.members:
            member.options = options
        return [slot.segment for member in self.members for slot in member.slots]

    @abstractmethod
    def find(self) -> Sequence[OfficeMember]:
        """The members of `self.archive` with text, in the order in which they are read."""

    def raw_segments(self) -> list[str]:
        return [raw.decode() for member in self.members for raw in member.raw_segments()]

    def write(self, translations: Sequence[list[Piece] | None]) -> bytes:
        contents, rest = {}, iter(translations)
        for member in self.members:
            data = member.written(list(islice(rest, len(member.slots))))
            if data != member.data:
                contents[member.name] = data
        if contents:
            self.complete(contents)
        return self.archive.changed(contents) if contents else self.archive.data

    def complete(self, contents: dict[str, bytes]) -> None:
        """Set the language and its direction in the written members, and in others."""


def comments(archive: ZipArchive) -> Counter[Remark]:
    """How many comments an archive has, which are not translated."""
    names = filter(COMMENTS.fullmatch, archive.names)
    return Counter({("comment", "left alone"): sum(len(COMMENT.findall(archive.read(name))) for name in names)})


def looked_up(formulas: Iterable[bytes]) -> Callable[[str], bool]:
    """Whether formulas, as XML has them, name the text of a cell; `*` and `?` stand for other characters there."""
    texts: set[str] = set()
    for formula in map(unescape, map(bytes.decode, formulas)):
        own = [text.replace('""', '"').lstrip("<>=") for text in re.findall(r'"((?:[^"]|"")+)"', formula)]
        texts.update(own[0].split(",") if [f'"{text}"' for text in own] == [formula] else own)  # a list of choices
    named = {text.strip().lower() for text in texts if has_letters([text])}
    patterns = [
        re.escape(text).replace(r"\*", ".*").replace(r"\?", ".") for text in named if "*" in text or "?" in text
    ]
    pattern = re.compile("|".join(patterns) or "(?!)", re.IGNORECASE)
    return lambda text: text.lower() in named or pattern.fullmatch(text) is not None


def attribute_place(data: bytes, element: Element, attribute: str) -> tuple[int, int]:
    """The bytes of the value of an attribute, with its quotes; the end of the element's name twice: it has none."""
    name_end = element.start + 1 + len(element.name.encode())
    matches = ATTRIBUTE.finditer(data, name_end, element.inner_start)
    return next((match.span(2) for match in matches if match[1].decode() == attribute), (name_end, name_end))


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

    DataError: it is missing.
    """
    folder = posixpath.dirname(usual)
    targets = related(archive, "", "officeDocument").values()
    name = next((target for target in targets if posixpath.dirname(target) == folder), usual)
    if name not in archive.names:
        raise DataError(f"{name} is not in it: no {kind}")
    return name
