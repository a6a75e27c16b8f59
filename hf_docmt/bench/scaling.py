"""What the benches over growing lengths share: a row for each length, exponents of growth, arguments."""

from collections.abc import Mapping, Sequence

import torch

from hf_docmt.bench.marian import TRANSFORMER_BASE
from hf_docmt.bench.subprocesses import growth_exponent
from hf_docmt.bench.timing import check_positive

COLUMNS = ("case", "ours", "peer", "ratio", "unit", "seconds", "memory_mib", "skipped", "name", "tokens")


def make_row(name: str, tokens: int, found: Mapping, peer: Mapping | None) -> dict:
    """One row; speeds and ratio are null where a side was not measured. `peer` null: the row is its own."""
    row = dict.fromkeys(COLUMNS) | {"case": f"{name}, {tokens} tokens", "unit": "target tokens/s"}
    row |= {"name": name, "tokens": tokens, **found}
    row["ours"] = tokens / row["seconds"] if row["seconds"] else None
    row["peer"] = row["ours"] if peer is None else peer["ours"]
    row["ratio"] = row["ours"] / row["peer"] if row["ours"] and row["peer"] else None
    return row


def row_line(row: Mapping) -> str:
    """A row as one line, to be read while others are still measured; lines stand below each other."""
    case = f"{row['case']:<40}"
    if row["skipped"]:
        return f"{case}  skipped: {row['skipped']}"
    mib, ratio = (" " * 10 + "-" if row[name] is None else f"{row[name]:11.2f}" for name in ("memory_mib", "ratio"))
    return f"{case} {row['seconds']:11.2f} s {mib} MiB {ratio} ratio"


def peer_of(rows: Sequence[Mapping], tokens: int, name: str) -> Mapping | None:
    return next((row for row in rows if (row["name"], row["tokens"]) == (name, tokens)), None)


def growth_rows(name: str, peer: str, rows: Sequence[Mapping], lengths: Sequence[int]) -> list[dict]:
    """Exponents of time and memory of a case and of its peer, each over what was measured from the second length on."""
    found = []
    for unit, column in (("exponent of time", "seconds"), ("exponent of memory", "memory_mib")):
        exponents = []
        for one in (name, peer):
            fitted = [row for row in rows if row["name"] == one and row["tokens"] >= lengths[1] and row[column]]
            exponents.append(growth_exponent(fitted, column))
            if one == name:
                reach = f"{fitted[0]['tokens']} to {fitted[-1]['tokens']} tokens" if fitted else "not measured"
        ours, theirs = exponents
        row = {"case": f"{name}, {reach}", "ours": ours, "peer": theirs, "unit": unit, "name": f"{name}, {unit}"}
        row["ratio"] = ours / theirs if ours is not None and theirs else None
        found.append(dict.fromkeys(COLUMNS) | row | {"tokens": fitted_to(rows, name, column)})
    return found


def fitted_to(rows: Sequence[Mapping], name: str, column: str) -> int | None:
    """The last length at which a case was measured."""
    return max((row["tokens"] for row in rows if row["name"] == name and row[column]), default=None)


def check_arguments(repeats, lengths, sizes, vocab_size, device, time_limit) -> None:
    """Raise `ValueError` for what cannot be measured."""
    for length in lengths:
        check_positive(lengths=length)
    if len(lengths) < 3 or list(lengths) != sorted(set(lengths)):
        raise ValueError(f"lengths: expected at least three, from the shortest to the longest, got {list(lengths)}")
    check_setting(repeats, sizes, vocab_size, device, time_limit)


def check_setting(repeats, sizes, vocab_size, device, time_limit) -> None:
    """Raise `ValueError` for what cannot be measured at any length."""
    check_positive(repeats=repeats)
    if sizes.keys() != TRANSFORMER_BASE.keys():
        raise ValueError(f"sizes: got {sorted(sizes)}, expected {sorted(TRANSFORMER_BASE)}")
    if vocab_size < 7:
        raise ValueError(f"vocab_size: expected at least 7 (6 special tokens), got {vocab_size}")
    if device != "cpu" and not (device.split(":")[0] == "cuda" and torch.cuda.is_available()):
        raise ValueError(f"device: expected cpu, or cuda where there is one, got {device!r}")
    if not time_limit > 0:
        raise ValueError(f"time_limit: expected more than 0 seconds, got {time_limit!r}")
