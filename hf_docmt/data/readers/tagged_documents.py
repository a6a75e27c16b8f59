"""Documents and sentences with ids in tags, `<doc>` and `<seg>`, as in the test sets of WMT and IWSLT."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.reader import check_target
from hf_docmt.files import DataError, display_path, location_of, read_lines

BARE_AMPERSAND = re.compile(r"&(?!#?\w+;)")
BARE_LESS_THAN = re.compile(r"<(?!/?[a-z]|!--|!doctype\b|\?)", re.IGNORECASE)
BLOCK = 1 << 16  # characters of XML that are parsed at once
MAX_OPEN_LINES, MAX_OPEN_CHARACTERS = 1000, 1 << 16  # of one SGML tag or comment
PROLOGUE = rb"\s*+(<\?xml[^>]*>\s*+)?(?>(<!--.*?-->|<!DOCTYPE[^>]*>)\s*+)*+"  # before the first tag; linear


class Event(NamedTuple):
    """A start tag, an end tag, a piece of text or other markup; names of tags and attributes are in lower case."""

    line: int
    kind: str  # start, end, text, or in SGML markup: a comment, a declaration, an instruction
    value: str  # name of the tag, the text with its entities resolved, or the content of the markup
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
            "since such definitions can fill the memory; write out its text"
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
        yield from found.take()  # the part before the fault may have another fault
        raise DataError(
            f"{location_of(path, error.lineno)}, column {error.offset + 1}: broken XML "
            f"({expat.ErrorString(error.code)}); repair it, or fetch the file again if it is cut"
        ) from error


def sgm_events(path: str | Path) -> Iterator[Event]:
    """Events of a file of tags that need no grammar.

    An ampersand that begins no entity is text, and so is `<` that begins no tag, comment, document type or instruction.
    DataError for one that is not closed within 1,000 lines or 65,536 characters, or where the file ends.
    """
    parser, waiting, size, opened = _SgmParser(), [], 0, 0
    for number, line in read_lines(path):
        waiting.append(BARE_LESS_THAN.sub("&lt;", BARE_AMPERSAND.sub("&amp;", line)) + "\n")
        size += len(waiting[-1])
        if size >= len(parser.rawdata):  # the unparsed rest, which is read again with each piece
            parser.feed("".join(waiting))
            yield from parser.take()
            waiting, size = [], 0
            opened = (opened or number) if parser.rawdata.startswith("<") else 0  # the line of a tag that is open
        if opened and (number - opened >= MAX_OPEN_LINES or len(parser.rawdata) > MAX_OPEN_CHARACTERS):
            break
    parser.feed("".join(waiting))
    if parser.rawdata.startswith("<"):  # `close` would make text of it or omit it, as html.parser's version has it
        raise DataError(
            f"{location_of(path, opened or number)}: {parser.rawdata[:40]!r} is never closed; close it, write < as "
            "&lt;, or fetch the file again if it is cut"
        )
    parser.close()
    yield from parser.take()


class _EventList:
    """The events that a parser has found since the last call."""

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
        """No tag of HTML, such as <style>, makes text of the tags after it."""

    def handle_starttag(self, tag, attrs):
        self.add(self.getpos()[0], "start", tag, attrs)

    def handle_endtag(self, tag):
        self.add(self.getpos()[0], "end", tag)

    def handle_data(self, data):
        self.add(self.getpos()[0], "text", data)

    def handle_comment(self, data):
        self.add(self.getpos()[0], "markup", data)

    handle_decl = handle_pi = unknown_decl = handle_comment


METADATA = ("url", "keywords", "speaker", "talkid", "title", "description", "reviewer", "translator")
SETS = ("mteval", "srcset", "refset", "tstset")
SIDES = ("src", "ref", "hyp")
SET_TAG = re.compile(PROLOGUE + rb"<(" + "|".join(SETS).encode() + rb")\b", re.IGNORECASE | re.DOTALL)


@dataclass
class Side:
    """The sentences of one `<doc>`, or of one `<src>`, `<ref>` or `<hyp>` in it."""

    path: str | Path
    line: int
    name: str = "doc"
    attributes: dict[str, str] = field(default_factory=dict)
    sentences: dict[str, str] = field(default_factory=dict)  # by seg id, in the order of the file
    lines: dict[str, int] = field(default_factory=dict)  # of the segs

    @property
    def location(self) -> str:
        return location_of(self.path, self.line)

    def add(self, seg: str, line: int, text: str) -> None:
        if seg in self.sentences:
            raise DataError(
                f"{location_of(self.path, line)}: seg {seg!r} was there before, in line {self.lines[seg]}; each seg "
                "of a document needs its own id"
            )
        self.sentences[seg], self.lines[seg] = text, line


@dataclass
class TaggedDocument:
    """One `<doc>`; `sides[0]` holds the segs outside `<src>`, `<ref>` and `<hyp>`."""

    attributes: dict[str, str]
    sides: list[Side]
    metadata: dict[str, str] = field(default_factory=dict)

    @property
    def doc_id(self) -> str:
        """The talk's id where there is one (`docid` only counts the talks of a set), or else `docid` or `id`."""
        doc_id = self.metadata.get("talkid") or self.attributes.get("docid") or self.attributes.get("id") or ""
        if not doc_id.strip():
            raise DataError(f"{self.sides[0].location}: document id is missing; every <doc> needs a docid")
        return doc_id.strip()


def tagged_documents(path: str | Path, events: Iterable[Event]) -> Iterator[TaggedDocument]:
    """The documents of a file, each at its end.

    DataError names file and line if tags are missing or text is outside `<seg>`. A line end in a sentence is a
    blank, and blanks at its ends are removed. Other tags are ignored.
    """
    state = _TagState(path)
    for event in events:
        getattr(state, event.kind)(event)
        if event.kind == "end" and event.value == "doc":
            yield state.documents.pop()
    state.finish()


def matched_rows(
    languages: list[str],
    source: str | Path,
    ours: Iterable[TaggedDocument],
    target: str | Path | None,
    theirs: Iterable[TaggedDocument],
) -> Iterator[tuple[str, dict]]:
    """Rows of two files that have the same documents and segs, matched by their ids, in the order of the source."""
    others: dict[str, TaggedDocument] = {}
    if two_sided := check_target(languages, source, target):
        documents, others = _by_id(ours), _by_id(theirs)
        ours = documents.values()
        for name in (name for name in documents | others if (name in documents) != (name in others)):
            document, missing_in = (documents[name], target) if name in documents else (others[name], source)
            raise DataError(
                f"{document.sides[0].location}: document {name!r} is not in {display_path(missing_in)}; both "
                "sides need the same documents, use two files of one set"
            )
    for document in ours:
        name, side = document.doc_id, document.sides[0]
        other = matched_side(name, side, others[name].sides[0]) if two_sided else None
        yield side.location, make_row(side.location, name, list(side.sentences.values()), other, languages)


def matched_side(doc_id: str, side: Side, other: Side) -> list[str]:
    """The sentences of the other side in this one's order; DataError for a seg that only one of them has."""
    for whole, lacking in ((side, other), (other, side)):
        for seg in (seg for seg in whole.sentences if seg not in lacking.sentences):
            raise DataError(
                f"{location_of(whole.path, whole.lines[seg])}: document {doc_id!r} has {len(whole.sentences)} "
                f"sentences with seg {seg!r} here, but {len(lacking.sentences)} without it from {lacking.location} on; "
                "both sides need the same segs, and an empty one for a missing sentence"
            )
    return [other.sentences[seg] for seg in side.sentences]


def _by_id(documents: Iterable[TaggedDocument]) -> dict[str, TaggedDocument]:
    by_id: dict[str, TaggedDocument] = {}
    for document in documents:
        before = by_id.setdefault(document.doc_id, document)
        if before is not document:
            raise DataError(
                f"{document.sides[0].location}: document {document.doc_id!r} was there before, in "
                f"{before.sides[0].location}; give each its own id, and each of several references its own file"
            )
    return by_id


class _TagState:
    """The tags that are open, and the document they are in, while the events of a file are read."""

    def __init__(self, path: str | Path):
        self.path = path
        self.documents: list[TaggedDocument] = []  # the one that is open
        self.has_documents = False
        self.open: list[tuple[int, str]] = []  # line and name of the tags that are kept
        self.seg, self.texts = "", []

    def start(self, event: Event) -> None:
        inner, name = self.open[-1][1] if self.open else "", event.value
        if inner in ("seg", *METADATA):
            raise self._error(event, f"<{name}> in <{inner}> of line {self.open[-1][0]}; close that, write < as &lt;")
        if inner in SIDES and name in ("doc", *SIDES) or inner == name == "doc":
            raise self._error(event, f"<{name}> before </{inner}> of line {self.open[-1][0]}; close that first")
        if name == "doc":
            self.has_documents = True
            self.documents.append(TaggedDocument(event.attributes, [Side(self.path, event.line)]))
        elif name in SIDES and inner == "doc":
            self.documents[-1].sides.append(Side(self.path, event.line, name, event.attributes))
        elif name == "seg":
            if inner not in ("doc", *SIDES):
                raise self._error(event, "<seg> outside <doc>; begin every document with <doc docid=...>")
            self.seg = event.attributes.get("id", "").strip()
            if not self.seg:
                raise self._error(event, "seg id is missing; every <seg> needs one")
        elif name not in SETS and name not in METADATA:
            return
        self.texts = []
        self.open.append((event.line, name))

    def end(self, event: Event) -> None:
        name, inner = event.value, self.open[-1][1] if self.open else ""
        if name not in ("doc", "seg", *SETS, *SIDES, *METADATA):
            if inner in ("seg", *METADATA):
                raise self._error(event, f"</{name}> in <{inner}> of line {self.open[-1][0]}; write < as &lt;")
            return
        if not self.open or self.open[-1][1] != name:
            inner = f"<{self.open[-1][1]}> of line {self.open[-1][0]} is open" if self.open else "nothing is open"
            raise self._error(event, f"</{name}> where {inner}; repair the tags")
        line, _ = self.open.pop()
        text = " ".join(filter(None, (part.strip() for part in "".join(self.texts).split("\n"))))
        self.texts = []
        if name == "seg":
            inside = self.open[-1][1] in SIDES
            self.documents[-1].sides[-1 if inside else 0].add(self.seg, line, text)
        elif name in METADATA and "doc" in [name for _, name in self.open]:
            self.documents[-1].metadata[name] = text

    def text(self, event: Event) -> None:
        if self.open and self.open[-1][1] in ("seg", *METADATA):
            self.texts.append(event.value)
        elif event.value.strip():
            raise self._error(event, f"text outside <seg>: {event.value.strip()[:40]!r}; put it in one or remove it")

    def markup(self, event: Event) -> None:
        inner = self.open[-1][1] if self.open else ""
        if inner in ("seg", *METADATA):
            raise self._error(event, f"{event.value[:40]!r} in <{inner}> of line {self.open[-1][0]}; write < as &lt;")

    def finish(self) -> None:
        if self.open:
            line, name = self.open[-1]
            raise DataError(
                f"{location_of(self.path, line)}: <{name}> is never closed, the file is cut or broken; fetch it again"
            )
        if not self.has_documents:
            raise DataError(f"{display_path(self.path)}: no <doc> in the file; is it of another format?")

    def _error(self, event: Event, what: str) -> DataError:
        return DataError(f"{location_of(self.path, event.line)}: {what}")
