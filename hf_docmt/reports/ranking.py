"""Systems as rows: for each score the systems from the best to the worst, with tests, ranks and clusters."""

from collections.abc import Sequence

from hf_docmt.reports.comparison import Comparison, Row
from hf_docmt.reports.comparison_tables import (
    SIGNS,
    Signs,
    base_figure,
    comparison_remarks,
    difference_text,
    figure_text,
)
from hf_docmt.reports.tables import ESCAPES, Markup, write_csv, write_table

LOWER_IS_BETTER = (
    *("TER", "d-TER", "under-translation", "over-translation"),
    *("inserted sentences", "blank sentences", "copied sentences", "untranslated sentences"),
)
LOWER_SIGNATURE = "better:lower"  # of scores that another program gave
WITHOUT_DIRECTION = ("length ratio",)


def format_ranking(comparison: Comparison, style: str = "text") -> str:
    """One table with a line for each system of each score, in one of `tables.STYLES` or as CSV.

    With tests of all pairs a system has its `rank`, from 1 + the number of systems that are significantly better to
    the number of those that are not significantly worse, and its `cluster`: all systems of a cluster are significantly
    better than all of the next one, as in WMT's findings.
    """
    signs = SIGNS["text" if style == "csv" else style]
    if style == "csv":
        return write_csv(ranking_cells(comparison, signs, "text", repeats=True))
    left_out = sorted({row.metric for row in comparison.rows if row.metric in WITHOUT_DIRECTION})
    notes = [f"Not ranked, since neither more nor less of it is better: {', '.join(left_out)}."] if left_out else []
    remarks = [*comparison_remarks(comparison), *notes]
    return write_table(ranking_cells(comparison, signs, style), style, remarks, comparison.signatures, labels=3)


def ranking_cells(comparison: Comparison, signs: Signs, style: str, repeats: bool = False) -> list[Sequence[object]]:
    """Header and lines of the table; common facts of a score are in its first line, or with `repeats` in all lines.

    Scores without direction have no ranks, and are only in a table that repeats them, which programs read.
    """
    lines: list[dict[str, object]] = []
    for row in comparison.rows:
        has_direction = row.metric not in WITHOUT_DIRECTION
        if row.part or not has_direction and not repeats:
            continue
        better, order = better_systems(comparison, row), ranked(row) if has_direction else list(row.figures)
        clusters = clusters_of(order, better)
        base = base_figure(comparison, row)
        for number, system in enumerate(order):
            figure = row.figures[system]
            name = Markup(ESCAPES[style](row.metric) + signs["letter"].format(row.letter))
            score = (row.dataset, name) if number == 0 or repeats else ("", "")
            line = dict(zip(("dataset", "metric"), score)) | {"system": system, "n": figure.n}
            if comparison.pairs:
                rank = (rank_of(system, order, better), clusters[system]) if has_direction else ("", "")
                line |= dict(zip(("rank", "cluster"), rank))
            line["score"] = figure_text(figure, figure.runs, signs)
            if base is not None:
                line["difference"] = "" if system == comparison.baseline else difference_text(figure, base, signs)
            lines.append(line)
    columns = list(dict.fromkeys(key for line in lines for key in line))
    return [columns, *([line.get(column) for column in columns] for line in lines)]


def ranked(row: Row) -> list[str]:
    """The systems of a row, the best first."""
    signatures = [figure.signature.split("|") for figure in row.figures.values()]
    lower = row.metric in LOWER_IS_BETTER or any(LOWER_SIGNATURE in signature for signature in signatures)
    return sorted(row.figures, key=lambda system: row.figures[system].value, reverse=not lower)


def better_systems(comparison: Comparison, row: Row) -> dict[str, set[str]]:
    """{system: the systems of the row that are significantly better}, as the tests of all pairs say."""
    better: dict[str, set[str]] = {system: set() for system in row.figures}
    place = {system: number for number, system in enumerate(ranked(row))}
    for pair in comparison.pairs:
        if pair.group == row.group and pair.test.significant:
            first, second = sorted((pair.other, pair.system), key=place.__getitem__)
            better[second].add(first)
    return better


def rank_of(system: str, order: Sequence[str], better: dict[str, set[str]]) -> str:
    """`2`, or `2-4` where three systems do not differ."""
    first = 1 + len(better[system])
    last = len(order) - sum(system in others for others in better.values())
    return str(first) if first == last else f"{first}-{last}"


def clusters_of(order: Sequence[str], better: dict[str, set[str]]) -> dict[str, int]:
    """{system: number of its cluster}, from 1."""
    clusters, cluster = {}, 1
    for number, system in enumerate(order):
        if number and all(set(order[:number]) <= better[later] for later in order[number:]):
            cluster += 1
        clusters[system] = cluster
    return clusters
