"""Pictures of a comparison of systems: accuracy by distance, score by sentence index or document length."""

import re
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from textwrap import wrap

from hf_docmt.analysis.pictures.figures import COLOURS, DISTINCT, GREY, SINGLE, look_of, picture
from hf_docmt.messages import check_known
from hf_docmt.reports.signature import Signature

AXES = {"index": "index of the sentence in its document", "length": "sentences in the document"}
SUBPLOT = (3.1, 2.2)  # inches, one of several


def draw_breakdown(
    comparison,
    path: str | Path,
    *,
    axis: str = "distance",
    datasets: Sequence[str] = (),
    metric: str | None = None,
    highlight: Sequence[str] = (),
    order: Sequence[str] = (),
) -> Path:
    """Scores along a breakdown, a line for each system, bars for 95 % intervals, a subplot for each score.

    `comparison` is made by compare_reports with breakdown=`axis` or "all"; results that may not be compared are in
    different subplots. `axis`: `distance`, or another breakdown by distance, for accuracies in percent, of which those
    of guessing, where the reports say them, are a dashed line; else one of AXES, for scores (of `metric` alone).
    `datasets`: only these. `highlight`: systems in colour, all others are grey; none = all in colour. `order`: systems
    of several pictures, in which each keeps its colour, marker and place. The file's ending says PNG or SVG. A subplot
    has SUBPLOT inches, a single one SINGLE; legend and signatures add to the height. ValueError: nothing to draw,
    another axis or ending, no such folder, an unknown system, more than can be distinguished, matplotlib missing.
    """
    is_accuracy = "distance" in axis
    if not is_accuracy and axis not in AXES:
        raise ValueError(f"unknown axis {axis!r}: expected distance, {' or '.join(AXES)}")
    subplots = subplot_rows(comparison, axis, datasets, "accuracy" if is_accuracy else metric)
    metrics = {rows[0].metric for rows in subplots}
    xlabel, ylabel = AXES.get(axis, "distance in sentences"), metrics.pop() if len(metrics) == 1 else "score"
    chances = {row.group: row.chance for row in comparison.rows if is_accuracy and not row.part}
    looks = looks_of(comparison.systems, highlight, order)
    columns = {1: 1, 2: 2, 4: 2}.get(len(subplots), 3)
    rows_of_subplots = ceil(len(subplots) / columns)
    width, height = SINGLE if len(subplots) == 1 else (SUBPLOT[0] * columns, SUBPLOT[1] * rows_of_subplots)
    notes = [line for text in footnotes(comparison, subplots) for line in wrap(text, int(width * 25))]
    with picture(path, (width, height), style={"text.parse_math": False}) as figure:  # names may have dollar signs
        grid = figure.subplots(rows_of_subplots, columns, squeeze=False, sharey=ylabel != "score").flat
        for axes in grid[len(subplots) :]:
            axes.remove()
        titles = subplot_titles(subplots, comparison.signatures)
        for number, (axes, rows, title) in enumerate(zip(grid, subplots, titles)):
            _draw_points(axes, rows, looks, is_accuracy)
            if is_accuracy:
                axes.set(ylim=(-4, 104), yticks=range(0, 101, 25))
            if (chance := chances.get(rows[0].group)) is not None:
                axes.axhline(chance, color="#777777", linestyle="--", linewidth=1, zorder=1, label="chance")
            axes.set_title(title)
            axes.set_xlabel(xlabel if number + columns >= len(subplots) else "")
            axes.set_ylabel((f"{ylabel} (%)" if is_accuracy else ylabel) if number % columns == 0 else "")
        legend_lines = _draw_legend(figure)
        figure.supxlabel("\n".join(notes), x=0.01, ha="left", fontsize=5.5, color="#555555")
        figure.set_figheight(height + 0.2 * legend_lines + 0.1 * len(notes))
    return Path(path)


def looks_of(systems: Sequence[str], highlight: Sequence[str] = (), order: Sequence[str] = ()) -> dict[str, dict]:
    """Colour, marker and line of each system, in the order in which they are drawn: grey ones first.

    ValueError: an unknown system to highlight, more systems in colour than can be distinguished.
    """
    for name in highlight:
        check_known(name, systems, "system to highlight", "the systems are")
    places = {name: place for place, name in enumerate(dict.fromkeys([*order, *systems]))}
    most, coloured = 2 * len(COLOURS), [name for name in places if name in (highlight or systems)]
    if len(coloured) > most:
        raise ValueError(
            f"{len(coloured)} systems in one picture, at most {most} can be distinguished; compare fewer of them, or "
            "choose some to highlight"
        )
    grey = {"color": GREY, "linewidth": 0.8, "zorder": 1}
    looks = {name: grey for name in places if name in systems and name not in coloured}
    taken: list[int] = []
    for number, name in enumerate(coloured):
        look = places[name] if order else number
        while look % DISTINCT in taken:  # of a system so many places before
            look += 1
        taken.append(look % DISTINCT)
        looks[name] = look_of(taken[-1])
    return looks


def subplot_rows(comparison, axis: str, datasets: Sequence[str] = (), metric: str | None = None) -> list[list]:
    """Rows of each score that is broken down by `axis`, in order; results that may not be compared are separate.

    `datasets`, `metric`: only these. ValueError: nothing is left, or an unknown dataset.
    """
    wanted = [row for row in comparison.rows if row.axis == axis and metric in (None, row.metric)]
    broken_down = dict.fromkeys(row.dataset for row in wanted)
    if not wanted:
        way = f"docmt evaluate --by {axis}" if axis in AXES else "docmt contrast, whose accuracies are by distance"
        raise ValueError(
            f"nothing to draw: no {metric or 'score'} is broken down by {axis} in these reports; make them with {way}"
        )
    for name in datasets:
        if name not in broken_down:
            raise ValueError(f"unknown dataset {name!r}: by {axis} there are {', '.join(broken_down)}")
    groups: dict[int, list] = {}
    for row in wanted:
        if not datasets or row.dataset in datasets:
            groups.setdefault(row.group, []).append(row)
    return [sorted(rows, key=lambda row: _order(row.axis_value)) for rows in groups.values()]


def subplot_titles(subplots: Sequence[Sequence], signatures: Mapping[str, str]) -> list[str]:
    """A title for each: dataset, then the facts that differ between subplots, then the letter of the signature.

    Where titles would be the same, what their signatures differ in stands in words: `pronoun, true context (a)`.
    """
    first = [rows[0] for rows in subplots]
    facts = [
        name for name in ("split", "strategy", "beams", "metric") if len({getattr(row, name) for row in first}) > 1
    ]
    lettered = len({row.letter for row in first}) > 1
    values = [Signature.parse(signatures[row.letter]).values() for row in first]
    names = []
    for row in first:
        parts = [row.dataset.replace("_", " "), *(str(getattr(row, fact)) for fact in facts if getattr(row, fact))]
        names.append(", ".join(parts))
    titles = []
    for row, name, own in zip(first, names, values, strict=True):
        same = [other for title, other in zip(names, values, strict=True) if title == name]
        words = [_in_words(key, own[key]) for key in own if any(other.get(key) != own[key] for other in same)]
        titles.append(", ".join([name, *words]) + (f" ({row.letter})" if lettered else ""))
    return titles


def _in_words(key: str, value: str) -> str:
    """A part of a signature: `random context` for `context:random, seed 0`."""
    return f"{value.partition(',')[0]} context" if key == "context" else f"{key} {value}"


def footnotes(comparison, subplots: Sequence[Sequence]) -> list[str]:
    """The signatures of the subplots, with letters where there are several, and the meaning of the bars."""
    letters = list(dict.fromkeys(rows[0].letter for rows in subplots))
    texts = [comparison.signatures[letter].replace("|", " | ") for letter in letters]
    lines = texts if len(texts) == 1 else [f"({letter}) {text}" for letter, text in zip(letters, texts)]
    figures = [figure for rows in subplots for row in rows for figure in row.figures.values()]
    bars = ["95 % intervals"] if any(figure.interval for figure in figures) else []
    bars += ["standard deviations over runs"] if any(figure.deviation is not None for figure in figures) else []
    runs = sorted({figure.runs for figure in figures})
    count = f"{runs[0]} to {runs[-1]}" if len(runs) > 1 else str(runs[0])
    lines.append(f"runs of each system: {count}")
    return [*lines, *([f"bars: {', '.join(bars)}"] if bars else [])]


def _order(label: str) -> tuple:
    """Sort key of an axis label: by its first number, `3` before `>3`, labels without a number last."""
    number = re.search(r"\d+", label)
    return (number is None, int(number[0]) if number else 0, not label[:1].isdigit(), label)


def _draw_points(axes, rows: list, styles: dict[str, dict], is_percentage: bool) -> None:
    """Values of the systems at each label of the axis, shifted a little so that their bars do not overlap.

    Bars of percentages end at 0 and 100.
    """
    distance = min(0.03 * len(rows), 0.7 / len(styles))
    for number, (system, look) in enumerate(styles.items()):
        shift = distance * (number - (len(styles) - 1) / 2)
        pairs = [(index + shift, row.figures[system]) for index, row in enumerate(rows) if system in row.figures]
        if pairs:
            x, figures = zip(*pairs)
            values = [figure.value for figure in figures]
            bars = [[_error(figure, end, is_percentage) for figure in figures] for end in (0, 1)]
            if look["color"] == GREY:
                axes.plot(x, values, label="others", **look)
            else:
                axes.errorbar(x, values, yerr=bars, label=system, elinewidth=1, capsize=2, **look)
    columns = axes.get_subplotspec().get_gridspec().ncols
    room = (axes.figure.get_figwidth() / columns - 0.5) / len(rows)  # inches for each label
    size = max(5.0, min(9.0, 9.0 * room / (0.085 * max(len(row.axis_value) for row in rows))))  # they do not overlap
    axes.set_xticks(range(len(rows)), [row.axis_value for row in rows], fontsize=size)
    axes.set_xlim(-0.5, len(rows) - 0.5)


def _error(figure, end: int, is_percentage: bool) -> float:
    """Length of the error bar below (end 0) or above (end 1) the value: of the deviation over runs, of the interval."""
    if figure.deviation is not None:
        room = (100 - figure.value if end else figure.value) if is_percentage else figure.deviation
        return max(0.0, min(figure.deviation, room))
    return 0.0 if figure.interval is None else max(0.0, (figure.interval[end] - figure.value) * (1 if end else -1))


def _draw_legend(figure) -> int:
    """One legend for all subplots, above them, systems before chance; returns its number of lines."""
    entries = {}
    for axes in figure.axes:
        entries |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels())}
    names = sorted(entries, key=lambda name: (name == "chance", name == "others"))
    for lines in range(1, len(names) + 1):  # filled column by column
        columns = [names[first : first + lines] for first in range(0, len(names), lines)]
        if sum(0.08 * max(map(len, column)) + 0.7 for column in columns) < figure.get_figwidth():  # inches
            break
    handles = [entries[name] for name in names]
    figure.legend(handles, names, loc="outside upper center", ncols=len(columns))
    return lines
