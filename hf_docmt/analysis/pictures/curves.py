"""Pictures of curves: information gain by memory size, gradients by distance, scores by index, losses by update."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hf_docmt.analysis.gradient_attribution import Attribution
from hf_docmt.analysis.information_gain import InformationGain
from hf_docmt.analysis.losses import Losses
from hf_docmt.analysis.memory_maps import ATTENTIONS, STACKS
from hf_docmt.analysis.pictures.figures import COLOURS, MARKERS, SINGLE, picture


def draw_information_gain(gains: dict[str, InformationGain], path: str | Path) -> Path:
    """Gain of update and output attention by memory size, {model: gain}; smaller memories first (figure 2).

    Model names are added below the sizes where two models have the same size. The file's ending says PNG or SVG.
    ValueError, here and below: another ending, no such folder, matplotlib missing.
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
    return Path(path)


def draw_attribution(attribution: Attribution, path: str | Path, *, title: str = "") -> Path:
    """Gradients by distance in sentences, of source and target words, on a logarithmic scale (figure 4)."""
    with single_plot(path, attribution.labels, "distance in sentences", "gradient of the loss") as axes:
        for number, side in enumerate(STACKS):
            axes.plot(getattr(attribution, side), label=f"{side} words", color=COLOURS[number], marker=MARKERS[number])
        if any(value > 0 for side in STACKS for value in getattr(attribution, side)):
            axes.set_yscale("log")  # a value of 0 is not drawn
        axes.set_title(title, parse_math=False)
        axes.legend()
    return Path(path)


def draw_by_index(ranges: Sequence, path: str | Path, *, title: str = "") -> Path:
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
    return Path(path)


def draw_losses(runs: Sequence[Losses], path: str | Path) -> Path:
    """Training loss by update, a line for each run (figure 5 of Feng et al. 2022). ValueError: too many runs."""
    if len(runs) > len(COLOURS):
        raise ValueError(f"{len(runs)} runs in one picture, at most {len(COLOURS)} can be distinguished; give fewer")
    with single_plot(path, None, "update", "training loss") as axes:
        for run, colour in zip(runs, COLOURS):
            axes.plot(*zip(*run.training), label=run.name, color=colour)
        axes.legend()
    return Path(path)


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
