"""ASS and SSA subtitles: what dialogue lines say as segments, override tags as tags; all else stays."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from hf_docmt.data.readers.running_text import sentence_splitter
from hf_docmt.data.readers.subtitles import Turn, cue_turns, text_size, turn_runs
from hf_docmt.files import DataError
from hf_docmt.formats.document_format import FormatOptions, Piece, Segment, Tag, has_letters, joined
from hf_docmt.formats.segment_sentences import Split
from hf_docmt.formats.text_positions import Slot, TextFormat, TextPositions
from hf_docmt.modeling.opaque_runs import Span

# http://www.tcax.org/docs/ass-specs.htm, "Style override codes"; `\{` is of libass (ass_parse.c)
SECTION = re.compile(r"[ \t]*\[([^\]\r\n]+)\]")
LINE = re.compile(r"[^\r\n]+")
MARKUP = re.compile(r"(?<!\\)\{[^{}]*\}|\\[Nnh]")
BLANKS = {r"\N": "\n", r"\n": " ", r"\h": " "}  # as a reader sees them
DRAWING = re.compile(r"\\p(\d+)(?![a-z])")  # in an override: it begins with a number above 0, and ends with 0
PLACED = re.compile(r"\\(?:pos|move|i?clip)\(|\\[kK][fo]?\d")  # signs and karaoke, whose texts are not dialogue
CHARACTER = re.compile(r"\\[{}\u2060]|.")
WORD_JOINER = "\u2060"  # after a backslash that is one, as Aegisub has it


class AssSlot(Slot):
    """A text that may go over several lines and events, where tags replace blanks."""

    def rendered(self, pieces: Sequence[Piece], raw: Callable[[Tag], str]) -> str:
        texts = list(pieces)
        for before, number in pairwise(range(len(texts))):
            if _is_blank(texts[number]) and isinstance(text := texts[before], str):
                texts[before] = text.rstrip()
            if _is_blank(texts[before]) and isinstance(text := texts[number], str):
                texts[number] = text.lstrip()
        return super().rendered(texts, raw)


class AssFormat(TextFormat):
    """Subtitles with styles, read as those without: a sentence may span lines and events, which it fills by length.

    Comments, drawings, and sections other than Events stay unchanged.
    """

    name = "ass"
    endings = (".ass", ".ssa")
    first_bytes = re.compile(rb"\[Script Info\]", re.IGNORECASE)
    line_end = r"\r\n?|\n"
    runs: Sequence[list[tuple[int, int]]] = ()  # numbers of events and of their turns, those together that go on

    def find(self, text: str) -> None:
        events = list(_events(self.page))
        self.runs = self.runs or list(_runs(events, sentence_splitter(self.options.source_lang)))
        for run in self.runs:
            self._add_slot([(events[number].markup, events[number].place(turn)) for number, turn in run])

    def read_again(self, data: bytes, options: FormatOptions) -> list[Segment]:
        again = AssFormat()
        again.runs = self.runs
        return again.parse(data, options)

    def _add_slot(self, parts: list[tuple[list[Span], tuple[int, ...]]]) -> None:
        """A slot of turns, given as the markup of their events and their places, with all between them as tags."""
        text, start = self.page.text, parts[0][1][0]
        slot = AssSlot(start, parts[-1][1][3], Segment([], f"line {self.page.line(start)}"), escaped)
        borders = [(before[3], after[0]) for (_, before), (_, after) in pairwise(parts)]
        outer = [(before[2], after[1]) for (_, before), (_, after) in pairwise(parts)]
        inner = [span for markup, (low, *_, high) in parts for span in markup if low <= span[0] < high]
        pieces, position = slot.segment.pieces, start
        for first, last in sorted([*inner, *borders]):
            is_blank = (first, last) in borders or text[first:last] in BLANKS
            by_length = is_blank or any(begin <= first < end for begin, end in outer)
            tag = replace(self.page.tag("alone", first, last), by_length=by_length)
            pieces += [unescaped(text[position:first]) + " " * is_blank, tag]
            position = last
        slot.segment.pieces = joined([*pieces, unescaped(text[position : slot.end])])
        if has_letters(slot.segment.pieces):
            self.page.slots.append(slot)


def _is_blank(piece: Piece) -> bool:
    return isinstance(piece, Tag) and piece.by_length


class DialogueLine:
    """The text of an event: its markup, its turns and their places. One may continue in the next of its `group`."""

    def __init__(self, text: str, start: int, end: int, values: dict[str, str]):
        self.group = [values.get(name) for name in ("layer", "style", "name", "effect")]
        self.times = _milliseconds(values.get("start", "")), _milliseconds(values.get("end", ""))
        self.markup = list(_markup(text, start, end))
        self.all = (start, start, end, end)
        shown, solid, position = (
            "",
            list[Span](),
            start,
        )  # the visible text, and the places of all but its blanks
        for first, last in [*self.markup, (end, end)]:
            for match in CHARACTER.finditer(text, position, first):
                shown += unescaped(match[0])
                solid += [match.span()] * (not match[0].isspace())
            shown += BLANKS.get(text[first:last], "")
            position = last
        self.turns = cue_turns([line for line in shown.split("\n") if line.strip()])
        if sum(text_size(turn.prefix + turn.text + turn.suffix) for turn in self.turns) != len(solid):  # tags of HTML
            self.turns = [Turn("", " ".join(shown.split()), "", 1, False, True, {})]
        breaks = [first for first, last in self.markup if text[first:last] == r"\N"]
        self.places, last = [], 0
        for number, turn in enumerate(self.turns):
            turn.is_speech &= not PLACED.search(text, start, end)
            first = last + text_size(turn.prefix)
            last = first + text_size(turn.text)
            begin, stop = (solid[first][0], solid[last - 1][1]) if turn.text else (start, end)
            low = solid[first - 1][1] if turn.prefix else start
            behind = breaks if number < len(self.turns) - 1 else []
            high = solid[last][0] if turn.suffix else next((place for place in behind if place >= stop), end)
            self.places.append((low, begin, stop, high))
            last += text_size(turn.suffix)

    def place(self, turn: int) -> tuple[int, ...]:
        """Start and end of a turn, and of its text in it."""
        return self.places[turn] if turn < len(self.places) else self.all


def _runs(events: list[DialogueLine], split: Split) -> Iterator[list[tuple[int, int]]]:
    """Numbers of events and of their turns, those together that go on in the next event."""
    for _, numbers in groupby(range(len(events)), lambda number: events[number].group):
        first, *_ = own = list(numbers)
        turns, times = [events[number].turns for number in own], [events[number].times for number in own]
        yield from ([(first + number, turn) for number, turn in run] for run in turn_runs(turns, times, split))


def _milliseconds(time: str) -> int:
    hours, minutes, seconds = [*re.findall(r"\d+(?:\.\d+)?", time), 0, 0, 0][:3]
    return round(1000 * (float(hours) * 3600 + float(minutes) * 60 + float(seconds)))


def _events(script: TextPositions) -> Iterator[DialogueLine]:
    """The dialogue lines. DataError: no Format line, or a line with fewer fields."""
    section, fields = "", list[str]()
    for match in LINE.finditer(script.text):
        line = match[0]
        heading = SECTION.match(line)
        kind, colon, values = line.partition(":")
        kind = kind.strip().lower()
        if heading:
            section, fields = heading[1].strip().lower(), []
        elif section == "events" and colon and kind == "format":
            fields = [field.strip().lower() for field in values.split(",")]
            if fields[-1] != "text":
                raise DataError(f"line {script.line(match.start())}: expected Text as the last field; move it there")
        elif section == "events" and colon and kind == "dialogue":
            parts = values.split(",", len(fields) - 1) if fields else []
            if not fields or len(parts) < len(fields):
                wanted = f"{len(fields)} fields as the Format line has" if fields else "a Format line before it"
                raise DataError(f"line {script.line(match.start())}: expected {wanted}, got {line[:60]!r}; repair it")
            yield DialogueLine(script.text, match.end() - len(parts[-1]), match.end(), dict(zip(fields, parts)))


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
