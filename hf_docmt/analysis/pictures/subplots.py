"""The rows of a comparison that a picture shows: a subplot for each score, its parts in the order of an axis."""

import re
from collections.abc import Sequence


def subplot_rows(comparison, axis: str, datasets: Sequence[str] = (), metric: str | None = None) -> list[list]:
    """Rows of each score that is broken down by `axis`, in order; results that may not be compared are separate.

    `datasets`, `metric`: only these. ValueError: nothing is left, or an unknown dataset.
    """
    wanted = [row for row in comparison.rows if row.axis == axis and metric in (None, row.metric)]
    known = dict.fromkeys(row.dataset for row in wanted)
    if not wanted:
        raise ValueError(
            f"nothing to draw: no {metric or 'score'} is broken down by {axis} in this comparison; make it with "
            f"breakdown={axis!r} from reports that have it"
        )
    for name in datasets:
        if name not in known:
            raise ValueError(f"unknown dataset {name!r}: by {axis} there are {', '.join(known)}")
    groups: dict[int, list] = {}
    for row in wanted:
        if not datasets or row.dataset in datasets:
            groups.setdefault(row.group, []).append(row)
    return [sorted(rows, key=lambda row: _order(row.axis_value)) for rows in groups.values()]


def subplot_titles(subplots: Sequence[Sequence]) -> list[str]:
    """A title for each: dataset, then the facts that differ between subplots, then the letter of the signature."""
    first = [rows[0] for rows in subplots]
    facts = [
        name for name in ("split", "strategy", "beams", "metric") if len({getattr(row, name) for row in first}) > 1
    ]
    lettered = len({row.letter for row in first}) > 1
    titles = []
    for row in first:
        parts = [row.dataset, *(str(getattr(row, name)) for name in facts if getattr(row, name) is not None)]
        titles.append(", ".join(parts) + (f" ({row.letter})" if lettered else ""))
    return titles


def footnotes(comparison, subplots: Sequence[Sequence]) -> list[str]:
    """The signatures of the subplots, with letters where there are several, and the meaning of the bars."""
    letters = list(dict.fromkeys(rows[0].letter for rows in subplots))
    texts = [comparison.signatures[letter].replace("|", " | ") for letter in letters]
    lines = texts if len(texts) == 1 else [f"({letter}) {text}" for letter, text in zip(letters, texts)]
    figures = [figure for rows in subplots for row in rows for figure in row.figures.values()]
    bars = ["95 % intervals"] if any(figure.interval for figure in figures) else []
    bars += ["standard deviations over runs"] if any(figure.deviation is not None for figure in figures) else []
    return [*lines, *([f"bars: {', '.join(bars)}"] if bars else [])]


def _order(label: str) -> tuple:
    """Sort key of an axis label: by its first number, `3` before `>3`, labels without a number last."""
    number = re.search(r"\d+", label)
    return (number is None, int(number[0]) if number else 0, not label[:1].isdigit(), label)
