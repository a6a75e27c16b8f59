"""Tables of cells, without figures of systems, in text, Markdown and LaTeX."""

from collections.abc import Sequence

from hf_docmt.reports.table_styles import STYLES
from hf_docmt.reports.tables import align_columns


def check_style(style: str) -> None:
    """Raise `ValueError` for a style that is not one of STYLES."""
    if style not in STYLES:
        raise ValueError(f"style is {style!r}, expected {', '.join(list(STYLES)[:-1])} or {list(STYLES)[-1]}")


def plain_table(rows: Sequence[Sequence[str]], notes: Sequence[str], style: str = "text") -> str:
    """Rows of cells, the first one a header, and notes below, in one of STYLES. LaTeX needs the package booktabs."""
    check_style(style)
    if style == "text":
        return "\n".join([align_columns(rows), "", *notes])
    escape = STYLES[style].escape
    lines, below = [[escape(cell) for cell in row] for row in rows], [escape(note) for note in notes]
    if style == "markdown":
        lines.insert(1, ["---", *["---:"] * (len(rows[0]) - 1)])
        return "\n".join([*(f"| {' | '.join(row)} |" for row in lines), "", *(f"- {note}" for note in below)])
    body = [rf"{' & '.join(row)} \\" for row in lines]
    columns = "l" + "r" * (len(rows[0]) - 1)
    table = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", body[0], r"\midrule", *body[1:], r"\bottomrule"]
    return "\n".join([*table, r"\end{tabular}", *(rf"\par {note}" for note in below)])
