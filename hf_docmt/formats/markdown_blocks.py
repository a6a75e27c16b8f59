"""Blocks of Markdown that CommonMark has not, as rules of markdown-it: footnotes, containers, code without a fence."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock

FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]:\s*")
BELOW = re.compile(FOOTNOTE.pattern + r"|:[ \t]+(?=\S)")  # or a definition, below its term or the one before it
# Lines around a container (Pandoc, Docusaurus, VitePress, MyST; blocks of PyMdown)
FENCE = re.compile(r":{3,}[ \t]*(?:[\w{.#-].*)?|/{3,}[ \t]*(?:[\w-]+[ \t]*(?:\|.*)?)?")
# The line above an indented body (Python-Markdown's admonitions; details and tabs of PyMdown)
HEAD = re.compile(r"""(?:!!!|\?\?\?\+?)[ \t]*[\w-]+(?:[ \t]+[\w-]+)*(?:[ \t]+".*")?[ \t]*|===[!+]*[ \t]+".*"[ \t]*""")
# The title in such a line, where it has no markup; of Docusaurus, VitePress, PyMdown, Python-Markdown
TITLED = (
    r"(?:abstract|admonition|attention|bug|caution|danger|details|error|example|failure|hint|important|info|note|"
    r"question|quote|success|summary|tab|tip|warning)"
)
CONTAINER_TITLE = re.compile(
    rf"(?::::+[ \t]*(?:[\w-]+\[|{TITLED}[ \t]+)|(?::::+|```+)\{{{TITLED}\}}[ \t]+|"
    rf"///+[ \t]*{TITLED}[ \t]*\|[ \t]*|(?:!!!|\?\?\?|===)[^\"\n]*\")"
    r"([^\W_][^]\"`*_<[{=\\]*?)[]\" \t]*$"
)
# Code that sites and TeX read, and where it ends: statements of MDX behind a blank line, its comments, Liquid, TeX
STATEMENT = re.compile(r"""(?:import\s+(?:[\w$*{][^"'`;]*\sfrom\s+)?|export\s[^"'`;]*\sfrom\s+)["'][^"'\n]+["']|"""
                       r"export\s+(?:default|const|let|var|function|async|class)\s")  # fmt: skip
COMMENT = re.compile(r"\{/\*.*?\*/\}", re.DOTALL)
LIQUID = re.compile(r"\{%-?\s*(highlight|raw|comment|codeblock|mermaid)\b.*?\{%-?\s*end\1\s*-?%\}", re.DOTALL)
TEX = re.compile(r"\\begin\{(\w+\*?)\}.*?\\end\{\1\}", re.DOTALL)
# A directive of MyST whose body is text, between fences as code has them, and the options below such a line
DIRECTIVE = re.compile(rf"(`{{3,}})\{{(?:{TITLED}|margin|sidebar|seealso|topic)\}}[^`]*")
OPTION = re.compile(r":[\w-]+:.*")
LONGEST_TITLE = 300  # characters of such a line
INDENT = 4
DEEPEST = 20  # containers in each other
HTML = re.compile(r"<(?!script|pre|style|textarea|[!?])", re.IGNORECASE)  # which a line of a container ends
ENDED = ["paragraph", "reference", "blockquote", "list"]  # what a container ends


def add_block_rules(parser: "MarkdownIt") -> None:
    """Footnotes and containers end the paragraph before them. Tokens `container` tell the lines of these."""
    block = parser.block.ruler
    rules = dict(zip(block.get_active_rules(), block.getRules("")))
    references, html = rules["reference"], rules["html_block"]
    block.at("reference", lambda state, *place: not _is(FOOTNOTE, state, place[0]) and references(state, *place))
    block.at("html_block", lambda *place: _html_block(html, *place), {"alt": ENDED[:3]})
    block.before("code", "bare_code", _bare_code, {"alt": ENDED[:1]})
    block.before("paragraph", "footnote", _footnote, {"alt": ["paragraph", "blockquote"]})
    block.before("code", "further_paragraph", _further_paragraph)
    block.before("code", "container_fence", _fence, {"alt": ENDED})
    block.before("code", "container_head", _head, {"alt": ENDED})
    block.before("fence", "directive", _directive, {"alt": ENDED})


def _is(pattern: re.Pattern, state: "StateBlock", line: int) -> bool:
    return bool(pattern.match(state.src, state.bMarks[line] + state.tShift[line], state.eMarks[line]))


def _is_whole(pattern: re.Pattern, state: "StateBlock", line: int) -> bool:
    """Whether the line is nothing else, and is not indented as code is."""
    span = state.bMarks[line] + state.tShift[line], state.eMarks[line]
    return state.sCount[line] - state.blkIndent < INDENT and bool(pattern.fullmatch(state.src, *span))


def _footnote(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """A footnote, or a definition, is a paragraph of its own."""
    return silent and _is(BELOW, state, first)


def _further_paragraph(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """Indented lines behind a footnote, or a definition, are no code but go on with it."""
    inner, above = state.blkIndent + INDENT, first - 1
    if state.sCount[first] < inner or state.env.get("containers", 0) == DEEPEST:
        return False
    while above >= 0 and (state.isEmpty(above) or state.sCount[above] >= inner):
        above -= 1
    while above > 0 and not _is(BELOW, state, above) and not state.isEmpty(above - 1):
        above -= 1
    if above < 0 or state.sCount[above] < state.blkIndent or not _is(BELOW, state, above):
        return False
    _read_body(state, (first, _indented_end(state, first, last, inner)), inner)
    return True


def _indented_end(state: "StateBlock", first: int, last: int, indent: int) -> int:
    """Behind the last of the lines that are indented so far, with empty ones between them."""
    end = first
    for line in range(first, last):
        if not state.isEmpty(line):
            if state.sCount[line] < indent:
                break
            end = line + 1
    return end


def _bare_code(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """Code that ends a line: no token tells its text."""
    start, limit = state.bMarks[first] + state.tShift[first], state.eMarks[last - 1]
    if state.sCount[first] - state.blkIndent >= INDENT or state.src[start] not in "ie{\\":
        return False
    match = next(filter(None, (code.match(state.src, start, limit) for code in (COMMENT, LIQUID, TEX))), None)
    after = first + 1
    if match:
        while after < last and state.eMarks[after - 1] < match.end():
            after += 1
        match = None if state.src[match.end() : state.eMarks[after - 1]].strip() else match
    elif not first or state.isEmpty(first - 1):
        while after < last and not state.isEmpty(after):
            after += 1
        match = STATEMENT.match(state.src, start, state.eMarks[after - 1])
    if match and not silent:
        state.line = after
    return match is not None


def _fence(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    found = _is_whole(FENCE, state, first)
    if found and not silent:
        state.push("container", "", 0).map = [first, first + 1]
        state.line = first + 1
    return found


def _html_block(rule, state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """HTML up to a blank line, or a line of a container."""
    if not silent and _is(HTML, state, first):
        end = first + 1
        while end < last and not state.isEmpty(end) and not _is_whole(FENCE, state, end):
            end += 1
        last = end
    return rule(state, first, last, silent)


def _head(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """A head has a body: the indented lines below it, which are read as blocks."""
    depth = state.env.get("containers", 0)
    if depth == DEEPEST or not _is_whole(HEAD, state, first):
        return False
    inner = state.blkIndent + INDENT
    end = _indented_end(state, first + 1, last, inner)
    if end > first + 1 and not silent:
        state.push("container", "", 0).map = [first, first + 1]
        _read_body(state, (first + 1, end), inner)
    return end > first + 1


def _directive(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """A directive has a body: the lines up to a fence as long as its own, which are read as blocks."""
    opening = state.src[state.bMarks[first] + state.tShift[first] : state.eMarks[first]]
    match = DIRECTIVE.fullmatch(opening) if _is_whole(DIRECTIVE, state, first) else None
    if not match or state.env.get("containers", 0) == DEEPEST:
        return False
    closing, body = re.compile(match[1] + "`*[ \t]*"), first + 1
    while body < last and _is_whole(OPTION, state, body):
        body += 1
    end = body
    while end < last and not _is_whole(closing, state, end):
        end += 1
    if end == last:
        return False
    if not silent:
        state.push("container", "", 0).map = [first, first + 1]
        _read_body(state, (body, end), state.blkIndent)
        state.line = end + 1
    return True


def _read_body(state: "StateBlock", lines: tuple[int, int], indent: int) -> None:
    """The lines of a body as blocks; `state` stands behind them then."""
    outer, depth = (state.lineMax, state.blkIndent), state.env.get("containers", 0)
    state.lineMax, state.blkIndent, state.env["containers"] = lines[1], indent, depth + 1
    state.md.block.tokenize(state, *lines)
    (state.lineMax, state.blkIndent), state.env["containers"] = outer, depth
    state.line = lines[1]
