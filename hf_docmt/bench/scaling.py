"""Growth of cost with length: rows by length, exponents of growth."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

from hf_docmt.bench.results import ScalingRow


def scaling_row(name: str, tokens: int, numbers: Mapping[str, Any], peer: ScalingRow | None) -> ScalingRow:
    """The row of a system at one length. `numbers` are `seconds` and `memory_mib`, or the reason it is `skipped`.

    Speeds and ratio are None where a side was not measured. The row is its own peer where `peer` is None.
    """
    seconds = numbers.get("seconds")
    ours = tokens / seconds if seconds else None
    theirs = ours if peer is None else peer.ours
    speeds = {"ours": ours, "peer": theirs, "ratio": ours / theirs if ours and theirs else None}
    return ScalingRow(
        case=f"{name}, {tokens} tokens", unit="target tokens/s", name=name, tokens=tokens, **speeds, **numbers
    )


def find_row(rows: Sequence[ScalingRow], tokens: int, name: str) -> ScalingRow | None:
    """The row of a system at a length."""
    return next((row for row in rows if (row.name, row.tokens) == (name, tokens)), None)


def growth_rows(name: str, peer: str, rows: Sequence[ScalingRow], lengths: Sequence[int]) -> list[ScalingRow]:
    """Exponents of time and memory of a system and of its peer, each fitted from the second length on.

    `tokens` of a row is the last length at which the system was measured.
    """
    found = []
    for unit, column in (("exponent of time", "seconds"), ("exponent of memory", "memory_mib")):
        measured = [row for row in rows if row.name == name and getattr(row, column)]
        fitted, peers = (
            [row for row in rows if row.name == one and row.tokens >= lengths[1] and getattr(row, column)]
            for one in (name, peer)
        )
        ours, theirs = growth_exponent(fitted, column), growth_exponent(peers, column)
        span = f"{fitted[0].tokens} to {fitted[-1].tokens} tokens" if fitted else "not measured"
        found.append(
            ScalingRow(
                case=f"{name}, {span}",
                ours=ours,
                peer=theirs,
                ratio=ours / theirs if ours is not None and theirs else None,
                unit=unit,
                name=f"{name}, {unit}",
                tokens=max((row.tokens for row in measured), default=None),
            )
        )
    return found


def growth_exponent(rows: Sequence[ScalingRow], column: str) -> float | None:
    """The e of value ~ tokens^e, by least squares on logarithms; None for fewer than two rows with a value."""
    values = [(row.tokens, getattr(row, column)) for row in rows]
    return least_squares_slope([(log(tokens), log(value)) for tokens, value in values if value])


def least_squares_slope(points: Sequence[tuple[float, float]]) -> float | None:
    """The slope of the line through points (x, y), by least squares; None for fewer than two points."""
    if len(points) < 2:
        return None
    mean_x, mean_y = (sum(values) / len(points) for values in zip(*points))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
