"""HTML: blocks as segments, inline elements as tags; scripts, code and everything between stay as they are."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser

from hf_docmt.data.language_codes import primary_language
from hf_docmt.files import DataError
from hf_docmt.formats.document_format import DocumentFormat, FormatOptions, Piece, Segment, Tag

INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark nobr q s small span strike strong sub sup "
    "time tt u".split()
)
CARRIED = frozenset(
    "code kbd samp var math svg ruby script style object iframe audio video canvas template map".split()
)
SHOWN = frozenset("code kbd samp var ruby math".split())  # of them those whose text a reader sees
VOID = frozenset("br img wbr input embed".split())  # that stand in a line
SKIPPED = frozenset("pre textarea script style template svg math".split())  # as blocks
ATTRIBUTES = frozenset("alt title placeholder aria-label label summary".split())
META = re.compile(r"(description|(og|twitter):(title|description))$", re.IGNORECASE)
ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+))""")
CHARSET = re.compile(
    rb"""<meta[^>]+charset\s*=\s*["']?([\w-]+)|<\?xml[^>]+encoding\s*=\s*["']([\w-]+)""", re.IGNORECASE
)


@dataclass
class Event:
    """A piece of the page: start, end, empty, text or other, at characters `start` to `end`."""

    kind: str
    start: int
    name: str = ""
    attributes: tuple[tuple[str, str | None], ...] = ()
    end: int = 0

    @property
    def is_kept(self) -> bool:
        """Whether its author says that its text is not to be translated."""
        values = dict(self.attributes)
        return values.get("translate") == "no" or "notranslate" in (values.get("class") or "").split()


class HtmlFormat(DocumentFormat):
    """Pages and parts of pages. Texts of images, titles and descriptions are segments of their own."""

    name = "html"
    endings = (".html", ".htm", ".xhtml")
    first_bytes = re.compile(rb"\s*(<\?xml[^>]*>\s*)?<(!doctype html|html[\s>])", re.IGNORECASE)

    def parse(self, data: bytes, options: FormatOptions) -> list[Segment]:
        self.text, self.encoding, self.mark = decoded(data)
        self.options, self.is_xml = options, self.text.lstrip().startswith("<?xml")
        events = page_events(self.text)
        self.language = next((event for event in events if event.kind == "start" and event.name == "html"), None)
        found = [*self._runs(events), *self._values(events)]
        self.slots = sorted(found, key=lambda slot: slot[:2])  # characters from, to, and the segment
        self.places = {id(tag): place for *_, tags in found for tag, place in tags}
        return [segment for _, _, segment, _ in self.slots]

    def write(self, translations: Sequence[list[Piece] | None]) -> bytes:
        runs, values = [], []
        for (start, end, segment, tags), new in zip(self.slots, translations):
            if new is None or new == segment.pieces:
                continue
            if tags is VALUE:
                values.append((start, end, escaped(new, self.is_xml, quote=self.text[start - 1])))
            else:
                runs.append((start, end, new))
        if (runs or values) and self.options.target_lang and self.language:
            values += self._language_edits(primary_language(self.options.target_lang))
        outer = [(start, end, self._rendered(new, values)) for start, end, new in runs]
        values = [edit for edit in values if not any(start <= edit[0] < end for start, end, _ in outer)]
        text = with_edits(self.text, [*outer, *values])
        return self.mark + text.encode(self.encoding, errors="xmlcharrefreplace")

    def _rendered(self, pieces: list[Piece], values: list[tuple[int, int, str]]) -> str:
        """Pieces as HTML; tags with the edits of their attributes."""
        parts = []
        for piece in pieces:
            if isinstance(piece, str) or piece.raw is None:
                parts.append(escaped([piece], self.is_xml))
                continue
            start, end = self.places.get(id(piece), (0, 0))
            own = [(first - start, last - start, new) for first, last, new in values if start <= first < end]
            parts.append(with_edits(piece.raw, own))
        return "".join(parts)

    def _language_edits(self, language: str) -> Iterator[tuple[int, int, str]]:
        start, end = self.language.start, self.language.end
        for match in ATTRIBUTE.finditer(self.text, start, end):
            if match[1].lower() in ("lang", "xml:lang"):
                group = next(number for number in (2, 3, 4) if match[number] is not None)
                yield (*match.span(group), language)
        if not any(name == "lang" for name, _ in self.language.attributes):
            yield start + len("<html"), start + len("<html"), f' lang="{language}"'

    def _runs(self, events: list[Event]) -> Iterator[tuple]:
        """The runs of inline pieces between blocks that have text to translate."""
        run: list[tuple[Event, Tag | None]] = []
        number = 0
        while number < len(events):
            event = events[number]
            last = number
            kind, name = event.kind, event.name
            if kind in ("start", "empty") and name in VOID:
                run.append((event, Tag("alone", self._raw(event), breaks=name == "br")))
            elif kind == "start" and name not in VOID and (event.is_kept or name in CARRIED | SKIPPED):
                last = _closing(events, number)
                whole = Event("other", event.start, name, event.attributes, events[last].end)
                if name in CARRIED or name in INLINE:
                    shown = name in SHOWN or name in INLINE
                    text = " ".join(self._text(events[number : last + 1]).split()) if shown else ""
                    run.append((whole, Tag("alone", self._raw(whole), text)))
                else:
                    yield from self._segments(run)
                    run = []
            elif kind in ("start", "end") and name in INLINE:
                run.append((event, Tag("open" if kind == "start" else "close", self._raw(event))))
            elif kind == "text":
                run.append((event, None))
            elif kind == "other" and run:  # a comment
                run.append((event, Tag("alone", self._raw(event))))
            else:
                yield from self._segments(run)
                run = []
            number = last + 1
        yield from self._segments(run)

    def _segments(self, run: list[tuple[Event, Tag | None]]) -> Iterator[tuple]:
        """The segments of a run: a tag whose other one is missing is a border."""
        lone = _unmatched(run)
        if lone:
            start = 0
            for number in [*lone, len(run)]:
                yield from self._segments(run[start:number])
                start = number + 1
            return
        pieces: list[Piece] = []
        for event, tag in run:
            text = unescape(self._raw(event)) if tag is None else ""
            if tag is None and pieces and isinstance(pieces[-1], str):
                pieces[-1] += text
            else:
                pieces.append(text if tag is None else tag)
        if any(character.isalpha() for piece in pieces if isinstance(piece, str) for character in piece):
            start, end = run[0][0].start, run[-1][0].end
            tags = [(tag, (event.start, event.end)) for event, tag in run if tag is not None]
            yield start, end, Segment(pieces, f"line {1 + self.text.count(chr(10), 0, start)}"), tags

    def _values(self, events: list[Event]) -> Iterator[tuple]:
        """The values of attributes that are read, of elements that are translated."""
        depth_end = 0
        for number, event in enumerate(events):
            if event.kind not in ("start", "empty") or event.start < depth_end:
                continue
            if event.kind == "start" and event.name not in VOID and (event.is_kept or event.name in SKIPPED):
                depth_end = events[_closing(events, number)].end
                continue
            values = dict(event.attributes)
            is_meta = event.name == "meta" and META.match(values.get("name") or values.get("property") or "")
            is_button = event.name == "input" and (values.get("type") or "").lower() in ("button", "submit", "reset")
            names = {"content"} if is_meta else {"value", *ATTRIBUTES} if is_button else ATTRIBUTES
            for match in ATTRIBUTE.finditer(self.text, event.start, event.end):
                group = next(index for index in (2, 3, 4) if match[index] is not None)
                text = unescape(match[group])
                if match[1].lower() in names and group != 4 and any(map(str.isalpha, text)):
                    line = 1 + self.text.count("\n", 0, match.start())
                    yield (*match.span(group), Segment([text], f"line {line}, {match[1]}"), VALUE)

    def _raw(self, event: Event) -> str:
        return self.text[event.start : event.end]

    def _text(self, events: list[Event]) -> str:
        return unescape("".join(self._raw(event) for event in events if event.kind == "text"))


VALUE: list = []  # in place of the tags of a segment that is the value of an attribute


class _Events(HTMLParser):
    """The pieces of a page with their places."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=False)
        self.events: list[Event] = []
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.feed(text)
        self.close()

    def add(self, kind: str, name: str = "", attributes: Sequence = ()) -> None:
        line, column = self.getpos()
        self.events.append(Event(kind, self.lines[line - 1] + column, name, tuple(attributes)))

    def handle_starttag(self, tag, attrs):
        self.add("start", tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self.add("empty" if tag not in INLINE | CARRIED else "other", tag, attrs)

    def handle_endtag(self, tag):
        self.add("end", tag)

    def handle_data(self, data):
        self.add("text")

    def handle_charref(self, name):
        self.add("text")

    def handle_entityref(self, name):
        self.add("text")

    def handle_comment(self, data):
        self.add("other")

    def handle_decl(self, decl):
        self.add("block")

    def handle_pi(self, data):
        self.add("block")

    def unknown_decl(self, data):
        self.add("other")


def page_events(text: str) -> list[Event]:
    """The pieces of a page, one behind the other."""
    events = _Events(text).events
    for event, following in zip(events, [*events[1:], Event("", len(text))]):
        event.end = following.start
    return events


def decoded(data: bytes) -> tuple[str, str, bytes]:
    """The text of a page, its encoding and its byte order mark; Windows-1252 where it says none and is not UTF-8."""
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            return _decode(data[len(mark) :], encoding), encoding, mark
    match = CHARSET.search(data[:4096])
    if match:
        encoding = (match[1] or match[2]).decode("ascii")
        return _decode(data, encoding), encoding, b""
    try:
        return data.decode("utf-8"), "utf-8", b""
    except UnicodeDecodeError:
        return _decode(data, "cp1252"), "cp1252", b""


def _decode(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise DataError(f"the page is not in {encoding} as far as it says ({error}); save it as UTF-8") from error


def escaped(pieces: Sequence[Piece], is_xml: bool = False, quote: str | None = None) -> str:
    """Text as HTML has it, between tags, or between these quotes."""
    text = "".join(piece if isinstance(piece, str) else piece.text for piece in pieces).replace("&", "&amp;")
    text = text.replace("<", "&lt;") if quote is None or is_xml else text
    text = text.replace(">", "&gt;") if quote is None else text.replace(quote, "&quot;" if quote == '"' else "&#39;")
    return text.replace("\xa0", "&#160;" if is_xml else "&nbsp;")


def with_edits(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    """The text with another one in place of each range."""
    parts, position = [], 0
    for start, end, new in sorted(edits):
        parts += [text[position:start], new]
        position = end
    return "".join([*parts, text[position:]])


def _closing(events: list[Event], number: int) -> int:
    """The number of the end tag of an element; that of the last piece, where it has none."""
    name, depth = events[number].name, 0
    for last in range(number, len(events)):
        if events[last].name == name:
            depth += {"start": 1, "end": -1}.get(events[last].kind, 0)
            if depth == 0:
                return last
    return len(events) - 1


def _unmatched(run: list[tuple[Event, Tag | None]]) -> list[int]:
    """The numbers of tags that open or close nothing in a run."""
    stack: list[int] = []
    lone: list[int] = []
    for number, (event, tag) in enumerate(run):
        if tag is None or tag.kind == "alone":
            continue
        if tag.kind == "open":
            stack.append(number)
            continue
        names = [run[opened][0].name for opened in stack]
        if event.name not in names:
            lone.append(number)
            continue
        while run[stack[-1]][0].name != event.name:
            lone.append(stack.pop())
        stack.pop()
    return sorted([*lone, *stack])
