"""The cues of subtitles as sentences: what of a cue is text, which cues go on in the next one, what stands where."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hf_docmt.data.readers.running_text import clean_sentences

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
ABBREVIATION = re.compile(r"(?:^|\s)\w{1,4}\.$")

Pieces = list[list[int]]  # of a turn: [number of a sentence, its characters there]


@dataclass
class Turn:
    """One turn of a cue: its text, and what stands around it; `inner` tags stand behind a label or before the stop."""

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
    for run in _runs(cues, times, split):
        texts = [" ".join(cues[cue][turn].text.split()) for cue, turn in run]
        run_sentences = clean_sentences(split(" ".join(texts)))
        if sum(map(_size, run_sentences)) != sum(map(_size, texts)):  # a splitter that changes the text
            run_sentences = [" ".join(texts)]
        rest = [_size(sentence) for sentence in run_sentences]
        current = 0
        for (cue, turn), text in zip(run, texts):
            size = _size(text)
            while size:
                taken = min(size, rest[current])
                pieces[cue][turn].append([len(sentences) + current, taken])
                size, rest[current] = size - taken, rest[current] - taken
                current += not rest[current]
        sentences += run_sentences
    return sentences or [""], pieces


def _size(text: str) -> int:
    """Characters that are no white space."""
    return sum(map(len, text.split()))


def _runs(
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
    before = DASH.match(lines[0])  # in front of the markup or behind it
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
    """The one tag around all text but for a label in front of it and a stop behind it, and what closes it."""
    tags = INNER.fullmatch(re.sub(r"</([a-zA-Z]+)>(\s*)<\1>", r"\2", text))  # those of several lines as one
    label, opening, _, _, closing, stop = tags.groups() if tags else [""] * 6
    if not (_is(LABEL, label) and _is(STOP, stop)):
        opening = closing = ""
    return {"opening": opening, "closing": closing, "label": bool(label.strip()), "stop": bool(stop.strip())}


def _is(pattern: re.Pattern, text: str) -> bool:
    return not text.strip() or pattern.fullmatch(text.lstrip()) is not None


def _unwrapped(lines: list[str]) -> tuple[str, list[str], str]:
    """Markup in front of all text, the lines without it, and the tags that close it behind all text."""
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
