"""Pictures of matrices: where cross-attention goes."""

from pathlib import Path

import numpy as np

from hf_docmt.analysis.attention_share import AttentionShare
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
