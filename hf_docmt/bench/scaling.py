"""Growth of cost with length: rows by length, exponents of growth, and what would cost too much to measure."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

from hf_docmt.bench.results import ScalingRow

GIB = 2**30
RESERVED = GIB  # bytes that are left to weights and to the machine


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


def reason_to_skip(
    shorter: Sequence[ScalingRow], tokens: int, repeats: int, time_limit: float, available: float
) -> str | None:
    """Why so many tokens would exceed `time_limit` seconds or the `available` bytes of memory; None where they fit.

    `shorter` are the system's rows at shorter lengths, in order. Growth goes on as between the last two, at least
    linear and at most quadratic; with one row it is quadratic.
    """
    seconds, mib = (extrapolate(shorter, tokens, column) for column in ("seconds", "memory_mib"))
    if mib is not None and mib * 2**20 + RESERVED > available:
        return f"would need about {mib / 1024:.1f} GiB more memory, {available / GIB:.1f} GiB are free"
    if seconds is not None and seconds * repeats > time_limit:
        return f"would take about {seconds * repeats:.0f} s, the limit is {time_limit:g} s"
    return None


def extrapolate(shorter: Sequence[ScalingRow], tokens: int, column: str) -> float | None:
    """The value of a column at a greater length, see `reason_to_skip`; None where no row has one."""
    rows = [row for row in shorter if getattr(row, column)]
    if not rows:
        return None
    last = rows[-1]
    exponent = growth_exponent(rows[-2:], column)
    exponent = 2.0 if exponent is None else min(max(exponent, 1.0), 2.0)
    return getattr(last, column) * (tokens / last.tokens) ** exponent
