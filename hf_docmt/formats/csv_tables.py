"""Tables of text (CSV): columns that are translated, by their names or numbers.

The format: RFC 4180, with `,`, `;`, tab or `|` between the fields.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from hf_docmt.files import DataError
from hf_docmt.formats.inline_strings import has_words, string_pieces
from hf_docmt.formats.string_files import StringFile
from hf_docmt.messages import closest_hint

DELIMITERS = ",;\t|"
SAID = re.compile(r'"?sep=([^"\r\n])"?(?:\r\n?|\n|$)', re.IGNORECASE)  # a first line that Excel reads
SAMPLE = 100  # rows for detecting the delimiter


@dataclass
class Field:
    """A field at characters `start` to `end`, with its quotes."""

    start: int
    end: int
    text: str


class CsvFormat(StringFile):
    """The rows below the first one, which has the names of the columns. A field keeps its quotes."""

    name = "csv"
    endings = (".csv",)
    in_folders = False
    takes = frozenset({"columns"})

    def find(self, text: str) -> None:
        said = SAID.match(text)
        self.delimiter = said[1] if said else _delimiter(text)
        header, *rows = list(_rows(text, self.delimiter, said.end() if said else 0)) or [[]]
        if not any(field.text for field in header):
            raise DataError("no row with the names of the columns; put one first")
        names = [field.text.strip() for field in header]
        columns = [_column(asked, names) for asked in self.options.columns or ()]
        if not columns:
            choices = ", ".join(f"{number} {name!r}" for number, name in enumerate(names, 1))
            raise DataError(f"a table needs the columns to translate; add --columns with names or numbers of {choices}")
        for row in rows:
            for column in sorted(set(columns)):
                if column < len(row) and self.is_translated(row[column].text):
                    field = row[column]
                    quoted = text.startswith('"', field.start)
                    name = names[column] or f"column {column + 1}"
                    self.add(field.start, field.end, field.text, name, partial(self._encoded, quoted))

    def is_meant(self, text: str) -> bool:
        return has_words(string_pieces(text))

    def _encoded(self, quoted: bool, text: str) -> str:
        needs_quotes = re.search(rf'["\r\n{re.escape(self.delimiter)}]', text)
        return '"' + text.replace('"', '""') + '"' if quoted or needs_quotes else text


def _column(asked: str, names: list[str]) -> int:
    """The index of a column, by its name or else by its number."""
    if names.count(asked) == 1:
        return names.index(asked)
    if asked.isdecimal() and 1 <= int(asked) <= len(names):
        return int(asked) - 1
    listed = ", ".join(f"{number} {name!r}" for number, name in enumerate(names, 1))
    raise DataError(f"no column {asked!r}{closest_hint(asked, names)}; the columns are {listed}")


def _delimiter(text: str) -> str:
    """The delimiter that cuts most of the first rows like the header, into the most fields; a comma by default."""
    scores: dict[str, tuple[float, int]] = {}
    for delimiter in DELIMITERS:
        try:
            rows = [row for _, row in zip(range(SAMPLE), _rows(text, delimiter))]
        except DataError:  # quotes that end elsewhere: it is another one
            continue
        lengths = [len(row) for row in rows if len(row) > 1 or row[0].text]
        columns, count = Counter(lengths).most_common(1)[0] if lengths else (1, 0)
        scores[delimiter] = (count / len(lengths), columns) if 1 < columns == lengths[0] else (0, 1)
    return max(scores, key=lambda delimiter: scores[delimiter]) if scores else ","


def _rows(text: str, delimiter: str, position: int = 0) -> Iterator[list[Field]]:
    """The rows of a table, from a position on. DataError: quotes that do not end, or text after them."""
    field = re.compile(rf'"((?:[^"]|"")*+)"|((?!")[^\r\n{re.escape(delimiter)}]*)')
    row: list[Field] = []
    while position < len(text):
        match = field.match(text, position)
        end = match.end() if match else position
        following = text[end : end + 1]
        if match is None or following not in (delimiter, "\r", "\n", ""):
            line = text.count("\n", 0, position) + 1
            raise DataError(f'line {line}: quotes that do not end, or text after them; write a quote in a field as ""')
        row.append(Field(position, end, match[2] if match[1] is None else match[1].replace('""', '"')))
        position = end + 1
        if following != delimiter:
            position += text.startswith("\r\n", end)
            yield row
            row = []
    if row:  # the last field is empty
        yield [*row, Field(len(text), len(text), "")]
