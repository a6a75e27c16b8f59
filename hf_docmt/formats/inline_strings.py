"""Strings of programs: their inline markup and placeholders."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from hf_docmt.formats.document_format import Piece, Tag, joined, unpaired
from hf_docmt.modeling.opaque_runs import ADDRESS

# printf of C, Python, Objective-C and Qt, strftime; braces of Python, ICU, Ruby and Mustache; i18next; Chrome; Symfony
# (%name%), Laravel (:name), Drupal (@name, !name); entities; options of commands; dates; keys; paths
PLACEHOLDERS = re.compile(
    r"""%\(\w+\)[#0+-]*[\d.]*[A-Za-z]
    | (?<!\w)%(?!(?:hh?|ll?|[qLjzt])[A-Za-z]%)[A-Za-z_][A-Za-z0-9_.]+%(?![%\w])
    | (?<![\w:})\]]):[A-Za-z_][A-Za-z0-9_]+ | (?<![\w.@!])[@!][A-Za-z_][A-Za-z0-9_]*
    | %(?:\d+\$)?[#0+']*(?:-(?=\d))?[\d*]*(?:\.[\d*]+)?(?:hh?|ll?|[qLjzt])?(?:[A-Za-z@%](?![a-z]{2})|<PRI\w+>)
    | %-[dmeHIMSjlyu](?![a-z]) | %L?\d+
    | \{\{(?:(?!\{\{).)*?\}\} | [$%\#]?\{[^{}\n]*\}
    | \$t\([^()]*\) | \$\w+\$ | \$\d(?![\d.,]) | @(?:\.\w+)?:(?:\([^()]*\)|[\w.]+) | __\w+?__
    | &(?:\#\d+|\#[xX][\da-fA-F]+|[A-Za-z]\w*); | (?<![\w-])(?:--[a-z][\w-]*(?:\[?=[A-Z]+\]?)?|-[A-Za-z](?![\w-]))
    | \b(?:y{2,4}|Y{2,4}|[MdDHhms]{2})(?:[-/.:](?:y{2,4}|Y{2,4}|[MdDHhms]{2}))+\b
    | \b(?:(?:Ctrl|Control|Alt|Shift|Cmd|Command|Meta|Super)[+])+(?:\w+|[^\w\s]) | \b[A-Za-z]:\\[^\s"*?<>|]*""",
    re.VERBOSE,
)
NO_TEXT = re.compile(  # a whole string that is an address, a path, an identifier or a symbol
    r"(?:\w+://|mailto:|www\.)\S*|(?:[/~#:]|\.{1,2}/)[^\s\u2e80-\uffef]*|[^\s@]+@[^\s@]+\.\w+"
    r"|(?a:\w+(?:[.:]\w+)+|\w+_\w+|[a-z]+[A-Z]\w*)"
)
# a whole string that is a pattern of dates: of ICU, as `d MMM yyyy, h:mm a`, or of PHP, as `F j, Y`
_FIELD = r"(?:(?:y{2,4}|Y{2,4}|M{2,5}|d{2,4}|D{2,3}|E{2,5}|HH|hh|mm|ss|S{2,3})++|[yMdDEaAHhmsSzZ]|Do|'[^']*')"
DATE_PATTERN = re.compile(
    rf"(?=.*?([yYMdDEHhms])\1){_FIELD}(?:[^\w%]+{_FIELD})+|[gGhH]:i(?::s)?(?: ?[aA])?"
    r"|(?:[dDjlFmMnYyaAgGhHiTNS]S?[^\w%]+){2,}[dDjlFmMnYyaAgGhHisTP]"
)
# https://unicode-org.github.io/icu/userguide/format_parse/messages/: branches inside braces
BRANCHES = re.compile(r"\{\s*[\w.]+\s*,\s*(?:plural|select|selectordinal)\s*,")
ICU_MESSAGE = ("ICU message", "left alone")
# tags of XML, and of BBCode where they are pairs: the slash of a closing one, the name, the slash of an empty one
TAG = re.compile(
    r"<!--(?:(?!<!--).)*?-->|<(?P<slash>/?)(?P<name>[A-Za-z0-9][\w:.-]*)(?:\s[^<>]*?)?(?P<empty>/?)>",
    re.DOTALL,
)
BBCODE = re.compile(
    r"\[(?P<slash>)(?P<name>[a-z]\w*)(?:[= ][^\[\]\n]*)?(?P<empty>)\](?=.{0,4000}?\[/(?P=name)\])"
    r"|\[/(?P<closed>[a-z]\w*)\]",
    re.DOTALL,
)
# marks before and after a text: roles and links of Sphinx; links of Markdown, MediaWiki and Textile; emphasis
PAIRS = tuple(
    re.compile(rf"(?P<open>{before})(?!\s){text}(?<!\s)(?P<close>{behind})")
    for before, text, behind in (
        (r":[a-z][\w:+.-]{0,60}:`|(?<![\w:`])`", r"[^`<>]+", r"\s+<[^<>`]+>`(?:__?)?"),
        (r"(?<![\w:`])`", r"[^`<>]+", r"`__(?!\w)"),
        (r"!?\[", r"[^\[\]]+", r"\]\((?:[^\s()]|\([^\s()]*\))*(?:\s\"[^\"\n]*\")?\)"),
        (r"\[\[[^\[\]|\n]+\|", r"[^\[\]|\n]+", r"\]\]"),
        (r"\[\w+://[^\s\[\]]+ ", r"[^\[\]\n]+", r"\]"),
        (r"\"", r"[^\"\n]+", r"\":(?:\w+://|/|mailto:)[^\s\[\]]*[\w/]"),
        (r"(?<![\w*])(?P<mark>\*{1,3})(?=[\w\"'(<&%{$])", r"[^*\n]+", r"(?P=mark)(?![\w*])"),
        (r"(?<![\w_])(?P<mark>_|__(?=[^_\n]* [^_\n]*__))(?=[^\W_])", r"[^_\n]+", r"(?P=mark)(?![\w_])"),
        (r"(?<![\w'])(?P<mark>'{2,3})(?=[^'])", r"[^\n]{1,300}?", r"(?P=mark)(?![\w'])"),
    )
)
# read but not translated: literals, roles, substitutions, notes and names of Sphinx; code of Textile; code of
# BBCode, and what it names in Godot's reference; choices of a command; `&&` that does not mark a key
ALONE = re.compile(
    r"""(?P<ticks>`{1,3})(?!`)[^`]+(?P=ticks)_{0,2} | :[a-z][\w:+.-]{0,60}:`[^`]+`
    | (?<![\w|])\|(?![\s|])[^|\n]*(?<![\s|])\|_{0,2}(?![\w|]) | \[[\w\#*][\w-]*\]_{1,2}
    | (?<![\w_@.])[A-Za-z][A-Za-z0-9]*_{1,2}(?![\w`]) | (?<![\w@])@(?=[^\s@])[^@\n]*(?<=[^\s@])@(?![\w@])
    | \[(?P<code>code\w*|kbd|img|pre|gdscript|csharp|noparse)(?:[= ][^\[\]\n]*)?\]
      (?:(?!\[(?P=code)[\]= ]).)*?\[/(?P=code)\]
    | \[(?:member|method|param|constant|enum|signal|annotation|theme_item|constructor|operator)[ ][^\[\]\n]+\]
    | \[(?:br|hr|lb|rb|/?codeblocks?|bool|int|float|void)\] | \[[^\[\]\s|]*(?:\|[^\[\]\s|]*)+\](?!\() | &&""",
    re.VERBOSE | re.DOTALL,
)
LEADING = re.compile(  # at the start of a line, and of a form of a plural: what a reader does not read
    r"^(?:h[1-6]\.|bq\.|[*\#-]{1,6})[ ]+|(?:(?<=\|)|^)[\[\]](?:-?\d+|\*|-?Inf)(?:,\s?(?:\d+|\*|Inf))?[\[\]]\s*(?=\S)",
    re.MULTILINE,
)
# where a sentence ends: line ends, tabs and other columns, escapes as text, bars between the forms of a plural
BREAK = re.compile(
    r"(?<!\s)(?:(?=[^\S\n]*+\n)|(?=[^\S\t]*+\t))\s++|(?<=[\w>\]=]) {2,}+(?=\S)|(?<! ) {3,}+(?=\S)|(?:\\[nrt])+(?![a-z])"
    r"|(?<!\s)\s++\|\s++|(?<=[^\s|])\|(?=[^\s|])"
)
# the mark before the letter of a key (`&`, of GTK `_`, of LibreOffice `~`), in labels
KEY = re.compile(
    r"(?<![^\W_]|[&_~])(?:[&_](?!_?(?:blank|self|parent|top)\b)|~(?=[A-Z]))(?=[^\W\d_])|(?<=^[A-Z])_(?=[a-z]+(?:\.{3}|…)?$)"
    r"|(?<=\b[A-Z])&(?=[a-z])|(?<=\b[A-Z][a-z])&(?=[a-z])|(?<=[a-z])&(?=[a-z]{1,2}\b)"
)
KEY_TAGS = [Tag("alone", mark) for mark in ("&", "&amp;", "_", "~")]
LONGEST_LABEL = 60
KEY_LETTER = re.compile(r"[^\W\d_\u2e80-\uffef]")
ADDRESSES = re.compile(ADDRESS)
HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # which escapes can write, and no text has
VOID = frozenset(("br", "hr", "img", "input", "wbr"))
Kind = Literal["open", "close", "alone"]
Mark = tuple[int, int, Tag | None, str]  # from, to, its tag, and the name that it shares with its other half


def string_pieces(text: str) -> list[Piece]:
    """A string with its markup and line ends apart; a line does not end if the next begins in lower case.

    Unpaired tags are standalone ones and part of the text: `Usage: run <file>`. The mark of a key comes first.
    """
    keys: list[Piece] = []
    named: list[tuple[Piece, str]] = []
    position = 0
    for start, end, tag, name in _marks(text):
        named.append((text[position:start], ""))
        if tag in KEY_TAGS:
            keys.append(tag)
        else:
            named.append((tag, name))
        position = end
    level = well_nested([*named, (text[position:], "")], shown=True)
    return joined([*keys, *level])


def _marks(text: str) -> Iterator[tuple[int, int, Tag, str]]:
    """The matches that are not text, in order. If some overlap, the first counts, or the first of `_candidates`."""
    position, dropped = 0, set()
    for start, end, tag, name in sorted(_candidates(text), key=lambda mark: mark[0]):
        if start < position or name in dropped and tag and tag.kind == "close":
            dropped.add(name)
            continue
        position = end
        if tag is not None:
            yield start, end, tag, name


def _candidates(text: str) -> Iterator[Mark]:
    for pattern in PAIRS:
        for match in pattern.finditer(text):
            for kind in ("open", "close"):
                yield *match.span(kind), Tag(kind, match[kind]), f"{pattern.pattern} {match.start()}"
    for match in ALONE.finditer(text):
        yield *match.span(), Tag("alone", match[0], match[0]), ""
    for match in (*TAG.finditer(text), *BBCODE.finditer(text)):
        kind, name = tag_kind(match)
        yield *match.span(), Tag(kind, match[0], "", name == "<br"), name
    for match in LEADING.finditer(text):
        yield *match.span(), Tag("alone", match[0]), ""
    for match in BREAK.finditer(text):
        is_blank, after = match[0].isspace(), text[match.end() : match.end() + 1]
        if match.start() and after and not (is_blank and match[0].count("\n") == 1 and after.islower()):
            yield *match.span(), Tag("alone", match[0], match[0] if is_blank else " ", breaks=True), ""
    for match in (*ADDRESSES.finditer(text), *PLACEHOLDERS.finditer(text)):
        yield *match.span(), None, ""
    keys = list(KEY.finditer(text)) if len(text) <= LONGEST_LABEL else []
    if len(keys) == 1:
        yield *keys[0].span(), Tag("alone", keys[0][0]), ""


def tag_kind(match: re.Match) -> tuple[Kind, str]:
    """The kind of a tag, and a name that it shares with its other half."""
    groups = match.groupdict()
    name = groups["name"] or groups.get("closed") or ""
    if not name or groups["empty"] or name.lower() in VOID:
        return "alone", match[0][0] + name
    return "close" if groups["slash"] or groups.get("closed") else "open", match[0][0] + name


def with_key(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with the mark of a key before the first letter; without it if no key has such letters."""
    placed: list[Piece] = []
    keys = [piece for piece in pieces if piece in KEY_TAGS][:1]
    for piece in pieces:
        if keys and isinstance(piece, str) and (letter := KEY_LETTER.search(piece)):
            placed += [piece[: letter.start()], keys.pop(), piece[letter.start() :]]
        elif piece not in KEY_TAGS:
            placed.append(piece)
    return placed


def well_nested(named: Sequence[tuple[Any, str]], shown: bool = False) -> list[Any]:
    """Pieces, each with the name that the halves of a pair share; other tags are standalone ones.

    Pieces that are not tags may be of any type. `shown`: the text of tags that become standalone is visible.
    """
    level, tags = [piece for piece, _ in named], [(getattr(piece, "kind", ""), name) for piece, name in named]
    for number in unpaired(tags):
        level[number] = replace(level[number], kind="alone", text=str(level[number].raw) if shown else "")
    return level


def plain_string(pieces: Sequence[Piece], escape: Callable[[str], str] = str) -> str:
    """The string of pieces; `escape` says how a text is written there."""
    return "".join(
        piece.raw
        if isinstance(piece, Tag) and piece.raw is not None
        else escape(piece.text if isinstance(piece, Tag) else piece)
        for piece in with_key(pieces)
    )


def has_words(pieces: Iterable[Piece]) -> bool:
    """Whether there are letters outside of placeholders."""
    texts = [PLACEHOLDERS.sub("", piece) for piece in pieces if isinstance(piece, str)]
    return not DATE_PATTERN.fullmatch("".join(texts).strip()) and any(map(str.isalpha, "".join(texts)))


def is_text(text: str) -> bool:
    """Whether a string is for people."""
    return not NO_TEXT.fullmatch(text.strip()) and has_words(string_pieces(text))


def is_message(pieces: Iterable[Piece]) -> bool:
    """Whether a string is an ICU message with branches: not where a tag is described so."""
    return BRANCHES.search("".join(piece for piece in pieces if isinstance(piece, str))) is not None
