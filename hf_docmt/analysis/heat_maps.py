"""Pictures of matrices: where cross-attention goes, what a memory takes in and gives back."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hf_docmt.analysis.attention_share import AttentionShare
from hf_docmt.analysis.memory_maps import MemoryMap
from hf_docmt.analysis.plots import METADATA, STYLE, checked_path, load_matplotlib

COLOURS = "viridis"
WRITTEN = 10  # rows and columns up to which numbers stand in the cells
PANEL = (3.3, 2.9)  # inches


def draw_attention_share(found: AttentionShare, path: str | Path, *, title: str = "", dpi: int = 200) -> Path:
    """Share of each source sentence while each target sentence is written, and of the same one by layer and head.

    The file's ending says PNG (`dpi` dots per inch) or SVG. ValueError: another ending, no such folder, matplotlib
    missing.
    """
    path = checked_path(Path(path))
    rc_context, Figure = load_matplotlib()
    with rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(2 * PANEL[0], PANEL[1]), dpi=dpi, layout="constrained")
        left, right = figure.subplots(1, 2)
        shown = _panel(left, found.shares, "source sentence", "target sentence")
        left.set_title("all layers and heads")
        _panel(right, found.heads, "head", "layer")
        right.set_title(f"same sentence: {found.value:.1f} %")
        figure.colorbar(shown, ax=[left, right], label="share of attention (%)", fraction=0.05)
        if title:
            figure.suptitle(title, fontsize=9)
        figure.savefig(path, metadata=METADATA[path.suffix.lower()])
    return path


def draw_memory_maps(found: Sequence[MemoryMap], path: str | Path, *, title: str = "", dpi: int = 200) -> Path:
    """Maps of memory_maps.consecutive: tokens by slots of the update, slots by tokens of the output (figures 6, 7).

    Feng et al. (2022). A row of panels for each side, one scale of colours for all, up to the largest weight. File and
    ValueError as in `draw_attention_share`.
    """
    path, sides = checked_path(Path(path)), list(dict.fromkeys(one.side for one in found))
    rc_context, Figure = load_matplotlib()
    longest, largest = max(len(one.tokens) for one in found), max(float(one.weights.max()) for one in found)
    size = (max(PANEL[0], 0.16 * longest + 1), max(PANEL[1], 0.16 * longest + 1))
    with rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(2 * size[0], len(sides) * size[1]), dpi=dpi, layout="constrained")
        grid = figure.subplots(len(sides), 2, squeeze=False)
        for one in found:
            update = one.attention == "update"
            axes = grid[sides.index(one.side), 0 if update else 1]
            matrix = one.weights if update else one.weights.T
            shown = axes.imshow(matrix, vmin=0, vmax=largest, cmap=COLOURS, aspect="auto")
            slots, tokens = (axes.xaxis, axes.yaxis) if update else (axes.yaxis, axes.xaxis)
            step = -(-one.weights.shape[1] // WRITTEN)
            slots.set_ticks(range(0, one.weights.shape[1], step), range(1, one.weights.shape[1] + 1, step))
            turned = {} if update else {"rotation": 90}
            tokens.set_ticks(range(len(one.tokens)), one.tokens, fontsize=6, parse_math=False, **turned)
            slots.set_label_text("memory slot")
            axes.set_title(f"{one.side}: {one.attention} {'by' if update else 'to'} sentence {one.sentence}")
        figure.colorbar(shown, ax=grid, label="attention, mean of heads", fraction=0.03)
        if title:
            figure.suptitle(title, fontsize=9, parse_math=False)
        figure.savefig(path, metadata=METADATA[path.suffix.lower()])
    return path


def _panel(axes, matrix: np.ndarray, across: str, upwards: str):
    shown = axes.imshow(matrix, vmin=0, vmax=100, cmap=COLOURS, aspect="auto")
    axes.set(xlabel=across, ylabel=upwards)
    for size, set_ticks in zip(matrix.shape, (axes.set_yticks, axes.set_xticks)):
        step = -(-size // WRITTEN)
        set_ticks(range(0, size, step), [str(place + 1) for place in range(0, size, step)])
    if max(matrix.shape) <= WRITTEN:
        for (row, column), value in np.ndenumerate(matrix):
            colour = "black" if value > 60 else "white"
            axes.text(column, row, f"{value:.0f}", ha="center", va="center", color=colour, fontsize=7)
    return shown
