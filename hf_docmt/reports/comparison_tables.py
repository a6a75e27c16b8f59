"""A comparison of systems as text for a terminal, Markdown, LaTeX or JSON."""

import json
import re
from dataclasses import replace
from itertools import pairwise

from hf_docmt.reports.comparison import Comparison
from hf_docmt.reports.table_styles import BREAKABLE, STYLES, TableStyle, code_span, escape_latex, escape_markdown
from hf_docmt.reports.tables import align_columns

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
        raise ValueError(f"digits is {digits!r}, expected 0 to 10 digits after the point")
    if format == "json":
        return json.dumps(comparison.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)
    style = replace(STYLES[format], intervals=intervals, digits=digits)
    if not any(figure.significant for row in comparison.rows for figure in row.figures.values()):
        style = replace(style, no_marker="")
    return _WRITERS[format](comparison, _grid(comparison, style), _remarks(comparison, intervals))


def _grid(comparison: Comparison, style: TableStyle) -> list[list[str]]:
    """Header and rows: in what scores differ, the metric, the part if any, n, one figure for each system."""
    rows, systems = comparison.rows, comparison.systems
    facts = [name for name in ("split", "strategy", "beams") if len({getattr(row, name) for row in rows}) > 1]
    if len({(row.dataset, row.metric) for row in rows}) < len({(row.dataset, row.metric, row.task) for row in rows}):
        facts.insert(0, "task")
    facts, parts = ["dataset", *facts, "metric"], ["part"] if any(row.part for row in rows) else []
    grid = [[style.escape(name) for name in (*facts, *parts, "n", *systems)]]
    for row in rows:
        cells = [style.absent if getattr(row, name) is None else style.escape(getattr(row, name)) for name in facts]
        cells[-1] += style.letter.format(row.letter)
        figures = [row.figures.get(system) for system in systems]
        counts = [str(figure.n) for figure in figures if figure]
        n = counts[0] if len(set(counts)) == 1 else "/".join(counts)
        start = [""] * len(cells) if row.part else cells
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
    for number, column in enumerate(zip(*grid)):
        width = max(3, *map(len, column))
        rule = "-" * width if number < left else "-" * (width - 1) + ":"
        columns.append([cell.ljust(width) if number < left else cell.rjust(width) for cell in column])
        columns[-1].insert(1, rule)
    table = [f"| {' | '.join(row)} |" for row in zip(*columns)]
    signatures = [f"- ({letter}) {code_span(text)}" for letter, text in comparison.signatures.items()]
    return "\n".join([*table, "", *signatures, *(f"- {escape_markdown(remark)}" for remark in remarks)])


def _latex(comparison: Comparison, grid: list[list[str]], remarks: list[str]) -> str:
    header, *lines = [rf"{' & '.join(row)} \\" for row in grid]
    if any(row.part for row in comparison.rows):  # room between scores that have parts
        gaps = [first.group != second.group for first, second in pairwise(comparison.rows)]
        lines = [line + (r" \addlinespace" if gap else "") for line, gap in zip(lines, [*gaps, False])]
    right = len(comparison.systems) + 1
    columns = "l" * (len(grid[0]) - right) + "r" * right
    table = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", header, r"\midrule", *lines, r"\bottomrule"]
    signatures = [
        rf"\textsuperscript{{{letter}}}\,\texttt{{{escape_latex(text, BREAKABLE)}}}"
        for letter, text in comparison.signatures.items()
    ]
    below = [rf"{line}\par" for line in (*signatures, *map(escape_latex, remarks))]
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


_WRITERS = {"text": _text, "markdown": _markdown, "latex": _latex}
