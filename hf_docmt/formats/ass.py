"""ASS and SSA subtitles: the text of each dialogue line as a segment, override tags as tags; all else stays."""

import re
from collections.abc import Iterator

from hf_docmt.files import DataError
from hf_docmt.formats.document_format import Segment, has_letters
from hf_docmt.formats.text_positions import Slot, TextFormat, TextPositions

# http://www.tcax.org/docs/ass-specs.htm, "Style override codes"; `\{` is of libass (ass_parse.c)
SECTION = re.compile(r"[ \t]*\[([^\]\r\n]+)\]")
LINE = re.compile(r"[^\r\n]+")
MARKUP = re.compile(r"(?<!\\)\{[^{}]*\}|\\[Nnh]")
DRAWING = re.compile(r"\\p(\d+)(?![a-z])")  # in an override: it begins with a number above 0, and ends with 0
WORD_JOINER = "\u2060"  # behind a backslash that is one, as Aegisub has it


class AssFormat(TextFormat):
    """Subtitles with styles. Comments, drawings, and what stands in other sections than Events stay as they are."""

    name = "ass"
    endings = (".ass", ".ssa")
    first_bytes = re.compile(rb"\[Script Info\]", re.IGNORECASE)
    line_end = r"\r\n?|\n"

    def find(self, text: str) -> None:
        for start, end in _texts(self.page):
            self._add_slot(start, end)

    def _add_slot(self, start: int, end: int) -> None:
        slot = Slot(start, end, Segment([], f"line {self.page.line(start)}"), escaped)
        pieces = slot.segment.pieces
        position = start
        for first, last in _markup(self.page.text, start, end):
            raw = self.page.text[first:last]
            pieces += [unescaped(self.page.text[position:first])] if first > position else []
            tag = self.page.tag("alone", first, last, " " if raw in ("\\n", "\\h") else "", breaks=raw == "\\N")
            slot.places[id(tag)] = (first, last)
            pieces.append(tag)
            position = last
        pieces += [unescaped(self.page.text[position:end])] if end > position else []
        if has_letters(pieces):
            self.page.slots.append(slot)


def _texts(script: TextPositions) -> Iterator[tuple[int, int]]:
    """The characters of the texts of dialogue lines. DataError: no Format line, or a line with fewer fields."""
    section, fields = "", 0
    for match in LINE.finditer(script.text):
        line = match[0]
        heading = SECTION.match(line)
        kind, colon, values = line.partition(":")
        kind = kind.strip().lower()
        if heading:
            section, fields = heading[1].strip().lower(), 0
        elif section == "events" and colon and kind == "format":
            fields = len(values.split(","))
            if values.split(",")[-1].strip().lower() != "text":
                raise DataError(f"line {script.line(match.start())}: expected Text as the last field; move it there")
        elif section == "events" and colon and kind == "dialogue":
            parts = values.split(",", fields - 1) if fields else []
            if not fields or len(parts) < fields:
                wanted = f"{fields} fields as the Format line has" if fields else "a Format line before it"
                raise DataError(f"line {script.line(match.start())}: expected {wanted}, got {line[:60]!r}; repair it")
            yield match.end() - len(parts[-1]), match.end()


def _markup(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The characters of override blocks and breaks; a drawing is one with the blocks around it."""
    drawing = None  # where the one that goes on began
    for match in MARKUP.finditer(text, start, end):
        scales = DRAWING.findall(match[0]) if match[0].startswith("{") else []
        if drawing is not None and scales and int(scales[-1]) == 0:
            yield drawing, match.end()
            drawing = None
        elif drawing is None and scales and int(scales[-1]) > 0:
            drawing = match.start()
        elif drawing is None:
            yield match.span()
    if drawing is not None:
        yield drawing, end


def escaped(text: str) -> str:
    """Text as a dialogue line has it, which is one line."""
    text = re.sub(r"\\(?=[Nnh{}]|$)", r"\\" + WORD_JOINER, " ".join(re.split(r"[\r\n]+", text)))
    return re.sub(r"[{}]", r"\\\g<0>", text)


def unescaped(text: str) -> str:
    """The text of a dialogue line as a viewer sees it."""
    return re.sub(r"\\([{}])", r"\1", text).replace("\\" + WORD_JOINER, "\\")
