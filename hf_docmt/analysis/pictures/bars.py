"""Pictures of shares: how much of each word's context comes from each context sentence."""

from pathlib import Path

from hf_docmt.analysis.gate_maps import NOTHING, GateMap
from hf_docmt.analysis.pictures.figures import check_picture_path, load_matplotlib, save_figure

TONES = {"-": "Blues", "+": "Oranges"}  # colour maps of past and future sentences, nearer ones darker
NEAREST, FARTHEST = 0.75, 0.3  # positions in the colour map, of its range 0 to 1
NO_CONTEXT = "#E4E4E4"
BAR = 0.2  # inches per token
MEAN, LAYER = 1.2, 0.75  # inches per subplot, height


def draw_gates(found: GateMap, path: str | Path, *, title: str = "", dpi: int = 200) -> Path:
    """Stacked bars for the words of a sentence, a part for each context sentence; the mean and every layer.

    The file's ending says PNG (`dpi` dots per inch) or SVG. ValueError: another ending, no such folder, matplotlib
    missing.
    """
    path = check_picture_path(path)
    style, Figure = load_matplotlib()
    layers, colours = found.by_layer, [colour_of(name, found.columns) for name in found.columns]
    title = f"{title}{', ' if title else ''}sentence {found.sentence}"
    words = 0.065 * max(len(token) for token in found.tokens)  # inches
    width = max(BAR * len(found.tokens) + 0.8, 0.65 * len(found.columns) + 0.4, 0.09 * len(title), 2.4)
    height = MEAN + LAYER * (len(layers) - 1) + words + 0.8
    with style({"axes.spines.left": False, "axes.spines.bottom": False}):
        figure = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
        ratios = [MEAN, *[LAYER] * (len(layers) - 1)]
        column = figure.subplots(len(layers), 1, sharex=True, height_ratios=ratios)
        for axes, (name, shares) in zip(column, layers):
            _draw_bars(axes, shares, found.columns, colours)
            axes.set_title("mean of the layers" if name == "mean" else f"layer {name}", fontsize=8, loc="left", pad=3)
        column[-1].set_xticks(range(len(found.tokens)), found.tokens, fontsize=7, rotation=90, parse_math=False)
        figure.supylabel("share", fontsize=8)
        handles, labels = column[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, handlelength=1)
        figure.suptitle(title, fontsize=9, parse_math=False)
        return save_figure(figure, path)


def colour_of(name: str, columns: tuple[str, ...]):
    """Blue for past and orange for future sentences, paler the farther they are."""
    from matplotlib import colormaps

    if name == NOTHING:
        return NO_CONTEXT
    farthest = max(abs(int(other)) for other in columns if other[0] == name[0])
    tone = NEAREST - (NEAREST - FARTHEST) * (abs(int(name)) - 1) / max(farthest - 1, 1)
    return colormaps[TONES[name[0]]](tone)


def _draw_bars(axes, shares, columns: tuple[str, ...], colours: list) -> None:
    """Stacked bars of shares (tokens, columns), the first column lowest."""
    positions, below = range(len(shares)), shares.cumsum(axis=1) - shares
    for number, name in enumerate(columns):
        axes.bar(positions, shares[:, number], bottom=below[:, number], width=0.85, color=colours[number], label=name)
    axes.set(xlim=(-0.6, len(shares) - 0.4), ylim=(0, 1), yticks=(0, 0.5, 1))
    axes.tick_params(length=0, labelsize=7)
