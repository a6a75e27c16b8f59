"""A comparison of systems as text for a terminal, Markdown, LaTeX, CSV or JSON."""

import json
import re
from collections.abc import Sequence

from hf_docmt.reports.comparison import Comparison, Figure, Row
from hf_docmt.reports.measurement import SETTINGS
from hf_docmt.reports.signature import extra_digits
from hf_docmt.reports.tables import ABSENT, ESCAPES, STYLES, Lines, Markup, write_csv, write_table

FORMATS = (*STYLES, "csv", "json")
SIGNS = {  # by style: parts of a cell in which `{}` are numbers
    "text": {
        "marker": "*",
        "no marker": " ",
        "letter": " ({})",
        "interval": " [{}, {}]",
        "deviation": " (±{})",
        "minus": "-",
        "absent": ABSENT,
    },
    "latex": {
        "marker": "$^{*}$",
        "no marker": r"\phantom{$^{*}$}",
        "letter": r"\textsuperscript{{{}}}",
        "interval": "~[{}, {}]",
        "deviation": r"\,($\pm$\,{})",
        "minus": "$-$",
        "absent": "--",
    },
}
SIGNS["markdown"] = SIGNS["text"] | {"marker": r"\*", "no marker": ""}
Signs = dict[str, str]


def format_comparison(comparison: Comparison, format: str = "text", width: int | None = None) -> str:
    """The table in one of FORMATS, its signatures and notes below it.

    Differences between systems (strategy, beams, context) are above the figures, 95 % intervals after them, differences
    from the baseline and p-values below each score. Figures have two decimals, four in nats. `width`: characters of a
    line of text; a table that is wider is written without intervals, then in several parts. CSV, a line for each
    figure, and JSON hold everything, not rounded. LaTeX needs the package booktabs.
    """
    if format not in FORMATS:
        raise ValueError(f"unknown format {format!r}: expected {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    if format == "json":
        return json.dumps(comparison.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)
    if format == "csv":
        return write_csv(figure_cells(comparison))
    signs = SIGNS[format]
    if not any(figure.significant for row in comparison.rows for figure in row.figures.values()):
        signs = signs | {"no marker": ""}
    if format == "text":
        return _text(comparison, signs, width)
    cells, *columns = _cells(comparison, signs, format)
    return write_table(cells, format, comparison_remarks(comparison), comparison.signatures, *columns)


def figure_cells(comparison: Comparison) -> list[list[object]]:
    """A header, and of each figure what it is of, the system and its settings, the value, its test, its signature."""
    lines = []
    for row in comparison.rows:
        base = base_figure(comparison, row)
        for system, figure in row.figures.items():
            settings = {key: "/".join(values) for key, values in comparison.settings.get(system, {}).items()}
            settings |= {"strategy": figure.strategy or "", "beams": str(figure.beams or "")}
            low, high = figure.interval or (None, None)
            lines.append(
                {name: getattr(row, name) for name in ("task", "dataset", "split", "metric", "part")}
                | {"system": system, **settings, "value": figure.value, "low": low, "high": high, "n": figure.n}
                | {"runs": figure.runs, "deviation": figure.deviation}
                | {"difference": figure.value - base.value if base and system != comparison.baseline else None}
                | dict(zip(("difference low", "difference high"), figure.test.interval if figure.test else (None,) * 2))
                | {"p": figure.test.p_value if figure.test else None}
                | {"p by Holm": figure.test.holm if figure.test else None, "signature": figure.signature}
            )
    keys = dict.fromkeys([*SETTINGS, *(key for values in comparison.settings.values() for key in values)])
    scores = ["task", "dataset", "split", "metric", "part", "system"]
    numbers = ["value", "low", "high", "n", "runs", "deviation", "difference", "difference low", "difference high"]
    columns = [*scores, *keys, *numbers, "p", "p by Holm", "signature"]
    return [columns, *([line.get(column) for column in columns] for line in lines)]


def _cells(comparison: Comparison, signs: Signs, style: str) -> tuple[Lines, int, int]:
    """The cells (distinguishing facts, metric, part, n, systems), the columns before n, and the lines of the header."""
    rows, systems = comparison.rows, comparison.systems
    facts = ["split"] if len({row.split for row in rows}) > 1 else []
    if len({(row.dataset, row.metric) for row in rows}) < len({(row.dataset, row.metric, row.task) for row in rows}):
        facts.insert(0, "task")
    facts, parts = ["dataset", *facts, "metric"], ["part"] if any(row.part for row in rows) else []
    blank, after = [""] * (len(facts) - 1), [""] * (len(parts) + 1)
    runs = {name: max((row.figures[name].runs for row in rows if name in row.figures), default=1) for name in systems}
    counts = [_counts(row) for row in rows]
    width = max(map(len, counts))
    header = [[*facts, *parts, "n".rjust(width), *systems]]
    header += [[*blank, key, *after, *values] for key, values in _settings(comparison, runs, signs["absent"]).items()]
    body = []
    for row, n in zip(rows, counts):
        figures = {system: row.figures.get(system) for system in systems}
        score = [""] * len(facts)
        if not row.part:
            metric = Markup(ESCAPES[style](row.metric) + signs["letter"].format(row.letter))
            score = [*(getattr(row, name) for name in facts[:-1]), metric]
        cells = [figure_text(figure, runs[system], signs) for system, figure in figures.items()]
        body.append([*score, *([row.part] if parts else []), n.rjust(width), *cells])
        if base := base_figure(comparison, row):
            others = [figure if system != comparison.baseline else None for system, figure in figures.items()]
            differences = [difference_text(figure, base, signs) if figure else "" for figure in others]
            body.append([*blank, "difference", *after, *differences])
    return [*header, *body], len(facts) + len(parts), len(header)


def figure_text(figure: Figure | None, runs: int, signs: Signs) -> str:
    """The cell of a figure of a system with this number of `runs`."""
    if figure is None:
        return Markup(signs["absent"])
    cell = _number(figure, figure.value, signs) + signs["marker" if figure.significant else "no marker"]
    if figure.interval:
        cell += signs["interval"].format(*(_number(figure, end, signs) for end in figure.interval))
    if runs > 1 and figure.deviation is None:
        cell += " (1 run)"
    elif runs > 1:
        fewer = f", {figure.runs} runs" if figure.runs < runs else ""
        cell += signs["deviation"].format(_number(figure, figure.deviation, signs) + fewer)
    return Markup(cell)


def difference_text(figure: Figure, base: Figure, signs: Signs) -> str:
    """`+1.23 (0.004, 0.016)`: the difference from the baseline, its p-value and that by Holm where it is another one.

    `-` for the p-value of no test.
    """
    p_values = [signs["absent"]]
    if figure.test is not None:
        values = dict.fromkeys(value for value in (figure.test.p_value, figure.test.holm) if value is not None)
        p_values = [f"{value:.1g}" if value < 0.001 else f"{value:.3f}" for value in values]
    return Markup(f"{_number(figure, figure.value - base.value, signs, '+')} ({', '.join(p_values)})")


def _number(figure: Figure, value: float, signs: Signs, sign: str = "") -> str:
    """A value in the unit of a figure."""
    return f"{value:{sign}.{2 + extra_digits(figure.signature)}f}".replace("-", signs["minus"])


def _counts(row: Row) -> str:
    """The number of items, for every system where they are not the same."""
    counts = [str(row.figures[system].n) for system in row.figures]
    return counts[0] if len(set(counts)) == 1 else "/".join(counts)


def _settings(comparison: Comparison, runs: dict[str, int], absent: str) -> dict[str, list[str]]:
    """{what is different: its value for each system}; the number of runs last."""
    systems, settings = comparison.systems, comparison.settings
    keys = dict.fromkeys(key for values in settings.values() for key in values)
    lines = {key: ["/".join(settings[system].get(key, (absent,))) for system in systems] for key in keys}
    return lines | ({"runs": [str(runs[system]) for system in systems]} if max(runs.values()) > 1 else {})


def base_figure(comparison: Comparison, row: Row) -> Figure | None:
    """The baseline's figure of a whole score, None where no other system has one."""
    others = [system for system in row.figures if system != comparison.baseline]
    return row.figures.get(comparison.baseline or "") if others and not row.part else None


def comparison_remarks(comparison: Comparison, intervals: bool = True) -> list[str]:
    """Properties of all rows, the meaning of the intervals, the notes of the comparison."""
    rows = comparison.rows
    shared = [(name, {getattr(row, name) for row in rows}) for name in ("split", "strategy", "beams")]
    common = [f"{name} {values.pop()}" for name, values in shared if len(values) == 1 and None not in values]
    figures = [figure for row in rows for figure in row.figures.values()]
    remarks = [f"All rows: {', '.join(common)}."] if common else []
    remarks += ["[low, high]: 95 % interval."] if intervals and any(figure.interval for figure in figures) else []
    if any(figure.deviation is not None for figure in figures):
        remarks.append("(±): standard deviation over runs, with runs - 1; values are means over runs.")
    if any(base_figure(comparison, row) for row in rows):
        tests = [figure.test for figure in figures if figure.test is not None]
        corrected = any(test.holm not in (None, test.p_value) for test in tests)
        p_values = "p-value and that by Holm" if corrected else "p-value"
        remarks.append(f"difference: from {comparison.baseline}, {p_values} in brackets.")
    return [*remarks, *comparison.notes]


def _text(comparison: Comparison, signs: Signs, width: int | None) -> str:
    """The table, in several with some of the systems each where that is needed to keep to the width."""
    remarks, systems = comparison_remarks(comparison), list(comparison.systems)
    tables = [_table_of(comparison, signs, systems)]
    if width is not None and _width(tables[0]) > width:
        signs = signs | {"interval": ""}
        remarks = [f"95 % intervals do not fit into {width} characters; CSV and JSON have them."]
        remarks += comparison_remarks(comparison, intervals=False)
        tables = []
        while systems:
            end = 1
            while end < len(systems) and _width(_table_of(comparison, signs, systems[: end + 1])) <= width:
                end += 1
            tables.append(_table_of(comparison, signs, systems[:end]))
            systems = systems[end:]
    signatures = [wrapped(f"({letter}) {text}", width) for letter, text in comparison.signatures.items()]
    return "\n\n".join([*tables, "\n".join(signatures), *(["\n".join(remarks)] if remarks else [])])


def wrapped(signature: str, width: int | None) -> str:
    """A signature on several lines of this width, cut between its parts."""
    lines = [""]
    for part in re.split(r"(?<=\|)", signature):
        if width is not None and lines[-1].strip() and len(lines[-1]) + len(part) > width:
            lines.append("    ")
        lines[-1] += part
    return "\n".join(lines)


def _table_of(comparison: Comparison, signs: Signs, systems: Sequence[str]) -> str:
    """A column for each of these systems, and below each score the differences."""
    cells, labels, header = _cells(comparison, signs, "text")
    columns = [*range(labels + 1), *(labels + 1 + comparison.systems.index(system) for system in systems)]
    return write_table([[line[number] for number in columns] for line in cells], header=header)


def _width(table: str) -> int:
    return max(map(len, table.splitlines()))
