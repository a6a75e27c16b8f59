"""The one writer of tables: rows of cells as text for a terminal, Markdown, LaTeX or CSV."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_lowercase

from hf_docmt.messages import check_known

STYLES = ("text", "markdown", "latex")
ABSENT = "-"

Lines = list[list[str]]


class Markup(str):
    """A cell or a note in the language of the style already, which is not escaped again."""


def write_table(
    cells: Sequence[Sequence[object]],
    style: str = "text",
    notes: Sequence[str] = (),
    signatures: Mapping[str, str] | None = None,
    labels: int = 1,
    header: int = 1,
) -> str:
    """Rows of cells, the first of them the `header`, with signatures and notes below, in one of STYLES.

    A cell that is missing (None) is `-`. Signs that a style takes for commands are escaped, except in `Markup`.
    `labels`: how many columns name a row and are flush left; others are flush right, in text only where all cells are
    numbers. An empty first cell continues the row above. `signatures`: {letter: how scores were measured}. LaTeX needs
    the package booktabs. ValueError: unknown style.
    """
    check_known(style, STYLES, "style", "expected one of")
    escape = ESCAPES[style]
    shown = [[ABSENT if cell is None else cell for cell in line] for line in cells]
    lines = [[cell if isinstance(cell, Markup) else escape(cell) for cell in line] for line in shown]
    below = [note if isinstance(note, Markup) else escape(note) for note in notes]
    return _WRITERS[style](lines[:header], lines[header:], signatures or {}, below, labels)


def write_csv(cells: Iterable[Sequence[object]]) -> str:
    """Rows of cells as CSV; one that is missing (None) is empty."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(cells)
    return text.getvalue().rstrip("\n")


def letter_of(number: int) -> str:
    """The name of a signature in a table: a, b, …, z, aa, ab, …"""
    first, last = divmod(number, 26)
    return (letter_of(first - 1) if first else "") + ascii_lowercase[last]


def escape_text(text: object) -> str:
    """On one line."""
    return " ".join(str(text).splitlines())


def escape_markdown(text: object) -> str:
    """Text on one line in which no character is Markdown or HTML, and no address becomes a link."""
    return re.sub(r"(?i)([\\`*_{}\[\]<>|#~$&]|:(?=//)|(?<=www)\.)", r"\\\1", " ".join(str(text).split()))


def code_span(text: str) -> str:
    """As code in Markdown, between more backticks than follow each other in it."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{' '.join(text.split())}{room}{fence}"


def escape_latex(text: object) -> str:
    """Text in which no character is a LaTeX command."""
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(str(text).split()))


def _text(header: Lines, rows: Lines, signatures: Mapping[str, str], notes: Sequence[str], labels: int) -> str:
    """Columns of equal width; numbers end below each other, and what follows them begins there."""
    columns = []
    for cells in zip(*header, *rows):
        body = list(cells[len(header) :])
        parts = [part for part in map(_NUMBER.fullmatch, body) if part]
        flush = len(parts) == len(body) and not any(part[2] for part in parts)
        if len(parts) == len(body):
            number, rest = (max((len(part[side]) for part in parts), default=0) for side in (1, 2))
            body = [part[1].rjust(number) + part[2].ljust(rest) for part in parts]
        width = max(map(len, (*cells[: len(header)], *body)))
        shown = [*cells[: len(header)], "-" * width, *body]
        columns.append([cell.rjust(width) if flush else cell.ljust(width) for cell in shown])
    measured = [f"({letter}) {text}" for letter, text in signatures.items()]
    lines = ["  ".join(line).rstrip() for line in zip(*columns)]
    return "\n\n".join(filter(None, map("\n".join, (lines, measured, notes))))


def _markdown(header: Lines, rows: Lines, signatures: Mapping[str, str], notes: Sequence[str], labels: int) -> str:
    rule = [*["---"] * labels, *["---:"] * (len(header[0]) - labels)]
    table = [f"| {' | '.join(line)} |" for line in (header[0], rule, *header[1:], *rows)]
    below = [f"- ({letter}) {code_span(text)}" for letter, text in signatures.items()]
    below += [f"- {note}" for note in notes]
    return "\n".join([*table, *([""] if below else []), *below])


def _latex(header: Lines, rows: Lines, signatures: Mapping[str, str], notes: Sequence[str], labels: int) -> str:
    """A table with room between rows that others continue, and what is below in small print."""
    grouped = any(not line[0] for line in rows)
    starts = [grouped and bool(line[0]) for line in rows[1:]] + [False]
    body = [rf"{' & '.join(line)} \\" + r" \addlinespace" * last for line, last in zip(rows, starts)]
    head = [rf"{' & '.join(line)} \\" for line in header]
    columns = "l" * labels + "r" * (len(header[0]) - labels)
    table = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *head, r"\midrule", *body, r"\bottomrule"]
    below = [
        rf"\textsuperscript{{{letter}}}\,\texttt{{{escape_latex(text).replace(_BAR, _BREAKABLE_BAR)}}}\par"
        for letter, text in signatures.items()
    ]
    below += [rf"{note}\par" for note in notes]
    small = [r"\par\smallskip\raggedright\footnotesize"] if below else []
    return "\n".join([r"\begin{table}", r"\centering\small", *table, r"\end{tabular}", *small, *below, r"\end{table}"])


_NUMBER = re.compile(r"([-+]?\d[\d.]*|-|(?=$))((?:[^\w/].*)?)")  # and what follows it in a cell
_BAR, _BREAKABLE_BAR = r"\textbar{}", r"\textbar\allowbreak{}"
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": _BAR,
    '"': r"\char34{}",
    "`": r"\textasciigrave{}",
    "[": "{[}",  # these two would be read as options of the line end before them
    "*": "{*}",
    "±": r"$\pm$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
ESCAPES = {"text": escape_text, "markdown": escape_markdown, "latex": escape_latex}
_WRITERS = {"text": _text, "markdown": _markdown, "latex": _latex}
