"""Strings of programs: their inline markup and placeholders."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from hf_docmt.formats.document_format import Piece, Tag, unpaired

# printf of C, Python, Objective-C and Qt, strftime; braces of Python, ICU, Ruby and Mustache; i18next; Chrome; Symfony
# (%name%), Laravel (:name), Drupal (@name, !name); entities
PLACEHOLDERS = re.compile(
    r"""%\(\w+\)[#0+-]*[\d.]*[A-Za-z]
    | (?<!\w)%(?!(?:hh?|ll?|[qLjzt])[A-Za-z]%)[A-Za-z_][A-Za-z0-9_.]+%(?![%\w])
    | (?<![\w:})\]]):[A-Za-z_][A-Za-z0-9_]+ | (?<![\w.@!])[@!][A-Za-z_][A-Za-z0-9_]*
    | %(?:\d+\$)?[#0+']*(?:-(?=\d))?[\d*]*(?:\.[\d*]+)?(?:hh?|ll?|[qLjzt])?(?:[A-Za-z@%](?![a-z]{2})|<PRI\w+>)
    | %-[dmeHIMSjlyu](?![a-z]) | %L?\d+
    | \{\{.*?\}\} | [$%\#]?\{[^{}\n]*\}
    | \$t\([^()]*\) | \$\w+\$ | \$\d(?![\d.,]) | @(?:\.\w+)?:(?:\([^()]*\)|[\w.]+) | __\w+?__
    | &(?:\#\d+|\#[xX][\da-fA-F]+|[A-Za-z]\w*);""",
    re.VERBOSE,
)
NO_TEXT = re.compile(  # a whole string that is an address, a path, an identifier or a symbol
    r"(?:\w+://|mailto:|www\.)\S*|(?:[/~#:]|\.{1,2}/)[^\s\u2e80-\uffef]*|[^\s@]+@[^\s@]+\.\w+"
    r"|(?a:\w+(?:[.:]\w+)+|\w+_\w+|[a-z]+[A-Z]\w*)"
)
# https://unicode-org.github.io/icu/userguide/format_parse/messages/: branches inside braces
BRANCHES = re.compile(r"\{\s*[\w.]+\s*,\s*(?:plural|select|selectordinal)\s*,")
ICU_MESSAGE = ("ICU message", "left alone")
TAG = re.compile(r"<!--.*?-->|<(/?)([A-Za-z0-9][\w:.-]*)((?:\s[^<>]*?)?)(/?)>", re.DOTALL)
LINE_END = re.compile(r"\s*\n\s*")
HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # which escapes can write, and no text has
VOID = frozenset(("br", "hr", "img", "input", "wbr"))
Kind = Literal["open", "close", "alone"]


def string_pieces(text: str) -> list[Piece]:
    """A string with its XML-like tags and line ends apart; a line that goes on in small letters does not end.

    What is no pair is a tag that stands alone, and is read: `Usage: run <file>`.
    """
    pieces: list[Piece] = []
    names: list[str] = []
    position = 0
    for match in TAG.finditer(text):
        closes, name, _, empty = match.groups()
        kind: Kind = "alone" if name is None or empty or name.lower() in VOID else "close" if closes else "open"
        for piece in (
            *_lines(text[position : match.start()], position == 0, False),
            Tag(kind, match[0], "", name == "br"),
        ):
            pieces.append(piece)
            names.append(name if isinstance(piece, Tag) else "")
        position = match.end()
    last = list(_lines(text[position:], position == 0, True))
    return well_nested(pieces + last, names + [""] * len(last), shown=True)


def _lines(text: str, is_first: bool, is_last: bool) -> Iterator[Piece]:
    position = 0
    for match in LINE_END.finditer(text):
        at_end = match.start() == 0 and is_first or match.end() == len(text) and is_last
        if not at_end and not (match[0].count("\n") == 1 and text[match.end() : match.end() + 1].islower()):
            if match.start() > position:
                yield text[position : match.start()]
            yield Tag("alone", match[0], match[0], breaks=True)
            position = match.end()
    if text[position:]:
        yield text[position:]


def well_nested(pieces: Sequence[Any], names: Sequence[str], shown: bool = False) -> list[Any]:
    """The pieces with all tags that open or close no element as ones that stand alone.

    A pair has equal `names`, one a piece; what is no tag may be anything. `shown`: of those that become alone, a reader
    sees what is written.
    """
    level, kinds = list(pieces), (piece.kind if isinstance(piece, Tag) else "" for piece in pieces)
    for number in unpaired(zip(kinds, names)):
        level[number] = replace(level[number], kind="alone", text=str(level[number].raw) if shown else "")
    return level


def plain_string(pieces: Iterable[Piece]) -> str:
    """The string of pieces."""
    return "".join(
        piece if isinstance(piece, str) else piece.text if piece.raw is None else piece.raw for piece in pieces
    )


def has_words(pieces: Iterable[Piece]) -> bool:
    """Whether there are letters outside of placeholders."""
    texts = (PLACEHOLDERS.sub("", piece) for piece in pieces if isinstance(piece, str))
    return any(character.isalpha() for text in texts for character in text)


def is_text(text: str) -> bool:
    """Whether a string is for people."""
    return not NO_TEXT.fullmatch(text.strip()) and has_words(string_pieces(text))


def is_message(pieces: Iterable[Piece]) -> bool:
    """Whether a string is an ICU message with branches: not where a tag is described so."""
    return BRANCHES.search("".join(piece for piece in pieces if isinstance(piece, str))) is not None
