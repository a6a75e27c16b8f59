"""XML and SGML files as start tags, end tags and texts; SGML as test sets use it, without a grammar."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from xml.sax import ContentHandler, SAXParseException
from xml.sax.xmlreader import Locator

from hf_docmt.files import DataError, display_path, location_of, read_lines

BARE_AMPERSAND = re.compile(r"&(?!#?\w+;)")
PROLOGUE = rb"\s*(<\?xml[^>]*>\s*)?(<!DOCTYPE[^>]*>\s*)?(<!--.*?-->\s*)?"  # what may stand before the first tag


class Event(NamedTuple):
    """A start tag, an end tag or a piece of text; names of tags and attributes are in lower case."""

    line: int
    kind: str  # start, end or text
    value: str  # name of the tag, or the text with its entities resolved
    attributes: dict[str, str]


def xml_events(path: str | Path) -> Iterator[Event]:
    """Events of an XML file, which must be well-formed. Definitions of entities are refused, external files never read.

    DataError says file, line and column, or that defusedxml is not installed.
    """
    try:
        from defusedxml.common import EntitiesForbidden
        from defusedxml.sax import make_parser
    except ImportError as error:
        raise DataError(f"{display_path(path)}: XML needs defusedxml: pip install 'hf-docmt[xml]'") from error
    parser, handler = make_parser(), _XmlHandler()
    parser.forbid_external = False  # sets may name a document type, which the parser never fetches
    parser.setContentHandler(handler)
    handler.setDocumentLocator(parser)
    try:
        for number, line in read_lines(path):
            parser.feed("\n" * (number > 1) + line)
            yield from handler.take()
        parser.close()
    except SAXParseException as error:
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
    """Events of a file of tags that need no grammar; an ampersand that begins no entity is text."""
    parser = _SgmParser()
    for _, line in read_lines(path):
        parser.feed(BARE_AMPERSAND.sub("&amp;", line) + "\n")
        yield from parser.take()
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
        self.events.append(Event(line, kind, value if kind == "text" else value.lower(), attributes))


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
    def handle_starttag(self, tag, attrs):
        self.add(self.getpos()[0], "start", tag, attrs)

    def handle_endtag(self, tag):
        self.add(self.getpos()[0], "end", tag)

    def handle_data(self, data):
        self.add(self.getpos()[0], "text", data)
