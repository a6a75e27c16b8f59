"""Electronic books (EPUB 2 and 3): chapters in reading order, each a document; the table of contents with them."""

import re
from collections.abc import Iterator
from posixpath import dirname, join, normpath
from urllib.parse import unquote

from hf_docmt.data.language_codes import primary_language
from hf_docmt.files import DataError
from hf_docmt.formats.document_format import FormatOptions, Tag, located
from hf_docmt.formats.html import HtmlFormat
from hf_docmt.formats.office_members import OfficeFormat, OfficeMember, attribute_place
from hf_docmt.formats.text_positions import replaced
from hf_docmt.formats.xml_positions import Element, Text, escape_text, parse_xml

PROGRESSION = "page-progression-direction"  # of the pages of a book
CONTAINER = "META-INF/container.xml"
XHTML, NCX = "application/xhtml+xml", "application/x-dtbncx+xml"
DOCTYPE = re.compile(rb"<!DOCTYPE[^>\[]*>")  # of a table of contents, whose entities are not read


class Chapter:
    """A page of a book. DataError: it cannot be read."""

    def __init__(self, name: str, data: bytes, options: FormatOptions):
        self.name, self.data, self.page = name, data, HtmlFormat()
        with located(name):
            self.page.parse(data, options)
        self.slots, self.written = self.page.page.slots, self.page.write
        for slot in self.slots:
            slot.segment.part, slot.segment.location = name, f"{name}, {slot.segment.location}"


class Contents(OfficeMember):
    """A table of contents of EPUB 2 (NCX): its labels."""

    def __init__(self, name: str, data: bytes, options: FormatOptions):
        super().__init__(name, DOCTYPE.sub(lambda match: b" " * len(match[0]), data), name)
        self.text = self.data = data

    def find(self, root: Element) -> None:
        for element in root.descendants():
            for text in element.children if element.local_name == "text" else ():
                if isinstance(text, Text):
                    self.add(text.start, text.end, [(text.text, "")], "a label")

    def run(self, text: str, looks: str) -> str:
        return escape_text(text)


class EpubFormat(OfficeFormat):
    """The pages of the spine in order, then a separate table of contents; all other members stay."""

    name = "epub"
    line_break = Tag("alone", "<br/>", breaks=True)
    endings = (".epub",)

    def find(self) -> list[Chapter | Contents]:
        package = _package_name(self._xml(CONTAINER))
        self.package, root = package, self._xml(package)
        self.spine = next((e for e in root.descendants() if e.local_name == "spine"), None)
        self.language = next((e for e in root.descendants() if e.local_name == "language"), None)
        chapters: list[Chapter | Contents] = []
        for name, kind in _reading_order(root, dirname(package)):
            if name not in self.archive.names:
                raise DataError(f"{package}: it names {name!r}, which is not in it; repair the book")
            chapters.append((Contents if kind == NCX else Chapter)(name, self.archive.read(name), self.options))
        return chapters

    def complete(self, contents: dict[str, bytes]) -> None:
        if not self.options.target_lang or self.language is None:
            return
        edits = [(self.language.inner_start, self.language.inner_end, primary_language(self.options.target_lang))]
        package = self.archive.read(self.package)
        if self.options.is_right_to_left and self.spine is not None:
            start, end = attribute_place(package, self.spine, PROGRESSION)
            edits.append((start, end, '"rtl"' if start < end else f' {PROGRESSION}="rtl"'))
        contents[self.package] = replaced(package, edits)

    def _xml(self, name: str) -> Element:
        if name not in self.archive.names:
            raise DataError(f"it has no {name}: no book, or damaged; save it again")
        with located(name):
            return parse_xml(self.archive.read(name))


def _package_name(container: Element) -> str:
    files = (e.attributes.get("full-path") for e in container.descendants() if e.local_name == "rootfile")
    name = next(filter(None, files), None)
    if name is None:
        raise DataError(f"{CONTAINER}: it names no package; repair the book")
    return name


def _reading_order(package: Element, folder: str) -> Iterator[tuple[str, str]]:
    """Names and media types of pages, in the order of the spine, and of tables of contents that are not in it."""
    items = {e.attributes.get("id", ""): e.attributes for e in package.descendants() if e.local_name == "item"}
    spine = [e.attributes.get("idref", "") for e in package.descendants() if e.local_name == "itemref"]
    navigation = [key for key, item in items.items() if "nav" in item.get("properties", "").split()]
    contents = [*navigation, *(key for key, item in items.items() if item.get("media-type") == NCX)]
    for key in dict.fromkeys([*spine, *contents]):
        item = items.get(key, {})
        if item.get("media-type") in (XHTML, NCX):
            yield normpath(join(folder, unquote(item.get("href", "")))), item["media-type"]
