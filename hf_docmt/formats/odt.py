"""OpenDocument: texts, presentations and sheets (OASIS OpenDocument 1.3 part 3, sections 5, 6 and 9)."""

import re
from collections.abc import Iterator

from hf_docmt.data.language_codes import primary_language
from hf_docmt.files import DataError
from hf_docmt.formats.document_format import Tag
from hf_docmt.formats.office_members import (
    LOOKED_UP,
    OfficeFormat,
    OfficeMember,
    OfficeTag,
    Run,
    attribute_place,
    looked_up,
)
from hf_docmt.formats.text_positions import replaced
from hf_docmt.formats.xml_positions import Element, Text, escape_text, parse_xml

CONTENT, STYLES, MANIFEST = "content.xml", "styles.xml", "META-INF/manifest.xml"
LEFT = frozenset("office:annotation text:tracked-changes office:scripts office:meta office:settings".split())
CELLS = frozenset("table:table-cell table:covered-table-cell".split())
VALUE = "office:string-value"
CONTAINERS = frozenset("text:span text:a text:meta".split())
CHARACTERS = {"text:s": " ", "text:tab": "\t", "text:note": ""}
BREAKS = frozenset(("text:line-break", "text:tab"))
FORMULA = re.compile(rb"""(?:table:formula|table:condition|style:condition|calcext:value)=["']([^"']*)["']""")
NO_LOOKS = frozenset(  # what says no more of a text than its language, or when it was typed
    "fo:language fo:country style:language-asian style:country-asian style:language-complex style:country-complex "
    "officeooo:rsid officeooo:paragraph-rsid".split()
)
SCRIPTS = dict.fromkeys("zh ja ko".split(), "-asian") | dict.fromkeys("ar fa he hi th ur".split(), "-complex")


class OdfMember(OfficeMember):
    """The content of a document, or its styles, which have headers and footers. A slide or sheet is a part."""

    texts = ("text:p", "text:h", "svg:title", "svg:desc")

    def find(self, root: Element) -> None:
        self.plain_styles = {
            style.attributes.get("style:name", "")
            for style in root.descendants("style:style")
            if style.attributes.get("style:family") == "text" and not _has_looks(style)
        }
        self.parts = self.paragraphs = self.left = 0
        self.looked_up = looked_up(FORMULA.findall(self.data))
        self._find(root)

    def _find(self, parent: Element, value: tuple[int, int] | None = None) -> None:
        """Add the slots in an element, which is in a cell with a value at these bytes."""
        for element in parent.elements():
            kind, is_cell = element.attributes.get("office:value-type", "string"), element.name in CELLS
            if element.name in LEFT or is_cell and (kind != "string" or "table:formula" in element.attributes):
                continue
            if is_cell and self.looked_up("\n".join(e.text for e in element.elements("text:p"))):
                self.left += 1
                continue
            if element.name == "draw:page" or (parent.name, element.name) == ("office:spreadsheet", "table:table"):
                self.parts += 1
                self.part = f"{'slide' if element.name == 'draw:page' else 'sheet'}{self.parts}"
            if element.name in self.texts:
                self.paragraphs += 1
                place = f"paragraph {self.paragraphs}"
                slot = self.add(element.inner_start, element.inner_end, self._items(element), place)
                if slot:
                    slot.overruled_by = value
            self._find(element, self._value(element) if is_cell else value)

    def _value(self, cell: Element) -> tuple[int, int] | None:
        """The bytes of the attribute by which a cell says its text."""
        start, end = attribute_place(self.data, cell, VALUE)
        return (self.data.rindex(VALUE.encode(), cell.start, start) - 1, end) if start < end else None

    def _items(self, parent: Element) -> Iterator[Tag | Run]:
        for child in parent.children:
            if isinstance(child, Text):
                yield child.text, ""
            elif child.name == "text:span" and child.attributes.get("text:style-name", "") in self.plain_styles:
                yield from self._items(child)
            elif child.name in CONTAINERS:
                yield from self.container(child, child, self._items(child))
            elif child.name == "text:ruby":
                yield self.alone(child, next((base.text for base in child.elements("text:ruby-base")), ""))
            else:
                shown = child.text if child.name.startswith("text:") else ""
                yield self.alone(child, CHARACTERS.get(child.name, shown), breaks=child.name in BREAKS)

    def run(self, text: str, looks: str) -> str:
        return escape_text(text)


def _has_looks(style: Element) -> bool:
    """Whether a style changes how a text looks."""
    own = {name for element in style.descendants() for name in element.attributes}
    return not own <= NO_LOOKS or style.attributes.get("style:parent-style-name") is not None


def with_language(data: bytes, language: str) -> bytes:
    """Styles with another language where they name that of a default style; no country."""
    suffix = SCRIPTS.get(language, "")
    names = ("style:language" + suffix, "style:country" + suffix) if suffix else ("fo:language", "fo:country")
    root = parse_xml(data)
    defaults = [each for style in root.descendants("style:default-style") for each in style.elements()]
    old = {each.attributes[names[0]] for each in defaults if names[0] in each.attributes}
    edits = [
        (*attribute_place(data, element, name), f'"{value}"')
        for element in root.descendants("style:text-properties")
        if element.attributes.get(names[0]) in old
        for name, value in zip(names, (language, "none"))
        if name in element.attributes
    ]
    return replaced(data, edits)


def turned(data: bytes) -> bytes:
    """A member whose pages, tables and paragraphs are written from right to left."""
    data = re.sub(rb'(style:writing-mode=)"lr(-tb)?"', rb'\1"rl-tb"', data)
    root = parse_xml(data)
    edits = []
    for style in root.descendants("style:default-style", "style:page-layout"):
        name = "style:page-layout-properties" if style.name == "style:page-layout" else "style:paragraph-properties"
        for element in style.elements(name):
            if "style:writing-mode" not in element.attributes:
                place = element.start + 1 + len(name)
                edits.append((place, place, ' style:writing-mode="rl-tb"'))
    return replaced(data, edits)


class OdtFormat(OfficeFormat):
    """Text, notes, headers and footers; titles and descriptions of drawings. Comments and deleted text stay."""

    name = "odt"
    line_break = OfficeTag("alone", "<text:line-break/>", breaks=True)
    endings = (".odt", ".odp", ".ods", ".ott", ".otp", ".ots")

    def find(self) -> list[OdfMember]:
        if CONTENT not in self.archive.names:
            raise DataError(f"{CONTENT} is not in it: no OpenDocument; save it as .odt, .odp or .ods")
        if MANIFEST in self.archive.names and b"encryption-data" in self.archive.read(MANIFEST):
            raise DataError("it is encrypted; save it without a password")
        members = [
            OdfMember(name, self.archive.read(name), part)
            for name, part in ((CONTENT, ""), (STYLES, "styles"))
            if name in self.archive.names
        ]
        self.remarks[LOOKED_UP] = sum(member.left for member in members)
        return members

    def complete(self, contents: dict[str, bytes]) -> None:
        language = primary_language(self.options.target_lang)
        if language and STYLES in self.archive.names:
            contents[STYLES] = with_language(contents.get(STYLES) or self.archive.read(STYLES), language)
        if self.options.is_right_to_left:
            for name in {CONTENT, STYLES}.intersection(self.archive.names):
                contents[name] = turned(contents.get(name) or self.archive.read(name))
