"""Catalogs of gettext (PO, POT): `msgid` is translated into `msgstr`, which is made or replaced.

The format: https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html
"""

import gettext
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from hf_docmt.data.language_codes import primary_language
from hf_docmt.files import DataError
from hf_docmt.formats.document_format import DocumentFormat, FormatOptions, Piece, Segment
from hf_docmt.formats.inline_strings import (
    ICU_MESSAGE,
    PLACEHOLDERS,
    has_words,
    is_message,
    locale_code,
    plain_string,
    string_pieces,
)
from hf_docmt.formats.text_positions import Edit, decoded, replaced

LINE = re.compile(r"[^\n]*\n|[^\n]+")
STRING = re.compile(r'\s*(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)?\s*"((?:[^"\\]|\\.)*)"\s*')
ESCAPE = re.compile(r"\\(x[\da-fA-F]{1,2}|[0-7]{1,3}|.)")
LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
ESCAPES = {ord(character): f"\\{letter}" for letter, character in [*LETTERS.items(), ("\\", "\\"), ('"', '"')]}
PLURAL_FORMS = re.compile(r"^Plural-Forms:\s*nplurals\s*=\s*(\d+)\s*;\s*plural\s*=\s*([^;\n]+)", re.MULTILINE)
WIDTH = 79  # of lines, as msgcat wraps them


@dataclass
class Message:
    """An entry: its strings by keyword, the places of these and of its flags, and where its `msgstr` lines lie."""

    line: int
    strings: dict[str, list[str]] = field(default_factory=dict)
    start: int = 0
    end: int = 0
    flags: list[tuple[int, int]] = field(default_factory=list)
    previous: list[tuple[int, int]] = field(default_factory=list)  # msgids that a fuzzy translation belongs to
    is_fuzzy: bool = False

    def text(self, keyword: str) -> str:
        return "".join(map(_unescaped, self.strings.get(keyword, [])))

    @property
    def forms(self) -> list[str]:
        return [keyword for keyword in self.strings if keyword.startswith("msgstr")]

    @property
    def has_translation(self) -> bool:
        return not self.is_fuzzy and all(map(self.text, self.forms))


class PoFormat(DocumentFormat):
    """Entries of a catalog are segments, plurals are two: the text for one and that for other numbers.

    Obsolete entries stay. An entry that is translated is fuzzy no longer.
    """

    name = "po"
    endings = (".po", ".pot")
    first_bytes = re.compile(rb'(?:#.*\n|\s)*msgid "')
    placeholders = PLACEHOLDERS
    takes = frozenset({"only_missing"})

    def parse(self, data: bytes, options: FormatOptions) -> list[Segment]:
        charset = re.search(rb"charset=([\w-]+)", data[:8192])
        self.encoding = charset[1].decode("ascii") if charset and charset[1] != b"CHARSET" else "utf-8"
        self.text, self.encoding, self.mark = decoded(data, self.encoding)
        self.options = options
        messages = list(_messages(self.text))
        strings = [texts for message in messages for texts in message.strings.values()]
        self.wraps = any(not text.endswith("\\n") for texts in strings for text in texts[:-1] if text)
        self.header = next(
            (each for each in messages if not each.text("msgid") and "msgctxt" not in each.strings), None
        )
        self._read_plural_forms()
        self.slots: list[tuple[Message, list[Segment]]] = []
        for message in messages:
            keywords = [keyword for keyword in ("msgid", "msgid_plural") if keyword in message.strings]
            pieces = [string_pieces(message.text(keyword)) for keyword in keywords]
            if any(is_message(message.text(keyword)) for keyword in keywords):
                self.remarks[ICU_MESSAGE] += 1
            elif message is not self.header and any(map(has_words, pieces)):
                names = [f"line {message.line}, {keyword}" for keyword in keywords]
                missing = [Segment(*each, "", message.has_translation) for each in zip(pieces, names)]
                self.slots.append((message, missing))
        return [segment for _, segments in self.slots for segment in segments]

    def _read_plural_forms(self) -> None:
        """The number of forms, None where the header does not say it, and the form that stands for one.

        Where it stands for 21 as well, as in Russian, a text that says "a day" and not "%d day" is no translation.
        """
        match = PLURAL_FORMS.search(self.header.text("msgstr")) if self.header else None
        self.forms, self.form_of_one, self.needs_number = (int(match[1]) if match else None), 0, False
        if match:
            try:
                rule = gettext.c2py(match[2])
                self.form_of_one = rule(1)
                self.needs_number = any(rule(number) == self.form_of_one for number in range(2, 200))
            except (ValueError, ArithmeticError) as error:
                raise DataError(f"Plural-Forms of the header: {error}; repair its expression {match[2]!r}") from error

    def is_found(self, pieces: Sequence[Piece]) -> bool:
        """Always, since the source stays."""
        return True

    def write(self, translations: Sequence[list[Piece] | None]) -> bytes:
        edits: list[Edit] = []
        rest = iter(translations)
        for message, segments in self.slots:
            new = list(islice(rest, len(segments)))
            if any(segment.becomes(pieces) for pieces, segment in zip(new, segments)):
                texts = [plain_string(pieces or segment.pieces) for pieces, segment in zip(new, segments)]
                edits += self._message_edits(message, texts)
        text = replaced(self.text, [*edits, *self._header_edits()] if edits else [])
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise DataError(
                f"the charset {self.encoding} of the file has no {error.object[error.start]!r}, which a translation "
                "needs; convert the file to UTF-8 (msgconv -t UTF-8)"
            ) from error

    def _message_edits(self, message: Message, texts: list[str]) -> Iterator[Edit]:
        if len(texts) == 1:
            forms = {"msgstr": texts[0]}
        else:
            number = self.forms or max(2, len(message.forms))
            if self.needs_number and len(PLACEHOLDERS.findall(texts[0])) < len(PLACEHOLDERS.findall(texts[1])):
                texts = [texts[1], texts[1]]
            forms = {f"msgstr[{form}]": texts[number == 1 or form != self.form_of_one] for form in range(number)}
        line_end = "\r\n" if "\r\n" in self.text else "\n"
        source = message.strings["msgid"]
        one_line = len(source) == 1 and "\\n" in source[0][:-2]  # by a program that does not break at line ends
        lines = [line for form in forms.items() for line in self._lines(*form, one_line)]
        has_end = self.text.endswith("\n", 0, message.end)
        yield message.start, message.end, line_end.join(lines) + (line_end if has_end else "")
        if message.is_fuzzy:
            for start, end in message.flags:
                flags = [flag.strip() for flag in self.text[start + 2 : end].split(",")]
                left = ", ".join(flag for flag in flags if flag != "fuzzy")
                yield start, end, f"{self.text[start : start + 2]} {left}{line_end}" if left else ""
            yield from ((start, end, "") for start, end in message.previous)

    def _lines(self, keyword: str, text: str, one_line: bool) -> list[str]:
        parts = [part.translate(ESCAPES) for part in re.findall(r"[^\n]*\n|[^\n]+", text)]
        line = f'{keyword} "{"".join(parts)}"'
        if one_line or len(parts) < 2 and (len(line) <= WIDTH or not self.wraps):
            return [line]
        wrapped = [line for part in parts for line in (_wrapped(part, WIDTH - 2) if self.wraps else [part])]
        return [f'{keyword} ""', *(f'"{line}"' for line in wrapped)]

    def _header_edits(self) -> Iterator[Edit]:
        """The target language where the header has no language or another one, and a charset where it has none."""
        if self.header is None:
            return
        start, end = self.header.start, self.header.end
        language = re.compile(r"(?<=\\n|\s\")Language:[ ]*([\w@-]*)[ ]*(?=\\n)").search(self.text, start, end)
        target = self.options.target_lang
        if language and target and primary_language(language[1]) != primary_language(target):
            yield *language.span(), f"Language: {locale_code(target, '_')}"
        charset = self.text.find("charset=CHARSET", start, end)
        if charset >= 0:
            yield charset, charset + len("charset=CHARSET"), "charset=UTF-8"


def _messages(text: str) -> Iterator[Message]:
    """The entries of a catalog, obsolete ones left out. DataError: a line that is none of one."""
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
            if keyword.startswith("msgstr"):
                message.start, message.end = message.start or span[0], span[1]
        elif line.startswith(("#,", "#=")):
            message.flags.append(span)
            message.is_fuzzy |= "fuzzy" in re.split(r"[\s,=#]+", line)
        elif line.startswith("#|"):
            message.previous.append(span)
        elif line and not line.startswith("#"):
            raise DataError(f"line {number}: expected a comment or a string of PO, got {line[:40]!r}; repair it")
    if message.forms:
        yield message
    elif message.strings:
        raise DataError(f"line {message.line}: an entry without msgstr at the end of the file; is the file cut off?")


def _unescaped(text: str) -> str:
    def character(match: re.Match) -> str:
        code = match[1]
        if code[0] == "x" and len(code) > 1:
            return chr(int(code[1:], 16))
        return chr(int(code, 8)) if code[0] in "01234567" else LETTERS.get(code, code)

    return ESCAPE.sub(character, text)


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Lines of at most this width where blanks allow it; a blank stays at the end of its line."""
    line = ""
    for word in re.findall(r"[^ ]*[ ]+|[^ ]+", text):
        if line and len(line + word) > width:
            yield line
            line = ""
        line += word
    yield line
