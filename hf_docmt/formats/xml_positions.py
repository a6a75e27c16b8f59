"""XML with the place of everything in its bytes, so that parts of a file are replaced and all others stay."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape

from hf_docmt.files import DataError

MAX_DEPTH = 400  # of nested elements
TAG = re.compile(rb"""(?:[^>"']+|"[^"]*"|'[^']*')*+>""")  # `>` may be in attributes, too


@dataclass
class Element:
    """An element: its name as written (`w:p`), its attributes, and the bytes of its two tags.

    `start` is where its start tag begins, `inner_start` where that ends; `inner_end` and `end` are those of its end
    tag. For `<br/>` the last three are the same. `children` are elements and texts in their order.
    """

    name: str
    attributes: dict[str, str]
    start: int
    inner_start: int = 0
    inner_end: int = 0
    end: int = 0
    children: list["Element | Text"] = field(default_factory=list)

    @property
    def local_name(self) -> str:
        """The name without its prefix."""
        return self.name.rpartition(":")[2]

    def elements(self, *names: str) -> Iterator["Element"]:
        """The child elements, of these names if any is given."""
        for child in self.children:
            if isinstance(child, Element) and (not names or child.name in names):
                yield child

    def descendants(self, *names: str) -> Iterator["Element"]:
        """The elements inside it, in the order in which they begin."""
        for child in self.elements():
            if not names or child.name in names:
                yield child
            yield from child.descendants(*names)

    @property
    def text(self) -> str:
        """All text inside it."""
        return "".join(child.text for child in self.children)


@dataclass
class Text:
    """Text without escapes, and its bytes in the file; adjacent text, entities and CDATA are one."""

    text: str
    start: int
    end: int = 0


def parse_xml(data: bytes) -> Element:
    r"""The root element of a file in UTF-8. DataError: broken, too deep, another encoding, or entities of its own.

    Comments and processing instructions are between the children and do not count as children. Texts are as expat gives
    them: line ends are `\n`.
    """
    parser = expat.ParserCreate("utf-8")
    root = Element("", {}, 0)
    stack, parts = [root], []  # elements and the parts of a text that are not closed

    def begin(name: str, attributes: dict[str, str]) -> None:
        if len(stack) > MAX_DEPTH:
            raise DataError(f"line {parser.CurrentLineNumber}: elements nested more than {MAX_DEPTH} deep; simplify it")
        close_text()
        element = Element(name, attributes, parser.CurrentByteIndex)
        stack[-1].children.append(element)
        stack.append(element)

    def end(name: str) -> None:
        close_text()
        element, position = stack.pop(), parser.CurrentByteIndex
        element.inner_start = element.inner_end = element.end = TAG.match(data, element.start).end()
        if not data.endswith(b"/>", element.start, element.end):
            element.inner_end, element.end = position, TAG.match(data, position).end()

    def characters(text: str = "") -> None:
        if not parts:
            stack[-1].children.append(Text("", parser.CurrentByteIndex))
        parts.append(text)

    def close_text(*_) -> None:
        if parts:
            last: Any = stack[-1].children[-1]
            last.text, last.end = "".join(parts), parser.CurrentByteIndex
            parts.clear()

    def refuse_entity(*_) -> None:
        raise DataError(f"line {parser.CurrentLineNumber}: the file declares an entity; replace it by its text")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, characters
    parser.StartCdataSectionHandler = characters
    parser.CommentHandler = parser.ProcessingInstructionHandler = close_text
    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise DataError(f"line {error.lineno}, column {error.offset + 1}: broken XML ({error}); repair it") from error
    return next(root.elements())


def escape_text(text: str) -> str:
    """Text as the content of an XML element."""
    return escape(text)
