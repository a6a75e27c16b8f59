"""Pictures of analyses: maps of shares and weights, and curves."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from hf_docmt.analysis.attention_share import AttentionShare
from hf_docmt.analysis.gradient_attribution import Attribution
from hf_docmt.analysis.information_gain import InformationGain
from hf_docmt.analysis.losses import Losses
from hf_docmt.analysis.memory_maps import ATTENTIONS, STACKS, MemoryMap
from hf_docmt.analysis.pictures.figures import COLOURS, MARKERS, SINGLE, picture
from hf_docmt.analysis.position_components import PositionComponents
from hf_docmt.analysis.token_maps import NOTHING, GateMap, GroupMaps

NO_GRID = {"axes.grid": False}
NO_FRAME = {"axes.spines.left": False, "axes.spines.bottom": False}
COLOUR_MAP = "viridis_r"  # darker is more
NUMBERED = 10  # rows and columns up to which cells show their numbers, and ticks of an axis
SUBPLOT = (3.3, 2.9)  # inches
CELL = 0.16  # inches per token and per group
PER_ROW, LEAST = 3, 6  # subplots of group maps per row, and the tokens they have room for at least
ZERO = "#EEEEEE"  # colour of weights that are exactly zero
TONES = {"-": "Blues", "+": "Oranges"}  # colour maps of past and future sentences, nearer ones darker
NEAREST, FARTHEST = 0.75, 0.3  # positions in the colour map, of its range 0 to 1
NO_CONTEXT = "#E4E4E4"
BAR = 0.2  # inches per token
MEAN, LAYER = 1.2, 0.75  # inches per subplot of gates, height


def draw_attention_share(shares: AttentionShare, path: str | Path, *, title: str = "") -> None:
    """Share of each source sentence for each target sentence, and of the same sentence by layer and head.

    The file's ending says PNG or SVG. ValueError, here and below: another ending, no such folder, matplotlib missing.
    """
    with picture(path, (2 * SUBPLOT[0], SUBPLOT[1]), title=title, style=NO_GRID) as figure:
        left, right = figure.subplots(1, 2)
        shown = _draw_matrix(left, shares.shares, "source sentence", "target sentence")
        left.set_title("all layers and heads")
        _draw_matrix(right, shares.heads, "head", "layer")
        right.set_title(f"same sentence: {shares.value:.1f} %")
        figure.colorbar(shown, ax=[left, right], label="share of attention (%)", fraction=0.05)


def draw_memory_maps(maps: Sequence[MemoryMap], path: str | Path, *, title: str = "") -> None:
    """Maps of `write_and_read_maps`: tokens by slots of the update, slots by tokens of the output (figures 6, 7).

    Feng et al. (2022). A row of subplots for each side, one colour scale for all, up to the largest weight.
    """
    sides = list(dict.fromkeys(memory_map.side for memory_map in maps))
    longest = max(len(memory_map.tokens) for memory_map in maps)
    largest = max(float(memory_map.weights.max()) for memory_map in maps)
    size = (max(SUBPLOT[0], 0.16 * longest + 1), max(SUBPLOT[1], 0.16 * longest + 1))
    with picture(path, (2 * size[0], len(sides) * size[1]), title=title, style=NO_GRID) as figure:
        grid = figure.subplots(len(sides), 2, squeeze=False)
        for memory_map in maps:
            update = memory_map.attention == "update"
            axes = grid[sides.index(memory_map.side), 0 if update else 1]
            matrix = memory_map.weights if update else memory_map.weights.T
            shown = axes.imshow(matrix, vmin=0, vmax=largest, cmap=COLOUR_MAP, aspect="auto")
            slots, tokens = (axes.xaxis, axes.yaxis) if update else (axes.yaxis, axes.xaxis)
            count = memory_map.weights.shape[1]
            step = -(-count // NUMBERED)
            slots.set_ticks(range(0, count, step), range(1, count + 1, step))
            turned = {} if update else {"rotation": 90}
            tokens.set_ticks(range(len(memory_map.tokens)), memory_map.tokens, fontsize=6, parse_math=False, **turned)
            slots.set_label_text("memory slot")
            sentence = f"{'by' if update else 'to'} sentence {memory_map.sentence}"
            axes.set_title(f"{memory_map.side}: {memory_map.attention} {sentence}")
        figure.colorbar(shown, ax=grid, label="attention, mean of heads", fraction=0.03)


def draw_group_maps(groups: GroupMaps, path: str | Path, *, title: str = "") -> None:
    """Tokens by groups, a subplot for each sentence, darker for more weight; grey is exactly zero.

    Maka et al. (2024), figures 4, 6 and 7. One colour scale for all, up to the largest weight.
    """
    maps, (_, size), largest = groups.sentences, groups.weights.shape, groups.weights.max()
    rows = [maps[start : start + PER_ROW] for start in range(0, len(maps), PER_ROW)]
    lines = [max(LEAST, *(len(group_map.tokens) for group_map in row)) for row in rows]
    words = 0.06 * max(len(token) for group_map in maps for token in group_map.tokens)  # inches
    title = f"{title}{', ' if title else ''}{groups.shortening}"
    width = max(max(CELL * size + words + 0.2, 1.9) * len(rows[0]) + 1, 0.09 * len(title))
    height = CELL * sum(lines) + 0.7 * len(rows) + 0.3
    with picture(path, (width, height), title=title, style=NO_GRID | NO_FRAME) as figure:
        grid = figure.subplots(len(rows), len(rows[0]), squeeze=False, height_ratios=lines)
        for axes in grid.flat[len(maps) :]:
            axes.remove()
        for index, (axes, group_map) in enumerate(zip(grid.flat, maps)):
            weights = np.ma.masked_equal(group_map.weights, 0)
            shown = axes.imshow(weights, vmin=0, vmax=largest, cmap=COLOUR_MAP, aspect="auto")
            shown.set_cmap(shown.cmap.with_extremes(bad=ZERO))
            axes.set_ylim(lines[index // PER_ROW] - 0.5, -0.5)  # cells of one size in all subplots of a row
            axes.xaxis.tick_top()
            axes.xaxis.set_label_position("top")
            axes.set_xticks(range(size), range(1, size + 1), fontsize=6)
            axes.set_yticks(range(len(group_map.tokens)), group_map.tokens, fontsize=6, parse_math=False)
            axes.tick_params(length=0)
            axes.set_xlabel("group", fontsize=7)
            axes.set_title(f"sentence {group_map.sentence}: {group_map.used} of {size} groups", fontsize=8)
        for axes in grid[:, 0]:
            axes.set_ylabel("token", fontsize=7, loc="top")
        figure.colorbar(shown, ax=figure.axes, label="weight", fraction=0.05, aspect=30)


def draw_gates(gates: GateMap, path: str | Path, *, title: str = "") -> None:
    """Stacked bars for the words of a sentence, a part for each context sentence; the mean and every layer."""
    layers, colours = gates.by_layer, [colour_of(name, gates.columns) for name in gates.columns]
    title = f"{title}{', ' if title else ''}sentence {gates.sentence}"
    words = 0.065 * max(len(token) for token in gates.tokens)  # inches
    width = max(BAR * len(gates.tokens) + 0.8, 0.65 * len(gates.columns) + 0.4, 0.09 * len(title), 2.4)
    height = MEAN + LAYER * (len(layers) - 1) + words + 0.8
    with picture(path, (width, height), title=title, style=NO_FRAME) as figure:
        ratios = [MEAN, *[LAYER] * (len(layers) - 1)]
        column = figure.subplots(len(layers), 1, sharex=True, height_ratios=ratios)
        for axes, (name, shares) in zip(column, layers):
            positions, below = range(len(shares)), shares.cumsum(axis=1) - shares  # the first column lowest
            for number, (column_name, colour) in enumerate(zip(gates.columns, colours)):
                bars = {"bottom": below[:, number], "width": 0.85, "color": colour, "label": column_name}
                axes.bar(positions, shares[:, number], **bars)
            axes.set(xlim=(-0.6, len(shares) - 0.4), ylim=(0, 1), yticks=(0, 0.5, 1))
            axes.tick_params(length=0, labelsize=7)
            axes.set_title("mean of the layers" if name == "mean" else f"layer {name}", fontsize=8, loc="left", pad=3)
        column[-1].set_xticks(range(len(gates.tokens)), gates.tokens, fontsize=7, rotation=90, parse_math=False)
        figure.supylabel("share", fontsize=8)
        handles, labels = column[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, handlelength=1)


def draw_information_gain(gains: dict[str, InformationGain], path: str | Path) -> None:
    """Gain of update and output attention by memory size, {model: gain}; smaller memories first (figure 2).

    Model names are added below the sizes where two models have the same size.
    """
    ordered = sorted(gains.items(), key=lambda item: item[1].memory_size)
    sizes = [str(gain.memory_size) for _, gain in ordered]
    labels = sizes if len(set(sizes)) == len(sizes) else [f"{size}\n{name}" for size, (name, _) in zip(sizes, ordered)]
    with single_plot(path, labels, "memory size", "information gain (nats)") as axes:
        for number, attention in enumerate(ATTENTIONS):
            values = [gain.mean(attention).gain for _, gain in ordered]
            axes.plot(values, label=f"{attention} attention", color=COLOURS[number], marker=MARKERS[number])
        axes.axhline(0, color="#777777", linewidth=0.8, zorder=1)
        axes.legend()


def draw_attribution(attribution: Attribution, path: str | Path, *, title: str = "") -> None:
    """Gradients by distance in sentences, of source and target words, on a logarithmic scale (figure 4)."""
    with single_plot(path, attribution.labels, "distance in sentences", "gradient of the loss") as axes:
        for number, side in enumerate(STACKS):
            axes.plot(getattr(attribution, side), label=f"{side} words", color=COLOURS[number], marker=MARKERS[number])
        if any(value > 0 for side in STACKS for value in getattr(attribution, side)):
            axes.set_yscale("log")  # a value of 0 is not drawn
        axes.set_title(title, parse_math=False)
        axes.legend()


def draw_by_index(ranges: Sequence, path: str | Path, *, title: str = "") -> None:
    """Difference of s-BLEU by sentence index, with 95 % intervals; `ranges` come from `by_index`."""
    with single_plot(path, [span.label for span in ranges], "sentence index", "difference of s-BLEU") as axes:
        values = [span.difference for span in ranges]
        ends = [span.interval or (span.difference, span.difference) for span in ranges]
        below = [max(0.0, value - low) for value, (low, _) in zip(values, ends)]
        above = [max(0.0, high - value) for value, (_, high) in zip(values, ends)]
        axes.bar(range(len(values)), values, color=COLOURS[0], width=0.6)
        bars = {"yerr": [below, above], "fmt": "none", "ecolor": "#333333", "elinewidth": 1, "capsize": 2}
        axes.errorbar(range(len(values)), values, **bars)
        axes.axhline(0, color="#777777", linewidth=0.8)
        axes.set_title(title, parse_math=False)


def draw_losses(runs: Sequence[Losses], path: str | Path) -> None:
    """Training loss by update, a line for each run (figure 5 of Feng et al. 2022). ValueError: too many runs."""
    if len(runs) > len(COLOURS):
        raise ValueError(f"{len(runs)} runs in one picture, at most {len(COLOURS)} can be distinguished; give fewer")
    with single_plot(path, None, "update", "training loss") as axes:
        for run, colour in zip(runs, COLOURS):
            axes.plot(*zip(*run.training), label=run.name, color=colour)
        axes.legend()


def draw_position_components(components: PositionComponents, path: str | Path) -> None:
    """Cumulative share of the variance of position encodings by component (figure 1 of Lupo et al. 2023)."""
    with single_plot(path, None, "principal components", "share of the variance (%)") as axes:
        axes.plot(range(1, len(components.cumulative) + 1), [100 * share for share in components.cumulative])
        axes.set_ylim(0, 102)
        axes.set_title(f"encodings of {components.positions} positions")


@contextmanager
def single_plot(path: str | Path, labels: Sequence[str] | None, xlabel: str, ylabel: str) -> Iterator:
    """The axes of a figure with tick labels at 0, 1, …, at most 12 of them; None = numbers as matplotlib puts them."""
    with picture(path, SINGLE) as figure:
        axes = figure.subplots()
        yield axes
        if labels is not None:
            step = -(-len(labels) // 12)
            axes.set_xticks(range(0, len(labels), step), labels[::step], fontsize=7 if len(labels) > 6 else 9)
        axes.set(xlabel=xlabel, ylabel=ylabel)


def _draw_matrix(axes, matrix: np.ndarray, xlabel: str, ylabel: str):
    """A matrix of percentages with numbered rows and columns."""
    shown = axes.imshow(matrix, vmin=0, vmax=100, cmap=COLOUR_MAP, aspect="auto")
    axes.set(xlabel=xlabel, ylabel=ylabel)
    for size, set_ticks in zip(matrix.shape, (axes.set_yticks, axes.set_xticks)):
        step = -(-size // NUMBERED)
        set_ticks(range(0, size, step), [str(index + 1) for index in range(0, size, step)])
    if max(matrix.shape) <= NUMBERED:
        for (row, column), value in np.ndenumerate(matrix):
            colour = "white" if value > 40 else "black"
            axes.text(column, row, f"{value:.0f}", ha="center", va="center", color=colour, fontsize=7)
    return shown


def colour_of(name: str, columns: tuple[str, ...]):
    """Blue for past and orange for future sentences, paler the farther they are."""
    from matplotlib import colormaps

    if name == NOTHING:
        return NO_CONTEXT
    farthest = max(abs(int(other)) for other in columns if other[0] == name[0])
    tone = NEAREST - (NEAREST - FARTHEST) * (abs(int(name)) - 1) / max(farthest - 1, 1)
    return colormaps[TONES[name[0]]](tone)
