"""Subtitles to be translated, SubRip (srt) and WebVTT (vtt): each file one document, its cues joined to sentences."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.lines import source_files
from hf_docmt.data.readers.reader import Reader
from hf_docmt.data.readers.running_text import sentence_splitter
from hf_docmt.data.readers.subtitle_sentences import Turn, cue_sentences, cue_turns
from hf_docmt.files import DataError, display_path, location_of, read_lines
from hf_docmt.messages import install_command

ARROW = "-->"
SHORTEST, SLOWEST = 10, 5  # characters that a line and a second may be limited to
LONGEST = 100 * 3600 * 1000  # milliseconds that the formats can write
WEBVTT = re.compile(r"WEBVTT(\s|$)")
COUNTER = "1"  # in front of the times of a cue that has none: pysubs2 takes digits there for one
LAST_CUE = ["", COUNTER, "00:00:00.000 --> 00:00:00.000", ""]
MOST_BRACES = 100  # of a cue: pysubs2 takes time by their square
INLINE_TIME = re.compile(r"<\d[\d:.]*>")  # when the words behind it appear


class SubtitlesReader(Reader):
    r"""A sentence may go over several cues, and a cue may have several; a dialogue dash begins a sentence.

    Markup around a whole cue or turn (`<i>`, `{\an8}`, `<v Mary>`), dashes, music signs and the brackets of
    descriptions are no part of sentences and are put back around the translation; other tags are left out. The column
    `subtitles` has what is needed for that: times, and which sentences stand in which cue. Of WebVTT, what stands in
    front of the first cue, the names and the settings of cues are kept, comments between cues are not. `max_line` are
    the characters of a line of the translation (42), `max_speed` those of a second, above which cues are told.
    """

    name = "subtitles"
    output_format = "subtitles"
    endings = (".srt", ".vtt")
    first_bytes = re.compile(rb"WEBVTT(\s|$)|\s*+(\d+[^\S\n]*+\n\s*+)?\d+:\d\d:\d\d[,.]\d+ *--> *\d+:\d\d:\d\d[,.]\d+")

    def read(
        self, languages: list[str], path: str | Path, max_line: str | None = None, max_speed: str | None = None
    ) -> Iterator[tuple[str, dict]]:
        limits = {"max_line": max_line, "max_speed": max_speed}
        for (name, value), (unit, least) in zip(limits.items(), (("line", SHORTEST), ("second", SLOWEST))):
            if value is not None and not (value.isdecimal() and int(value) >= least):
                raise DataError(f"{name} is {value!r}, expected characters of a {unit}, {least} at least")
        ((doc_id, path),) = source_files(languages, path, self.name)
        try:
            import pysubs2
        except ImportError as error:
            raise DataError(f"subtitles need pysubs2: {install_command('subtitles')}") from error
        split = sentence_splitter(languages[0])
        lines = [line for _, line in read_lines(path, keep_mark=True)]
        mark = "\ufeff" if lines[0].startswith("\ufeff") else ""
        lines[0] = lines[0].removeprefix(mark)
        is_vtt = WEBVTT.match(lines[0]) is not None
        if is_vtt:
            lines = [line if ARROW in line else INLINE_TIME.sub("", line) for line in lines]
        timings = _timing_lines(path, lines, is_vtt)
        text = "\n".join(_with_counters(lines, timings) + LAST_CUE)
        events = pysubs2.SSAFile.from_string(text, format_="vtt" if is_vtt else "srt", keep_html_tags=True)[:-1]
        if len(events) != len(timings):
            raise DataError(f"{display_path(path)}: {len(timings)} lines of times but {len(events)} cues; repair them")
        cues = [_cue(path, number, lines, event, is_vtt) for number, event in zip(timings, events)]
        if is_vtt:
            cues.sort(key=lambda cue: cue["start"])  # as the format wants them
        turns = [cue["parts"] for cue in cues]
        sentences, pieces = cue_sentences(turns, [(cue["start"], cue["end"]) for cue in cues], split)
        for cue, cue_pieces in zip(cues, pieces):
            cue["parts"] = [turn.layout() | {"pieces": piece} for turn, piece in zip(cue["parts"], cue_pieces)]
        header = _header(lines, timings[0]) if is_vtt else ""
        column: dict = {"format": "vtt" if is_vtt else "srt", "header": mark + header, "cues": cues}
        column |= {name: int(value) for name, value in limits.items() if value is not None}
        location = display_path(path)
        yield location, make_row(location, doc_id, sentences, None, languages, subtitles=column)


def _timing_lines(path: str | Path, lines: list[str], is_vtt: bool) -> list[int]:
    """Indices of the lines with the times of a cue; DataError for those that are broken, and for text before them."""
    from pysubs2.formats.subrip import SubripFormat
    from pysubs2.formats.webvtt import WebVTTFormat

    format = WebVTTFormat if is_vtt else SubripFormat
    timings: list[int] = []
    for number, line in enumerate(lines):
        stamps = format.TIMESTAMP.findall(line)
        is_timing = len(stamps) == 2
        if (
            is_timing != (ARROW in line) or is_timing and any(stamp[0] == ":" for stamp in stamps)
        ):  # hours without digits
            raise DataError(
                f"{location_of(path, number + 1)}: {line.strip()[:60]!r} is no line of two times, such as "
                f"'00:00:01{'.' if is_vtt else ','}000 --> 00:00:02{'.' if is_vtt else ','}000'; repair it"
            )
        if is_timing:
            timings.append(number)
        elif not timings and not is_vtt and line.strip() and not line.strip().isdecimal():
            raise DataError(f"{location_of(path, number + 1)}: text before the first cue, {line.strip()[:40]!r}")
    if not timings:
        raise DataError(f"{display_path(path)}: no cues, no line of times with {ARROW!r}; is it of another format?")
    return timings


def _cue(path: str | Path, number: int, lines: list[str], event, is_vtt: bool) -> dict:
    location = location_of(path, number + 1)
    if max(event.start, event.end) >= LONGEST:
        raise DataError(f"{location}: a time of 100 hours or more, which the format cannot write; repair it")
    if (braces := event.text.count("{")) > MOST_BRACES:
        raise DataError(
            f"{location}: a cue with {braces} braces, {MOST_BRACES} at most can be override tags; repair it"
        )
    if event.is_drawing:
        raise DataError(f"{location}: a cue that is a drawing, {event.text[:40]!r}; take it out")
    text = re.split(r"(?:\\N\s*){2}", event.text, maxsplit=1)[0] if is_vtt else event.text  # a blank line ends a cue
    turns: list[Turn] = cue_turns([line for line in text.split(r"\N") if line.strip()])
    if is_vtt:
        for turn in turns:
            turn.text = unescape(turn.text)
    settings = lines[number].split(ARROW)[1].split(maxsplit=1)[1:]  # of SubRip coordinates
    has_name = is_vtt and number > 1 and not lines[number - 2].strip()  # a line by itself above the times
    name = lines[number - 1].strip() if has_name else ""
    return {"start": event.start, "end": event.end, "name": name, "settings": "".join(settings).strip(), "parts": turns}


def _header(lines: list[str], first: int) -> str:
    """What stands in front of the first cue of WebVTT, without the cue's name."""
    before = lines[:first]
    while before and before[-1].strip():
        before.pop()
    return "\n".join(before).rstrip("\n") if before else lines[0]


def _with_counters(lines: list[str], timings: list[int]) -> list[str]:
    """The lines with a counter in front of the times that follow on a blank line, and without repeated blank lines."""
    kept, times, before = [], set(timings), ""
    for number, line in enumerate(lines):
        if number in times and not before.strip():
            kept.append(COUNTER)
        if line.strip() or before.strip():
            kept.append(line)
        before = line
    return kept
