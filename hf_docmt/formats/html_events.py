"""The pieces of pages and their places, as html.parser reads them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())


@dataclass
class Event:
    """A start or end tag, an empty element, text or another piece, at characters `start` to `end`."""

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
        """What is no section of SGML is a comment, as in browsers; so html.parser has it itself from Python 3.14 on."""
        try:
            return super().parse_marked_section(i, report)
        except AssertionError:
            return self.parse_bogus_comment(i)


def page_events(text: str) -> list[Event]:
    """The pieces of a page, one behind the other."""
    events = _Events(text).events
    for event, following in zip(events, [*events[1:], Event("", len(text))]):
        event.end = following.start
    return events
