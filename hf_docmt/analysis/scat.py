"""SCAT (Yin et al. 2021): ambiguous pronouns and the supporting context words that annotators marked."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from hf_docmt.files import DataError, read_lines

Span = tuple[int, int]

_TAG = re.compile(r"(<p>|</p>|<hon>|</?hoff>)")
_NO_BLANK_AFTER = re.compile(r"(?:['’`(\[{«]|\w-)$")  # ends of texts that no blank follows
_NO_BLANK_BEFORE = re.compile(r"[.,;:!?…)\]}»'’`]|-\w")


@dataclass(frozen=True)
class MarkedText:
    """A text without its tags, and (start, end) characters of marked supporting words and of marked pronouns."""

    text: str
    rationale: tuple[Span, ...] = ()
    pronouns: tuple[Span, ...] = ()
    inside_words: int = 0  # ignored pronoun tags inside words, such as `w<p>it</p>h`


@dataclass(frozen=True)
class ScatExample:
    """A sentence pair and its past context; each context is one text, without sentence borders."""

    example_id: str
    source_context: MarkedText
    source: MarkedText
    target_context: MarkedText
    target: MarkedText


@dataclass(frozen=True)
class Scat:
    """The examples, the number of lines, and the skipped texts as (line, file, reason)."""

    examples: tuple[ScatExample, ...]
    lines: int
    skipped: tuple[tuple[int, str, str], ...]

    @property
    def reasons(self) -> dict[str, int]:
        """Number of skipped lines by reason, the first one of each line."""
        return dict(Counter({line: reason for line, _, reason in reversed(self.skipped)}.values()).most_common())


def read_scat(folder: str | Path, split: str = "train", source_lang: str = "en", target_lang: str = "fr") -> Scat:
    """Examples of the line-parallel files `highlighted.SPLIT.LANG` and `highlighted.SPLIT.context.LANG` of a folder.

    A line is skipped, and listed, if the tags of one of its four texts cannot be read, see `parse_marked_text`.
    DataError: a file that is missing or not UTF-8, files of different numbers of lines.
    """
    names = [f"highlighted.{split}.{part}{lang}" for lang in (source_lang, target_lang) for part in ("context.", "")]
    texts = {name: [line for _, line in read_lines(Path(folder) / name)] for name in names}
    counts = {name: len(lines) for name, lines in texts.items()}
    if len(set(counts.values())) > 1:
        sizes = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise DataError(f"{folder}: files of different numbers of lines: {sizes}; one may be cut short, fetch it again")
    examples, skipped = [], []
    for number, row in enumerate(zip(*texts.values()), 1):
        parts, faults = [], []
        for name, text in zip(names, row):
            try:
                parts.append(parse_marked_text(text))
            except ValueError as error:
                faults.append((number, name, str(error)))
        skipped += faults
        if not faults:
            examples.append(ScatExample(f"scat-{split}:{number}", *parts))
    return Scat(tuple(examples), counts[names[0]], tuple(skipped))


def parse_marked_text(line: str) -> MarkedText:
    """A line with `<p>…</p>` around pronouns and `<hon>…<hoff>` (or `</hoff>`) around supporting words.

    The annotation added a blank before many `<hon>` and after many `<hoff>`. Of two blanks there one is removed, and a
    single one where none belongs (after an apostrophe, an opening bracket or a hyphen, before punctuation). Pronoun
    tags inside a word are ignored. The message of a ValueError is the reason why tags cannot be read: `tag cut in two`,
    `nested tags`, `tag not opened`, `tag not closed`, `mark without a word`, `mark that cuts a word` (`robb<hoff>ers`),
    or `unclear word border` (`t <hon>he`, `the <hon>men`: was the blank added inside a word, or between two?).
    """
    pieces = _TAG.split(line)  # text, tag, text, tag, …, text
    if any("<" in text or ">" in text for text in pieces[::2]):
        raise ValueError("tag cut in two")
    text, start, pronoun = pieces[0], None, None
    rationale: list[Span] = []
    pronouns: list[Span] = []
    for index in range(1, len(pieces), 2):
        tag, after = pieces[index], pieces[index + 1]
        following = after or next((later for later in pieces[index + 3 :: 2] if later), "")
        if tag == "<p>":
            _check(pronoun is None, "nested tags")
            pronoun = len(text)
        elif tag == "</p>":
            _check(pronoun is not None, "tag not opened")
            pronouns.append((pronoun, len(text)))
            pronoun = None
        elif tag == "<hon>":
            _check(start is None, "nested tags")
            text = text[: len(text) - _added(text.rstrip(), len(text) - len(text.rstrip()), following)]
            start = len(text)
        else:
            _check(start is not None, "tag not opened")
            inside = text[start:]
            _check(any(map(str.isalnum, inside)), "mark without a word")
            rationale.append((start + len(inside) - len(inside.lstrip()), len(text.rstrip())))
            start, blanks = None, len(following) - len(following.lstrip())
            if after:
                after = after[_added(text, blanks, following.lstrip()) :]
        text += after
    _check(start is None and pronoun is None, "tag not closed")
    whole = [
        (begin, end)
        for begin, end in pronouns
        if not (text[:begin][-1:].isalnum() or text[end:][:1].isalnum())  # inside a word
    ]
    lead = len(text) - len(text.lstrip())
    spans = [tuple((begin - lead, end - lead) for begin, end in marked) for marked in (rationale, whole)]
    return MarkedText(text.strip(), *spans, len(pronouns) - len(whole))


def _check(holds: bool, fault: str) -> None:
    if not holds:
        raise ValueError(fault)


def _added(before: str, blanks: int, after: str) -> int:
    """How many of the blanks at a tag, between two texts, the annotation added: 0 or 1."""
    last, first = before[-1:], after[:1]
    if blanks > 1 or not last:
        return min(blanks, 1)
    if last.isalnum() and first.isalnum():
        raise ValueError("unclear word border" if blanks else "mark that cuts a word")
    return int(blanks == 1 and bool(_NO_BLANK_AFTER.search(before) or _NO_BLANK_BEFORE.match(after)))
