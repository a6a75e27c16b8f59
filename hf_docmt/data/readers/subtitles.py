"""Subtitles, SubRip (srt) and WebVTT (vtt): each file one document, its cues joined to sentences.

The translation of a sentence is spread over its cues; times and number of cues stay.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import escape, unescape
from itertools import accumulate, takewhile
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.lines import source_files
from hf_docmt.data.readers.reader import Reader
from hf_docmt.data.readers.running_text import clean_sentences, join_sentences, sentence_splitter
from hf_docmt.files import DataError, display_path, location_of, read_lines
from hf_docmt.messages import counted
from hf_docmt.modeling.text_splitting import FULL_WIDTH_ENDS

MAX_GAP, MAX_CUES = 3000, 6  # milliseconds between cues of one sentence, and how many it may go over
OVERRIDE = r"\{\\[^{}]*\}"  # {\an8}
TAG = r"</?[a-zA-Z][^<>]*>|<\d[\d:.]*>"
MARKUP = re.compile(f"{OVERRIDE}|{TAG}")
LEADING = re.compile(rf"(?:{OVERRIDE}|\s)*")
OPENING = re.compile(r"<([a-zA-Z][^\s.<>/]*)[^<>]*>")
DASH = re.compile(r"[-–—‐](?:\s+|(?=[^\s\d–—‐-]))")
DESCRIPTION = re.compile(r"([\[(])([^\[\]()]*)([\])])")
MUSIC = re.compile(r"((?:[♪♫]\s*)+|#\s+)?(.*?)((?:\s*[♪♫])+|\s+#)?", re.DOTALL)
ELLIPSIS = re.compile(r"(?:\.\.\.|…)\s*(?=\w)")  # a sentence that goes on
LABEL = re.compile(r"(?:\[[^\[\]<>]*\]:?|\([^()<>]*\):?|[^\s<>:.!?([][^<>:.!?]{0,30}:)(?:\s|\\N)*")  # who speaks
STOP = re.compile(r"[.!?…,。！？]+[\"'”’»)]*$")
INNER = re.compile(r"([^<>]*)(<([a-zA-Z][^\s.<>/]*)[^<>]*>)([^<>]*)(</\3>)([^<>]*)")  # one tag around a part of a text
CLOSERS = "\"'”’»)]}"
ENDS = ".!?…。！？‥؟।"
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uf900-\ufaff]")  # scripts without blanks
ABBREVIATION = re.compile(r"(?:^|\s)\w{1,4}\.$")

Pieces = list[list[int]]  # of a turn: [number of a sentence, its characters there]


@dataclass
class Turn:
    """One turn of a cue: its text, and the markup around it; `inner` tags are after a label or before the stop."""

    prefix: str
    text: str
    suffix: str
    lines: int
    is_turn: bool  # it begins with a dash
    is_speech: bool  # no description in brackets, no music
    inner: dict

    def layout(self) -> dict:
        return {"prefix": self.prefix, "suffix": self.suffix, "lines": self.lines, "inner": self.inner}


def cue_turns(lines: list[str]) -> list[Turn]:
    """The turns of a cue, given as its lines; a line that begins with a dash begins a turn."""
    prefix, lines, suffix = _unwrapped(lines)
    groups: list[list[str]] = []
    for line in lines:
        if not groups or DASH.match(MARKUP.sub("", line).strip()):
            groups.append([])
        groups[-1].append(line)
    turns = [_turn(group) for group in groups]
    if turns:
        turns[0].prefix = prefix + turns[0].prefix
        turns[-1].suffix += suffix
    elif prefix or suffix:
        turns = [Turn(prefix, "", suffix, 1, False, False, _inner_tags(""))]
    return turns


def cue_sentences(
    cues: list[list[Turn]], times: list[tuple[int, int]], split: Callable[[str], Iterable[str]]
) -> tuple[list[str], list[list[Pieces]]]:
    """The sentences of all cues, and the pieces of each turn of each cue; without text one empty sentence."""
    sentences: list[str] = []
    pieces: list[list[Pieces]] = [[[] for _ in turns] for turns in cues]
    for run in turn_runs(cues, times, split):
        texts = [" ".join(cues[cue][turn].text.split()) for cue, turn in run]
        run_sentences = clean_sentences(split(" ".join(texts)))
        if sum(map(text_size, run_sentences)) != sum(map(text_size, texts)):  # a splitter that changes the text
            run_sentences = [" ".join(texts)]
        rest = [text_size(sentence) for sentence in run_sentences]
        current = 0
        for (cue, turn), text in zip(run, texts):
            size = text_size(text)
            while size:
                taken = min(size, rest[current])
                pieces[cue][turn].append([len(sentences) + current, taken])
                size, rest[current] = size - taken, rest[current] - taken
                current += not rest[current]
        sentences += run_sentences
    return sentences or [""], pieces


def text_size(text: str) -> int:
    """The number of characters that are not white space."""
    return sum(map(len, text.split()))


def turn_runs(
    cues: list[list[Turn]], times: list[tuple[int, int]], split: Callable[[str], Iterable[str]]
) -> Iterable[list[tuple[int, int]]]:
    """(cue, turn) of the turns with text, those together that go on in the next cue."""
    run: list[tuple[int, int]] = []
    for cue, turns in enumerate(cues):
        for number, turn in enumerate(turns):
            if not turn.text:
                continue
            if run:
                last_cue, last_number = run[-1]
                last = cues[last_cue][last_number]
                next_to_it = last_cue == cue - 1 and number == 0 and last_number == len(cues[last_cue]) - 1
                near = times[cue][0] - times[last_cue][1] <= MAX_GAP and len(run) < MAX_CUES
                if not (next_to_it and near and _goes_on(last, turn, split)):
                    yield run
                    run = []
            run.append((cue, number))
    if run:
        yield run


def _goes_on(turn: Turn, following: Turn, split: Callable[[str], Iterable[str]]) -> bool:
    """Whether the sentence at the end of a turn goes on in the following one."""
    if following.is_turn or not (turn.is_speech and following.is_speech):
        return False
    end, start = turn.text.rstrip(CLOSERS + " "), following.text.lstrip(CLOSERS + " ")
    if end.endswith(("...", "…", "--", "—", "–")):
        return start.startswith(("--", "—", "–")) or start[:1].islower()
    if ABBREVIATION.search(end):  # such as Mr.
        first = next(iter(clean_sentences(split(f"{turn.text.split()[-1]} {following.text}"))), "")
        return len(first) > len(turn.text.split()[-1])
    return not end.endswith(tuple(ENDS))


def _turn(lines: list[str]) -> Turn:
    """A turn of its lines, without dash, markup, music signs and the brackets of a description."""
    before = DASH.match(lines[0])  # in front of the markup or after it
    lines = [lines[0][before.end() :], *lines[1:]] if before else lines
    prefix, lines, suffix = _unwrapped(lines)
    text = " ".join(MARKUP.sub("", line).strip() for line in lines).strip()
    inner = _inner_tags(" ".join(lines))
    dash = before or DASH.match(text)
    if before:
        prefix = before[0] + prefix
    elif dash:
        prefix, text = prefix + dash[0], text[dash.end() :]
    if ellipsis := ELLIPSIS.match(text):
        prefix, text = prefix + ellipsis[0], text[ellipsis.end() :]
    is_speech = True
    if description := DESCRIPTION.fullmatch(text):
        prefix, text, suffix, is_speech = (
            prefix + description[1],
            description[2].strip(),
            description[3] + suffix,
            False,
        )
    elif text[:1] in "♪♫#" or text[-1:] in "♪♫":
        sign, text, end = MUSIC.fullmatch(text).groups()  # type: ignore[union-attr]  # matches any text
        prefix, suffix, is_speech = prefix + (sign or ""), (end or "") + suffix, False
    return Turn(prefix, text, suffix, max(len(lines), 1), dash is not None, is_speech, inner)


def _inner_tags(text: str) -> dict:
    """The one tag around all text except a label before it and a stop after it, and its closing tag."""
    tags = INNER.fullmatch(re.sub(r"</([a-zA-Z]+)>(\s*)<\1>", r"\2", text))  # those of several lines as one
    label, opening, _, _, closing, stop = tags.groups() if tags else [""] * 6
    if not (_is(LABEL, label) and _is(STOP, stop)):
        opening = closing = ""
    return {"opening": opening, "closing": closing, "label": bool(label.strip()), "stop": bool(stop.strip())}


def _is(pattern: re.Pattern, text: str) -> bool:
    return not text.strip() or pattern.fullmatch(text.lstrip()) is not None


def _unwrapped(lines: list[str]) -> tuple[str, list[str], str]:
    """Markup in front of all text, the lines without it, and the tags that close it after all text."""
    if not lines:
        return "", [], ""
    lead = LEADING.match(lines[0])[0]  # type: ignore[index]  # matches any text
    prefix, suffix = "".join(re.findall(OVERRIDE, lead)), ""
    lines = [lines[0][len(lead) :].strip(), *(line.strip() for line in lines[1:])]
    while opening := OPENING.match(lines[0]):
        closing = f"</{opening[1]}>"
        same = re.compile(rf"</?{re.escape(opening[1])}\b[^<>]*>")
        text = "\n".join(lines)
        count = len(same.findall(text))
        each_line = all(line.startswith(opening[0]) and line.endswith(closing) for line in lines)
        whole = text.endswith(closing) and count == 2 or opening[1] == "v" and count == 1
        if not whole and not (each_line and count == 2 * len(lines)):
            break
        prefix, suffix = prefix + opening[0], closing * text.endswith(closing) + suffix
        lines = [same.sub("", line).strip() for line in lines]
    return prefix, [line for line in lines if line], suffix


ARROW = "-->"
SHORTEST, SLOWEST = 10, 5  # characters that a line and a second may be limited to
LONGEST = 100 * 3600 * 1000  # milliseconds that the formats can write
WEBVTT = re.compile(r"WEBVTT(\s|$)")
LINE_LENGTH = 42  # characters of a line, as subtitles are commonly set
STAMPS = {  # of SubRip and WebVTT
    "srt": re.compile(r"(?<![\d:])(\d{1,3}):(\d\d?):(\d\d?)[.,](\d{1,3})"),
    "vtt": re.compile(r"(?<![\d:])(?:(\d{1,4}):)?(\d\d):(\d\d)\.(\d{2,3})"),
}
DRAWING = re.compile(r"\{[^{}]*\\p[1-9]")
INLINE_TIME = re.compile(r"<\d[\d:.]*>")  # when the words after it appear


class SubtitlesReader(Reader):
    r"""A sentence may go over several cues, and a cue may have several; a dialogue dash begins a sentence.

    Markup around a whole cue or turn (`<i>`, `{\an8}`, `<v Mary>`), dashes, music signs and the brackets of
    descriptions are not part of sentences and are put back around the translation; other tags are dropped. The column
    `subtitles` has the data for that: times, and the sentences of each cue. In WebVTT, the text
    before the first cue, the names and the settings of cues are kept, comments between cues are not. `max_line` are
    the maximum characters per line of the translation (42), `max_speed` those per second; faster cues are reported.
    With `bilingual` a cue has its source above its translation.
    """

    name = "subtitles"
    output_format = "subtitles"
    endings = (".srt", ".vtt")
    first_bytes = re.compile(rb"WEBVTT(\s|$)|\s*+(\d+[^\S\n]*+\n\s*+)?\d+:\d\d:\d\d[,.]\d+ *--> *\d+:\d\d:\d\d[,.]\d+")

    def read(
        self,
        languages: list[str],
        path: str | Path,
        max_line: str | None = None,
        max_speed: str | None = None,
        bilingual: str | None = None,
    ) -> Iterator[tuple[str, dict]]:
        limits = {"max_line": max_line, "max_speed": max_speed}
        for (name, value), (unit, least) in zip(limits.items(), (("line", SHORTEST), ("second", SLOWEST))):
            if value is not None and not (value.isdecimal() and int(value) >= least):
                raise DataError(f"{name} is {value!r}, expected characters of a {unit}, {least} at least")
        ((doc_id, path),) = source_files(languages, path, self.name)
        split = sentence_splitter(languages[0])
        lines = [line for _, line in read_lines(path, keep_mark=True)]
        mark = "\ufeff" if lines[0].startswith("\ufeff") else ""
        lines[0] = lines[0].removeprefix(mark)
        format = "vtt" if WEBVTT.match(lines[0]) else "srt"
        if format == "vtt":
            lines = [line if ARROW in line else INLINE_TIME.sub("", line) for line in lines]
        timings = _timings(path, lines, format)
        ends = [*timings, len(lines) + 1][1:]
        cues = [_cue(path, number, end, lines, timings[number], format) for number, end in zip(timings, ends)]
        if format == "vtt":
            cues.sort(key=lambda cue: cue["start"])  # as the format wants them
        turns = [cue["parts"] for cue in cues]
        sentences, pieces = cue_sentences(turns, [(cue["start"], cue["end"]) for cue in cues], split)
        for cue, cue_pieces in zip(cues, pieces):
            cue["parts"] = [turn.layout() | {"pieces": piece} for turn, piece in zip(cue["parts"], cue_pieces)]
        header = _header(lines, next(iter(timings))) if format == "vtt" else ""
        column: dict = {"format": format, "header": mark + header, "cues": cues}
        column |= {name: int(value) for name, value in limits.items() if value is not None}
        column |= {"bilingual": True} if bilingual else {}
        location = display_path(path)
        yield location, make_row(location, doc_id, sentences, None, languages, subtitles=column)

    def render(self, document: dict, result: dict) -> str:
        """The file of subtitles again, with each sentence replaced by its translation.

        A sentence over several cues is cut between words, by its length in each of them. A cue
        keeps its number of lines, or gets more if they would be longer than the `max_line` of the document, or 42
        characters. Cues of SubRip are numbered from 1, those of WebVTT have the names that they had; both keep the text
        after the times.
        """
        layout = document["subtitles"]
        is_vtt, length = layout["format"] == "vtt", layout.get("max_line", LINE_LENGTH)
        blocks = []
        sides = [result["source"], result["translation"]] if "bilingual" in layout else [result["translation"]]
        for number, (cue, *texts) in enumerate(
            zip(layout["cues"], *(_part_texts(layout["cues"], side) for side in sides)), 1
        ):
            lines = [_with_markup(*each, is_vtt, length) for parts in texts for each in zip(cue["parts"], parts)]
            text = r"\N".join(filter(None, lines)).replace(r"\h", " ").replace(r"\n", "\n").replace(r"\N", "\n")
            name = cue.get("name") if is_vtt else number  # not in rows that were read by version 0.2
            times = f" {ARROW} ".join(_stamp(cue[end], "." if is_vtt else ",") for end in ("start", "end"))
            head = (f"{name}\n" if name else "") + f"{times} {cue['settings']}".rstrip()
            text = re.sub("\n+", "\n", text.strip())
            blocks.append(f"{head}\n{text}\n\n")
        return layout["header"] + "\n\n" * is_vtt + "".join(blocks)


def _timings(path: str | Path, lines: list[str], format: str) -> dict[int, list[int]]:
    """Start and end of each cue, in milliseconds, by the index of their line; DataError: broken ones, text before."""
    timings: dict[int, list[int]] = {}
    for number, line in enumerate(lines):
        stamps = STAMPS[format].findall(line)
        if (len(stamps) == 2) != (ARROW in line):
            point = "." if format == "vtt" else ","
            raise DataError(
                f"{location_of(path, number + 1)}: {line.strip()[:60]!r} is not a line of two times, such as "
                f"'00:00:01{point}000 --> 00:00:02{point}000'; repair it"
            )
        if ARROW in line:
            seconds = [(int(h or 0) * 60 + int(m)) * 60 + int(s) for h, m, s, _ in stamps]
            timings[number] = [1000 * whole + int(part[-1].ljust(3, "0")) for whole, part in zip(seconds, stamps)]
        elif not timings and format == "srt" and line.strip() and not line.strip().isdecimal():
            raise DataError(f"{location_of(path, number + 1)}: text before the first cue, {line.strip()[:40]!r}")
    if not timings:
        raise DataError(f"{display_path(path)}: no cues, no line of times with {ARROW!r}; is it of another format?")
    return timings


def _stamp(milliseconds: int, point: str) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{point}{rest:03}"


def _cue(path: str | Path, number: int, end: int, lines: list[str], times: list[int], format: str) -> dict:
    """The cue with its times in this line, up to the line of times at `end`."""
    location, is_vtt = location_of(path, number + 1), format == "vtt"
    if max(times) >= LONGEST:
        raise DataError(f"{location}: a time of 100 hours or more, which the format cannot write; repair it")
    own = lines[number + 1 : end]
    if end < len(lines) and len(own) > 1 and own[-1].strip().isdecimal():  # the number of the next cue
        own.pop()
    own = list(takewhile(str.strip, own)) if is_vtt else [line for line in own if line.strip()]
    if DRAWING.search("\n".join(own)):
        raise DataError(f"{location}: a cue that is a drawing, {own[0][:40]!r}; remove it")
    turns = cue_turns([part for line in own for part in line.split(r"\N") if part.strip()])
    if is_vtt:
        for turn in turns:
            turn.text = unescape(turn.text)
    settings = lines[number].split(ARROW)[1].split(maxsplit=1)[1:]  # of SubRip coordinates
    has_name = is_vtt and number > 1 and not lines[number - 2].strip()  # a separate line above the times
    name = lines[number - 1].strip() if has_name else ""
    start, stop = times
    return {"start": start, "end": stop, "name": name, "settings": "".join(settings).strip(), "parts": turns}


def _header(lines: list[str], first: int) -> str:
    """The lines before the first cue of WebVTT, without the cue's name."""
    before = lines[:first]
    while before and before[-1].strip():
        before.pop()
    return "\n".join(before).rstrip("\n") if before else lines[0]


def reading_speed(document: dict, result: dict) -> str | None:
    """A line about cues with more characters per second than the `max_speed` of the document; None without any."""
    layout = document.get("subtitles") or {}
    if "max_speed" not in layout:
        return None
    fast = []
    for cue, parts in zip(layout["cues"], _part_texts(layout["cues"], result["translation"])):
        size, seconds = len(" ".join(filter(None, parts))), max(cue["end"] - cue["start"], 1) / 1000
        if size / seconds > layout["max_speed"]:
            fast.append((size / seconds, cue["start"] / 1000))
    if not fast:
        return None
    speed, start = max(fast)
    clock = f"{start // 3600:.0f}:{start // 60 % 60:02.0f}:{start % 60:06.3f}"
    return (
        f"{document['doc_id']}: {len(fast)} of {counted(len(layout['cues']), 'cue')} with more than "
        f"{layout['max_speed']} characters per second; the fastest has {speed:.0f}, at {clock}"
    )


def distribute(text: str, sizes: list[int]) -> list[str]:
    """A text in pieces, cut between words so that their lengths are as these sizes; some may be empty.

    A text of fewer words than pieces in a script without blanks (Chinese, for example) is cut between characters.

    >>> distribute("Ich glaube, dass er morgen kommt.", [10, 22])
    ['Ich glaube,', 'dass er morgen kommt.']
    """
    units = text.split()
    glue = " "
    if len(units) < len(sizes) < len(text) and UNSPACED.search(text):
        units, glue = _characters(text), ""
    lengths = list(accumulate(len(unit) for unit in units))
    total, pieces, begin = sum(sizes), [], 0
    for share in accumulate(sizes):
        wanted = lengths[-1] * share / total if units and total else 0
        end = len(units) if share == total else begin
        while end < len(units) and abs(lengths[end] - wanted) <= abs((lengths[end - 1] if end else 0) - wanted):
            end += 1
        pieces.append(glue.join(units[begin:end]))
        begin = end
    return pieces


def _characters(text: str) -> list[str]:
    """The characters, punctuation joined to the character before it."""
    return re.findall(rf".[{re.escape(FULL_WIDTH_ENDS)},.!?…;:\s]*", text, re.DOTALL)


def _part_texts(cues: list[dict], translation: list[str]) -> list[list[str]]:
    """The text of each part of each cue."""
    sizes: list[list[int]] = [[] for _ in translation]
    for cue in cues:
        for part in cue["parts"]:
            for sentence, size in part["pieces"]:
                sizes[sentence].append(size)
    spread = [iter(distribute(text, own)) for text, own in zip(translation, sizes)]
    return [
        [join_sentences(next(spread[sentence]) for sentence, _ in part["pieces"]) for part in cue["parts"]]
        for cue in cues
    ]


def _with_markup(part: dict, text: str, is_vtt: bool, length: int) -> str:
    text = re.sub(r"\\(?=[Nnh])", "/", text)  # the formats would read these as line ends, times and drawings
    text = text.replace("-->", "->").replace("{\\", "{")
    text = escape(text, quote=False) if is_vtt else text
    return part["prefix"] + _with_inner_tags(part, _in_lines(text, part["lines"], length)) + part["suffix"]


def _with_inner_tags(part: dict, text: str) -> str:
    """The text with the tags after its label and before its stop, if it has them."""
    tags = part.get("inner")
    if not tags or not tags["opening"] or not text:
        return text
    label, stop = LABEL.match(text) if tags["label"] else None, STOP.search(text) if tags["stop"] else None
    start, end = label.end() if label else 0, stop.start() if stop else len(text)
    return text[:start] + tags["opening"] + text[start:end] + tags["closing"] + text[end:]


def _in_lines(text: str, lines: int, length: int) -> str:
    """A text in this number of lines, or more until each fits into the width, if its words allow it."""
    words = text.split()
    if len(words) < 2:
        return text
    length = max(length, *map(len, words))
    parts = [text]
    for count in range(max(lines, -(-len(text) // length)), len(words) + 1):
        parts = list(filter(None, distribute(text, [1] * count)))
        if max(map(len, parts)) <= length:
            break
    return r"\N".join(parts)
