"""Heat maps: shares of cross-attention, attention to and from a memory, weights of tokens in groups."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hf_docmt.analysis.attention_share import AttentionShare
from hf_docmt.analysis.group_maps import GroupMap, GroupMaps
from hf_docmt.analysis.memory_maps import MemoryMap
from hf_docmt.analysis.pictures.figures import check_picture_path, load_matplotlib, save_figure

COLOURS = "viridis"
NUMBERED = 10  # rows and columns up to which cells show their numbers, and ticks of an axis
SUBPLOT = (3.3, 2.9)  # inches
CELL = 0.16  # inches per token and per group
PER_ROW, LEAST = 3, 6  # subplots of group maps per row, and the tokens they have room for at least
ZERO = "#EEEEEE"  # colour of weights that are exactly zero


def draw_attention_share(found: AttentionShare, path: str | Path, *, title: str = "", dpi: int = 200) -> Path:
    """Share of each source sentence for each target sentence, and of the same sentence by layer and head.

    The file's ending says PNG (`dpi` dots per inch) or SVG. ValueError: another ending, no such folder, matplotlib
    missing.
    """
    path = check_picture_path(path)
    style, Figure = load_matplotlib()
    with style({"axes.grid": False}):
        figure = Figure(figsize=(2 * SUBPLOT[0], SUBPLOT[1]), dpi=dpi, layout="constrained")
        left, right = figure.subplots(1, 2)
        shown = _draw_matrix(left, found.shares, "source sentence", "target sentence")
        left.set_title("all layers and heads")
        _draw_matrix(right, found.heads, "head", "layer")
        right.set_title(f"same sentence: {found.value:.1f} %")
        figure.colorbar(shown, ax=[left, right], label="share of attention (%)", fraction=0.05)
        if title:
            figure.suptitle(title, fontsize=9)
        return save_figure(figure, path)


def draw_memory_maps(found: Sequence[MemoryMap], path: str | Path, *, title: str = "", dpi: int = 200) -> Path:
    """Maps of `write_and_read_maps`: tokens by slots of the update, slots by tokens of the output (figures 6, 7).

    Feng et al. (2022). A row of subplots for each side, one colour scale for all, up to the largest weight. File and
    ValueError as in `draw_attention_share`.
    """
    path, sides = check_picture_path(path), list(dict.fromkeys(one.side for one in found))
    style, Figure = load_matplotlib()
    longest, largest = max(len(one.tokens) for one in found), max(float(one.weights.max()) for one in found)
    size = (max(SUBPLOT[0], 0.16 * longest + 1), max(SUBPLOT[1], 0.16 * longest + 1))
    with style({"axes.grid": False}):
        figure = Figure(figsize=(2 * size[0], len(sides) * size[1]), dpi=dpi, layout="constrained")
        grid = figure.subplots(len(sides), 2, squeeze=False)
        for one in found:
            update = one.attention == "update"
            axes = grid[sides.index(one.side), 0 if update else 1]
            matrix = one.weights if update else one.weights.T
            shown = axes.imshow(matrix, vmin=0, vmax=largest, cmap=COLOURS, aspect="auto")
            slots, tokens = (axes.xaxis, axes.yaxis) if update else (axes.yaxis, axes.xaxis)
            step = -(-one.weights.shape[1] // NUMBERED)
            slots.set_ticks(range(0, one.weights.shape[1], step), range(1, one.weights.shape[1] + 1, step))
            turned = {} if update else {"rotation": 90}
            tokens.set_ticks(range(len(one.tokens)), one.tokens, fontsize=6, parse_math=False, **turned)
            slots.set_label_text("memory slot")
            axes.set_title(f"{one.side}: {one.attention} {'by' if update else 'to'} sentence {one.sentence}")
        figure.colorbar(shown, ax=grid, label="attention, mean of heads", fraction=0.03)
        if title:
            figure.suptitle(title, fontsize=9, parse_math=False)
        return save_figure(figure, path)


def draw_group_maps(found: GroupMaps, path: str | Path, *, title: str = "", dpi: int = 200) -> Path:
    """Tokens by groups, a subplot for each sentence, darker for more weight; grey is exactly zero.

    Maka et al. (2024), figures 4, 6 and 7. One colour scale for all, up to the largest weight. File and ValueError
    as in `draw_attention_share`.
    """
    path = check_picture_path(path)
    style, Figure = load_matplotlib()
    maps, (_, size), largest = found.sentences, found.weights.shape, found.weights.max()
    rows = [maps[start : start + PER_ROW] for start in range(0, len(maps), PER_ROW)]
    lines = [max(LEAST, *(len(one.tokens) for one in row)) for row in rows]
    words = 0.06 * max(len(token) for one in maps for token in one.tokens)  # inches
    title = f"{title}{', ' if title else ''}{found.shortening}"
    width = max(max(CELL * size + words + 0.2, 1.9) * len(rows[0]) + 1, 0.09 * len(title))
    height = CELL * sum(lines) + 0.7 * len(rows) + 0.3
    with style({"axes.grid": False, "axes.spines.left": False, "axes.spines.bottom": False}):
        figure = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
        grid = figure.subplots(len(rows), len(rows[0]), squeeze=False, height_ratios=lines)
        for axes in grid.flat[len(maps) :]:
            axes.remove()
        for index, (axes, one) in enumerate(zip(grid.flat, maps)):
            shown = _draw_group_map(axes, one, lines[index // PER_ROW], largest)
        for axes in grid[:, 0]:
            axes.set_ylabel("token", fontsize=7, loc="top")
        figure.colorbar(shown, ax=figure.axes, label="weight", fraction=0.05, aspect=30)
        figure.suptitle(title, fontsize=9, parse_math=False)
        return save_figure(figure, path)


def _draw_group_map(axes, one: GroupMap, lines: int, largest: float):
    """The map of one sentence, with room for `lines` tokens, so that all subplots of a row have cells of one size."""
    weights, size = np.ma.masked_equal(one.weights, 0), one.weights.shape[1]
    shown = axes.imshow(weights, vmin=0, vmax=largest, cmap=f"{COLOURS}_r", aspect="auto")
    shown.set_cmap(shown.cmap.with_extremes(bad=ZERO))
    axes.set_ylim(lines - 0.5, -0.5)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xticks(range(size), range(1, size + 1), fontsize=6)
    axes.set_yticks(range(len(one.tokens)), one.tokens, fontsize=6, parse_math=False)
    axes.tick_params(length=0)
    axes.set_xlabel("group", fontsize=7)
    axes.set_title(f"sentence {one.sentence}: {one.used} of {size} groups", fontsize=8)
    return shown


def _draw_matrix(axes, matrix: np.ndarray, xlabel: str, ylabel: str):
    """A matrix of percentages with numbered rows and columns."""
    shown = axes.imshow(matrix, vmin=0, vmax=100, cmap=COLOURS, aspect="auto")
    axes.set(xlabel=xlabel, ylabel=ylabel)
    for size, set_ticks in zip(matrix.shape, (axes.set_yticks, axes.set_xticks)):
        step = -(-size // NUMBERED)
        set_ticks(range(0, size, step), [str(index + 1) for index in range(0, size, step)])
    if max(matrix.shape) <= NUMBERED:
        for (row, column), value in np.ndenumerate(matrix):
            colour = "black" if value > 60 else "white"
            axes.text(column, row, f"{value:.0f}", ha="center", va="center", color=colour, fontsize=7)
    return shown
