"""A comparison of systems as text for a terminal, Markdown, LaTeX, CSV or JSON."""

import csv
import io
import json
import re
from dataclasses import replace

from hf_docmt.reports.comparison import Comparison, Figure, Row
from hf_docmt.reports.system_settings import SETTINGS
from hf_docmt.reports.table_styles import BREAKABLE, STYLES, TableStyle, code_span, escape_latex, escape_markdown
from hf_docmt.reports.tables import align_columns

FORMATS = ("text", "markdown", "latex", "csv", "json")
INTERVALS = ("range", "plus-minus", "none")

Grid = list[list[str]]


def format_comparison(
    comparison: Comparison, format: str = "text", intervals: str = "range", digits: int = 2, width: int | None = None
) -> str:
    """The table in one of FORMATS, its signatures and notes below it.

    Above the figures stands what is different between systems (strategy, beams, context), below each score the
    difference from the baseline and its p-value. `intervals`: those of 95 % as `range`, [low, high], as `plus-minus`,
    the longer side, or `none`. `digits` after the point, two more in nats. `width`: characters of a line of text; a
    table that is wider is written without intervals, and then in several parts. CSV, a line for each figure, and JSON
    hold all there is, not rounded, whatever these say. LaTeX needs the package booktabs.
    """
    for name, value, known in (("format", format, FORMATS), ("intervals", intervals, INTERVALS)):
        if value not in known:
            raise ValueError(f"unknown {name} {value!r}: expected {', '.join(known[:-1])} or {known[-1]}")
    if not isinstance(digits, int) or not 0 <= digits <= 10:
        raise ValueError(f"digits is {digits!r}, expected 0 to 10 digits after the point")
    if format == "json":
        return json.dumps(comparison.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)
    if format == "csv":
        return _csv(comparison)
    style = replace(STYLES[format], intervals=intervals, digits=digits)
    if not any(figure.significant for row in comparison.rows for figure in row.figures.values()):
        style = replace(style, no_marker="")
    if format == "text":
        return _text(comparison, style, width)
    write = {"markdown": _markdown, "latex": _latex}[format]
    return write(comparison, *_grid(comparison, style), _remarks(comparison, intervals))


def _grid(comparison: Comparison, style: TableStyle) -> tuple[Grid, Grid]:
    """Lines of the header, and of the body: in what scores differ, the metric, the part if any, n, the systems."""
    rows, systems = comparison.rows, comparison.systems
    facts = ["split"] if len({row.split for row in rows}) > 1 else []
    if len({(row.dataset, row.metric) for row in rows}) < len({(row.dataset, row.metric, row.task) for row in rows}):
        facts.insert(0, "task")
    facts, parts = ["dataset", *facts, "metric"], ["part"] if any(row.part for row in rows) else []
    header, body = [[style.escape(name) for name in (*facts, *parts, "n", *systems)]], []
    runs = {system: _most_runs(comparison, system) for system in systems}
    for key, values in _settings(comparison, runs).items():
        start = [""] * (len(facts) - 1) + [style.escape(key)] + [""] * (len(parts) + 1)
        header.append([*start, *(style.escape(value) if value else style.absent for value in values)])
    for row in rows:
        cells = [style.escape(getattr(row, name)) for name in facts]
        cells[-1] += style.letter.format(row.letter)
        figures = [row.figures.get(system) for system in systems]
        counts = [str(figure.n) for figure in figures if figure]
        n = counts[0] if len(set(counts)) == 1 else "/".join(counts)
        start = [""] * len(cells) if row.part else cells
        cells = [style.figure(figure, runs[system]) for figure, system in zip(figures, systems)]
        body.append([*start, *(style.escape(row.part) for _ in parts), n, *cells])
        if differences := _differences(comparison, row, style):
            body.append([*[""] * (len(facts) - 1), "difference", *[""] * (len(parts) + 1), *differences])
    return header, body


def _settings(comparison: Comparison, runs: dict[str, int]) -> dict[str, list[str]]:
    """{what is different: its value for each system}, empty where it is not known; the number of runs last."""
    systems, settings = comparison.systems, comparison.settings
    keys = dict.fromkeys(key for found in settings.values() for key in found)
    lines = {key: ["/".join(settings[system].get(key, "")) for system in systems] for key in keys}
    return lines | ({"runs": [str(runs[system]) for system in systems]} if max(runs.values()) > 1 else {})


def _most_runs(comparison: Comparison, system: str) -> int:
    return max((row.figures[system].runs for row in comparison.rows if system in row.figures), default=1)


def _differences(comparison: Comparison, row: Row, style: TableStyle) -> list[str]:
    """Differences from the baseline's score, one for each system, and the p-value where there was a test."""
    if (base := _base(comparison, row)) is None:
        return []
    others = [row.figures.get(system) if system != comparison.baseline else None for system in comparison.systems]
    return [style.difference(figure, base) if figure else "" for figure in others]


def _base(comparison: Comparison, row: Row) -> Figure | None:
    """The baseline's figure of a whole score, None where no other system has one."""
    others = [system for system in row.figures if system != comparison.baseline]
    return row.figures.get(comparison.baseline or "") if others and not row.part else None


def _remarks(comparison: Comparison, intervals: str) -> list[str]:
    """What all rows have in common, how to read the intervals, the notes of the comparison."""
    rows = comparison.rows
    shared = [(name, {getattr(row, name) for row in rows}) for name in ("split", "strategy", "beams")]
    common = [f"{name} {values.pop()}" for name, values in shared if len(values) == 1 and None not in values]
    figures = [figure for row in rows for figure in row.figures.values()]
    meaning = {"range": "[low, high]: 95 % interval.", "plus-minus": "±: longer side of the 95 % interval."}
    remarks = [f"All rows: {', '.join(common)}."] if common else []
    remarks += [meaning[intervals]] if intervals != "none" and any(figure.interval for figure in figures) else []
    if any(figure.deviation is not None for figure in figures):
        remarks.append("(±): standard deviation over runs, with runs - 1; values are means over runs.")
    if any(_base(comparison, row) for row in rows):
        remarks.append(f"difference: from {comparison.baseline}, p-value in brackets.")
    return [*remarks, *comparison.notes]


def _text(comparison: Comparison, style: TableStyle, width: int | None) -> str:
    """The table in as many parts as it takes to keep to the width, without intervals where that is not enough."""
    remarks = _remarks(comparison, style.intervals)
    tables = [_aligned(comparison, style, range(len(comparison.systems)))]
    if width is not None and _width(tables[0]) > width:
        if style.intervals != "none":
            style = replace(style, intervals="none")
            remarks = [f"95 % intervals do not fit into {width} characters; CSV and JSON have them."]
            remarks += _remarks(comparison, "none")
        tables, first = [], 0
        while first < len(comparison.systems):
            last = len(comparison.systems)
            while _width(table := _aligned(comparison, style, range(first, last))) > width and last > first + 1:
                last -= 1
            tables.append(table)
            first = last
    signatures = [f"({letter}) {text}" for letter, text in comparison.signatures.items()]
    below = [*signatures, "", *remarks] if remarks else signatures
    return "\n".join(["\n\n".join(tables), "", *below])


def _aligned(comparison: Comparison, style: TableStyle, chosen: range) -> str:
    """The table of the chosen systems, by their numbers."""
    header, body = _grid(comparison, style)
    left = len(header[0]) - len(comparison.systems)
    header, body = ([row[:left] + [row[left + n] for n in chosen] for row in part] for part in (header, body))
    return align_columns(_flush(header, body, len(chosen)), len(header))


def _width(table: str) -> int:
    return max(map(len, table.splitlines()))


def _markdown(comparison: Comparison, header: Grid, body: Grid, remarks: list[str]) -> str:
    grid = _flush(header, body, len(comparison.systems))
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


def _latex(comparison: Comparison, header: Grid, body: Grid, remarks: list[str]) -> str:
    header_lines, lines = ([rf"{' & '.join(row)} \\" for row in part] for part in (header, body))
    if any(row.part for row in comparison.rows):  # room between scores that have parts
        starts = [number for number, row in enumerate(body) if any(row[:1])]
        lines = [line + (r" \addlinespace" if number + 1 in starts else "") for number, line in enumerate(lines)]
    right = len(comparison.systems) + 1
    columns = "l" * (len(header[0]) - right) + "r" * right
    table = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *header_lines, r"\midrule", *lines, r"\bottomrule"]
    signatures = [
        rf"\textsuperscript{{{letter}}}\,\texttt{{{escape_latex(text, BREAKABLE)}}}"
        for letter, text in comparison.signatures.items()
    ]
    below = [rf"{line}\par" for line in (*signatures, *map(escape_latex, remarks))]
    start, end = [r"\begin{table}", r"\centering\small"], [r"\end{tabular}", r"\par\smallskip\raggedright\footnotesize"]
    return "\n".join([*start, *table, *end, *below, r"\end{table}"])


def _csv(comparison: Comparison) -> str:
    """A line for each figure: what it is of, the system and its settings, the value, its test, its signature."""
    scores = ("task", "dataset", "split", "metric", "part")
    keys = list(dict.fromkeys([*SETTINGS, *(key for found in comparison.settings.values() for key in found)]))
    numbers = ("value", "low", "high", "n", "runs", "deviation", "difference", "difference low", "difference high")
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow([*scores, "system", *keys, *numbers, "p", "signature"])
    for row in comparison.rows:
        base = _base(comparison, row)
        for system, figure in row.figures.items():
            found = {key: "/".join(values) for key, values in comparison.settings.get(system, {}).items()}
            found |= {"strategy": figure.strategy or "", "beams": str(figure.beams or "")}
            delta = figure.value - base.value if base and system != comparison.baseline else None
            tested = [*figure.test.interval, figure.test.p_value] if figure.test else [None] * 3
            cells = [figure.value, *(figure.interval or (None, None)), figure.n, figure.runs, figure.deviation, delta]
            start = [*(getattr(row, name) for name in scores), system, *(found.get(key) for key in keys)]
            table.writerow([*start, *cells, *tested, figure.signature])
    return written.getvalue().rstrip("\n")


def _flush(header: Grid, body: Grid, systems: int) -> Grid:
    """All lines with n and the numbers of figures flush right, and what follows a figure's number flush left."""
    split = [[_NUMBER.match(cell).groups() for cell in row[-systems:]] for row in body]
    widths = [[max(map(len, parts)) for parts in zip(*column)] for column in zip(*split)]
    cells = [
        [number.rjust(width) + rest.ljust(room) for (number, rest), (width, room) in zip(row, widths)] for row in split
    ]
    n = max(len(row[-systems - 1]) for row in body)
    lines = [*header, *([*row[:-systems], *padded] for row, padded in zip(body, cells))]
    return [[*row[: -systems - 1], row[-systems - 1].rjust(n), *row[-systems:]] for row in lines]


_NUMBER = re.compile(r"([-+]?[\d.]*)(.*)")
