"""Word documents: paragraphs as segments, runs of other looks as tags (ECMA-376 part 1, 17)."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from hf_docmt.data.language_codes import primary_language
from hf_docmt.formats.document_format import Tag
from hf_docmt.formats.office_members import OfficeFormat, OfficeMember, OfficeTag, Run, main_member, related
from hf_docmt.formats.xml_positions import Element, escape_text

PARTS = re.compile(r"word/(header\d*|footer\d*|footnotes|endnotes)\.xml")
MAIN = "word/document.xml"
STYLES = "word/styles.xml"
CONTAINERS = frozenset("w:hyperlink w:ins w:moveTo w:smartTag w:customXml w:bdo w:dir w:sdt".split())
DROPPED = frozenset("w:proofErr w:lastRenderedPageBreak w:pPr w:rPr".split())
SHOWN = frozenset("m:oMath m:oMathPara w:ruby".split())
TYPED_FIELDS = frozenset(("HYPERLINK", "FORMTEXT"))  # whose results were written by somebody
EAST_ASIAN = ("ja", "ko", "zh")  # languages that have an attribute of their own
MOST_FIELDS = 8  # in each other, whose results are read
FIELD_PARAGRAPH = ("field paragraph", "left alone")
COLUMNS, LINES = frozenset(("w:tab", "w:ptab")), frozenset(("w:br", "w:cr"))
OF_SOURCE = re.compile(r"<w:(lang|noProof)\b[^>]*/>")
DEFAULT_LANGUAGE = re.compile(r"<w:docDefaults>.*?<w:lang\b([^>]*)/>.*?</w:docDefaults>", re.DOTALL)


class WordMember(OfficeMember):
    """The text, or headers, footers or notes. `left` are paragraphs of fields whose results Word makes, as of contents.

    Results of fields inside one paragraph are shown to the model, and carried.
    """

    texts, breaks = ("w:p", "wp:docPr"), "\t"

    def find(self, root: Element) -> None:
        self.generated = list(_generated(root))
        self.left = sum(map(self._has_generated_text, root.descendants("w:p"))) if self.generated else 0
        for number, element in enumerate(root.descendants(*self.texts), 1):
            if self._is_generated(element):
                continue
            if element.name == "wp:docPr":
                self.add_value(element)
            else:
                inner = [each for each in element.elements() if each.name != "w:pPr" and not self._is_generated(each)]
                self.add_paragraph(element, inner, self._items(inner), f"paragraph {number}")

    def _is_generated(self, element: Element) -> bool:
        return any(start <= element.start and element.end <= end for start, end in self.generated)

    def _has_generated_text(self, paragraph: Element) -> bool:
        texts = filter(self._is_generated, paragraph.descendants("w:t"))
        return any(letter.isalpha() for text in texts for letter in text.text)

    def _items(self, elements: list[Element], level: int = 0) -> Iterator[Tag | Run]:
        """Texts with their formatting, and tags, of the content of a paragraph, or of a field inside `level` others."""
        position, ends = 0, _field_ends(elements)
        while position < len(elements):
            element = elements[position]
            position += 1
            if element.name in DROPPED:
                continue
            if self._is_generated(element):
                yield self.alone(element)
            elif position - 1 in ends:
                last = ends[position - 1]
                yield from self._field(elements[position - 1 : last + 1], level)
                position = last + 1
            elif element.name == "w:r":
                yield from self._run(element)
            elif element.name in CONTAINERS or element.attributes.get("w:instr", "").split()[:1] == ["HYPERLINK"]:
                content = next(element.elements("w:sdtContent"), element)
                yield from self.container(element, content, self._items(list(content.elements())))
            else:
                yield self.alone(element, element.text if element.name in SHOWN | {"w:fldSimple"} else "")

    def _run(self, run: Element) -> Iterator[Tag | Run]:
        looks = ""
        for properties in run.elements("w:rPr"):
            looks = OF_SOURCE.sub("", self.data[properties.start : properties.end].decode())
        looks = "" if looks in ("<w:rPr></w:rPr>", "<w:rPr/>") else looks
        for child in run.elements():
            if child.name == "w:t":
                text = child.text if child.attributes.get("xml:space") == "preserve" else child.text.strip()
                if text:
                    yield text, looks
            elif child.name == "w:noBreakHyphen":
                yield "\u2011", looks
            elif child.name not in DROPPED:
                shown = child.text if child.name in SHOWN else "\t" * (child.name in COLUMNS)
                around = (f"<w:r>{looks}", "</w:r>")
                yield self.alone(child, shown, breaks=child.name in COLUMNS | LINES, around=around)

    def _field(self, runs: list[Element], level: int) -> Iterator[Tag | Run]:
        """A field of several runs: a link or an input around its result, or all of it as a tag."""
        kinds = list(map(_marks, runs))
        code = "".join(text.text for run in runs for text in run.descendants("w:instrText"))
        middle = kinds.index(["separate"]) if ["separate"] in kinds else len(runs) - 1
        shown = "".join(text.text for run in runs[middle:] for text in run.descendants("w:t"))
        kind = code.split()[:1]
        is_read = kind == ["HYPERLINK"] or (kind == ["FORMTEXT"] and any(map(str.isalpha, shown)))
        if is_read and middle < len(runs) - 1 and kinds[-1] == ["end"] and level < MOST_FIELDS:
            yield Tag("open", self.data[runs[0].start : runs[middle].end].decode())
            yield from self._items(runs[middle + 1 : -1], level + 1)
            yield Tag("close", self.data[runs[-1].start : runs[-1].end].decode())
        else:
            yield self.alone(runs[0], shown, last=runs[-1])

    def head(self, head: str) -> str:
        return bidi_paragraph(head) if self.options.is_right_to_left else head

    def run(self, text: str, looks: str) -> str:
        looks = rtl_run(looks) if self.options.is_right_to_left else looks
        return f'<w:r>{looks}<w:t xml:space="preserve">{escape_text(text)}</w:t></w:r>'


def _generated(root: Element) -> Iterator[tuple[int, int]]:
    """Bytes of the fields that go over several paragraphs and are made by Word, as tables of contents are."""
    paragraphs: list[Element] = []
    fields: list[tuple[Element, Element | None, list[str]]] = []  # first run, its paragraph, texts of the code
    for element in root.descendants("w:p", "w:r", "w:instrText"):
        while paragraphs and paragraphs[-1].end <= element.start:
            paragraphs.pop()
        if element.name == "w:p":
            paragraphs.append(element)
        elif element.name == "w:instrText" and fields:
            fields[-1][2].append(element.text)
        for mark in _marks(element):
            if mark == "begin":
                fields.append((element, paragraphs[-1] if paragraphs else None, []))
            elif mark == "end" and fields:
                begin, paragraph, code = fields.pop()
                if paragraph and paragraph.end < element.start and TYPED_FIELDS.isdisjoint("".join(code).split()[:1]):
                    yield begin.start, element.end


def _marks(element: Element) -> list[str]:
    """The kinds of the marks of fields in a run: begin, separate, end."""
    marks = element.elements("w:fldChar") if element.name == "w:r" else ()
    return [mark.attributes.get("w:fldCharType", "") for mark in marks]


def _field_ends(elements: list[Element]) -> dict[int, int]:
    """For each element with marks of fields the element with the end of the field that begins in it.

    For a field that ends elsewhere it is that with its code's end; the element itself: no field begins there.
    """
    ends: dict[int, int] = {}
    fields: list[tuple[int, int]] = []  # open ones: where they begin, and where their code ends
    for number, element in enumerate(elements):
        for mark in _marks(element):
            ends.setdefault(number, number)
            if mark == "begin":
                fields.append((number, number))
            elif mark == "separate" and fields and len(set(fields[-1])) == 1:
                fields[-1] = (fields[-1][0], number)
            elif mark == "end" and fields:
                ends[fields.pop()[0]] = number
    return ends | dict(fields)


class DocxFormat(OfficeFormat):
    """Text, headers, footers, notes and text boxes; texts of pictures are segments of their own. Comments stay.

    So do fields over several paragraphs that Word makes, such as tables of contents, which it updates when it is asked.
    """

    name = "docx"
    line_break = OfficeTag("alone", "<w:r><w:br/></w:r>", breaks=True, around=("<w:r>", "</w:r>"))
    endings = (".docx", ".docm")
    looks = "<w:rPr"

    def find(self) -> list[WordMember]:
        main = main_member(self.archive, MAIN, "Word document; save it as .docx")
        self.styles = next(iter(related(self.archive, main, "styles").values()), STYLES)
        parts = set(filter(PARTS.fullmatch, self.archive.names)) - {main}
        for kind in ("header", "footer", "footnotes", "endnotes"):
            parts.update(related(self.archive, main, kind).values())
        members = [WordMember(main, self.archive.read(main))]
        members += [WordMember(name, self.archive.read(name), PurePosixPath(name).stem) for name in sorted(parts)]
        self.remarks[FIELD_PARAGRAPH] = sum(member.left for member in members)
        return members

    def complete(self, contents: dict[str, bytes]) -> None:
        if self.options.is_right_to_left:
            for name, data in contents.items():
                text = TABLE.sub(r"\1<w:bidiVisual/>", data.decode())
                contents[name] = SECTION.sub(r"\1<w:bidi/>", text).encode()
        if self.options.target_lang and self.styles in self.archive.names:
            contents[self.styles] = self._styles(primary_language(self.options.target_lang))

    def _styles(self, language: str) -> bytes:
        """The styles with another default language, for its kind of script."""
        styles = self.archive.read(self.styles).decode()
        kinds = {"w:val", "w:bidi" if self.options.is_right_to_left else "w:eastAsia" if language in EAST_ASIAN else ""}
        if match := DEFAULT_LANGUAGE.search(styles):
            names = "|".join(filter(None, kinds))
            new = re.sub(rf'({names})="[^"]*"', lambda value: f'{value[1]}="{language}"', match[1])
            styles = styles[: match.start(1)] + new + styles[match.end(1) :]
        return styles.encode()


# elements that follow a property in the order of the schema
BEHIND_BIDI = re.compile(
    r"<w:(adjustRightInd|snapToGrid|spacing|ind|contextualSpacing|mirrorIndents|suppressOverlap|jc|textDirection"
    r"|textAlignment|textboxTightWrap|outlineLvl|divId|cnfStyle|rPr|sectPr|pPrChange)\b|</w:pPr>"
)
BEHIND_RTL = re.compile(r"<w:(cs|em|lang|eastAsianLayout|specVanish|oMath|rPrChange)\b|</w:rPr>")
COMPLEX = re.compile(r"<w:(b|i|sz)(\s[^>]*)?/>(?!<w:\1Cs\b)")  # whose twins are for scripts from right to left
TABLE = re.compile(
    r"(<w:tblPr>(?:\s*<w:tblStyle\b[^>]*/>)?(?:\s*<w:tblpPr\b[^>]*/>)?(?:\s*<w:tblOverlap\b[^>]*/>)?)"
    r"(?!\s*<w:bidiVisual\b)"
)
SECTION = re.compile(
    r"(<w:sectPr\b[^>]*(?<!/)>(?:(?!<w:bidi\b|</w:sectPr>).)*?)(?=<w:(rtlGutter|docGrid|printerSettings)\b|</w:sectPr>)",
    re.S,
)


def bidi_paragraph(properties: str) -> str:
    """The properties of a paragraph, if it has any, with its direction, and the elements after them."""
    head, end, rest = properties.partition("</w:pPr>") if "</w:pPr>" in properties else ("", "", properties)
    if not end:
        return "<w:pPr><w:bidi/></w:pPr>" + re.sub(r"^\s*<w:pPr\s*/>", "", rest)
    head = re.sub(r"<w:bidi\b[^>]*/>", "", head) + end
    return BEHIND_BIDI.sub(lambda match: "<w:bidi/>" + match[0], head, count=1) + rest


def rtl_run(looks: str) -> str:
    """The looks of a run with its direction, and for its script what they have for others."""
    if not looks:
        return "<w:rPr><w:rtl/></w:rPr>"
    looks = COMPLEX.sub(lambda match: f"{match[0]}<w:{match[1]}Cs{match[2] or ''}/>", looks)
    return BEHIND_RTL.sub(lambda match: "<w:rtl/>" + match[0], re.sub(r"<w:rtl\b[^>]*/>", "", looks), count=1)
