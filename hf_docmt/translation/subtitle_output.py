"""Translated subtitles: the translation of a sentence is spread over its cues; times and number of cues stay."""

import re
from html import escape
from itertools import accumulate

from hf_docmt.data.readers.running_text import join_sentences
from hf_docmt.data.readers.subtitle_sentences import LABEL, STOP
from hf_docmt.messages import counted
from hf_docmt.modeling.text_splitting import FULL_WIDTH_ENDS

LINE_LENGTH = 42  # characters of a line, as subtitles are commonly set
NUMBER_AND_TIMES = re.compile(r"^(\d+)\n(\S+ --> \S+)$", re.MULTILINE)  # of a cue, as pysubs2 writes it


def subtitle_text(document: dict, result: dict) -> str:
    """The file of subtitles again, with the translation of each sentence in place of its text.

    A sentence that goes over several cues is cut between words, by the length that it has in each of them. A cue has as
    many lines as it had, or more where they would be longer than the `max_line` of the document, or 42 characters. Cues
    of SubRip are numbered from 1, those of WebVTT have the names that they had; both keep what stands behind the times.
    """
    import pysubs2

    layout = document["subtitles"]
    is_vtt, length = layout["format"] == "vtt", layout.get("max_line", LINE_LENGTH)
    texts = _part_texts(layout["cues"], result["translation"])
    subtitles = pysubs2.SSAFile()
    for cue, parts in zip(layout["cues"], texts):
        lines = [_with_markup(part, text, is_vtt, length) for part, text in zip(cue["parts"], parts)]
        subtitles.append(pysubs2.SSAEvent(start=cue["start"], end=cue["end"], text=r"\N".join(filter(None, lines))))
    text, cues = subtitles.to_string(layout["format"], keep_ssa_tags=True), iter(layout["cues"])
    text = NUMBER_AND_TIMES.sub(lambda match: _cue_head(next(cues), "" if is_vtt else match[1], match[2]), text)
    return layout["header"] + text.removeprefix("WEBVTT")


def reading_speed(document: dict, result: dict) -> str | None:
    """A line about the cues that have more characters a second than the `max_speed` of the document; None: none has."""
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
        f"{layout['max_speed']} characters a second; the fastest, {speed:.0f} a second, is at {clock}"
    )


def _cue_head(cue: dict, number: str, times: str) -> str:
    """The number of a cue, or its name of WebVTT, if it has one, its times and settings."""
    name = number or cue.get("name")  # not in rows that were read by version 0.2
    return (f"{name}\n" if name else "") + f"{times} {cue['settings']}".rstrip()


def distribute(text: str, sizes: list[int]) -> list[str]:
    """A text in pieces, cut between words so that their lengths are as these sizes; some may be empty.

    A text of fewer words than pieces, and longer than they are (Chinese, for example), is cut between characters.

    >>> distribute("Ich glaube, dass er morgen kommt.", [10, 22])
    ['Ich glaube,', 'dass er morgen kommt.']
    """
    units = text.split()
    glue = " "
    if len(units) < len(sizes) < len(text):
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
    """The characters, punctuation together with what stands before it."""
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
    text = re.sub(r"\\(?=[Nnh])", "/", text)  # what the formats would read as line ends, times and drawings
    text = text.replace("-->", "->").replace("{\\", "{")
    text = escape(text, quote=False) if is_vtt else text
    return part["prefix"] + _with_inner_tags(part, _in_lines(text, part["lines"], length)) + part["suffix"]


def _with_inner_tags(part: dict, text: str) -> str:
    """The text with the tags that stand behind its label and before its stop, where it has them."""
    tags = part.get("inner")
    if not tags or not tags["opening"] or not text:
        return text
    label, stop = LABEL.match(text) if tags["label"] else None, STOP.search(text) if tags["stop"] else None
    start, end = label.end() if label else 0, stop.start() if stop else len(text)
    return text[:start] + tags["opening"] + text[start:end] + tags["closing"] + text[end:]


def _in_lines(text: str, lines: int, length: int) -> str:
    """A text in so many lines, or more until none is longer than that, if its words allow it."""
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
