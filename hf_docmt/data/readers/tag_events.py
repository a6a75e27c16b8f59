"""XML and SGML files as start tags, end tags and texts; SGML as test sets use it, without a grammar."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from xml.sax import ContentHandler, SAXParseException
from xml.sax.xmlreader import Locator

from hf_docmt.files import DataError, display_path, location_of, read_lines
from hf_docmt.messages import install_command

BARE_AMPERSAND = re.compile(r"&(?!#?\w+;)")
BARE_LESS_THAN = re.compile(r"<(?!/?[a-z]|!--|!doctype\b|\?)", re.IGNORECASE)
BLOCK = 1 << 16  # characters of XML that are parsed at once
MAX_OPEN_LINES, MAX_OPEN_CHARACTERS = 1000, 1 << 16  # of one SGML tag or comment
PROLOGUE = rb"\s*+(<\?xml[^>]*>\s*+)?(?>(<!--.*?-->|<!DOCTYPE[^>]*>)\s*+)*+"  # before the first tag; linear


class Event(NamedTuple):
    """A start tag, an end tag, a piece of text or other markup; names of tags and attributes are in lower case."""

    line: int
    kind: str  # start, end, text, or in SGML markup: a comment, a declaration, an instruction
    value: str  # name of the tag, the text with its entities resolved, or what stands inside the markup
    attributes: dict[str, str]


def xml_events(path: str | Path) -> Iterator[Event]:
    """Events of an XML file, which must be well-formed. Definitions of entities are refused, external files never read.

    DataError says file, line and column, or that defusedxml is not installed.
    """
    try:
        from defusedxml.common import EntitiesForbidden
        from defusedxml.sax import make_parser
    except ImportError as error:
        raise DataError(f"{display_path(path)}: XML needs defusedxml: {install_command('xml')}") from error
    parser, handler = make_parser(), _XmlHandler()
    parser.forbid_external = False  # sets may name a document type, which the parser never fetches
    parser.setContentHandler(handler)
    handler.setDocumentLocator(parser)
    try:
        block, size = [], 0  # a tag over many lines is read again with each piece that comes
        for number, line in read_lines(path):
            block.append("\n" * (number > 1) + line)
            size += len(block[-1])
            if size > BLOCK:
                parser.feed("".join(block))
                yield from handler.take()
                block, size = [], 0
        parser.feed("".join(block))
        parser.close()
        yield from handler.take()
    except SAXParseException as error:
        yield from handler.take()  # what is before the fault may have a fault of its own
        raise DataError(
            f"{location_of(path, error.getLineNumber())}, column {error.getColumnNumber() + 1}: broken "
            f"XML ({error.getMessage()}); repair what stands there, or fetch the file again if it is cut"
        ) from error
    except EntitiesForbidden as error:
        raise DataError(
            f"{location_of(path, parser.getLineNumber())}: XML that defines the entity "
            f"{error.name!r}, which is refused, since such definitions can fill the memory; write out what it stands "
            "for"
        ) from error


def sgm_events(path: str | Path) -> Iterator[Event]:
    """Events of a file of tags that need no grammar.

    An ampersand that begins no entity is text, and so is `<` that begins no tag, comment, document type or instruction.
    DataError for one that is not closed within 1,000 lines or 65,536 characters, or where the file ends.
    """
    parser, rest, opened = _SgmParser(), "", 0
    for number, line in read_lines(path):
        parser.feed(BARE_LESS_THAN.sub("&lt;", BARE_AMPERSAND.sub("&amp;", line)) + "\n")
        yield from parser.take()
        rest = parser.rawdata  # what is not parsed yet
        opened = (opened or number) if rest.startswith("<") else 0  # the line of a tag that is not closed yet
        if opened and (number - opened >= MAX_OPEN_LINES or len(rest) > MAX_OPEN_CHARACTERS):
            break
    if opened:  # `close` would make text of it or leave it out, as the version of html.parser has it
        raise DataError(
            f"{location_of(path, opened)}: {rest[:40]!r} is never closed; close it, write < as &lt;, or fetch the file "
            "again if it is cut"
        )
    parser.close()
    yield from parser.take()


class _EventList:
    """The events that a parser has found and nobody has taken yet."""

    def __init__(self):
        self.events: list[Event] = []
        super().__init__()

    def take(self) -> list[Event]:
        events, self.events = self.events, []
        return events

    def add(self, line: int, kind: str, value: str, attributes=()) -> None:
        attributes = {name.lower(): text or "" for name, text in attributes}
        self.events.append(Event(line, kind, value.lower() if kind in ("start", "end") else value, attributes))


class _XmlHandler(_EventList, ContentHandler):
    _locator: Locator  # set by the parser

    def startElement(self, name, attrs):
        self.add(self._locator.getLineNumber(), "start", name, attrs.items())

    def endElement(self, name):
        self.add(self._locator.getLineNumber(), "end", name)

    def characters(self, content):
        after = content[len(content.rstrip()) :].count("\n")  # text is kept back until the next tag
        self.add(self._locator.getLineNumber() - after, "text", content)


class _SgmParser(_EventList, HTMLParser):
    def set_cdata_mode(self, *args, **options):
        """No tag of HTML, such as <style>, makes text of the tags behind it."""

    def handle_starttag(self, tag, attrs):
        self.add(self.getpos()[0], "start", tag, attrs)

    def handle_endtag(self, tag):
        self.add(self.getpos()[0], "end", tag)

    def handle_data(self, data):
        self.add(self.getpos()[0], "text", data)

    def handle_comment(self, data):
        self.add(self.getpos()[0], "markup", data)

    handle_decl = handle_pi = unknown_decl = handle_comment
