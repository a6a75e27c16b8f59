"""Results as plain text, and aligned columns and letters for all tables."""

from collections.abc import Sequence
from string import ascii_lowercase

from hf_docmt.reports.result import Part, Result


def result_table(results: Sequence[Result]) -> str:
    """Results as plain text: one line for each and each part of it, signatures, other counts than published."""
    header = ["dataset", "split", "strategy", "beams", "metric", "value", "n"]
    different = dict.fromkeys(result.signature for result in results)
    letters = {signature: letter_of(number) for number, signature in enumerate(different)}
    rows = []
    for result in results:
        cells = ["-" if getattr(result, name) is None else str(getattr(result, name)) for name in header[:5]]
        cells[-1] += f" ({letters[result.signature]})"
        digits = 2 + extra_digits(str(result.signature))
        parts: dict[str, Result | Part] = {"": result, **result.breakdown}
        numbers = {label: [f"{part.value:.{digits}f}", str(part.n)] for label, part in parts.items()}
        rows.append(cells + numbers.pop(""))
        rows += [["", "", "", "", f"  {label}", *found] for label, found in numbers.items()]
    signatures = [f"({letter}) {signature}" for signature, letter in letters.items()]
    notes = dict.fromkeys(result.details["counts"] for result in results if "counts" in result.details)
    return "\n".join([align_columns([header, *rows]), "", *signatures, *notes])


def align_columns(rows: Sequence[Sequence[str]], header: int = 1) -> str:
    """Rows of cells, the first ones a header, as lines with columns of equal width; numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    right = [all(_is_number(cell) for cell in column[header:] if cell.strip("- ")) for column in zip(*rows)]
    lines = [
        "  ".join(cell.rjust(width) if flush else cell.ljust(width) for cell, width, flush in zip(row, widths, right))
        for row in rows
    ]
    lines.insert(header, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def letter_of(number: int) -> str:
    """What a signature is called in a table: a, b, …, z, aa, ab, …"""
    first, last = divmod(number, 26)
    return (letter_of(first - 1) if first else "") + ascii_lowercase[last]


def extra_digits(signature: str) -> int:
    """How many digits behind the point a score has more than others: two in nats, of which a thousandth matters."""
    return 2 if "unit:nats" in signature.split("|") else 0


def _is_number(cell: str) -> bool:
    return cell.strip().replace(".", "", 1).lstrip("-").isdigit()
