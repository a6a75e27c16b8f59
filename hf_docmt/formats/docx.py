"""Word documents: paragraphs as segments, runs of other looks as tags (ECMA-376 part 1, 17)."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from html import unescape
from xml.sax.saxutils import quoteattr

from hf_docmt.data.language_codes import primary_language
from hf_docmt.files import DataError
from hf_docmt.formats.document_format import DocumentFormat, FormatOptions, Piece, Segment, Tag
from hf_docmt.formats.xml_positions import Element, escape_text, parse_xml, replaced
from hf_docmt.formats.zip_archive import ZipArchive

PARTS = re.compile(r"word/(document|header\d*|footer\d*|footnotes|endnotes)\.xml")
MAIN = "word/document.xml"
STYLES = "word/styles.xml"
CONTAINERS = frozenset("w:hyperlink w:ins w:moveTo w:smartTag w:customXml w:bdo w:dir w:sdtContent".split())
DROPPED = frozenset("w:proofErr w:lastRenderedPageBreak w:pPr w:rPr".split())
SHOWN = frozenset("m:oMath m:oMathPara w:ruby".split())
CHARACTERS = {"w:noBreakHyphen": "-", "w:tab": "\t", "w:ptab": "\t"}
OF_SOURCE = re.compile(r"<w:(lang|noProof)\b[^>]*/>")
DESCRIPTION = re.compile(rb"""\sdescr\s*=\s*("[^"]*"|'[^']*')""")
DEFAULT_LANGUAGE = re.compile(
    rb"(<w:docDefaults>.*?<w:lang\b[^>]*?\bw:val=\")([^\"]*)(?=\".*?</w:docDefaults>)", re.DOTALL
)

Slot = tuple[int, int, Segment, str]  # bytes from, to, and the looks that most of its text has


class Part:
    """A member with text: its slots, and what its tags are made of."""

    def __init__(self, name: str, data: bytes):
        self.name, self.data = name, data
        self.part = "" if name == MAIN else name.removeprefix("word/").removesuffix(".xml")
        self.slots: list[Slot] = []
        self.tags: list[Tag] = []  # kept, so that no other one has the id of one of them
        self.looks: dict[int, str] = {}  # of tags that open runs of other looks
        self.places: dict[int, tuple[str, int, int, str]] = {}  # raw of tags: text, bytes from and to, text
        try:
            root = parse_xml(data)
        except DataError as error:
            raise DataError(f"{name}: {error}") from error
        for number, element in enumerate(root.descendants("w:p", "wp:docPr"), 1):
            slot = self._paragraph(element, number) if element.name == "w:p" else self._description(element)
            if slot and any(letter.isalpha() for piece in slot[2].pieces if isinstance(piece, str) for letter in piece):
                self.slots.append(slot)

    def _description(self, element: Element) -> Slot | None:
        match = DESCRIPTION.search(self.data, element.start, element.inner_start)
        if not match:
            return None
        text = unescape(match[1][1:-1].decode())
        return match.start(1), match.end(1), Segment([text], f"{self.name}, picture", self.part), "value"

    def _paragraph(self, paragraph: Element, number: int) -> Slot | None:
        items = list(self._items(list(paragraph.elements())))
        counts: Counter[str] = Counter()
        for text, looks in (item for item in items if isinstance(item, tuple)):
            counts[looks] += len(text)
        base = counts.most_common(1)[0][0] if counts else ""
        pieces: list[Piece] = []
        position = 0
        while position < len(items):
            item = items[position]
            position += 1
            if isinstance(item, Tag):
                pieces.append(item)
                continue
            text, looks = item
            while position < len(items) and isinstance(after := items[position], tuple) and after[1] == looks:
                text += after[0]
                position += 1
            if looks == base:
                pieces.append(text)
            else:
                opening = Tag("open", looks)
                self.looks[id(opening)] = looks
                closing = Tag("close", "")
                self.looks[id(closing)] = looks
                self.tags += [opening, closing]
                pieces += [opening, text, closing]
        start = next((child.end for child in paragraph.elements("w:pPr")), paragraph.inner_start)
        segment = Segment(pieces, f"{self.name}, paragraph {number}", self.part)
        return (start, paragraph.inner_end, segment, base) if pieces else None

    def _items(self, elements: list[Element]) -> Iterator[Tag | tuple[str, str]]:
        """Texts with their looks, and tags, of the content of a paragraph."""
        position = 0
        while position < len(elements):
            element = elements[position]
            position += 1
            if element.name in DROPPED:
                continue
            if element.name == "w:r" and any(element.descendants("w:fldChar")):
                last = self._field_end(elements, position - 1)
                if last is not None:
                    yield from self._field(elements[position - 1 : last + 1])
                    position = last + 1
                else:
                    yield self._alone(element.start, element.end)
            elif element.name == "w:r":
                yield from self._run(element)
            elif element.name == "w:sdt" and any(element.elements("w:sdtContent")):
                yield from self._container(element, next(element.elements("w:sdtContent")))
            elif element.name in CONTAINERS or (element.name == "w:fldSimple" and _is_link(element)):
                yield from self._container(element, element)
            else:
                shown = element.text if element.name in SHOWN or element.name == "w:fldSimple" else ""
                yield self._alone(element.start, element.end, text=shown)

    def _container(self, element: Element, content: Element) -> Iterator[Tag | tuple[str, str]]:
        if content.inner_start == content.end:  # empty
            yield self._alone(element.start, element.end)
            return
        yield Tag("open", self.data[element.start : content.inner_start].decode())
        yield from self._items(list(content.elements()))
        yield Tag("close", self.data[content.inner_end : element.end].decode())

    def _run(self, run: Element) -> Iterator[Tag | tuple[str, str]]:
        looks = ""
        for properties in run.elements("w:rPr"):
            looks = OF_SOURCE.sub("", self.data[properties.start : properties.end].decode())
        looks = "" if looks in ("<w:rPr></w:rPr>", "<w:rPr/>") else looks
        for child in run.elements():
            if child.name == "w:t":
                text = child.text if child.attributes.get("xml:space") == "preserve" else child.text.strip()
                if text:
                    yield text, looks
            elif child.name not in DROPPED:
                shown = child.text if child.name in SHOWN else CHARACTERS.get(child.name, "")
                breaks = child.name in ("w:br", "w:cr")
                yield self._alone(child.start, child.end, f"<w:r>{looks}", "</w:r>", shown, breaks)

    def _alone(self, start: int, end: int, before="", after="", text="", breaks=False) -> Tag:
        tag = Tag("alone", before + self.data[start:end].decode() + after, text, breaks)
        self.places[id(tag)] = (before, start, end, after)
        self.tags.append(tag)
        return tag

    def _field_end(self, elements: list[Element], first: int) -> int | None:
        """The element with the end of the field that begins in the first; None: it is not among these."""
        depth = 0
        for number in range(first, len(elements)):
            for mark in elements[number].descendants("w:fldChar"):
                depth += {"begin": 1, "end": -1}.get(mark.attributes.get("w:fldCharType", ""), 0)
            if depth <= 0:
                return number if depth == 0 and number > first else None
        return None

    def _field(self, runs: list[Element]) -> Iterator[Tag | tuple[str, str]]:
        """A field of several runs: a link around its result, or all of it as a tag."""
        kinds = [[mark.attributes.get("w:fldCharType") for mark in run.descendants("w:fldChar")] for run in runs]
        code = "".join(text.text for run in runs for text in run.descendants("w:instrText"))
        middle = kinds.index(["separate"]) if ["separate"] in kinds else len(runs) - 1
        start, end = runs[0].start, runs[-1].end
        if code.split()[:1] == ["HYPERLINK"] and middle < len(runs) - 1 and kinds[-1] == ["end"]:
            yield Tag("open", self.data[start : runs[middle].end].decode())
            yield from self._items(runs[middle + 1 : -1])
            yield Tag("close", self.data[runs[-1].start : end].decode())
        else:
            shown = "".join(text.text for run in runs[middle:] for text in run.descendants("w:t"))
            yield self._alone(start, end, text=shown)

    def written(self, translations: Sequence[list[Piece] | None]) -> bytes:
        """The member with these pieces in place of those of its slots."""
        self.edits = []
        for slot, new in zip(self.slots, translations):
            if new is not None and new != slot[2].pieces:
                self.edits.append((slot, new))
        self.starts = sorted(slot[0] for slot, _ in self.edits)
        return self._with_edits(0, len(self.data))

    def _with_edits(self, start: int, end: int) -> bytes:
        """Bytes of the member with the edits that lie there; those inside others are theirs."""
        if bisect_left(self.starts, start) == bisect_left(self.starts, end):
            return self.data[start:end]
        edits, last = [], start
        for slot, new in sorted(self.edits, key=lambda edit: (edit[0][0], -edit[0][1])):
            if last <= slot[0] and slot[1] <= end:
                edits.append((slot[0] - start, slot[1] - start, self._rendered(slot, new)))
                last = slot[1]
        return replaced(self.data[start:end], edits)

    def _rendered(self, slot: Slot, pieces: list[Piece]) -> str:
        if slot[3] == "value":
            return quoteattr("".join(str(piece) for piece in pieces))
        parts, looks = [], [slot[3]]
        for piece in pieces:
            if isinstance(piece, str) or piece.raw is None:
                shown = piece if isinstance(piece, str) else piece.text
                text = f'<w:t xml:space="preserve">{escape_text(shown)}</w:t>'
                parts.append(f"<w:r>{looks[-1]}{text}</w:r>" if shown else "")
            elif id(piece) in self.looks:
                looks = [*looks, self.looks[id(piece)]] if piece.kind == "open" else looks[:-1]
            elif id(piece) in self.places:
                before, start, end, after = self.places[id(piece)]
                parts.append(before + self._with_edits(start, end).decode() + after)
            else:
                parts.append(piece.raw)
        return "".join(parts)


def _is_link(field: Element) -> bool:
    return field.attributes.get("w:instr", "").split()[:1] == ["HYPERLINK"]


class DocxFormat(DocumentFormat):
    """Text, headers, footers, notes and text boxes; texts of pictures are segments of their own. Comments stay."""

    name = "docx"
    endings = (".docx", ".docm")

    @classmethod
    def tag_name(cls, raw: str) -> str | None:
        """None for the looks of runs; a text box, whose text is translated, by its beginning."""
        if not raw or raw.startswith("<w:rPr"):
            return None
        return super().tag_name(raw.partition("<w:txbxContent")[0])

    def parse(self, data: bytes, options: FormatOptions) -> list[Segment]:
        self.options, self.archive = options, ZipArchive(data)
        names = sorted(filter(PARTS.fullmatch, self.archive.names))
        if MAIN not in names:
            raise DataError(f"{MAIN} is not in it: no Word document; save it as .docx")
        self.parts = [Part(name, self.archive.read(name)) for name in names]
        return [slot[2] for part in self.parts for slot in part.slots]

    def write(self, translations: Sequence[list[Piece] | None]) -> bytes:
        contents, position = {}, 0
        for part in self.parts:
            data = part.written(translations[position : position + len(part.slots)])
            position += len(part.slots)
            if data != part.data:
                contents[part.name] = data
        if contents and self.options.target_lang and STYLES in self.archive.names:
            language = primary_language(self.options.target_lang).encode()
            styles = self.archive.read(STYLES)
            new = DEFAULT_LANGUAGE.sub(lambda match: match[1] + language, styles, count=1)
            contents |= {STYLES: new} if new != styles else {}
        return self.archive.changed(contents) if contents else self.archive.data
