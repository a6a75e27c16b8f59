"""XML and SGML files as start tags, end tags and texts; SGML as test sets use it, without a grammar."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from hf_docmt.files import DataError, location_of, read_lines

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

    DataError says file, line and column.
    """
    parser, found = expat.ParserCreate(), _EventList()
    parser.buffer_text = True  # it is kept back until the next tag

    def text(content: str) -> None:
        after = content[len(content.rstrip()) :].count("\n")
        found.add(parser.CurrentLineNumber - after, "text", content)

    def refuse_entity(name: str, *_) -> None:
        raise DataError(
            f"{location_of(path, parser.CurrentLineNumber)}: XML that defines the entity {name!r}, which is refused, "
            "since such definitions can fill the memory; write out what it stands for"
        )

    parser.StartElementHandler = lambda name, attributes: found.add(
        parser.CurrentLineNumber, "start", name, attributes.items()
    )
    parser.EndElementHandler = lambda name: found.add(parser.CurrentLineNumber, "end", name)
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = refuse_entity
    try:
        block, size = [], 0  # a tag over many lines is read again with each piece that comes
        for number, line in read_lines(path):
            block.append("\n" * (number > 1) + line)
            size += len(block[-1])
            if size > BLOCK:
                parser.Parse("".join(block), False)
                yield from found.take()
                block, size = [], 0
        parser.Parse("".join(block), True)
        yield from found.take()
    except expat.ExpatError as error:
        yield from found.take()  # what is before the fault may have a fault of its own
        raise DataError(
            f"{location_of(path, error.lineno)}, column {error.offset + 1}: broken XML "
            f"({expat.ErrorString(error.code)}); repair what stands there, or fetch the file again if it is cut"
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
