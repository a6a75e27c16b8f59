"""HTML and XHTML pages: blocks as segments, inline elements as tags; scripts, code and all else stay unchanged."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from html import unescape
from html.parser import HTMLParser

from hf_docmt.data.language_codes import primary_language
from hf_docmt.formats.document_format import Piece, Segment, Tag, has_letters, trimmed, unpaired
from hf_docmt.formats.string_files import locale_code
from hf_docmt.formats.text_positions import MARKS, Edit, Slot, TextFormat, TextPositions

VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())


@dataclass
class Event:
    """A start or end tag, an empty element, text or another piece, at characters `start` to `end`."""

    kind: str
    start: int
    name: str = ""
    attributes: tuple[tuple[str, str | None], ...] = ()
    end: int = 0

    is_kept: bool = False  # marked by its author as not for translation, or in another language


class _Events(HTMLParser):
    """The pieces of a page with their places."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=False)
        self.events: list[Event] = []
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.feed(text)
        self.close()

    def add(self, kind: str, name: str = "", attributes: Sequence = ()) -> None:
        line, column = self.getpos()
        self.events.append(Event(kind, self.line_starts[line - 1] + column, name, tuple(attributes)))

    def handle_starttag(self, tag, attrs):
        self.add("empty" if tag in VOID else "start", tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self.add("empty", tag, attrs)

    def handle_endtag(self, tag):
        self.add("end", tag)

    def handle_data(self, data):
        self.add("text")

    handle_charref = handle_entityref = handle_data

    def handle_comment(self, data):
        self.add("other")

    handle_decl = handle_pi = unknown_decl = handle_comment

    def parse_marked_section(self, i, report=1):
        """Anything but a section of SGML is a comment, as in browsers; html.parser does so from Python 3.14 on."""
        try:
            return super().parse_marked_section(i, report)
        except AssertionError:
            return self.parse_bogus_comment(i)


def page_events(text: str) -> list[Event]:
    """The pieces of a page, one after the other."""
    events = _Events(text).events
    for event, following in zip(events, [*events[1:], Event("", len(text))]):
        event.end = following.start
    return events


# Elements and optional end tags: HTML, https://html.spec.whatwg.org/multipage/, sections 4 and 13.1.2.4
INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark nobr output q rb ruby s slot small "
    "span strike strong sub sup time tt u".split()
)
ALONE = frozenset("br embed img input wbr".split())  # void ones inside a line
SHOWN = frozenset("code kbd samp var math".split())  # carried whole, and read in their sentence
HIDDEN = frozenset("svg rt rp rtc object iframe audio video canvas map noembed".split())  # carried whole
SKIPPED = frozenset("pre listing xmp plaintext textarea script style template datalist".split())
OPAQUE = SHOWN | HIDDEN | SKIPPED
CLOSED_BY = {name: frozenset((name,)) for name in ("li", "optgroup", "thead", "tbody", "tfoot")}
CLOSED_BY["option"] = frozenset(("option", "optgroup"))
CLOSED_BY |= dict.fromkeys(("dt", "dd"), frozenset(("dt", "dd"))) | {"tr": frozenset(("tr", "tbody", "tfoot"))}
CLOSED_BY |= dict.fromkeys(("td", "th"), frozenset(("td", "th", "tr", "tbody", "tfoot")))
CLOSED_BY["p"] = frozenset(
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form h1 h2 h3 "
    "h4 h5 h6 header hgroup hr main menu nav ol p pre search section table ul".split()
)
KEPT = re.compile(r"""\s(?:translate=["']?no\b|class=["'][^"']*\bnotranslate\b)""")  # in a start tag
WITHOUT_TEXT = frozenset("script style template".split())
PLAIN_TEXT = re.compile(r"<(?:title|textarea|option)\b[^<>]*>\s*\Z", re.IGNORECASE)  # before text without tags
ATTRIBUTES = frozenset("alt title placeholder aria-label label summary".split())
META = re.compile(r"(description|(og|twitter):(title|description|image:alt))$", re.IGNORECASE)
ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>`]+)""")
CHARSET = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?([\w-]+)|<\?xml[^>]+encoding\s*=\s*["']([\w-]+)""", re.I)
SPACE = " \t\r\n\f"
NO_BREAK_SPACES = ("&nbsp;", "&#160;", "&#xa0;", "&#xA0;")


class HtmlFormat(TextFormat):
    """Pages and parts of pages. Texts of images, titles and descriptions are segments of their own."""

    name = "html"
    line_break = Tag("alone", "<br>", breaks=True)
    endings = (".html", ".htm", ".xhtml")
    first_bytes = re.compile(rb"\s*(<\?xml[^>]*>\s*)?<(!doctype html|html[\s>])", re.IGNORECASE)

    errors = "xmlcharrefreplace"

    def charset(self, data: bytes) -> str:
        declared = CHARSET.search(data[:4096])
        charset = (declared[1] or declared[2]).decode("ascii").lower() if declared else "utf-8"
        # the standard reads Latin-1 as Windows-1252: https://encoding.spec.whatwg.org/#names-and-labels
        charset = "cp1252" if charset in ("iso-8859-1", "latin1", "us-ascii", "ascii") else charset
        utf16 = charset.startswith("utf-16") and not data.startswith(tuple(mark for mark, _ in MARKS))
        return "utf-8" if utf16 else charset

    def find(self, text: str) -> None:
        events = page_events(text)
        self.root = next((event for event in events if event.kind == "start" and event.name == "html"), None)
        add_slots(self.page, events, self.options.source_lang)
        self.translated = [event for event in events if not (event.is_kept or event.name in OPAQUE)]

    def language_edits(self) -> Iterator[Edit]:
        """The `lang` and `xml:lang` of what is translated, or a new `lang`; `dir` of another direction."""
        if not self.options.target_lang or not self.root:
            return
        language = locale_code(self.options.target_lang, "-")
        direction = "rtl" if self.options.is_right_to_left else "ltr"
        matches = list(ATTRIBUTE.finditer(self.page.text, self.root.start, self.root.end))
        names = {"lang", "xml:lang"}
        for event in self.translated:
            if not names.isdisjoint(dict(event.attributes)):
                found = ATTRIBUTE.finditer(self.page.text, event.start, event.end)
                yield from ((*match.span(2), f'"{language}"') for match in found if match[1].lower() in names)
        start = self.root.start + len("<html")
        directions = [match.span(2) for match in matches if match[1].lower() == "dir"]
        yield from ((*span, f'"{direction}"') for span in directions)
        if direction == "rtl" and not directions:
            yield start, start, ' dir="rtl"'
        if names.isdisjoint(dict(self.root.attributes)):
            name = "xml:lang" if self.page.text.lstrip().startswith("<?xml") else "lang"
            yield start, start, f' {name}="{language}"'


@lru_cache(maxsize=1)
def no_break_space(text: str) -> str:
    """How a page writes it."""
    return next((entity for entity in NO_BREAK_SPACES if entity in text), "\xa0")


def add_slots(page: TextPositions, events: list[Event], source_lang: str) -> None:
    """Find the segments of a page, or of a part of it: values of attributes, and runs of text with inline elements."""
    ends = _element_ends(events)
    space = no_break_space(page.text)
    parts = _translated_parts(events, ends, {primary_language(source_lang)})
    _add_values(page, events, ends)
    for start, end in reversed(parts):  # the inner ones first
        _add_texts(page, events, ends, space, start, end)


def _translated_parts(events: list[Event], ends: dict[int, int], own: set[str]) -> list[tuple[int, int]]:
    """All pieces, and the contents to translate inside elements that are kept, which are marked.

    `own` are the languages to translate, including those of the page.
    """
    parts = [(0, len(events))]
    around = [(len(events), True, True, False)]  # end of an element, whether to translate it, its language, and opaque
    for number, event in enumerate(events):
        while around[-1][0] <= number:
            around.pop()
        _, was_meant, was_own, is_opaque = around[-1]
        values = dict(event.attributes)
        language = primary_language(values.get("lang") or values.get("xml:lang") or "")
        own |= {language} if event.name == "html" else set()
        is_meant = was_meant and "notranslate" not in (values.get("class") or "").split()
        is_meant = values["translate"] != "no" if "translate" in values else is_meant
        is_own = language in own if language else was_own
        event.is_kept = not (is_meant and is_own)
        if event.kind == "start":
            is_opaque = is_opaque or event.name in OPAQUE
            if not (event.is_kept or is_opaque or was_meant and was_own):
                parts.append((number + 1, ends[number]))
            around.append((ends[number], is_meant, is_own, is_opaque))
    return parts


def _add_texts(
    page: TextPositions, events: list[Event], ends: dict[int, int], space: str, number: int, stop: int
) -> None:
    """Slots for the texts of these pieces."""
    run: list[tuple[Event, Tag | None]] = []
    while number < stop:
        event, following = events[number], number + 1
        if whole := _is_whole(event):
            following = ends[number]
        if whole and event.name in INLINE | SHOWN | HIDDEN:
            event = replace(event, end=events[following - 1].end, kind="other")
            texts = (page.text[each.start : each.end] for each in events[number:following] if each.kind == "text")
            text = "" if event.name in HIDDEN else " ".join(unescape("".join(texts)).split())
            run.append((event, page.tag("alone", event.start, event.end, text)))
        elif event.kind == "text":
            run.append((event, None))
        elif event.kind == "other":
            run.append((event, page.tag("alone", event.start, event.end)))
        elif event.name in ALONE or event.kind == "empty" and event.name in INLINE | SHOWN | HIDDEN:
            run.append((event, page.tag("alone", event.start, event.end, breaks=event.name == "br")))
        elif event.name in INLINE:
            run.append((event, page.tag("open" if event.kind == "start" else "close", event.start, event.end)))
        else:
            _add_runs(page, run, space)
            run = []
        number = following
    _add_runs(page, run, space)


def _is_whole(event: Event) -> bool:
    """Whether its element is carried or skipped; of an option without a value the text is what a form sends."""
    is_sent = event.name == "option" and "value" not in dict(event.attributes)
    return event.kind == "start" and (event.is_kept or is_sent or event.name in OPAQUE)


def _add_runs(page: TextPositions, run: list[tuple[Event, Tag | None]], space: str) -> None:
    """Slots for a run; a tag in it that opens or closes nothing there ends a segment, as do the pairs around it."""
    unmatched = unpaired(("" if tag is None else tag.kind, event.name) for event, tag in run)
    if not unmatched:
        return _add_run(page, run, space)
    for before, number in zip([-1, *unmatched], [*unmatched, len(run)]):
        _add_runs(page, run[before + 1 : number], space)
    return None


def _add_run(page: TextPositions, run: list[tuple[Event, Tag | None]], space: str) -> None:
    """A slot for a run with words, without white space at its ends."""
    pieces = trimmed((tag or unescape(page.text[event.start : event.end]) for event, tag in run), SPACE)
    if has_letters(pieces):
        start, end = run[0][0].start, run[-1][0].end
        text = page.text[start:end]
        start, end = end - len(text.lstrip(SPACE)), start + len(text.rstrip(SPACE))
        is_value = bool(PLAIN_TEXT.search(page.text, max(0, start - 200), start))
        segment = Segment(pieces, f"line {page.line(start)}", is_value=is_value)
        page.add_value(Slot(start, end, segment, partial(escaped, space=space)))


def _add_values(page: TextPositions, events: list[Event], ends: dict[int, int]) -> None:
    """Slots for the attributes that a reader sees, of elements that are translated."""
    number = 0
    while number < len(events):
        event = events[number]
        is_read = event.kind in ("start", "empty") and not event.is_kept and event.name not in WITHOUT_TEXT
        jumps = event.kind == "start" and event.name in OPAQUE - {"map"}  # which has areas, whose texts are seen
        number = ends[number] if jumps else number + 1
        values = dict(event.attributes)
        is_meta = event.name == "meta" and META.match(values.get("name") or values.get("property") or "")
        is_button = event.name == "input" and (values.get("type") or "").lower() in ("button", "submit", "reset")
        names = {"content"} if is_meta else {"value", *ATTRIBUTES} if is_button else ATTRIBUTES
        if not is_read or names.isdisjoint(values):
            continue
        for match in ATTRIBUTE.finditer(page.text, event.start + 1 + len(event.name), event.end):
            quoted = match[2][0] in "\"'"
            pieces: list[Piece] = [unescape(match[2][1:-1] if quoted else match[2])]
            if match[1].lower() in names and has_letters(pieces):
                segment = Segment(pieces, f"line {page.line(match.start())}, {match[1]}", is_value=True)
                page.add_value(Slot(*match.span(2), segment, partial(escaped, quote=match[2][0] if quoted else '"')))


def escaped(text: str, quote: str = "", space: str = "\xa0") -> str:
    """Text as HTML has it, in quotation marks where it is the value of an attribute."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\xa0", space)
    return quote + text.replace(quote, "&quot;" if quote == '"' else "&#39;") + quote if quote else text


def _element_ends(events: list[Event]) -> dict[int, int]:
    """For the number of each start tag that of the first piece after its element."""
    ends: dict[int, int] = {}
    stack: list[int] = []
    opened: Counter[str] = Counter()

    def close(number: int) -> str:
        first = stack.pop()
        ends[first] = number
        opened[events[first].name] -= 1
        return events[first].name

    for number, event in enumerate(events):
        if event.kind in ("start", "empty"):
            while stack and event.name in CLOSED_BY.get(events[stack[-1]].name, ()):
                close(number)
        if event.kind == "start":
            stack.append(number)
            opened[event.name] += 1
        elif event.kind == "end" and opened[event.name]:
            while events[stack[-1]].name != event.name:
                close(number)
            close(number + 1)
    return ends | dict.fromkeys(stack, len(events))
