"""Entries of catalogs of gettext (PO, POT).

The format: https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from hf_docmt.files import DataError

LINE = re.compile(r"[^\n]*\n|[^\n]+")
STRING = re.compile(r'\s*(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)?\s*"((?:[^"\\]|\\.)*)"\s*')
ESCAPE = re.compile(r"\\(x[\da-fA-F]{1,2}|[0-7]{1,3}|.)")
LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass
class Message:
    """An entry: its strings by keyword, and the places of its flags, what follows them, and `msgstr`."""

    line: int
    strings: dict[str, list[str]] = field(default_factory=dict)
    start: int = 0
    end: int = 0
    flags: int | None = None
    top: int | None = None
    is_fuzzy: bool = False

    def text(self, keyword: str) -> str:
        return "".join(map(unescaped, self.strings.get(keyword, [])))

    @property
    def forms(self) -> list[str]:
        return [keyword for keyword in self.strings if keyword.startswith("msgstr")]

    @property
    def has_translation(self) -> bool:
        return not self.is_fuzzy and all(map(self.text, self.forms))


def po_messages(text: str) -> Iterator[Message]:
    """The entries of a catalog without obsolete ones. DataError: a line that does not belong to an entry."""
    message, keyword = Message(1), ""
    for number, match in enumerate(LINE.finditer(text), 1):
        line, span = match[0].strip(), match.span()
        string = STRING.fullmatch(line)
        begins = line.startswith("#") or string and string[1] in ("msgctxt", "msgid")
        if begins and message.forms or line.startswith("#~"):
            if message.forms:
                yield message
            message, keyword = Message(number), ""
        if string and (string[1] or keyword):
            if string[1] and string[1] in message.strings:
                raise DataError(f"line {number}: {string[1]} a second time in one entry; repair it (msgfmt -c)")
            keyword = string[1] or keyword
            message.line = number if keyword == "msgid" and string[1] else message.line
            message.strings.setdefault(keyword, []).append(string[2])
            message.top = span[0] if message.top is None else message.top
            if keyword.startswith("msgstr"):
                message.start, message.end = message.start or span[0], span[1]
        elif line.startswith(("#,", "#=")):
            message.flags = match.start() + match[0].index("#,") + 2 if line.startswith("#,") else message.flags
            message.is_fuzzy |= "fuzzy" in re.split(r"[\s,=#]+", line)
        elif line.startswith("#|"):
            message.top = span[0] if message.top is None else message.top
        elif line and not line.startswith("#"):
            raise DataError(f"line {number}: expected a comment or a string of PO, got {line[:40]!r}; repair it")
    if message.forms:
        yield message
    elif message.strings:
        raise DataError(f"line {message.line}: an entry without msgstr at the end of the file; is the file cut off?")


def unescaped(text: str) -> str:
    """A string of PO without its escapes."""

    def character(match: re.Match) -> str:
        code = match[1]
        if code[0] == "x" and len(code) > 1:
            return chr(int(code[1:], 16))
        return chr(int(code, 8)) if code[0] in "01234567" else LETTERS.get(code, code)

    return ESCAPE.sub(character, text)
