"""Running text as sentences, and back as it was: its lines, paragraphs and indents."""

import re
from itertools import zip_longest
from unicodedata import category

INVISIBLE = ("Cc", "Cf", "Zl", "Zp", "Zs")  # categories of Unicode
CLOSING = "\"'”’»›)]}」』）】》〉"  # may stand between the end of a sentence and the next one
OPENING = "\"'“„‘‚«‹([{¿¡-–—*•"  # may stand before its first letter
FULL_WIDTH_ENDS = "。！？｡」』）】》〉，、"  # no blank follows these
ENDS, FULL_ENDS, CLOSED = ".!?…؟۔।॥։።", "。！？｡", f"[{re.escape(CLOSING)}]*+"
# each run of punctuation is tried once, from its first sign: linear in the length of the line
SENTENCE_END = re.compile(
    rf"(?<![{ENDS}])[{ENDS}]++{CLOSED}(?=\s++\S)|(?<![{FULL_ENDS}])[{FULL_ENDS}]++{CLOSED}(?=\s*+\S)"
)
NEXT_LETTER = re.compile(rf"\s*+[{re.escape(OPENING)}]*+(.?)")
LONGEST_WORD = 80  # characters before punctuation in which an abbreviation is looked for
ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st jr sr vs cf fig vol pp approx gen gov sen rep rev col sgt capt lt hon "  # English
    "bzw ca nr hr fr frl str abb bd vgl evtl ggf inkl zzgl geb gest hl jh jhdt mio mrd dipl ing "  # German
    "mme mlle mm art chap env sra srta dra ud uds sig sigg dott avv dhr mevr".split()  # French, Spanish, Italian, Dutch
)


def split_text(text: str) -> tuple[list[str], list[str]]:
    r"""The sentences of a text, and the white space around them: before the first, between two, behind the last.

    A line end is the end of a sentence. Inside a line it is punctuation with white space behind it (full-width: also
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
    """The text of so many sentences with the white space of `split_text` around them.

    Inside a line blanks are those of the new sentences' script: none behind full-width punctuation, one behind other.
    """
    text = ""
    for number, (gap, sentence) in enumerate(zip_longest(gaps, sentences, fillvalue="")):
        if 0 < number < len(sentences) and gap in ("", " "):
            gap = blank_behind(text)
        text += gap + sentence
    return text


def blank_behind(text: str) -> str:
    """What stands between a text and the next sentence of its line: nothing behind full-width punctuation."""
    return "" if text.endswith(tuple(FULL_WIDTH_ENDS)) else " "


def sentence_ends(line: str) -> list[int]:
    """Where sentences of a line end, but for the last one."""
    return [match.end() for match in SENTENCE_END.finditer(line) if is_end(line, match)]


def is_end(line: str, match: re.Match) -> bool:
    """Whether punctuation ends a sentence, by the word before it and the letter behind it."""
    if match[0][0] in FULL_ENDS:
        return True
    if NEXT_LETTER.match(line, match.end())[1].islower():
        return False
    words = line[max(0, match.start() - LONGEST_WORD) : match.start()].split()
    if match[0] != "." or not words:
        return True
    word = words[-1].lstrip(OPENING)
    is_initial = len(word) == 1 and word.isalpha() or re.fullmatch(r"(\w\.)+\w", word)
    is_ordinal = len(word) <= 2 and word.isdecimal()
    return not (is_initial or is_ordinal or word.lower() in ABBREVIATIONS)


def has_text(text: str) -> bool:
    """Whether a text has a character that is seen: blanks, controls and format characters such as U+200B are not."""
    return not text.isspace() and any(category(character) not in INVISIBLE for character in text)


def check_unicode(text: str, name: str, error_class: type[ValueError] = ValueError) -> None:
    """`error_class` for half of a surrogate pair, which tokenizers do not read; `name` is where the text stands."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise error_class(
            f"{name} holds half of a surrogate pair, {text[error.start]!r}, which is not Unicode text: repair the "
            "escape or the encoding that it was read with."
        ) from error
