"""XML with source texts next to their translations: units, their inline markup, and writing."""

import re
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hf_docmt.formats.document_format import FormatOptions, Piece, Segment, Tag, joined
from hf_docmt.formats.inline_strings import PLACEHOLDERS, TAG, plain_string, string_pieces, tag_kind, well_nested
from hf_docmt.formats.string_files import BilingualFormat
from hf_docmt.formats.text_positions import Edit, decoded, replaced
from hf_docmt.formats.xml_positions import Element, Text, escape_text, parse_xml

DECLARED = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*encoding\s*=\s*["']([\w.-]+)""")
ELEMENTS = frozenset(("g", "pc", "mrk", "hi"))  # inline elements with text inside
# those that open or close something, which need not be nested, and the attributes that say what
OPENING = {"bpt": "rid i id", "bx": "rid id", "sc": "id", "sm": "id"}
CLOSING = {"ept": "rid i id", "ex": "rid id", "ec": "startRef id", "em": "startRef id"}
START_OR_CLOSE = re.compile(r"(START|CLOSE)_(.+?)(?:_\d+)?")  # of Angular: the name of a placeholder for a tag


@dataclass
class Unit:
    """A source text of one segment or several: the elements whose text they are, all of them in `source` or it itself.

    `old` are the translations that they have, or nothing. `target` is the element with them, if there is one; `owner`
    has both in it. `locked` are elements in `source` whose translations stay.
    """

    owner: Element
    source: Element
    target: Element | None
    texts: list[Element]
    old: list[bytes]
    part: str = ""
    locked: Sequence[tuple[Element, bytes]] = ()


class BilingualXml(BilingualFormat):
    """A bilingual format. A subclass finds the units, and says what is written for each."""

    def parse(self, data: bytes, options: FormatOptions) -> list[Segment]:
        declared = DECLARED.match(data)
        text, self.encoding, self.mark = decoded(data, declared[1].decode("ascii").lower() if declared else "utf-8")
        self.options, self.data = options, text.encode("utf-8")
        line_ends = [match.start() for match in re.finditer(b"\n", self.data)]
        self.root = parse_xml(self.data)
        for unit in self.units():
            pieces = [inline_pieces(self.data, element) for element in unit.texts]
            location = f"line {bisect_left(line_ends, unit.owner.start) + 1}"
            self.add(unit, [Segment(each, location, unit.part, bool(old)) for each, old in zip(pieces, unit.old)])
        return self.segments(self.target_languages())

    @abstractmethod
    def units(self) -> Iterator[Unit]:
        """The units of `self.root` that are translated, in their order."""

    @abstractmethod
    def unit_edits(self, unit: Unit, content: str, score: float | None) -> Iterator[Edit]:
        """Edits that write this content as the translation of a unit, and its score if the format has a place."""

    def target_languages(self) -> Iterator[str | None]:
        """The languages that the file names."""
        yield from ()

    def language_edits(self) -> Iterator[Edit]:
        """Edits that set the target language of the file."""
        yield from ()

    def write(self, translations: Sequence[list[Piece] | None]) -> bytes:
        edits: list[Edit] = []
        for unit, new, score in self.translated_units(translations):
            start, end = unit.source.inner_start, unit.source.inner_end
            texts = [
                old.decode("utf-8") if each is None else plain_string(each, _escaped)
                for each, old in zip(new, unit.old)
            ]
            inner = [*zip(unit.texts, texts), *((each, old.decode("utf-8")) for each, old in unit.locked)]
            places = [(each.inner_start - start, each.inner_end - start, text) for each, text in inner]
            edits += self.unit_edits(unit, replaced(self.data[start:end], places).decode("utf-8"), score)
        text = replaced(self.data, [*edits, *self.language_edits()] if edits else []).decode("utf-8")
        return self.mark + text.encode(self.encoding, "xmlcharrefreplace")

    def tag(self, element: Element) -> str:
        """The start tag of an element; an empty element gets that of one with content."""
        return re.sub(r"\s*/>$", ">", self.data[element.start : element.inner_start].decode("utf-8"))

    def space_before(self, element: Element) -> str:
        """The white space before an element, which one that is put after it gets, too."""
        space = self.data[self.data.rfind(b">", 0, element.start) + 1 : element.start].decode("utf-8")
        return space if space.isspace() else ""


def child(element: Element, name: str) -> Element | None:
    """The first child element of this name, whatever its prefix."""
    return next((each for each in element.elements() if each.local_name == name), None)


def with_attributes(tag: str, **values: str) -> str:
    """A start tag in which attributes have these values; `_` in a name is `-` there."""
    for name, value in values.items():
        name = name.replace("_", "-")
        written = f"{name}={chr(34)}{value}{chr(34)}"
        tag, count = re.subn(rf"""(?<=\s){name}\s*=\s*("[^"]*"|'[^']*')""", written, tag)
        tag = tag if count else re.sub(r"(\s*/?>)$", rf" {written}\1", tag)
    return tag


def inline_pieces(data: bytes, element: Element) -> list[Piece]:
    """The text in an element with its inline markup, and with markup that is text there (`&lt;b&gt;`)."""
    level = well_nested([_inline_item(data, each) for each in element.children])
    pieces: list[Piece] = []
    for piece in (piece for item in level for piece in (item if isinstance(item, list) else [item])):
        before = pieces[-1] if pieces else ""
        if isinstance(piece, Tag) and isinstance(before, Tag) and (before.kind, piece.kind) == ("open", "close"):
            raw = f"{before.raw}{piece.raw}"  # of an element without text, which stands for what a program puts there
            pieces[-1] = Tag("alone", raw, raw)
        else:
            pieces.append(piece)
    return joined(pieces)


def _inline_item(data: bytes, each: Element | Text) -> tuple[list[Piece] | Tag, str]:
    """The pieces of a text or an inline element, or one tag and the name that it shares with its other half."""
    if isinstance(each, Text):
        pieces = string_pieces(each.text)
        return [
            replace(piece, raw=escape_text(str(piece.raw))) if isinstance(piece, Tag) else piece for piece in pieces
        ], ""
    raw, name = data[each.start : each.end].decode("utf-8"), each.local_name
    attributes = {key.rpartition(":")[2]: value for key, value in each.attributes.items()}
    protected = attributes.get("translate") == "no" or attributes.get("mtype") == "protected"
    if name in ELEMENTS and not protected and each.inner_end < each.end:
        start = data[each.start : each.inner_start].decode("utf-8")
        end = data[each.inner_end : each.end].decode("utf-8")
        return [Tag("open", start), *inline_pieces(data, each), Tag("close", end)], ""
    if name in OPENING or name in CLOSING:
        keys = (OPENING.get(name) or CLOSING[name]).split()
        family = name.removeprefix("b").removeprefix("e").removeprefix("s")
        number = next((attributes[key] for key in keys if key in attributes), str(each.start))
        return Tag("open" if name in OPENING else "close", raw), f"{family} {number}"
    # visible form of an element that is carried whole: its equivalent, protected text, or a placeholder
    kinds = {attributes.get("ctype"), attributes.get("type"), attributes.get("subType")}
    breaks = name in ("x", "ph") and not kinds.isdisjoint(("lb", "xlf:lb"))
    shown = attributes.get("equiv-text") or attributes.get("equiv") or ""
    if half := START_OR_CLOSE.fullmatch(attributes.get("equiv") or attributes.get("id") or ""):
        return Tag("open" if half[1] == "START" else "close", raw), half[2]
    if tag := TAG.fullmatch((shown or each.text).strip()):
        kind, other = tag_kind(tag)
        return Tag(kind, raw, "", breaks or other == "<br"), other
    shown = shown or (each.text if protected or PLACEHOLDERS.fullmatch(each.text) else "")
    return Tag("alone", raw, shown, breaks), ""


def _escaped(text: str) -> str:
    return escape_text(text).replace("\r", "&#13;")
