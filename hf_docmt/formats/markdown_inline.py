"""The inline content of Markdown: its parts with their places, by the tokens of markdown-it, and text as Markdown."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Literal

from hf_docmt.files import DataError
from hf_docmt.formats.document_format import unpaired
from hf_docmt.formats.html import HIDDEN, KEPT, SHOWN, VOID
from hf_docmt.formats.markdown_blocks import BRACES, JSX, add_block_rules
from hf_docmt.messages import install_command

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

# Syntax of extensions that CommonMark reads as text: footnotes, attribute lists, comments, names of blocks and what is
# put in, which a reader does not see; roles (MyST), of which a reader sees the code that they are written before;
# formulas between dollars (as Pandoc finds them), templates, emoji, links to pages and keys, which the model reads as
# addresses
UNSEEN = (
    r"\[\^[^\]\s]+\]|\{[ \t]*(?:[#.:]|[\w-]*=)[^{}\n]*\}|%%[^%\n]+%%|\{>>(?:(?!\{>>).)*?<<\}|\{/\*(?:(?!\{/\*).)*?\*/\}"
    r"|(?<=\s)\^[\w-]+(?=[ \t]*(?:\n|$))|!\[\[[^\[\]\n]+\]\]"
)
ADDRESS = r"<(?P<address>[A-Za-z][\w+.-]{1,31}:[^\s<>]*|[\w.!\#$%&'*+/=?^`{|}~-]+@[\w.-]+)>"
ROLE = r"\{[\w:.+-]+\}(?P<ticks>`+)(?!`)(?P<code>(?s:.+?))(?<!`)(?P=ticks)(?!`)"
SEEN = (
    r"\$\$[^$]+\$\$|(?<![\w\\])\$(?=\S)(?:\\.|[^$\n\\])*(?<=\S)\$(?!\w)"
    r"|\{\{(?s:(?!\{\{).)*?\}\}|\{%(?:(?!\{%).)*?%\}|(?<!\w):[a-z][\w+-]*:(?!\w)|\[\[[^\[\]|\n]+\]\](?![(\[])|\+\+\w[\w+-]*\w\+\+"
)
CARRIED = re.compile(f"(?P<unseen>{UNSEEN})|{ADDRESS}|{ROLE}|{SEEN}")
EXPRESSION = re.compile(f"{CARRIED.pattern}|{BRACES}")  # of MDX
TAG = re.compile(JSX)
# Marks around text: of words, changes, notes, links to pages, spans with attributes, links to a template's address
PAIRS = [
    re.compile(pattern)
    for pattern in (
        r"(==|\^\^)(?=[^\s=^])((?:(?!==|\^\^).){1,1000})(?<=[^\s=^])(==|\^\^)(?![=^])",
        r"(\{(?:\+\+|--|==))((?s:.{1,1000}?))((?:\+\+|--|==)\})",
        r"(\^\[)([^\[\]]+)(\])",
        r"(\[\[[^\[\]|\n]+\|)([^\[\]\n]+)(\]\])",
        r"((?<!\])\[)([^\[\]\n]+)(\]\{[ \t]*[.#][^{}\n]*\})",
        r"(\[)([^\[\]\n]+)(\]\([^()\s]*\{[{%].*?[%}]\}[^()\s]*\))",
    )
]
ATTRIBUTES = re.compile(r"\{[ \t]*(?:[#.:]|[\w-]+=)[^{}\n]*\}")
FOREIGN_LINK = re.compile(r"(\[)(`[^`]+`|[^\[\]]+)(\]\[[^\[\]]*\])")  # to what another file defines
MOST_NESTED = 100  # blocks in each other, beyond which text stays
TITLE = re.compile(r"""\s("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\((?:\\.|[^()\\])*\))\s*\)$""", re.DOTALL)
ELEMENT = re.compile(r"<(/?)([A-Za-z][\w.-]*)")


@dataclass
class Part:
    """Text, or the start or end of an element, or a standalone tag, at characters `start` to `end` of the content.

    `text` is read. `raw`: written instead of these characters. `name` is that of an HTML element.
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
def marked_parser(is_mdx: bool = False) -> "MarkdownIt":
    """CommonMark with tables and strikethrough of GitHub, whose tokens say where they end. DataError: not installed."""
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise DataError(f"Markdown needs markdown-it-py: {install_command('documents')}") from error
    parser = (
        MarkdownIt("commonmark", {"maxNesting": MOST_NESTED}).enable(["table", "strikethrough"]).disable("text_join")
    )
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # what is a link stays one
    inline = parser.inline.ruler
    inline.before("escape", "carried", partial(_matched, "carried", EXPRESSION if is_mdx else CARRIED))
    inline.before("carried", "pair", partial(_pair, PAIRS))
    inline.after("image", "foreign_link", partial(_pair, [FOREIGN_LINK]))
    inline.before("html_inline", "jsx", partial(_matched, "html_inline", TAG))
    for name, rule in zip(inline.get_active_rules(), inline.getRules("")):
        inline.at(name, _with_end(rule))
    add_block_rules(parser, is_mdx)
    return parser.disable(["autolink", *["code", "html_block", "html_inline"] * is_mdx])


def _matched(name: str, pattern: re.Pattern, state: "StateInline", silent: bool) -> bool:
    """The match of a pattern as a token, whose content is visible."""
    match = pattern.match(state.src, state.pos, state.posMax)
    if match and not silent:
        groups = match.groupdict()
        text = groups.get("code") or groups.get("address") or match[0]
        state.push(name, "", 0).content = "" if groups.get("unseen") else text.replace("\n", " ")
    state.pos = match.end() if match else state.pos
    return bool(match)


def _pair(patterns: list[re.Pattern], state: "StateInline", silent: bool) -> bool:
    """Text between marks, or a note, which is read for itself."""
    own = patterns if state.src[state.pos] in "^={[" else []
    match = next(filter(None, (pattern.match(state.src, state.pos, state.posMax) for pattern in own)), None)
    if match and not silent and match[1] == "^[":
        token = state.push("note", "", 0)
        token.children = []
        state.md.inline.parse(match[2], state.md, state.env, token.children)
    elif match and not silent:
        limit, state.pos, state.posMax = state.posMax, match.start(2), match.end(2)
        state.push("pair_open", "", 1).markup = match[1]
        state.md.inline.tokenize(state)
        closing = state.push("pair_close", "", -1)
        closing.markup, closing.info = match[3], f"][{match[2]}]" if match[3] == "][]" else ""
        state.posMax = limit
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
    """The parts of an inline content, well nested: HTML tags without a pair are standalone ones."""
    return _paired(_whole_elements(content, _with_attributes(content, _parts(content, tokens, start))))


def _parts(content: str, tokens: Iterable["Token"], start: int) -> Iterator[Part]:
    position, base = start, start
    links: list[tuple[int, Token]] = []
    for token in tokens:
        end = position + len(token.content)
        if token.type == "text":
            yield Part("text", position, end, token.content)
        elif token.type == "text_special":
            end = position + len(token.markup)
            yield Part("text", position, end, token.content)
        elif token.type.endswith(("_open", "_close")) and token.tag != "a":
            end = position + len(token.markup)
            yield Part("open" if token.nesting > 0 else "close", position, end, raw=token.info or None)
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
    if token.type == "note":
        part.values = [(start + 2, end - 1, "note", inline_parts(content, token.children or [], start + 2))]
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


def _with_attributes(content: str, parts: Iterable[Part]) -> list[Part]:
    """The parts with the attribute list of an element as a part of its end."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else part
        if last.kind in ("close", "alone") and ATTRIBUTES.fullmatch(content, part.start, part.end):
            last.end, last.raw = part.end, last.raw and last.raw + content[part.start : part.end]
        if last.end != part.end or not joined:
            joined.append(part)
    return joined


def _whole_elements(content: str, parts: list[Part]) -> list[Part]:
    """The parts with code and untranslatable elements, from start tag to end tag, each as one standalone tag."""
    joined: list[Part] = []
    number = 0
    while number < len(parts):
        part, last = parts[number], number
        if part.kind == "open" and (
            part.name in SHOWN | HIDDEN or part.name and KEPT.search(content, part.start, part.end)
        ):
            ends = (end for end in range(number, len(parts)) if parts[end].kind == "close")
            last = next((end for end in ends if parts[end].name == part.name), number)
        if last > number:
            text = "".join(inner.text for inner in parts[number : last + 1]) if part.name not in HIDDEN else ""
            part = Part("alone", part.start, parts[last].end, text)
        joined.append(part)
        number = last + 1
    return joined


def _paired(parts: list[Part]) -> list[Part]:
    around, tags = [0], []  # elements of Markdown, in each of which tags of HTML pair for themselves
    for number, part in enumerate(parts, 1):
        is_markdown = part.kind in ("open", "close") and not part.name
        if is_markdown and part.kind == "open":
            around.append(number)
        tags.append((part.kind, f"{part.name} {around[-1]}"))
        if is_markdown and part.kind == "close":
            around.pop()
    for number in unpaired(tags):
        parts[number].kind = "alone"
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
