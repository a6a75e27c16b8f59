"""Pictures of a comparison of systems: accuracy by distance, score by sentence index."""

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from textwrap import wrap

from hf_docmt.analysis.pictures.panels import panels_of, small_print, titles_of

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito (2008)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
AXES = {"index": "place of the sentence in its document", "length": "sentences in the document"}
ENDINGS = (".png", ".svg")
PANEL = (3.1, 2.2)  # inches, one of several panels
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
METADATA = {".png": {"Software": "hf-docmt"}, ".svg": {"Date": None, "Creator": "hf-docmt"}}


def draw_accuracy_by_distance(
    comparison,
    path: str | Path,
    *,
    datasets: Sequence[str] = (),
    chance: float | dict[str, float] | None = None,
    dpi: int = 200,
) -> Path:
    """Accuracy in percent at each distance, a line for each system, bars for 95 % intervals, a panel for each suite.

    `comparison` is made by compare_reports with breakdown="distance" or "all"; results that may not be compared are in
    different panels. `datasets`: only these suites. `chance`: accuracy of guessing in percent, of all suites or by
    dataset, as a dashed line. The file's ending says PNG (`dpi` dots per inch) or SVG; a panel is PANEL inches, an only
    one SINGLE, legend and signatures add to the height. ValueError: nothing to draw, another ending, no such folder,
    more systems than COLOURS, matplotlib missing.
    """

    def panel(axes, rows: list, looks: dict[str, dict]) -> None:
        _points(axes, rows, looks)
        axes.set(ylim=(-4, 104), yticks=range(0, 101, 25))
        guessed = chance.get(rows[0].dataset) if isinstance(chance, dict) else chance
        if guessed is not None:
            axes.axhline(guessed, color="#777777", linestyle="--", linewidth=1, zorder=1, label="chance")

    panels = panels_of(comparison, "distance", datasets, "accuracy")
    return _draw(comparison, panels, path, dpi, panel, "distance in sentences", "accuracy (%)")


def draw_scores(
    comparison,
    path: str | Path,
    *,
    axis: str = "index",
    datasets: Sequence[str] = (),
    metric: str | None = None,
    dpi: int = 200,
) -> Path:
    """Score by the place of the sentence in its document, or along another of AXES.

    `comparison` is made by compare_reports with breakdown=`axis` or "all". `metric`: only this one, else
    a panel for each. All else is as in `draw_accuracy_by_distance`.
    """
    if axis not in AXES:
        raise ValueError(f"unknown axis {axis!r}: expected {' or '.join(AXES)}")
    panels = panels_of(comparison, axis, datasets, metric)
    metrics = {rows[0].metric for rows in panels}
    upwards = metrics.pop() if len(metrics) == 1 else "score"
    return _draw(comparison, panels, path, dpi, _points, AXES[axis], upwards)


def _draw(
    comparison, panels: list[list], path: str | Path, dpi: int, panel: Callable, across: str, upwards: str
) -> Path:
    path, looks = checked_path(Path(path)), _looks(comparison.systems)
    style, Figure = load_matplotlib()
    wide = {1: 1, 2: 2, 4: 2}.get(len(panels), 3)
    high = ceil(len(panels) / wide)
    width, height = SINGLE if len(panels) == 1 else (PANEL[0] * wide, PANEL[1] * high)
    print_lines = [line for text in small_print(comparison, panels) for line in wrap(text, int(width * 25))]
    with style():
        figure = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
        grid = figure.subplots(high, wide, squeeze=False, sharey=upwards != "score").flat
        for axes in grid[len(panels) :]:
            axes.remove()
        for place, (axes, rows, title) in enumerate(zip(grid, panels, titles_of(panels))):
            panel(axes, rows, looks)
            axes.set_title(title)
            axes.set_xlabel(across if place + wide >= len(panels) else "")
            axes.set_ylabel(upwards if place % wide == 0 else "")
        legend_lines = _legend(figure)
        figure.supxlabel("\n".join(print_lines), x=0.01, ha="left", fontsize=5.5, color="#555555")
        figure.set_figheight(height + 0.2 * legend_lines + 0.1 * len(print_lines))
        figure.savefig(path, metadata=METADATA[path.suffix.lower()])
    return path


def _points(axes, rows: list, looks: dict[str, dict]) -> None:
    """Values at places side by side, the systems a little apart so that their bars do not cover each other."""
    apart = min(0.03 * len(rows), 0.7 / len(looks))
    for number, (system, look) in enumerate(looks.items()):
        shift = apart * (number - (len(looks) - 1) / 2)
        pairs = [(place + shift, row.figures[system]) for place, row in enumerate(rows) if system in row.figures]
        if pairs:
            at, figures = zip(*pairs)
            values = [figure.value for figure in figures]
            bars = [[_reach(figure, end) for figure in figures] for end in (0, 1)]
            axes.errorbar(at, values, yerr=bars, label=system, elinewidth=1, capsize=2, **look)
    axes.set_xticks(range(len(rows)), [row.place for row in rows], fontsize=_fitting(axes, rows))
    axes.set_xlim(-0.5, len(rows) - 0.5)


def _fitting(axes, rows: list) -> float:
    """Size, in points, at which the labels of the places stand beside each other; 5 at least."""
    columns = axes.get_subplotspec().get_gridspec().ncols
    room = (axes.figure.get_figwidth() / columns - 0.5) / len(rows)  # inches for each label
    return max(5.0, min(9.0, 9.0 * room / (0.085 * max(len(row.place) for row in rows))))


def _reach(figure, end: int) -> float:
    """How far the interval reaches below (end 0) or above (end 1) the value; 0 without one."""
    return 0.0 if figure.interval is None else max(0.0, (figure.interval[end] - figure.value) * (1 if end else -1))


def _legend(figure) -> int:
    """One legend for all panels, above them, systems before chance; how many lines it takes."""
    entries = {}
    for axes in figure.axes:
        entries |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels())}
    names = sorted(entries, key=lambda name: name == "chance")
    for lines in range(1, len(names) + 1):  # filled column by column
        columns = [names[first : first + lines] for first in range(0, len(names), lines)]
        if sum(0.08 * max(map(len, column)) + 0.7 for column in columns) < figure.get_figwidth():  # inches
            break
    handles = [entries[name] for name in names]
    figure.legend(handles, names, loc="outside upper center", ncols=len(columns))
    return lines


def _looks(systems: Sequence[str]) -> dict[str, dict]:
    if len(systems) > len(COLOURS):
        raise ValueError(
            f"{len(systems)} systems in one picture, at most {len(COLOURS)} can be told apart; compare fewer of them"
        )
    return {name: {"color": colour, "marker": marker} for name, colour, marker in zip(systems, COLOURS, MARKERS)}


def checked_path(path: Path) -> Path:
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"{path}: a picture's name ends in {' or '.join(ENDINGS)}, got {path.suffix or 'no ending'!r}")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}; make it first")
    return path


def load_matplotlib() -> tuple:
    """The style of pictures, a context (`style(changes)`), and the class of figures, which need no screen.

    Characters that DejaVu Sans has not are taken from the fonts of `CJK` that are installed.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.font_manager import get_font_names
    except ImportError as error:
        raise ValueError("pictures need matplotlib, which is not installed: pip install 'hf-docmt[plots]'") from error
    installed = get_font_names()
    families = ["DejaVu Sans", *(name for name in CJK if name in installed)]
    return lambda changes={}: rc_context(STYLE | {"font.family": families} | changes), Figure
