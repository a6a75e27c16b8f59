"""A comparison of systems as text for a terminal, Markdown, LaTeX or JSON."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

from hf_docmt.reports.comparison import Comparison, Figure
from hf_docmt.reports.report import align_columns

FORMATS = ("text", "markdown", "latex", "json")
INTERVALS = ("range", "plus-minus", "none")


def format_comparison(comparison: Comparison, format: str = "text", intervals: str = "range", digits: int = 2) -> str:
    """The table in one of FORMATS, its signatures and notes below it.

    `intervals`: those of 95 % as `range`, [low, high], as `plus-minus`, the longer side, or `none`. `digits` after the
    point. JSON holds all there is, not rounded, whatever these two say. LaTeX needs the package booktabs.
    """
    for name, value, known in (("format", format, FORMATS), ("intervals", intervals, INTERVALS)):
        if value not in known:
            raise ValueError(f"unknown {name} {value!r}: expected {', '.join(known[:-1])} or {known[-1]}")
    if not isinstance(digits, int) or not 0 <= digits <= 10:
        raise ValueError(f"digits is {digits!r}, expected 0 to 10 places after the point")
    if format == "json":
        return json.dumps(asdict(comparison), ensure_ascii=False, indent=2, allow_nan=False)
    style = replace(_STYLES[format], intervals=intervals, digits=digits)
    if not any(_significant(figure) for row in comparison.rows for figure in row.figures.values()):
        style = replace(style, unmarked="")
    return _WRITERS[format](comparison, _grid(comparison, style), _remarks(comparison, intervals))


@dataclass(frozen=True)
class _Style:
    """How a format writes what stands beside a number, and any other text."""

    escape: Callable[[str], str]
    mark: str
    unmarked: str  # as wide as the mark
    letter: str  # of a signature
    range: str
    plus_minus: str
    absent: str
    minus: str = "-"
    intervals: str = "range"
    digits: int = 2

    def figure(self, figure: Figure | None) -> str:
        if figure is None:
            return self.absent
        mark = self.mark if _significant(figure) else self.unmarked
        return f"{self._number(figure.value)}{mark}{self._interval(figure)}"

    def _number(self, value: float) -> str:
        return f"{value:.{self.digits}f}".replace("-", self.minus)

    def _interval(self, figure: Figure) -> str:
        if figure.interval is None or self.intervals == "none":
            return ""
        low, high = figure.interval
        if self.intervals == "range":
            return self.range.format(self._number(low), self._number(high))
        return self.plus_minus.format(self._number(max(high - figure.value, figure.value - low)))


def _grid(comparison: Comparison, style: _Style) -> list[list[str]]:
    """Header and rows: what tells scores apart, the metric, the part if any, n, one figure for each system."""
    rows, systems = comparison.rows, comparison.systems
    facts = [name for name in ("split", "strategy", "beams") if len({getattr(row, name) for row in rows}) > 1]
    if len({(row.dataset, row.metric) for row in rows}) < len({(row.dataset, row.metric, row.task) for row in rows}):
        facts.insert(0, "task")
    facts, parts = ["dataset", *facts, "metric"], ["part"] if any(row.part for row in rows) else []
    grid = [[style.escape(name) for name in (*facts, *parts, "n", *systems)]]
    for row in rows:
        told = [style.absent if getattr(row, name) is None else style.escape(getattr(row, name)) for name in facts]
        told[-1] += style.letter.format(row.letter)
        figures = [row.figures.get(system) for system in systems]
        counts = [str(figure.n) for figure in figures if figure]
        n = counts[0] if len(set(counts)) == 1 else "/".join(counts)
        start = [""] * len(told) if row.part else told
        grid.append([*start, *(style.escape(row.part) for _ in parts), n, *map(style.figure, figures)])
    return grid


def _remarks(comparison: Comparison, intervals: str) -> list[str]:
    """What all rows have in common, how to read the intervals, the notes of the comparison."""
    rows = comparison.rows
    shared = [(name, {getattr(row, name) for row in rows}) for name in ("split", "strategy", "beams")]
    common = [f"{name} {values.pop()}" for name, values in shared if len(values) == 1 and None not in values]
    shown = intervals != "none" and any(figure.interval for row in rows for figure in row.figures.values())
    meaning = {"range": "[low, high]: 95 % interval.", "plus-minus": "±: longer side of the 95 % interval."}
    remarks = [f"All rows: {', '.join(common)}."] if common else []
    return [*remarks, *([meaning[intervals]] if shown else []), *comparison.notes]


def _text(comparison: Comparison, grid: list[list[str]], remarks: list[str]) -> str:
    signatures = [f"({letter}) {text}" for letter, text in comparison.signatures.items()]
    below = [*signatures, "", *remarks] if remarks else signatures
    return "\n".join([align_columns(_flush(grid, len(comparison.systems))), "", *below])


def _markdown(comparison: Comparison, grid: list[list[str]], remarks: list[str]) -> str:
    grid = _flush(grid, len(comparison.systems))
    left = len(grid[0]) - len(comparison.systems) - 1  # n and the systems are flush right
    columns = []
    for place, column in enumerate(zip(*grid)):
        width = max(3, *map(len, column))
        rule = "-" * width if place < left else "-" * (width - 1) + ":"
        columns.append([cell.ljust(width) if place < left else cell.rjust(width) for cell in column])
        columns[-1].insert(1, rule)
    table = [f"| {' | '.join(row)} |" for row in zip(*columns)]
    signatures = [f"- ({letter}) {_code(text)}" for letter, text in comparison.signatures.items()]
    return "\n".join([*table, "", *signatures, *(f"- {_escape_markdown(remark)}" for remark in remarks)])


def _latex(comparison: Comparison, grid: list[list[str]], remarks: list[str]) -> str:
    header, *lines = [rf"{' & '.join(row)} \\" for row in grid]
    if any(row.part for row in comparison.rows):  # room between scores that have parts
        apart = [first.group != second.group for first, second in pairwise(comparison.rows)]
        lines = [line + (r" \addlinespace" if gap else "") for line, gap in zip(lines, [*apart, False])]
    right = len(comparison.systems) + 1
    columns = "l" * (len(grid[0]) - right) + "r" * right
    table = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", header, r"\midrule", *lines, r"\bottomrule"]
    signatures = [
        rf"\textsuperscript{{{letter}}}\,\texttt{{{_escape_latex(text, _BREAKABLE)}}}"
        for letter, text in comparison.signatures.items()
    ]
    below = [rf"{line}\par" for line in (*signatures, *map(_escape_latex, remarks))]
    start, end = [r"\begin{table}", r"\centering\small"], [r"\end{tabular}", r"\par\smallskip\raggedright\footnotesize"]
    return "\n".join([*start, *table, *end, *below, r"\end{table}"])


def _flush(grid: list[list[str]], systems: int) -> list[list[str]]:
    """The grid with n and the numbers of figures flush right, and what follows a figure's number flush left."""
    split = [[re.match(r"(-?[\d.]*)(.*)", cell).groups() for cell in row[-systems:]] for row in grid[1:]]
    widths = [[max(map(len, parts)) for parts in zip(*column)] for column in zip(*split)]
    padded = [
        [number.rjust(width) + rest.ljust(room) for (number, rest), (width, room) in zip(row, widths)] for row in split
    ]
    n = max(len(row[-systems - 1]) for row in grid)
    starts = [[*row[: -systems - 1], row[-systems - 1].rjust(n)] for row in grid]
    return [starts[0] + grid[0][-systems:], *(start + cells for start, cells in zip(starts[1:], padded))]


def _significant(figure: Figure) -> bool:
    return figure.test is not None and figure.test["significant"]


def _plain(text: object) -> str:
    """On one line."""
    return " ".join(str(text).split())


def _escape_markdown(text: object) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#~$&])", r"\\\1", _plain(text))


def _code(text: str) -> str:
    """As code, between more backticks than follow each other in it."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{_plain(text)}{room}{fence}"


def _escape_latex(text: object, others: dict[str, str] | None = None) -> str:
    signs = _LATEX | (others or {})
    return "".join(signs.get(sign, sign) for sign in _plain(text))


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "`": r"\textasciigrave{}",
    "[": "{[}",  # these two would be read as options of the line end before them
    "*": "{*}",
    "±": r"$\pm$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
_BREAKABLE = {"|": r"\textbar\allowbreak{}"}
_STYLES = {
    "text": _Style(_plain, "*", " ", " ({})", " [{}, {}]", " ±{}", "-"),
    "markdown": _Style(_escape_markdown, r"\*", "", " ({})", " [{}, {}]", " ±{}", "-"),
    "latex": _Style(
        _escape_latex,
        "$^{*}$",
        r"\phantom{$^{*}$}",
        r"\textsuperscript{{{}}}",
        "~[{}, {}]",
        r"\,$\pm$\,{}",
        "--",
        minus="$-$",
    ),
}
_WRITERS = {"text": _text, "markdown": _markdown, "latex": _latex}
