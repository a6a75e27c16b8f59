"""JSON files of strings: i18next, Vue, Rails, ARB of Flutter, `messages.json` of browser extensions."""

import json
import re
from collections.abc import Iterator
from functools import partial

from hf_docmt.data.language_codes import primary_language
from hf_docmt.data.readers.reader import Evidence, Sample
from hf_docmt.files import DataError
from hf_docmt.formats.string_files import StringFile, locale_code

# of a text that json has read: strings, brackets, and other values
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


class JsonStringsFormat(StringFile):
    """Values that are text. Keys, addresses, identifiers, and messages with branches (plural, select) stay.

    Keys with `@` hold notes about strings: https://github.com/google/app-resource-bundle/wiki. Where all
    values at the top have a `message`, it alone is translated: https://developer.chrome.com/docs/extensions/reference/
    api/i18n.
    """

    name = "json"
    endings = (".json", ".arb")
    in_folders = False

    def recognize(self, sample: Sample) -> Evidence:
        """As sure as for a name, and surer if the file has no turns, which the reader of chats expects."""
        evidence = super().recognize(sample)
        has_turns = re.search(rb'"speaker"\s*:', sample.head)
        return Evidence.NAME_AND_BYTES if evidence is Evidence.NAME and not has_turns else evidence

    def find(self, text: str) -> None:
        try:
            root = json.loads(text)
        except json.JSONDecodeError as error:
            raise DataError(
                f"line {error.lineno}, column {error.colno}: broken JSON ({error.msg}); repair it"
            ) from error
        except RecursionError as error:
            raise DataError("objects are nested too deep; simplify them") from error
        messages = isinstance(root, dict) and all(
            isinstance(each, dict) and "message" in each for each in root.values()
        )
        ascii_only = text.isascii() and re.search(r"\\u[\da-f]{4}", text, re.IGNORECASE) is not None
        for path, start, end in _strings(text):
            raw = text[start:end]
            if path == ["@@locale"] and self.options.target_lang:
                separator = "_" if "_" in raw or "_" in self.options.target_lang else "-"
                code = locale_code(self.options.target_lang, separator)
                if primary_language(json.loads(raw)) != primary_language(code):
                    self.locales.append((start, end, f'"{code}"'))
            if any(key.startswith("@") for key in path) or messages and path[1:] != ["message"]:
                continue
            string = json.loads(raw)
            if self.is_translated(string):
                self.add(start, end, string, ".".join(path), partial(_encoded, ascii_only, r"\/" in raw))


def _strings(text: str) -> Iterator[tuple[list[str], int, int]]:
    """The strings that are values, with the keys above each, and their start and end."""
    path: list[str] = []  # a key or number for each bracket that is open
    brackets: list[str] = []
    is_key = False
    for match in TOKEN.finditer(text):
        token = match[0]
        if token in ("{", "["):
            brackets.append(token)
            path.append("0")
            is_key = token == "{"
        elif token in ("}", "]"):
            brackets.pop()
            path.pop()
        elif token == ",":
            is_key = brackets[-1] == "{"
            path[-1] = path[-1] if is_key else str(int(path[-1]) + 1)
        elif token == ":":
            is_key = False
        elif token[0] == '"' and is_key:
            path[-1] = json.loads(token)
        elif token[0] == '"':
            yield list(path), *match.span()


def _encoded(ascii_only: bool, escapes_slashes: bool, text: str) -> str:
    written = json.dumps(text, ensure_ascii=ascii_only)
    return written.replace("/", r"\/") if escapes_slashes else written
