"""A comparison of systems as text for a terminal, Markdown, LaTeX, CSV or JSON."""

import json
from dataclasses import dataclass, replace

import pandas as pd

from hf_docmt.reports.comparison import Comparison, Figure, Row
from hf_docmt.reports.measurement import SETTINGS
from hf_docmt.reports.signature import extra_digits
from hf_docmt.reports.tables import ABSENT, COMMAND_STYLES, ESCAPES, Markup, write_table

FORMATS = (*COMMAND_STYLES, "csv", "json")
INTERVALS = ("range", "plus-minus", "none")
TEMPLATES = {  # of the parts of a cell: significance, a signature's letter, intervals, deviations
    "text": {"marker": "*"},
    "markdown": {"marker": r"\*"},
    "latex": {
        "marker": "$^{*}$",
        "letter": r"\textsuperscript{{{}}}",
        "range": "~[{}, {}]",
        "plus-minus": r"\,$\pm$\,{}",
        "deviation": r"\,($\pm$\,{})",
        "minus": "$-$",
        "absent": "--",
    },
}
PLAIN = {
    "letter": " ({})",
    "range": " [{}, {}]",
    "plus-minus": " ±{}",
    "deviation": " (±{})",
    "minus": "-",
    "absent": ABSENT,
}


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
    for name, value, allowed in (("format", format, FORMATS), ("intervals", intervals, INTERVALS)):
        if value not in allowed:
            raise ValueError(f"unknown {name} {value!r}: expected {', '.join(allowed[:-1])} or {allowed[-1]}")
    if not isinstance(digits, int) or not 0 <= digits <= 10:
        raise ValueError(f"digits is {digits!r}, expected 0 to 10 digits after the point")
    if format == "json":
        return json.dumps(comparison.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)
    if format == "csv":
        return figures_frame(comparison).to_csv(index=False, lineterminator="\n").rstrip("\n")
    significant = any(figure.significant for row in comparison.rows for figure in row.figures.values())
    cells = FigureCells(format, intervals, digits, significant)
    if format == "text":
        return _text(comparison, cells, width)
    frame, labels = _frame(comparison, cells)
    return write_table(frame, format, _remarks(comparison, intervals), comparison.signatures, labels)


def figures_frame(comparison: Comparison) -> pd.DataFrame:
    """A line for each figure: what it is of, the system and its settings, the value, its test, its signature."""
    lines = []
    for row in comparison.rows:
        base = _base(comparison, row)
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
                | {"p": figure.test.p_value if figure.test else None, "signature": figure.signature}
            )
    settings = [*SETTINGS, *(key for values in comparison.settings.values() for key in values)]
    scores = ["task", "dataset", "split", "metric", "part", "system"]
    numbers = ["value", "low", "high", "n", "runs", "deviation", "difference", "difference low", "difference high"]
    return pd.DataFrame(lines, columns=[*scores, *dict.fromkeys(settings), *numbers, "p", "signature"], dtype=object)


@dataclass(frozen=True)
class FigureCells:
    """Writes figures in a style of tables; `significant`: some are, so that the others keep their marker's place."""

    style: str
    intervals: str
    digits: int
    significant: bool

    def template(self, name: str) -> str:
        return (PLAIN | TEMPLATES[self.style])[name]

    def figure(self, figure: Figure | None, runs: int) -> str:
        """The figure of a system with so many `runs`."""
        if figure is None:
            return Markup(self.template("absent"))
        marker = self.template("marker") if figure.significant else self._no_marker()
        return Markup(f"{self._number(figure)}{marker}{self._interval(figure)}{self._deviation(figure, runs)}")

    def difference(self, figure: Figure, base: Figure) -> str:
        """`+1.23 (0.004)`: the difference from the baseline and its p-value; `-` for a p-value of no test."""
        p_value = self.template("absent") if figure.test is None else f"{figure.test.p_value:.3f}"
        if figure.test is not None and figure.test.p_value < 0.001:
            p_value = f"{figure.test.p_value:.1g}"
        return Markup(f"{self._number(figure, figure.value - base.value, '+')} ({p_value})")

    def metric(self, row: Row) -> str:
        """The metric and the letter of its signature."""
        return Markup(ESCAPES[self.style](row.metric) + self.template("letter").format(row.letter))

    def _number(self, figure: Figure, value: float | None = None, sign: str = "") -> str:
        """The value of a figure, or another one of the same unit."""
        digits = self.digits + extra_digits(figure.signature)
        number = figure.value if value is None else value
        return f"{number:{sign}.{digits}f}".replace("-", self.template("minus"))

    def _no_marker(self) -> str:
        if not self.significant or self.style == "markdown":
            return ""
        return " " if self.style == "text" else rf"\phantom{{{self.template('marker')}}}"

    def _interval(self, figure: Figure) -> str:
        if figure.interval is None or self.intervals == "none":
            return ""
        low, high = figure.interval
        ends = (low, high) if self.intervals == "range" else (max(high - figure.value, figure.value - low),)
        return self.template(self.intervals).format(*(self._number(figure, end) for end in ends))

    def _deviation(self, figure: Figure, all_runs: int) -> str:
        """The deviation over runs, and how many they are where the system has more."""
        if all_runs == 1:
            return ""
        if figure.deviation is None:
            return " (1 run)"
        runs = f", {figure.runs} runs" if figure.runs < all_runs else ""
        return self.template("deviation").format(self._number(figure, figure.deviation) + runs)


def _frame(comparison: Comparison, cells: FigureCells) -> tuple[pd.DataFrame, int]:
    """In what scores differ, the metric, the part if any, n, the systems; and how many columns stand before n."""
    rows, systems = comparison.rows, comparison.systems
    facts = ["split"] if len({row.split for row in rows}) > 1 else []
    if len({(row.dataset, row.metric) for row in rows}) < len({(row.dataset, row.metric, row.task) for row in rows}):
        facts.insert(0, "task")
    facts, parts = ["dataset", *facts, "metric"], ["part"] if any(row.part for row in rows) else []
    blank, after = [""] * (len(facts) - 1), [""] * (len(parts) + 1)
    runs = {system: _most_runs(comparison, system) for system in systems}
    counts = [_counts(row) for row in rows]
    width = max(map(len, counts))
    header = [[*facts, *parts, "n".rjust(width), *systems]]
    header += [[*blank, key, *after, *values] for key, values in _settings(comparison, runs, cells).items()]
    body = []
    for row, n in zip(rows, counts):
        figures = {system: row.figures.get(system) for system in systems}
        score = [""] * len(facts) if row.part else [getattr(row, name) for name in facts[:-1]] + [cells.metric(row)]
        body.append(
            [
                *score,
                *([row.part] if parts else []),
                n.rjust(width),
                *(cells.figure(figures[s], runs[s]) for s in systems),
            ]
        )
        if base := _base(comparison, row):
            others = [figure if system != comparison.baseline else None for system, figure in figures.items()]
            differences = [cells.difference(figure, base) if figure else "" for figure in others]
            body.append([*blank, "difference", *after, *differences])
    columns = header[0] if len(header) == 1 else pd.MultiIndex.from_arrays(header)
    return pd.DataFrame(body, columns=columns, dtype=object), len(facts) + len(parts)


def _counts(row: Row) -> str:
    """The number of items, for every system where they are not the same."""
    counts = [str(row.figures[system].n) for system in row.figures]
    return counts[0] if len(set(counts)) == 1 else "/".join(counts)


def _settings(comparison: Comparison, runs: dict[str, int], cells: FigureCells) -> dict[str, list[str]]:
    """{what is different: its value for each system}; the number of runs last."""
    systems, settings = comparison.systems, comparison.settings
    keys = dict.fromkeys(key for values in settings.values() for key in values)
    absent = (cells.template("absent"),)
    lines = {key: ["/".join(settings[system].get(key, absent)) for system in systems] for key in keys}
    return lines | ({"runs": [str(runs[system]) for system in systems]} if max(runs.values()) > 1 else {})


def _most_runs(comparison: Comparison, system: str) -> int:
    return max((row.figures[system].runs for row in comparison.rows if system in row.figures), default=1)


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


def _text(comparison: Comparison, cells: FigureCells, width: int | None) -> str:
    """The table in as many parts as it takes to keep to the width, without intervals where that is not enough."""

    def table(systems: range) -> str:
        frame, labels = _frame(comparison, cells)
        figures = frame.iloc[:, [labels + 1 + number for number in systems]].apply(_aligned)
        return write_table(pd.concat([frame.iloc[:, : labels + 1], figures], axis=1))

    remarks, everything = _remarks(comparison, cells.intervals), range(len(comparison.systems))
    tables = [table(everything)]
    if width is not None and _width(tables[0]) > width:
        if cells.intervals != "none":
            cells = replace(cells, intervals="none")
            remarks = [f"95 % intervals do not fit into {width} characters; CSV and JSON have them."]
            remarks += _remarks(comparison, "none")
        tables, rest = [], everything
        while rest:
            end = next((end for end in range(len(rest), 1, -1) if _width(table(rest[:end])) <= width), 1)
            tables.append(table(rest[:end]))
            rest = rest[end:]
    signatures = [f"({letter}) {text}" for letter, text in comparison.signatures.items()]
    return "\n\n".join([*tables, "\n".join(signatures), *(["\n".join(remarks)] if remarks else [])])


def _aligned(column: pd.Series) -> pd.Series:
    """Cells with their numbers flush right, and what follows a number flush left."""
    parts = column.str.extract(r"([-+]?[\d.]*)(.*)")
    number, rest = (parts[name].str for name in parts)
    return number.rjust(number.len().max()) + rest.ljust(rest.len().max())


def _width(table: str) -> int:
    return max(map(len, table.splitlines()))
