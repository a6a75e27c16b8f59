"""Splits running text into sentences and restores its lines, paragraphs and indents."""

import re
from collections.abc import Iterable
from itertools import zip_longest
from unicodedata import category

INVISIBLE = ("Cc", "Cf", "Zl", "Zp", "Zs")  # categories of Unicode
CLOSING = "\"'“”’»›)]}」』）】》〉*_"  # allowed between the end of a sentence and the next one
OPENING = "\"'“„‘‚«‹([{¿¡-–—*•"  # allowed before its first letter
FULL_WIDTH_ENDS = "。！？｡」』）】》〉，、"  # no blank follows these
ENDS, FULL_ENDS, CLOSED = ".!?…؟۔।॥։።", "。！？｡", f"[{re.escape(CLOSING)}]*+"
# each run of punctuation is tried once, from its first sign: linear in the length of the line
SENTENCE_END = re.compile(
    rf"(?<![{ENDS}])[{ENDS}]++{CLOSED}(?=\s++\S)|(?<![{FULL_ENDS}])[{FULL_ENDS}]++{CLOSED}(?=\s*+\S)"
)
NEXT_LETTER = re.compile(rf"\s*+[{re.escape(OPENING)}]*+(.?)")
BRACKETED = re.compile(r"\s*+[\"'“„*_]*+[(\[{（【]")  # the beginning of a sentence in brackets
MARKER = re.compile(r"\d{1,3}(?:\.\d{1,3})*|[IVXLC]{1,6}")  # of a list item, with a full stop after it
INITIALS = re.compile(r"(?:[^\W\d_]{1,2}\.)*[^\W\d_]")  # J, e.g, Ph.D
LONGEST_WORD = 80  # characters before punctuation in which an abbreviation is looked for
ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st jr sr vs cf fig vol pp gen gov sen rep rev col sgt capt lt hon "  # English
    "bzw ca nr hr fr frl str abb bd vgl evtl ggf inkl zzgl geb gest hl jh jhdt mio mrd dipl ing "  # German
    "mme mlle mm art chap env sra srta dra ud uds sig sigg dott avv dhr mevr".split()  # French, Spanish, Italian, Dutch
)
BEFORE_NUMBERS = frozenset(  # `No` is also a word, unless a whole number follows
    "al app approx art bd ca cap ch chap dept eq eqs ext fig figs hl incl jan feb mar apr jun jul aug sep sept oct nov "
    "dec max min no nos nr nrs num p para pp pos ref refs sec sect tab tel vol vols z".split()
)


class Sentence(str):
    """A sentence with its known translation or context; plain strings are sentences, too.

    `target` is its translation, which is returned unchanged and is context for others; None: unknown. `context` are
    pairs of a sentence and its translation that the model reads before it; other sentences do not see them. The
    `score` of a translation is the mean log-probability of its tokens; None: unknown. `beginning` is the text that its
    translation starts with; the last word of it may continue. It is for sentences whose previous sentences are known,
    and for strategies that write each sentence alone.
    """

    target: str | None
    context: tuple[tuple[str, str], ...]
    score: float | None
    beginning: str

    def __new__(
        cls,
        text: str,
        target: str | None = None,
        context: Iterable[tuple[str, str]] = (),
        score: float | None = None,
        beginning: str = "",
    ):
        sentence = super().__new__(cls, text)
        sentence.target, sentence.context, sentence.score = target, tuple(map(tuple, context)), score
        sentence.beginning = beginning
        return sentence


def known_target(sentence: str) -> str | None:
    """The known translation of a sentence, or None."""
    return getattr(sentence, "target", None)  # the class may be that of a model's folder


def split_text(text: str) -> tuple[list[str], list[str]]:
    r"""The sentences of a text, and the white space around them: before the first, between two, after the last.

    A line end is the end of a sentence. Inside a line it is punctuation with white space after it (full-width: also
    without), and no small letter after that. Abbreviations, initials and ordinals of up to two digits end none. Who has
    a splitter for the language gives lists of sentences.

    >>> split_text("Hello, Dr. Who.  She sleeps.\n\nBye!")
    (['Hello, Dr. Who.', 'She sleeps.', 'Bye!'], ['', '  ', '\n\n', ''])
    """
    sentences, gaps, gap = [], [], ""
    for line in text.splitlines(keepends=True):
        start = 0
        for end in [*sentence_ends(line), len(line)]:
            part = line[start:end]
            sentence = part.strip()
            if not sentence:
                gap += part
            else:
                leading = len(part) - len(part.lstrip())
                gaps.append(gap + part[:leading])
                sentences.append(sentence)
                gap = part[leading + len(sentence) :]
            start = end
    return sentences, [*gaps, gap]


def join_text(sentences: list[str], gaps: list[str]) -> str:
    """Joins sentences with the white space of `split_text` around them.

    Inside a line blanks are those of the new sentences' script: none after full-width punctuation, one after other.
    """
    text = ""
    for number, (gap, sentence) in enumerate(zip_longest(gaps, sentences, fillvalue="")):
        if 0 < number < len(sentences) and gap in ("", " "):
            gap = blank_behind(text)
        text += gap + sentence
    return text


def blank_behind(text: str) -> str:
    """The separator between a text and the next sentence of its line: empty after full-width punctuation."""
    return "" if text.endswith(tuple(FULL_WIDTH_ENDS)) else " "


def sentence_ends(line: str) -> list[int]:
    """The ends of sentences in a line, except the last one."""
    ends = [0]
    for match in SENTENCE_END.finditer(line):
        if is_end(line, match, ends[-1]):
            ends.append(match.end())
    return ends[1:]


def is_end(line: str, match: re.Match, start: int) -> bool:
    """Whether punctuation ends the sentence from `start`, by the word before it and the letter after it.

    `(really?)` inside a sentence does not.
    """
    is_aside = match[0][-1] in ")]}）】" and match[0][0] != "." and not BRACKETED.match(line, start)
    if is_aside or match[0][0] in FULL_ENDS:
        return not is_aside
    if NEXT_LETTER.match(line, match.end())[1].islower():
        return False
    word = _last_words(line, match.start())[1]
    if match[0].rstrip(CLOSING) != "." or not word:
        return True
    is_ordinal = len(word) <= 2 and word.isdecimal()
    is_known = word.lower() in ABBREVIATIONS or INITIALS.fullmatch(word)
    return not (is_ordinal or is_known or goes_on(line, match.start()))


def goes_on(line: str, stop: int) -> bool:
    """Whether the full stop at this character is that of a list marker, e.g., or an abbreviation before a number."""
    before, word = _last_words(line, stop)
    if MARKER.fullmatch(word):
        return not before or before[-1] in ENDS and before[:-1].lower() not in ABBREVIATIONS | BEFORE_NUMBERS
    if word == "no" or word.lower() not in BEFORE_NUMBERS:
        return word.lower() in ("e.g", "i.e")
    return re.compile(r"\.\s*\d++(?![.,]\d)" if word == "No" else r"\.\s*\d").match(line, stop) is not None


def _last_words(line: str, stop: int) -> list[str]:
    """The two words before a character, without quotation marks and brackets; "" if missing."""
    words = line[max(0, stop - LONGEST_WORD) : stop].split()
    return ["", "", *(word.lstrip(OPENING) for word in words)][-2:]


def has_text(text: str) -> bool:
    """Whether a text has a character that is seen: blanks, controls and format characters such as U+200B are not."""
    return not text.isspace() and any(category(character) not in INVISIBLE for character in text)


def check_unicode(text: str, name: str, error_class: type[ValueError] = ValueError) -> None:
    """`error_class` for half of a surrogate pair, which tokenizers do not read; `name` is the place of the text."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise error_class(
            f"{name} holds half of a surrogate pair, {text[error.start]!r}, which is not Unicode text: repair the "
            "escape or the encoding that it was read with."
        ) from error
