"""The inline content of Markdown: its parts with their places, by the tokens of markdown-it, and text as Markdown."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal

from hf_docmt.files import DataError
from hf_docmt.formats.html import HIDDEN, SHOWN, VOID
from hf_docmt.formats.markdown_blocks import add_block_rules
from hf_docmt.messages import install_command

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

# What extensions write and CommonMark reads as text: footnotes and attribute lists, which a reader does not see; roles
# (MyST), of which a reader sees the code that they are written before; formulas between dollars (as Pandoc finds them),
# templates and emoji, which the model reads in their sentence
UNSEEN = r"\[\^[^\]\s]+\]|\{[#.:][^{}\n]*\}"
ROLE = r"\{[\w:.+-]+\}(?P<ticks>`+)(?!`)(?P<code>(?s:.+?))(?<!`)(?P=ticks)(?!`)"
SEEN = (
    r"\$\$[^$]+\$\$|(?<![\w\\])\$(?=\S)(?:\\.|[^$\n\\])*(?<=\S)\$(?!\w)"
    r"|\{\{.*?\}\}|\{%.*?%\}|(?<!\w):[a-z][\w+-]*:(?!\w)"
)
CARRIED = re.compile(f"(?P<unseen>{UNSEEN})|{ROLE}|{SEEN}")
MOST_NESTED = 100  # blocks in each other, beyond which text stays
TITLE = re.compile(r"""\s("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\((?:\\.|[^()\\])*\))\s*\)$""", re.DOTALL)
ELEMENT = re.compile(r"<(/?)([A-Za-z][\w-]*)")


@dataclass
class Part:
    """Text, or the start or end of an element, or what stands alone, at characters `start` to `end` of the content.

    `text` is that which is read. `raw`: written in place of these characters. `name` is that of an HTML element.
    `values` are texts within it: their characters, what they are, their parts.
    """

    kind: Literal["text", "open", "close", "alone"]
    start: int
    end: int
    text: str = ""
    name: str = ""
    raw: str | None = None
    breaks: bool = False
    values: list[tuple[int, int, str, list["Part"]]] = field(default_factory=list)


@cache
def marked_parser() -> "MarkdownIt":
    """CommonMark with tables and strikethrough of GitHub, whose tokens say where they end. DataError: not installed."""
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise DataError(f"Markdown needs markdown-it-py: {install_command('documents')}") from error
    parser = (
        MarkdownIt("commonmark", {"maxNesting": MOST_NESTED}).enable(["table", "strikethrough"]).disable("text_join")
    )
    parser.inline.ruler.before("escape", "carried", _carried)
    inline = parser.inline.ruler
    for name, rule in zip(inline.get_active_rules(), inline.getRules("")):
        inline.at(name, _with_end(rule))
    add_block_rules(parser)
    return parser


def _carried(state: "StateInline", silent: bool) -> bool:
    match = CARRIED.match(state.src, state.pos, state.posMax)
    if match and not silent:
        token = state.push("carried", "", 0)
        token.content = "" if match["unseen"] else (match["code"] or match[0]).replace("\n", " ")
    state.pos = match.end() if match else state.pos
    return bool(match)


def _with_end(rule):
    """The rule of the parser, which writes down where in the content its last token ends."""

    def marked(state: "StateInline", silent: bool) -> bool:
        count = len(state.tokens)
        matched = rule(state, silent)
        if matched and len(state.tokens) > count:
            state.tokens[-1].meta["end"] = state.pos
        return matched

    return marked


def inline_parts(content: str, tokens: Iterable["Token"], start: int = 0) -> list[Part]:
    """The parts of an inline content, well nested: HTML tags that do not pair stand alone."""
    return _paired(_whole_elements(list(_parts(content, tokens, start))))


def _parts(content: str, tokens: Iterable["Token"], start: int) -> Iterator[Part]:
    position, base = start, start
    links: list[tuple[int, Token]] = []
    autolink = ""
    for token in tokens:
        end = position + len(token.content)
        if token.type == "text":
            if autolink:
                autolink = token.content
                continue
            yield Part("text", position, end, token.content)
        elif token.type == "text_special":
            end = position + len(token.markup)
            yield Part("text", position, end, token.content)
        elif token.type.endswith(("_open", "_close")) and token.tag != "a":
            end = position + len(token.markup)
            yield Part("open" if token.nesting > 0 else "close", position, end)
        elif token.markup == "autolink":
            if token.type == "link_open":
                autolink = token.markup
                continue
            end = base + token.meta["end"]
            yield Part("alone", position, end, autolink)
            autolink = ""
        elif token.type == "link_open":
            end = position + 1
            links.append((end, token))
            yield Part("open", position, end)
        else:
            end = base + token.meta["end"]
            yield _other_part(content, token, position, end, links)
        position = end


def _other_part(content: str, token: "Token", start: int, end: int, links: list) -> Part:
    raw = content[start:end]
    if token.type == "softbreak":
        return Part("text", start, end, "\n")
    if token.type == "html_inline":
        element = ELEMENT.match(raw)
        if not element or element[2].lower() in VOID or raw.endswith("/>"):
            return Part("alone", start, end, breaks=bool(element) and element[2].lower() == "br")
        return Part("close" if element[1] else "open", start, end, name=element[2].lower())
    if token.type == "link_close":
        begin, opening = links.pop()
        part = Part("close", start, end)
        if raw in ("]", "][]"):  # a reference by its text, which is another one when it is translated
            part.raw = f"][{' '.join(content[begin:start].split())}]"
        part.values = list(_title(raw, start, str(opening.attrs.get("title", ""))))
        return part
    part = Part("alone", start, end, token.content, breaks=token.type == "hardbreak")
    if token.type == "image":
        part.text = ""
        begin, stop = start + 2, start + 2 + len(token.content)
        if content[stop:end] not in ("]", "][]"):
            part.values = [(begin, stop, "alt", inline_parts(content, token.children or [], begin))]
        part.values += _title(content[stop:end], stop, str(token.attrs.get("title", "")))
    return part


def _title(raw: str, start: int, title: str) -> Iterator[tuple[int, int, str, list[Part]]]:
    match = TITLE.search(raw) if title and raw.startswith("](") else None
    if match:
        first, last = start + match.start(1), start + match.end(1)
        yield first, last, "title", [Part("text", first, last, title)]


def _whole_elements(parts: list[Part]) -> list[Part]:
    """The parts with code and the like, from its start tag to its end tag, as one that stands alone."""
    joined: list[Part] = []
    number = 0
    while number < len(parts):
        part, last = parts[number], number
        if part.kind == "open" and part.name in SHOWN | HIDDEN:
            ends = (end for end in range(number, len(parts)) if parts[end].kind == "close")
            last = next((end for end in ends if parts[end].name == part.name), number)
        if last > number:
            text = "".join(inner.text for inner in parts[number : last + 1]) if part.name in SHOWN else ""
            part = Part("alone", part.start, parts[last].end, text)
        joined.append(part)
        number = last + 1
    return joined


def _paired(parts: list[Part]) -> list[Part]:
    stack: list[Part] = []
    for part in parts:
        if part.kind == "open":
            stack.append(part)
        elif part.kind == "close" and part.name:
            if stack and stack[-1].name == part.name:
                stack.pop()
            else:
                part.kind = "alone"
        elif part.kind == "close":
            while stack[-1].name:
                stack.pop().kind = "alone"
            stack.pop()
    for part in stack:
        part.kind = "alone"
    return parts


# Text as Markdown, https://spec.commonmark.org/0.31.2/#backslash-escapes

LIGHT = re.compile(
    r"\\(?=[!-/:-@\[-`{-~\n]|$)|`|<(?=[A-Za-z/!?])|&(?=#?\w+;)"
    r"|(?<!\s)\*|\*(?!\s|$)|^\*|(?<![\s\w])_|_(?![\s\w]|$)|(?<=\w)_(?!\w)|(?<!\w)_(?=\w)"
)
HEAVY = re.compile(r"[\\`*_\[\]<&~${]|!(?=\[|$)|:(?=[a-z][\w+-]*:)")
LINE_START = re.compile(
    r"(?:^|(?<=\n))[ \t]*(?:(\d{1,9})(?=[.)](?:\s|$))|(?=#{1,6}(?:\s|$)|>|[-+*](?:\s|$)|[-=]+\s*$|~~~|:::|///|\|)"
    r"|(?=:[ \t]))"
)


def escaped(text: str, pattern: re.Pattern) -> str:
    """Text with a backslash before what the pattern matches."""
    return pattern.sub(lambda match: "\\" + match[0], text)


def escaped_line_start(text: str) -> str:
    """Text at the start of a line, so that it begins no list, heading, quotation or rule."""
    return LINE_START.sub(lambda match: f"{match[0]}\\", text)


def escaped_title(text: str, quote: str, in_cell: bool = False) -> str:
    """The title of a link in its quotation marks or brackets; in a cell, a bar has a backslash."""
    first, last = quote, ")" if quote == "(" else quote
    text = re.sub(r"\s+", " ", re.sub(r"\\(?=[!-/:-@\[-`{-~]|$)|&(?=#?\w+;)", r"\\\g<0>", text))
    for mark in {first, last, *("|" if in_cell else "")}:
        text = text.replace(mark, "\\" + mark)
    return first + text + last
