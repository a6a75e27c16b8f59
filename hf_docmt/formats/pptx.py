"""Presentations of PowerPoint: paragraphs of slides and their notes as segments (ECMA-376 part 1, 21.1.2)."""

import re
from collections.abc import Iterator, Sequence

from hf_docmt.data.language_codes import primary_language
from hf_docmt.files import DataError
from hf_docmt.formats.document_format import DocumentFormat, FormatOptions, Piece, Segment, Tag
from hf_docmt.formats.office_members import OfficeMember, Run, main_member, related, written_members
from hf_docmt.formats.xml_positions import Element, escape_text, parse_xml
from hf_docmt.formats.zip_archive import ZipArchive

MAIN = "ppt/presentation.xml"
OF_SOURCE = re.compile(r"""\s(?:lang|altLang|dirty|err|noProof|smtClean)=(?:"[^"]*"|'[^']*')""")
TURNED = re.compile(r'(<a:(?:pPr|lvl\dpPr)\b[^>]*?\salgn=)"l"')  # paragraphs at the left
LEFT_TO_RIGHT = re.compile(r'(<a:lvl\dpPr\b[^>]*?\srtl=)"0"')
NO_LOOKS = re.compile(r"<a:rPr\s*(?:/>|>\s*</a:rPr>)")


class SlideMember(OfficeMember):
    """A slide or its notes. Runs get the language of the translation."""

    texts = ("a:p", "p:cNvPr")
    language = ""

    def find(self, root: Element) -> None:
        for number, element in enumerate(root.descendants(*self.texts), 1):
            if element.name == "p:cNvPr":
                self.add_value(element, "descr")
                continue
            children = list(element.elements())
            inner = [child for child in children if child.name not in ("a:pPr", "a:endParaRPr")]
            if inner:
                items = (item for child in inner for item in self._items(child))
                start = children[0].start
                head = self.data[start : inner[0].start].decode()
                self.add(start, inner[-1].end, items, f"paragraph {number}", head)

    def _items(self, element: Element) -> Iterator[Tag | Run]:
        if element.name == "a:r":
            looks = next((self.data[child.start : child.end].decode() for child in element.elements("a:rPr")), "")
            head, end, rest = looks.partition(">")
            looks = NO_LOOKS.sub("", OF_SOURCE.sub("", head) + end + rest)
            for text in element.elements("a:t"):
                yield text.text, looks
        else:
            shown = "".join(text.text for text in element.descendants("a:t")) if element.name == "a:fld" else ""
            yield self.alone(element, shown, breaks=element.name == "a:br")

    def head(self, head: str) -> str:
        if not self.is_right_to_left:
            return head
        head = re.sub(r'(<a:pPr\b[^>]*?)\s+rtl="[^"]*"', r"\1", head if "<a:pPr" in head else "<a:pPr/>" + head)
        return TURNED.sub(r'\1"r"', head.replace("<a:pPr", '<a:pPr rtl="1"', 1), count=1)

    def run(self, text: str, looks: str) -> str:
        if self.language:
            looks = (looks or "<a:rPr/>").replace("<a:rPr", f'<a:rPr lang="{self.language}"', 1)
        return f"<a:r>{looks}<a:t>{escape_text(text)}</a:t></a:r>"


class PptxFormat(DocumentFormat):
    """Slides in their order, each with its notes; descriptions of pictures are segments. Charts and diagrams stay."""

    name = "pptx"
    endings = (".pptx", ".pptm", ".ppsx")

    @classmethod
    def tag_name(cls, raw: str) -> str | None:
        """None for the looks of runs."""
        return None if not raw or raw.startswith("<a:rPr") else super().tag_name(raw)

    def parse(self, data: bytes, options: FormatOptions) -> list[Segment]:
        self.options, self.archive = options, ZipArchive(data)
        main = main_member(self.archive, MAIN, "presentation; save it as .pptx")
        try:
            root = parse_xml(self.archive.read(main))
            slides = related(self.archive, main, "slide")
        except DataError as error:
            raise DataError(f"{main} or its relations: {error}") from error
        order = [slides.get(element.attributes.get("r:id", "")) for element in root.descendants("p:sldId")]
        self.members = [
            SlideMember(name, self.archive.read(name), f"slide{number}")
            for number, slide in enumerate(order, 1)
            if slide
            for name in [slide, *related(self.archive, slide, "notesSlide").values()]
        ]
        return [slot.segment for member in self.members for slot in member.slots]

    def write(self, translations: Sequence[list[Piece] | None]) -> bytes:
        for member in self.members:
            member.language = primary_language(self.options.target_lang)
            member.is_right_to_left = self.options.is_right_to_left
        contents = written_members(self.members, translations)
        if contents and self.options.is_right_to_left:
            masters = filter(re.compile(r"ppt/slideMasters/\w+\.xml").fullmatch, self.archive.names)
            contents |= {name: _turned(self.archive.read(name)) for name in masters}
        return self.archive.changed(contents) if contents else self.archive.data


def _turned(master: bytes) -> bytes:
    """The master of slides with styles of text from right to left."""
    head, begin, rest = master.decode().partition("<p:txStyles")
    return (head + begin + LEFT_TO_RIGHT.sub(r'\1"1"', TURNED.sub(r'\1"r"', rest))).encode()
