"""Presentations of PowerPoint: paragraphs of slides and their notes as segments (ECMA-376 part 1, 21.1.2)."""

import re
from collections.abc import Iterator

from hf_docmt.data.language_codes import primary_language
from hf_docmt.formats.document_format import Tag, located
from hf_docmt.formats.office_members import OfficeFormat, OfficeMember, OfficeTag, Run, main_member, related
from hf_docmt.formats.xml_positions import Element, escape_text, parse_xml

MAIN = "ppt/presentation.xml"
OF_SOURCE = re.compile(r"""\s(?:lang|altLang|dirty|err|noProof|smtClean)=(?:"[^"]*"|'[^']*')""")
TURNED = re.compile(r'(<a:(?:pPr|lvl\dpPr)\b[^>]*?\salgn=)"l"')  # paragraphs at the left
LEFT_TO_RIGHT = re.compile(r'(<a:lvl\dpPr\b[^>]*?\srtl=)"0"')
NO_LOOKS = re.compile(r"<a:rPr\s*(?:/>|>\s*</a:rPr>)")


class SlideMember(OfficeMember):
    """A slide or its notes. Runs get the language of the translation."""

    texts, breaks = ("a:p", "p:cNvPr"), "\t"

    def find(self, root: Element) -> None:
        for number, element in enumerate(root.descendants(*self.texts), 1):
            if element.name == "p:cNvPr":
                self.add_value(element)
            else:
                inner = [child for child in element.elements() if child.name not in ("a:pPr", "a:endParaRPr")]
                items = (item for child in inner for item in self._items(child))
                self.add_paragraph(element, inner, items, f"paragraph {number}")

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
        if not self.options.is_right_to_left:
            return head
        head = re.sub(r'(<a:pPr\b[^>]*?)\s+rtl="[^"]*"', r"\1", head if "<a:pPr" in head else "<a:pPr/>" + head)
        return TURNED.sub(r'\1"r"', head.replace("<a:pPr", '<a:pPr rtl="1"', 1), count=1)

    def run(self, text: str, looks: str) -> str:
        if language := primary_language(self.options.target_lang):
            looks = (looks or "<a:rPr/>").replace("<a:rPr", f'<a:rPr lang="{language}"', 1)
        return f"<a:r>{looks}<a:t>{escape_text(text)}</a:t></a:r>"


class PptxFormat(OfficeFormat):
    """Slides in their order, each with its notes; descriptions of pictures are segments. Charts and diagrams stay."""

    name = "pptx"
    line_break = OfficeTag("alone", "<a:br/>", breaks=True)
    endings = (".pptx", ".pptm", ".ppsx")
    looks = "<a:rPr"

    def find(self) -> list[SlideMember]:
        main = main_member(self.archive, MAIN, "presentation; save it as .pptx")
        with located(f"{main} or its relations"):
            root = parse_xml(self.archive.read(main))
            slides = related(self.archive, main, "slide")
        order = [slides.get(element.attributes.get("r:id", "")) for element in root.descendants("p:sldId")]
        return [
            SlideMember(name, self.archive.read(name), f"slide{number}")
            for number, slide in enumerate(order, 1)
            if slide
            for name in [slide, *related(self.archive, slide, "notesSlide").values()]
        ]

    def complete(self, contents: dict[str, bytes]) -> None:
        if self.options.is_right_to_left:
            masters = filter(re.compile(r"ppt/slideMasters/\w+\.xml").fullmatch, self.archive.names)
            for name in masters:  # with styles of text from right to left
                head, begin, rest = self.archive.read(name).decode().partition("<p:txStyles")
                rest = LEFT_TO_RIGHT.sub(r'\1"1"', TURNED.sub(r'\1"r"', rest))
                contents[name] = (head + begin + rest).encode()
