"""Electronic books (EPUB 2 and 3): chapters in reading order, each a document; the table of contents with them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from posixpath import dirname, join, normpath
from urllib.parse import unquote

from hf_docmt.data.language_codes import primary_language
from hf_docmt.files import DataError
from hf_docmt.formats.document_format import DocumentFormat, FormatOptions, Piece, Segment
from hf_docmt.formats.html import HtmlFormat
from hf_docmt.formats.office_members import attribute_place
from hf_docmt.formats.text_positions import replaced
from hf_docmt.formats.xml_positions import Element, Text, escape_text, parse_xml
from hf_docmt.formats.zip_archive import ZipArchive

PROGRESSION = "page-progression-direction"  # of the pages of a book
CONTAINER = "META-INF/container.xml"
XHTML, NCX = "application/xhtml+xml", "application/x-dtbncx+xml"
DOCTYPE = re.compile(rb"<!DOCTYPE[^>\[]*>")  # of a table of contents, whose entities are not read


class Chapter:
    """A page of a book."""

    def __init__(self, name: str, data: bytes, options: FormatOptions):
        self.name, self.page = name, HtmlFormat()
        self.segments = [
            replace(segment, part=name, location=f"{name}, {segment.location}")
            for segment in self.page.parse(data, options)
        ]

    def written(self, translations: Sequence[list[Piece] | None]) -> bytes:
        return self.page.write(translations)


class Contents:
    """A table of contents of EPUB 2 (NCX): its labels."""

    def __init__(self, name: str, data: bytes, options: FormatOptions):
        self.name, self.data = name, data
        root = parse_xml(DOCTYPE.sub(lambda match: b" " * len(match[0]), data))
        texts = [child for e in root.descendants() if e.local_name == "text" for child in e.children]
        self.texts = [text for text in texts if isinstance(text, Text) and any(map(str.isalpha, text.text))]
        self.segments = [Segment([text.text], f"{name}, a label", name) for text in self.texts]

    def written(self, translations: Sequence[list[Piece] | None]) -> bytes:
        edits = []
        for text, new in zip(self.texts, translations):
            if new is not None and new != [text.text]:
                shown = "".join(piece if isinstance(piece, str) else piece.text for piece in new)
                edits.append((text.start, text.end, escape_text(shown)))
        return replaced(self.data, edits)


class EpubFormat(DocumentFormat):
    """The pages of the spine in its order, then a table of contents that is none of them; all other members stay."""

    name = "epub"
    endings = (".epub",)

    def parse(self, data: bytes, options: FormatOptions) -> list[Segment]:
        self.archive, self.options = ZipArchive(data), options
        package = _package_name(self._xml(CONTAINER))
        self.package, root = package, self._xml(package)
        self.chapters: list[Chapter | Contents] = []
        for name, kind in _reading_order(root, dirname(package)):
            if name not in self.archive.names:
                raise DataError(f"{package}: it names {name!r}, which is not in it; repair the book")
            reader = Contents if kind == NCX else Chapter
            try:
                self.chapters.append(reader(name, self.archive.read(name), options))
            except DataError as error:
                raise DataError(f"{name}: {error}") from error
        self.spine = next((e for e in root.descendants() if e.local_name == "spine"), None)
        self.language = next((e for e in root.descendants() if e.local_name == "language"), None)
        return [segment for chapter in self.chapters for segment in chapter.segments]

    def write(self, translations: Sequence[list[Piece] | None]) -> bytes:
        changed, rest = {}, iter(translations)
        for chapter in self.chapters:
            own = list(islice(rest, len(chapter.segments)))
            if any(old.becomes(new) for new, old in zip(own, chapter.segments)):
                changed[chapter.name] = chapter.written(own)
        if changed and self.options.target_lang and self.language is not None:
            edits = [(self.language.inner_start, self.language.inner_end, primary_language(self.options.target_lang))]
            package = self.archive.read(self.package)
            if self.options.is_right_to_left and self.spine is not None:
                start, end = attribute_place(package, self.spine, PROGRESSION)
                edits.append((start, end, '"rtl"' if start < end else f' {PROGRESSION}="rtl"'))
            changed[self.package] = replaced(package, edits)
        return self.archive.changed(changed) if changed else self.archive.data

    def _xml(self, name: str) -> Element:
        if name not in self.archive.names:
            raise DataError(f"it has no {name}: no book, or damaged; save it again")
        try:
            return parse_xml(self.archive.read(name))
        except DataError as error:
            raise DataError(f"{name}, {error}") from error


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
