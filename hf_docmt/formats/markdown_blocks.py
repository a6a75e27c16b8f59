"""Blocks of Markdown that CommonMark has not, as rules of markdown-it: footnotes, containers, code without a fence."""

import re
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock

FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]:\s*")
BELOW = re.compile(FOOTNOTE.pattern + r"|:[ \t]+(?=\S)")  # or a definition, below its term or the one before it
# Lines around a container (Pandoc, Docusaurus, VitePress, MyST; blocks of PyMdown)
FENCE = re.compile(r":{3,}[ \t]*(?:[\w{.#-][^\n]*)?|/{3,}[ \t]*(?:[\w-]+[ \t]*(?:\|[^\n]*)?)?")
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
# Lines that are not text. In MDX all tags and expressions in braces are, in other files tags with such values. What
# opens such code is not in it again: so each character is looked at once, however many are open
BRACES = r"\{[^{}]*\}"
for _ in range(4):
    BRACES = rf"\{{(?:[^{{}}]|{BRACES})*\}}"
JSX = rf"<(?:/?[A-Za-z][\w.:-]*(?:\s+(?:[\w:@.\#-]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|{BRACES}))?|{BRACES}))*\s*/?|/?)>"
STATEMENT = (
    r"import\s+(?:[\w$*{][^\"'`;]*\sfrom\s+)?[\"'][^\"'\n]+[\"']|export\s[^\"'`;]*\sfrom\s+[\"'][^\"'\n]+[\"']"
    r"|export\s+(?:default|const|let|var|function|async|class)\s"
)
CODES = (
    FENCE.pattern,
    rf"(?<![^\n]\n)(?:{STATEMENT})(?:[^\n]|\n(?![ \t>]*(?:\n|$)))*",  # of MDX, up to a blank line
    r"\{/\*(?:(?!\{/\*).)*?\*/\}|%%.*?%%",  # comments of MDX and Obsidian
    r"\{(?:%-?|\{[<%])\s*(?P<name>[\w-]*(?:highlight|comment|code|mermaid|math|katex)[\w-]*)\b"  # Liquid and Hugo
    r"(?:(?!\{(?:%-?|\{[<%])\s*(?P=name)\b).)*?"
    r"\{(?:%-?\s*end|\{[<%]\s*/\s*)(?P=name)\s*(?:-?%\}|[<%>]\}\})",
    r"\{%(?:(?!\{%).)*?%\}|\{\{[<%](?:(?!\{\{[<%]).)*?[%>]\}\}",
    r"\{[ \t]*[:.#][^{}\n]*\}",  # attributes of a block
    r"\\begin\{(?P<tex>\w+\*?)\}(?:(?!\\begin\{(?P=tex)\}).)*?\\end\{(?P=tex)\}",
    r"<[A-Za-z][^<>\n]*\smarkdown(?:=[^<>\n]*)?>",  # around Markdown, for Python-Markdown
    r"\[TOC\]|;?-+8<-[^\n]*|<<<[^\n]*",  # inserted content
)
CODE, CODE_OF_MDX = (
    re.compile(rf"(?:(?:{'|'.join(codes)})[ \t]*)+", re.DOTALL)
    for codes in ((*CODES, rf"(?=<[^>{{]*\{{){JSX}"), (*CODES, JSX, BRACES))
)
# A table of Pandoc: its first line, or that below its head
GRID, DASHES = re.compile(r"\+(?:[-=:]+\+)+[ \t]*"), re.compile(r"-{2,}(?:[ \t]+-{2,})+[ \t]*")
# A line with its own text and its prefix: a callout, an abbreviation, a line of a verse
CALLOUT, ABBREVIATION = re.compile(r"\[![^\]\n]+\][+-]?[ \t]*"), re.compile(r"\*\[[^\]\n]+\]:[ \t]+")
VERSE = re.compile(r"\|[ \t]+(?=[^\n]*[^\n|\s][ \t]*(?:\n|$))")
# A directive of MyST whose body is text, between fences as code has them, and the options below such a line
DIRECTIVE = re.compile(rf"(`{{3,}})\{{(?:{TITLED}|margin|sidebar|seealso|topic)\}}[^`]*")
OPTION = re.compile(r":[\w-]+:.*")
LONGEST_TITLE = 300  # characters of such a line
INDENT = 4
HTML = re.compile(r"<(?!script|pre|style|textarea|[!?])", re.IGNORECASE)  # which a line of a container ends
COMMENTED = re.compile(r"(?:<!--(?:(?!-->).)*-->[ \t]*)+[^\s<]")  # a line of a paragraph
ENDED = ["paragraph", "reference", "blockquote", "list"]  # blocks that a container ends


def add_block_rules(parser: "MarkdownIt", is_mdx: bool) -> None:
    """Footnotes and containers end the paragraph before them. Tokens `container` tell the lines of these."""
    block = parser.block.ruler
    rules = dict(zip(block.get_active_rules(), block.getRules("")))
    references, html, paragraph = rules["reference"], rules["html_block"], rules["paragraph"]
    block.at("reference", lambda state, *place: not _is(FOOTNOTE, state, place[0]) and references(state, *place))
    block.at("html_block", lambda *place: _html_block(html, *place), {"alt": ENDED[:3]})
    code = partial(_bare_code, CODE_OF_MDX if is_mdx else CODE)
    block.before("code", "bare_code", code, {"alt": ENDED})
    block.before("code", "pandoc_table", _pandoc_table)
    block.before("code", "text_line", _text_line, {"alt": ["paragraph", "blockquote"]})
    block.before("code", "further_paragraph", _further_paragraph)
    block.before("code", "container_head", _head, {"alt": ENDED})
    block.before("fence", "directive", _directive, {"alt": ENDED})
    if is_mdx:
        block.at("paragraph", partial(_paragraph, paragraph, code))


def _is(pattern: re.Pattern, state: "StateBlock", line: int) -> bool:
    return bool(pattern.match(state.src, state.bMarks[line] + state.tShift[line], state.eMarks[line]))


def _is_whole(pattern: re.Pattern, state: "StateBlock", line: int) -> bool:
    """Whether the line is nothing else, and is not indented as code is."""
    span = state.bMarks[line] + state.tShift[line], state.eMarks[line]
    return not state.is_code_block(line) and bool(pattern.fullmatch(state.src, *span))


def _further_paragraph(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """Indented lines after a footnote, or a definition, are not code but continue it."""
    inner, above = state.blkIndent + INDENT, first - 1
    if state.sCount[first] < inner:
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
    """The line after the last one that is indented this far, with empty ones between them."""
    end = first
    for line in range(first, last):
        if not state.isEmpty(line):
            if state.sCount[line] < indent:
                break
            end = line + 1
    return end


def _bare_code(code: re.Pattern, state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """Code that ends a line. A token tells of the lines around a container, and of tags of MDX for their attributes."""
    start, after = state.bMarks[first] + state.tShift[first], first + 1
    match = None if state.is_code_block(first) else code.match(state.src, start, state.eMarks[last - 1])
    while match and after < last and state.eMarks[after - 1] < match.end():
        after += 1
    if not match or state.src[match.end() : state.eMarks[after - 1]].strip():
        return False
    if not silent:
        is_tag = match[0][0] == "<" != match[0][1] and "{" not in match[0]
        state.push("html_block" if is_tag else "container", "", 0).map = [first, after]
        state.line = after
    return True


def _paragraph(rule, code, state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """A paragraph of MDX, which tags end that are indented, too."""
    outer, end, around = state.lineMax, first + 1, (state.lineMax, state.blkIndent)
    begin, known, read_in = state.env.get("paragraph", (0, 0, around))  # lines of the last one, which others may be in
    if begin <= first < known and read_in == around:
        end = known
    while end < outer and not state.isEmpty(end) and not code(state, end, outer, True):
        end += 1
    state.lineMax, state.env["paragraph"] = end, (first, end, around)
    rule(state, first, last, silent)
    state.lineMax = outer
    return True


def _pandoc_table(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """A table with a grid, or with dashes below its head, up to a blank line."""
    has_head = first + 1 < last and not state.isEmpty(first + 1) and _is_whole(DASHES, state, first + 1)
    if not has_head and not _is_whole(GRID, state, first):
        return False
    state.push("pandoc_table", "", 0)
    state.line = next((line for line in range(first + 1, last) if state.isEmpty(line)), last)
    return True


def _text_line(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """A line whose text is a segment of its own; a callout is the first of a quotation. Footnotes end a paragraph."""
    is_quoted = not silent and bool(state.tokens) and state.tokens[-1].type == "blockquote_open"
    start, end = state.bMarks[first] + state.tShift[first], state.eMarks[first]
    patterns = [ABBREVIATION, BELOW] if silent else [ABBREVIATION, VERSE, *[CALLOUT] * is_quoted]
    match = next(filter(None, (pattern.match(state.src, start, end) for pattern in patterns)), None)
    if match and not silent and not state.is_code_block(first):
        state.push("text_line_open", "p", 1)
        token = state.push("inline", "", 0)
        token.content, token.map, token.children = state.src[match.end() : end].strip(), [first, first + 1], []
        state.push("text_line_close", "p", -1)
        state.line = first + 1
    return match is not None


def _html_block(rule, state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """HTML up to a blank line, or a line of a container; text goes on after a comment."""
    if not silent and _is(COMMENTED, state, first):
        return False
    if not silent and _is(HTML, state, first):
        end = first + 1
        while end < last and not state.isEmpty(end) and not _is_whole(FENCE, state, end):
            end += 1
        last = end
    return rule(state, first, last, silent)


def _head(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """A head has a body: the indented lines below it, which are read as blocks."""
    inner = state.blkIndent + INDENT
    end = _indented_end(state, first + 1, last, inner) if _is_whole(HEAD, state, first) else first
    if end > first + 1 and not silent:
        state.push("container", "", 0).map = [first, first + 1]
        _read_body(state, (first + 1, end), inner)
    return end > first + 1


def _directive(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """A directive has a body: the lines up to a fence as long as its own, which are read as blocks."""
    opening = state.src[state.bMarks[first] + state.tShift[first] : state.eMarks[first]]
    match = DIRECTIVE.fullmatch(opening) if _is_whole(DIRECTIVE, state, first) else None
    if not match:
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
    """The lines of a body as blocks; `state` is after them then."""
    outer = state.lineMax, state.blkIndent
    state.lineMax, state.blkIndent, state.level = lines[1], indent, state.level + 1
    state.md.block.tokenize(state, *lines)
    (state.lineMax, state.blkIndent), state.level = outer, state.level - 1
    state.line = lines[1]
