"""Markdown: paragraphs, headings, items and cells as segments, with emphasis, links, code and inline HTML as tags."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, ClassVar

from hf_docmt.files import DataError
from hf_docmt.formats.document_format import Piece, Segment, Tag, joined, trimmed
from hf_docmt.formats.html import CLOSED_BY, add_slots, page_events
from hf_docmt.formats.markdown_blocks import CONTAINER_TITLE, FOOTNOTE, LONGEST_TITLE
from hf_docmt.formats.markdown_inline import (
    CARRIED,
    ELEMENT,
    HEAVY,
    LIGHT,
    MOST_NESTED,
    Part,
    escaped,
    escaped_line_start,
    escaped_title,
    inline_parts,
    marked_parser,
)
from hf_docmt.formats.text_positions import Slot, TextFormat, TextPositions

if TYPE_CHECKING:
    from markdown_it.token import Token

LINE_END = r"\r\n?|\n"
FRONT_MATTER = re.compile(
    r"(---[ \t]*\r?\n(?=[\w\"'-]+[ \t]*:|#).*?^(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n.*?^\+\+\+)[ \t]*(?=[\r\n]|\Z)",
    re.S | re.M,
)
# before the text of a block: a footnote, the box of a task, a definition (PHP Markdown)
BLOCK_START = re.compile(FOOTNOTE.pattern + r"|\[[ xX]\]\s+|:\s+")
FIRST_BAR, BLANKS, CELL_END = re.compile(r"[ \t]*\|?"), re.compile(r"[ \t]*"), re.compile(r"[^|\r\n]*\|?")
HTML_EMPHASIS, TABLE = ("paragraph", "with emphasis as HTML"), ("Pandoc table", "left alone")
CONTAINERS = ("blockquote_open", "list_item_open")
DEEP = ("deeply nested line", "left alone")
EMPTY_EMPHASIS = re.compile(r"^[ \t]*(?:~~~|(?:[*_][ \t]*){3,}$)", re.M)  # which is read as a fence or a rule
EMPHASIS = {"*": "em", "_": "em", "**": "strong", "__": "strong", "~~": "del", "==": "mark"}


@dataclass
class Content:
    """The inline content of a block and, for each of its characters and its end, the place in the file."""

    text: str
    places: list[int]
    tokens: list["Token"]
    kind: str  # paragraph, heading, cell
    line_end: str  # between two of its lines, with the marks of quotations
    begins_line: bool = False  # a paragraph, or a row without a bar: its text may not look like another block


class MarkdownFormat(TextFormat):
    """CommonMark with the tables and strikethrough of GitHub. Titles and texts of images are separate segments.

    Unchanged: front matter, code, definitions of references, the lines that begin and end containers except plain
    titles in them (`markdown_blocks`). HTML blocks are read as pages are.
    """

    name = "markdown"
    line_break = Tag("alone", "<br>", breaks=True)
    endings: ClassVar[tuple[str, ...]] = (".md", ".markdown", ".qmd", ".rmd")
    line_end = LINE_END
    placeholders = re.compile(  # words with a letter below or above the line, citations
        r"\w+~\w{1,8}~\w*|\w+\^\w{1,8}\^\w*|\[[^\[\]\n@]*(?<![\w/.])@[\w:.#+/-]+[^\[\]\n]*\]"
    )
    is_mdx: ClassVar[bool] = False

    @classmethod
    def tag_name(cls, raw: str) -> str | None:
        """Emphasis by its element, as which it is written where marks would not be read as such."""
        return EMPHASIS.get(raw) or (
            raw.strip("</>") if raw.strip("</>") in EMPHASIS.values() else super().tag_name(raw)
        )

    def find(self, text: str) -> None:
        self.references: dict = {}
        front_matter = FRONT_MATTER.match(text)
        head = front_matter.end() if front_matter else 0
        blank = "\n" * len(re.findall(LINE_END, text[:head]))
        tokens = marked_parser(self.is_mdx).parse(blank + text[head:], self.references)
        for block in _contents(self.page, tokens):
            self._add_slot(block, inline_parts(block.text, block.tokens), f"line {self.page.line(block.places[0])}")
        quotations = 0  # around a token, whose marks begin its lines
        for token in tokens:
            quotations += token.nesting * token.type.startswith("blockquote")
            if token.type == "html_block" and not quotations:
                self._add_html(*token.map)
            if token.type == "container":
                self._add_container_title(token.map[0])
            if token.type == "pandoc_table":
                self.remarks[TABLE] += 1
            if token.level >= MOST_NESTED - 1 and token.type in CONTAINERS:  # its content has no tokens
                lines = [text[slice(*self.page.line_span(number))] for number in range(*token.map)]
                self.remarks[DEEP] += sum(any(map(str.isalpha, line)) for line in lines)

    def _inline_parts(self, content: str) -> list[Part]:
        (token,) = marked_parser(self.is_mdx).parseInline(content, self.references)
        return inline_parts(content, token.children or [])

    def _add_html(self, first: int, last: int) -> None:
        start, end = self.page.line_starts[first], self.page.line_span(last - 1)[1]
        events = page_events(self.page.text[start:end])
        for event in events:
            event.start, event.end = event.start + start, event.end + start
        add_slots(self.page, events, self.options.source_lang)

    def _add_container_title(self, number: int) -> None:
        start, end = self.page.line_span(number)
        line = self.page.text[start:end].rstrip()
        title = CONTAINER_TITLE.search(line) if len(line) <= LONGEST_TITLE else None
        if title and any(map(str.isalpha, title[1])):
            first, last = (start + place for place in title.span(1))
            location = f"line {self.page.line(first)}, title"
            self.page.slots.append(Slot(first, last, Segment([title[1]], location, is_value=True), plain_title))

    def _add_slot(self, block: Content, parts: list[Part], location: str, is_value: bool = False) -> None:
        begin = None if is_value else BLOCK_START.match(block.text)
        for part in parts:
            for first, last, what, inner in part.values:
                self._add_value(block, part, (first, last), f"{location}, {what}", inner)
        parts = _trimmed(parts, begin.end() if begin else 0)
        if not any(part.kind == "text" and any(map(str.isalpha, part.text)) for part in parts):
            return
        first, last = parts[0].start, parts[-1].end
        start, end, segment = block.places[first], block.places[last], Segment([], location)
        slot = MarkdownSlot(start, end, segment, str, block=block, read=self._inline_parts, remarks=self.remarks)
        for part in parts:
            if part.kind == "text":
                segment.pieces.append(part.text)
                continue
            span = block.places[part.start], block.places[part.end]
            tag = Tag(part.kind, part.raw) if part.raw else self.page.tag(part.kind, *span, part.text, part.breaks)
            slot.contents[id(tag)] = part.raw or block.text[part.start : part.end]
            segment.pieces.append(tag)
        segment.pieces = joined(segment.pieces)
        segment.is_value = is_value
        (self.page.add_value if is_value else self.page.slots.append)(slot)

    def _add_value(self, block: Content, part: Part, span: tuple[int, int], location: str, inner: list[Part]) -> None:
        if location.endswith(("alt", "note")):
            return self._add_slot(block, inner, location, is_value=True)
        if any(map(str.isalpha, inner[0].text)):
            start, end = (block.places[place] for place in span)
            escape = partial(escaped_title, quote=block.text[span[0]], in_cell=block.kind == "cell")
            self.page.add_value(Slot(start, end, Segment([inner[0].text], location, is_value=True), escape))
        return None


class MdxFormat(MarkdownFormat):
    """Markdown with JSX: text is between tags, and braces have expressions."""

    name = "mdx"
    line_break = Tag("alone", "<br/>", breaks=True)
    endings = (".mdx",)
    is_mdx = True


@dataclass
class MarkdownSlot(Slot):
    """A slot whose text is written with the fewest escapes with which it is read as what it is."""

    block: Content = field(kw_only=True)
    read: Callable[[str], list[Part]] = field(kw_only=True)
    remarks: Counter = field(kw_only=True)
    contents: dict[int, str] = field(default_factory=dict)  # id of a tag -> its characters in the content

    def rendered(self, pieces: Sequence[Piece], raw: Callable[[Tag], str]) -> str:
        pieces = _with_outer_space(_behind_text(pieces, self._lead(pieces)) if self.block.begins_line else pieces)
        for pattern, is_bare in ((LIGHT, True), (LIGHT, False), (HEAVY, True), (HEAVY, False)):
            texts = self._texts(pieces, pattern, is_bare)
            if self._is_read(pieces, texts):
                return self._joined(pieces, texts, raw)
        self.remarks[HTML_EMPHASIS] += 1
        return self._joined(pieces, texts, lambda tag: _as_html(tag, raw(tag)))

    def _lead(self, pieces: Sequence[Piece]) -> int:
        """How many pieces the segment began with before."""
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self.segment.pieces, pieces)))

    def _texts(self, pieces: Sequence[Piece], pattern: re.Pattern, is_bare: bool) -> list[str]:
        """The texts of the pieces with escapes, and of tags what the content has of them.

        `is_bare`: addresses have none, with which they would not be read as such.
        """
        texts = []
        line_start = True
        for piece in pieces:
            if isinstance(piece, Tag) and piece.raw is not None:
                texts.append(self.contents.get(id(piece), piece.raw))
                line_start = piece.breaks
                continue
            text = re.sub(r"\s*\n\s*", "\n", piece if isinstance(piece, str) else piece.text)
            text = text if self.block.kind == "paragraph" else text.replace("\n", " ")
            text = text if is_bare and isinstance(piece, Tag) else escaped(text, pattern)
            head, end, tail = text.partition("\n")
            tail = escaped_line_start(end + tail) if end else ""
            text = (escaped_line_start(head) if line_start and self.block.begins_line else head) + tail
            line_start = text.endswith("\n")
            texts.append(text)
        if self.block.kind == "heading" and texts:
            texts[-1] = re.sub(r"(^|\s)(#+\s*)$", r"\1\\\2", texts[-1])
        return texts

    def _is_read(self, pieces: Sequence[Piece], texts: list[str]) -> bool:
        """Whether the parser reads these texts as the pieces that they stand for."""
        content = "".join(texts).strip()
        if self.block.begins_line and EMPTY_EMPHASIS.search(content):
            return False
        read = [
            part.text if part.kind == "text" else (part.raw or content[part.start : part.end],)
            for part in self.read(content)
        ]
        meant: list = []
        for piece, text in zip(pieces, texts):
            literal = isinstance(piece, Tag) and piece.raw is not None
            meant.append((text,) if literal else piece if isinstance(piece, str) else piece.text)
        return _normal(read) == _normal(meant)

    def _joined(self, pieces: Sequence[Piece], texts: list[str], raw: Callable[[Tag], str]) -> str:
        parts = []
        for piece, text in zip(pieces, texts):
            if isinstance(piece, Tag) and piece.raw is not None:
                text = raw(piece)
            elif self.block.kind == "cell":
                text = text.replace("|", "\\|")
            else:
                text = text.replace("\n", self.block.line_end)
            parts.append(text)
        return "".join(parts)


def plain_title(text: str) -> str:
    """A title of a container, with other marks for those that would end it or be read as markup."""
    return " ".join(text.split()).translate(str.maketrans('"`*[]{}<>_=\\', "'''()()() -/"))


def _as_html(tag: Tag, raw: str) -> str:
    """Emphasis as an HTML element, which is allowed anywhere."""
    name = EMPHASIS.get(raw) if tag.kind != "alone" else None
    return f"<{'/' * (tag.kind == 'close')}{name}>" if name else raw


def _contents(page: TextPositions, tokens: list["Token"]) -> Iterator[Content]:
    """The inline contents of a file with their places."""
    row, cell = -1, 0  # the line of a table, and where its next cell begins
    containers: list[Token] = []  # quotations and items that the token is in
    for number, token in enumerate(tokens):
        before = tokens[number - 1]
        if token.type in CONTAINERS:
            containers.append(token)
        elif token.type in ("blockquote_close", "list_item_close"):
            containers.pop()
        if token.type != "inline" or not token.map:
            continue
        first, last = token.map
        if before.tag in ("td", "th"):
            is_first = first != row
            if is_first:
                row, cell = first, _row_start(page, first, containers)
            has_bar = page.text.endswith("|", 0, cell)
            content, cell = _cell(page, token, cell)
            content.begins_line = is_first and not has_bar
        elif before.markup.startswith("#"):
            start = page.text.index(before.markup, page.line_starts[first]) + len(before.markup)
            content, _ = _cell(page, token, start)
            content.kind = "heading"
        else:
            content = _lines(page, token, first)
        content.tokens = token.children or []
        content.begins_line &= before.type != "text_line_open"
        if content.text:
            yield content


def _lines(page: TextPositions, token: "Token", first: int) -> Content:
    """The content of a paragraph, whose lines end as those of the file do and may lack their prefix."""
    places: list[int] = []
    ends: list[str] = []
    lines = token.content.split("\n")
    for number, line in enumerate(lines, start=first):
        start, end = page.line_span(number)
        source = page.text[start:end].rstrip()
        text = line.lstrip(" \t")
        if not source.endswith(text.rstrip()):
            raise DataError(f"line {number + 1}: {source!r} is read as {line!r}, not part of it; write it plainly")
        begin = start + len(source) - len(text.rstrip())
        if places:
            ends.append(page.text[places[-1] : begin])
        places += [begin] * (len(line) - len(text)) + [*range(begin, begin + len(text) + 1)]
    return Content(token.content, places, [], "paragraph", ends[0].lstrip(" \t") if ends else " ", True)


def _row_start(page: TextPositions, line: int, containers: list["Token"]) -> int:
    """The start of the first cell of a row, after the marks of its containers, such as that of an item."""
    start = page.line_starts[line]
    for container in containers:
        mark = container.info + container.markup
        if container.type == "blockquote_open" or container.map[0] == line:
            start = page.text.index(mark, start) + len(mark)
    return FIRST_BAR.match(page.text, start).end()


def _cell(page: TextPositions, token: "Token", start: int) -> tuple[Content, int]:
    """The content of the cell that begins at a place, and where the next one does; a bar in it has a backslash."""
    places: list[int] = []
    place = BLANKS.match(page.text, start).end() if token.content else start
    for character in token.content:
        places.append(place)
        place += page.text.startswith("\\|", place) and character == "|"
        if page.text[place] != character:
            raise DataError(f"line {page.line(place)}: expected the cell {token.content!r}; write it plainly")
        place += 1
    end = CELL_END.match(page.text, place).end()
    return Content(token.content, [*places, place], [], "cell", " "), end


def _trimmed(parts: list[Part], start: int) -> list[Part]:
    """The parts from a character on, without white space at both ends."""
    own = [part for part in parts if part.end > start]
    if own and own[0].start < start:
        own[0] = Part("text", start, own[0].end, own[0].text[start - own[0].start :])
    solid = [number for number, part in enumerate(own) if part.kind != "text" or part.text.strip()]
    return own[solid[0] : solid[-1] + 1] if solid else []


def _behind_text(pieces: Sequence[Piece], lead: int) -> list[Piece]:
    """The pieces with a comment, or the like, at the end where it would begin a block of HTML; `lead` of them stay."""
    own, moved, at_start = list(pieces[:lead]), [], lead == 0
    for piece in pieces[lead:]:
        if at_start and isinstance(piece, Tag) and _begins_block(piece):
            moved.append(piece)
        elif own or not isinstance(piece, str) or piece.strip():  # a blank at the start would not be written
            own.append(piece)
            at_start = piece.breaks if isinstance(piece, Tag) else piece.rstrip(" ").endswith("\n")
    return own + moved


def _begins_block(tag: Tag) -> bool:
    """Whether it is a piece of HTML that would not go on a paragraph at the start of a line."""
    element = ELEMENT.match(tag.raw or "")
    name = element[2].lower() if element else ""
    return tag.kind == "alone" and (name in CLOSED_BY["p"] or (tag.raw or "").startswith(("<!", "<?")))


def _with_outer_space(pieces: Iterable[Piece]) -> list[Piece]:
    """The pieces with white space outside of elements, as emphasis has to be, none at ends of lines."""

    def ends_line(tag: Tag) -> bool:
        return tag.breaks and not (tag.raw or "").startswith("<")

    def opens(piece: Piece) -> bool:
        return isinstance(piece, Tag) and piece.kind == "open"

    moved: list[Piece] = []
    for piece in pieces:
        last = moved[-1] if moved else ""
        if _reads_otherwise(last, piece):
            moved.append(" ")
        elif isinstance(last, Tag) and isinstance(piece, Tag):
            if (last.raw or "").endswith("`") and (piece.raw or "").startswith("`"):
                moved.append(" ")  # or they were one code
        elif isinstance(piece, str) and isinstance(last, Tag) and ends_line(last):
            piece = piece.lstrip()
        elif isinstance(piece, str) and piece[:1].isspace() and last and opens(last):
            opened = len(moved)
            while opened and opens(moved[opened - 1]):
                opened -= 1
            moved.insert(opened, " ")
            piece = piece.lstrip()
        elif isinstance(piece, Tag) and isinstance(last, str) and last[-1:].isspace():
            if ends_line(piece):
                moved[-1] = last.rstrip()
            elif piece.kind == "close":
                moved[-1:] = [last.rstrip(), piece]
                piece = " "
        before = moved.pop() if moved and isinstance(moved[-1], str) and isinstance(piece, str) else ""
        moved.append(before + piece if isinstance(before, str) and isinstance(piece, str) else piece)
    return trimmed(moved)


def _reads_otherwise(before: Piece, after: Piece) -> bool:
    """Whether a formula or emoji would touch a letter, which would break it, or a footnote would become a link."""
    texts = [piece if isinstance(piece, str) else piece.text for piece in (before, after)]
    carried = [isinstance(piece, Tag) and CARRIED.fullmatch(piece.text) for piece in (before, after)]
    is_link = isinstance(before, Tag) and (before.raw or "").startswith("[^") and re.match(r"[(\[:]", texts[1])
    return bool(is_link or carried[0] and re.match(r"\w", texts[1]) or carried[1] and re.search(r"\w$", texts[0]))


def _normal(pieces: Iterable) -> list:
    """Pieces with adjacent texts as one, and a blank for white space, with none at both ends."""
    return trimmed(re.sub(r"\s+", " ", piece) if isinstance(piece, str) else piece for piece in joined(pieces))
