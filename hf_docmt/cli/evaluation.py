"""`docmt compare`: reports of several systems side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from hf_docmt.cli.options import (
    Picture,
)


def compare(
    reports: Annotated[list[str], typer.Argument(help="Report files of several systems.")],
    name: Annotated[
        list[str] | None, typer.Option(help="Name of a system, in the order of the reports; repeatable.")
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="System to test the others against; default: the first.")] = None,
    runs: Annotated[
        str | None,
        typer.Option(help="Regular expression of what differs in the names of runs of one system, such as -seed\\d+."),
    ] = None,
    breakdown: Annotated[str, typer.Option(help="none, all, or an axis such as distance.")] = "none",
    may_differ: Annotated[
        list[str] | None,
        typer.Option(help="Key of the signature that may differ within a row, too; repeatable."),
    ] = None,
    method: Annotated[str, typer.Option(help="randomisation, bootstrap or sacrebleu-bootstrap.")] = "randomisation",
    samples: Annotated[int, typer.Option(min=1, help="Random samples of a test.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of a test.")] = 1,
    format: Annotated[str, typer.Option(help="text, markdown, latex, csv or json.")] = "text",
    picture: Picture = None,
    picture_of: Annotated[str, typer.Option(help="distance (accuracies), index or length (scores).")] = "distance",
) -> None:
    """Compare several systems in one table: scores, intervals, differences from a baseline and their p-values."""
    from shutil import get_terminal_size

    from hf_docmt.analysis.pictures.comparison import draw_accuracy_by_distance, draw_scores
    from hf_docmt.evaluation.report_comparison import compare as compare_reports
    from hf_docmt.reports.comparison import select_breakdown
    from hf_docmt.reports.comparison_tables import format_comparison

    options = {"names": name, "may_differ": tuple(may_differ or ()), "runs": runs, "baseline": baseline}
    options |= {"method": method, "samples": samples, "seed": seed}
    found = compare_reports(reports, breakdown="all" if picture else breakdown, **options)
    print(format_comparison(select_breakdown(found, breakdown), format, width=get_terminal_size((100, 24)).columns))
    if picture and picture_of == "distance":
        draw_accuracy_by_distance(found, picture)
    elif picture:
        draw_scores(found, picture, axis=picture_of)
