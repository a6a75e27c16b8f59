"""Pictures of a comparison of systems, by distance, index or length; style, fonts and files of all pictures."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from textwrap import wrap

from hf_docmt.files import check_writable_file
from hf_docmt.messages import check_known, install_command
from hf_docmt.reports.signature import Signature

AXES = {"index": "index of the sentence in its document", "length": "sentences in the document"}
SUBPLOT = (3.1, 2.2)  # inches, one of several
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito (2008)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
ENDINGS = (".png", ".svg")
LINES = ("-", ":", "--", "-.")  # of every further round of colours
GREY = "#BBBBBB"  # of systems that were not chosen
DPI = 200  # dots per inch of PNG
SINGLE = (5.2, 2.7)  # inches, the only panel

STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "svg.hashsalt": "hf-docmt",  # the same picture gives the same file
}
CJK = ("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "PingFang SC", "Microsoft YaHei")
DISTINCT = len(COLOURS) * len(LINES)  # looks
METADATA = {".png": {"Software": "hf-docmt"}, ".svg": {"Date": None, "Creator": "hf-docmt"}}


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
    of guessing, where the reports say them, are a dashed line; otherwise one of AXES, for scores (of `metric` alone).
    `datasets`: only these. `highlight`: systems in colour, all others are grey; none = all in colour. `order`: systems
    of several pictures, in which each keeps its colour, marker and place. The file's ending says PNG or SVG. A subplot
    has SUBPLOT inches, a single one SINGLE; legend and signatures add to the height. ValueError: nothing to draw,
    another axis or ending, a missing folder, an unknown system, more than can be distinguished, matplotlib missing.
    """
    is_accuracy = "distance" in axis
    if not is_accuracy:
        check_known(axis, ("distance", *AXES), "axis", "expected one of")
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
        while look % DISTINCT in taken:  # of a system this number of places before
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
        raise ValueError(f"nothing to draw: no {metric or 'score'} is broken down by {axis} in the reports; use {way}")
    for name in datasets:
        if name not in broken_down:
            raise ValueError(f"unknown dataset {name!r}: by {axis} there are {', '.join(broken_down)}")
    groups: dict[int, list] = {}
    for row in wanted:
        if not datasets or row.dataset in datasets:
            groups.setdefault(row.group, []).append(row)
    return [sorted(with_empty(rows), key=lambda row: _order(row.place)) for rows in groups.values()]


def with_empty(rows: list) -> list:
    """Rows with labels such as 1, 2, >4, and one without figures for each number between them that has no items."""
    labels = [row.place.lstrip(">") for row in rows]
    numbers = [int(label) + row.place.startswith(">") for row, label in zip(rows, labels) if label.isdecimal()]
    missing = sorted(set(range(min(numbers, default=0), max(numbers, default=0))) - set(numbers))
    return [*rows, *(replace(rows[0], place=str(n), figures={}) for n in missing if len(missing) <= len(rows))]


def subplot_titles(subplots: Sequence[Sequence], signatures: Mapping[str, str]) -> list[str]:
    """A title for each: dataset, then the facts that differ between subplots, then the letter of the signature.

    Equal titles get the difference between their signatures in words: `pronoun, true context (a)`.
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
    size = max(5.0, min(9.0, 9.0 * room / (0.085 * max(len(row.place) for row in rows))))  # they do not overlap
    names = [row.place + ("" if row.figures else "\nno items") for row in rows]
    axes.set_xticks(range(len(rows)), names, fontsize=size)
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


def check_picture_path(path: str | Path) -> Path:
    """The path of a picture to be written.

    ValueError: matplotlib is not installed, another ending than `ENDINGS`, a file that cannot be written.
    """
    if find_spec("matplotlib") is None:
        raise ValueError(f"pictures need matplotlib, which is not installed: {install_command('plots')}")
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"{path}: a picture's name ends in {' or '.join(ENDINGS)}, got {path.suffix or 'none'!r}")
    return check_writable_file(path)


@contextmanager
def picture(path: str | Path, size: tuple[float, float], *, style: dict | None = None) -> Iterator:
    """A figure of `size` inches that is drawn within the context, and then written to a file.

    The ending says PNG or SVG. There is neither date nor version in it, so that the same picture
    gives the same file. Characters that DejaVu Sans lacks come from the installed fonts of `CJK`; matplotlib warns of
    those that no font has. ValueError: see `check_picture_path`.
    """
    path = check_picture_path(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.font_manager import get_font_names

    installed = get_font_names()
    families = ["DejaVu Sans", *(name for name in CJK if name in installed)]
    with rc_context(STYLE | {"font.family": families} | (style or {})):
        figure = Figure(figsize=size, dpi=DPI, layout="constrained")
        yield figure
        figure.savefig(path, metadata=METADATA[path.suffix.lower()])


def look_of(number: int) -> dict:
    """Colour, marker and line of the system of this number, from 0; the first `DISTINCT` are all different."""
    rounds, colour = divmod(number, len(COLOURS))
    look = {"color": COLOURS[colour], "marker": MARKERS[(colour + 3 * (rounds // 2)) % len(MARKERS)]}
    look |= {"linestyle": LINES[rounds % len(LINES)]} if rounds else {}
    return look | ({"markerfacecolor": "white"} if rounds % 2 else {})
