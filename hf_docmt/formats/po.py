"""Catalogs of gettext (PO, POT): `msgid` is translated into `msgstr`, which is made or replaced.

The format: https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html
"""

import gettext
import re
from collections.abc import Iterator, Sequence

from hf_docmt.data.language_codes import primary_language
from hf_docmt.data.readers.po_messages import LETTERS, Message, po_messages
from hf_docmt.files import DataError
from hf_docmt.formats.document_format import FormatOptions, Piece, Segment
from hf_docmt.formats.inline_strings import PLACEHOLDERS, plain_string, string_pieces
from hf_docmt.formats.string_files import BilingualFormat, locale_code
from hf_docmt.formats.text_positions import Edit, decoded, replaced

ESCAPES = {ord(character): f"\\{letter}" for letter, character in [*LETTERS.items(), ("\\", "\\"), ('"', '"')]}
PLURAL_FORMS = re.compile(r"^Plural-Forms:\s*nplurals\s*=\s*(\d+)\s*;\s*plural\s*=\s*([^;\n]+)", re.MULTILINE)
PLACEHOLDERS_OF_GODOT = re.compile(rf"{PLACEHOLDERS.pattern} | \[@?[A-Z]\w*\](?!\()", re.VERBOSE)  # [Node], a class
LANGUAGE = re.compile(r"(?<=\\n|\s\")Language:[ ]*([\w@-]*)[ ]*(?=\\n)")  # in a header
WIDTH = 79  # of lines, as msgcat wraps them


class PoFormat(BilingualFormat):
    """Entries of a catalog are segments, plurals are two: the text for one and that for other numbers.

    A translation is one of a machine that awaits review: fuzzy, with `fuzzy_below` only if its score is lower.
    Obsolete entries stay.
    """

    takes = frozenset({"all", "fuzzy_below"})

    name = "po"
    endings = (".po", ".pot")
    first_bytes = re.compile(rb'(?:#.*\n|\s)*msgid "')

    def parse(self, data: bytes, options: FormatOptions) -> list[Segment]:
        charset = re.search(rb"charset=([\w-]+)", data[:8192])
        self.encoding = charset[1].decode("ascii") if charset and charset[1] != b"CHARSET" else "utf-8"
        self.text, self.encoding, self.mark = decoded(data, self.encoding)
        self.options = options
        if re.search(r"\[(?:method|member|param|code|/url)[\] ]", self.text):
            self.placeholders = PLACEHOLDERS_OF_GODOT
        messages = list(po_messages(self.text))
        strings = [texts for message in messages for texts in message.strings.values()]
        self.wraps = any(not text.endswith("\\n") for texts in strings for text in texts[:-1] if text)
        self.header = next(
            (each for each in messages if not each.text("msgid") and "msgctxt" not in each.strings), None
        )
        self._read_plural_forms()
        for message in messages:
            sources = {
                keyword: message.text(keyword) for keyword in ("msgid", "msgid_plural") if keyword in message.strings
            }
            segments = [
                Segment(string_pieces(text), f"line {message.line}, {keyword}", "", message.has_translation)
                for keyword, text in sources.items()
            ]
            if message is not self.header:
                self.add(message, segments)
        language = LANGUAGE.search(self.text, self.header.start, self.header.end) if self.header else None
        return self.segments([language[1]] if language else [])

    def _read_plural_forms(self) -> None:
        """The number of forms, None without one in the header, and the form for one.

        If that form is also for 21, as in Russian, "a day" without a number is not a translation of "%d day".
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

    def write(self, translations: Sequence[list[Piece] | None]) -> bytes:
        edits: list[Edit] = []
        for message, new, score in self.translated_units(translations):
            edits += self._message_edits(message, [plain_string(pieces or []) for pieces in new], score)
        text = replaced(self.text, [*edits, *self._header_edits()] if edits else [])
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise DataError(
                f"the charset {self.encoding} of the file has no {error.object[error.start]!r}, which a translation "
                "needs; convert the file to UTF-8 (msgconv -t UTF-8)"
            ) from error

    def _message_edits(self, message: Message, texts: list[str], score: float | None) -> Iterator[Edit]:
        if len(texts) == 1:
            forms = {"msgstr": texts[0]}
        else:
            number = self.forms or max(2, len(message.forms))
            if self.needs_number and len(PLACEHOLDERS.findall(texts[0])) < len(PLACEHOLDERS.findall(texts[1])):
                texts = [texts[1], texts[1]]
            forms = {f"msgstr[{form}]": texts[number == 1 or form != self.form_of_one] for form in range(number)}
        if not self.options.all and not message.is_fuzzy:
            forms |= {form: text for form in forms if (text := message.text(form))}
        line_end = "\r\n" if "\r\n" in self.text else "\n"
        source = message.strings["msgid"]
        one_line = len(source) == 1 and "\\n" in source[0][:-2]  # by a program that does not break at line ends
        lines = [line for form in forms.items() for line in self._lines(*form, one_line)]
        has_end = self.text.endswith("\n", 0, message.end)
        yield message.start, message.end, line_end.join(lines) + (line_end if has_end else "")
        least = self.options.fuzzy_below
        is_fuzzy = least is None or score is None or score < least
        if is_fuzzy and not message.is_fuzzy and message.flags is not None:
            yield message.flags, message.flags, " fuzzy,"
        elif is_fuzzy and not message.is_fuzzy and message.top is not None:
            yield message.top, message.top, f"#, fuzzy{line_end}"
        elif not is_fuzzy and message.is_fuzzy and message.flags is not None:
            end = self.text.index("\n", message.flags)
            flags = [flag.strip() for flag in self.text[message.flags : end].split(",") if flag.strip() != "fuzzy"]
            line = f"#, {', '.join(flags)}{line_end}" if flags else ""
            yield message.flags - 2, end + 1, line

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
        language = LANGUAGE.search(self.text, start, end)
        target = self.options.target_lang
        if language and target and primary_language(language[1]) != primary_language(target):
            yield *language.span(), f"Language: {locale_code(target, '_')}"
        charset = self.text.find("charset=CHARSET", start, end)
        if charset >= 0:
            yield charset, charset + len("charset=CHARSET"), "charset=UTF-8"


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Lines of at most this width where blanks allow it; a blank stays at the end of its line."""
    line = ""
    for word in re.findall(r"[^ ]*[ ]+|[^ ]+", text):
        if line and len(line + word) > width:
            yield line
            line = ""
        line += word
    yield line
