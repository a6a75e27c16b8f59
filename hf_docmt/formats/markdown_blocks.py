"""Blocks of Markdown that CommonMark has not, as rules of markdown-it: footnotes, and containers with their bodies."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock

FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]:\s*")
# Lines around a container (Pandoc, Docusaurus, VitePress, MyST; blocks of PyMdown)
FENCE = re.compile(r"(?::{3,}|/{3,})[ \t]*(?:[\w{.#-].*)?")
# The line above an indented body (Python-Markdown's admonitions; details and tabs of PyMdown)
HEAD = re.compile(r"""(?:!!!|\?\?\?\+?)[ \t]*[\w-]+(?:[ \t]+[\w-]+)*(?:[ \t]+".*")?[ \t]*|===[!+]*[ \t]+".*"[ \t]*""")
# The title in such a line, where it has no markup; of Docusaurus, VitePress, PyMdown, Python-Markdown
CONTAINER_TITLE = re.compile(
    r"(?::{3,}[ \t]*[\w-]+(?:\[|[ \t]+)|/{3,}[ \t]*[\w-]+[ \t]*\|[ \t]*|(?:!!!|\?\?\?|===)[^\"\n]*\")"
    r"([^\W\d_][^]\"`*_<[{=\r\n]*?)[]\" \t]*$"
)
LONGEST_TITLE = 300  # characters of such a line
INDENT = 4
ENDED = ["paragraph", "reference", "blockquote", "list"]  # what a container ends


def add_block_rules(parser: "MarkdownIt") -> None:
    """Footnotes and containers end the paragraph before them. Tokens `container` tell the lines of these."""
    block = parser.block.ruler
    references = dict(zip(block.get_active_rules(), block.getRules("")))["reference"]
    block.at("reference", lambda state, *place: not _is(FOOTNOTE, state, place[0]) and references(state, *place))
    block.before("paragraph", "footnote", _footnote, {"alt": ["paragraph", "blockquote"]})
    block.before("code", "container_fence", _fence, {"alt": ENDED})
    block.before("code", "container_head", _head, {"alt": ENDED})


def _is(pattern: re.Pattern, state: "StateBlock", line: int) -> bool:
    return bool(pattern.match(state.src, state.bMarks[line] + state.tShift[line], state.eMarks[line]))


def _is_whole(pattern: re.Pattern, state: "StateBlock", line: int) -> bool:
    """Whether the line is nothing else, and is not indented as code is."""
    span = state.bMarks[line] + state.tShift[line], state.eMarks[line]
    return state.sCount[line] - state.blkIndent < INDENT and bool(pattern.fullmatch(state.src, *span))


def _footnote(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """A footnote is a paragraph of its own."""
    return silent and _is(FOOTNOTE, state, first)


def _fence(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    found = _is_whole(FENCE, state, first)
    if found and not silent:
        state.push("container", "", 0).map = [first, first + 1]
        state.line = first + 1
    return found


def _head(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """A head has a body: the indented lines below it, which are read as blocks."""
    if not _is_whole(HEAD, state, first):
        return False
    inner, end, after = state.blkIndent + INDENT, first + 1, first + 1
    while after < last and (state.isEmpty(after) or state.sCount[after] >= inner):
        after += 1
        end = end if state.isEmpty(after - 1) else after
    if end == first + 1:
        return False
    if not silent:
        state.push("container", "", 0).map = [first, first + 1]
        outer, state.lineMax, state.blkIndent = (state.lineMax, state.blkIndent), end, inner
        state.md.block.tokenize(state, first + 1, end)
        (state.lineMax, state.blkIndent), state.line = outer, end
    return True
