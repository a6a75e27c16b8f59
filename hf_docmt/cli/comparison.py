"""`docmt compare`: reports of several systems in one table, or their translations side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from hf_docmt.cli.options import Picture, names, refuse

TABLE_OPTIONS = ("runs", "breakdown", "may_differ", "method", "samples", "seed", "picture", "picture_of")
SHOW_OPTIONS = ("reference", "translator", "source_lang", "target_lang", "sentences", "order", "context")
SHOW = "Translations side by side (--show)"


def compare(
    call: typer.Context,
    reports: Annotated[
        list[str], typer.Argument(help="Report files of several systems; with --show files of translations, too.")
    ],
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
    format: Annotated[str, typer.Option(help="text, markdown, latex, csv or json; with --show text or html.")] = "text",
    picture: Picture = None,
    picture_of: Annotated[str, typer.Option(help="distance (accuracies), index or length (scores).")] = "distance",
    show: Annotated[
        bool, typer.Option("--show", help="Show translations sentence by sentence.", rich_help_panel=SHOW)
    ] = False,
    reference: Annotated[
        str | None,
        typer.Option(help="Documents with references; default: those that the reports name.", rich_help_panel=SHOW),
    ] = None,
    translator: Annotated[
        str,
        typer.Option(help="Translators of the references to show of a WMT set; commas.", rich_help_panel=SHOW),
    ] = "",
    source_lang: Annotated[str | None, typer.Option(help="Language code of the source.", rich_help_panel=SHOW)] = None,
    target_lang: Annotated[
        str | None, typer.Option(help="Language code of the references.", rich_help_panel=SHOW)
    ] = None,
    sentences: Annotated[
        str, typer.Option(help="changed (from the baseline) or all.", rich_help_panel=SHOW)
    ] = "changed",
    order: Annotated[
        str, typer.Option(help="document, or change: the largest differences of scores first.", rich_help_panel=SHOW)
    ] = "document",
    context: Annotated[int, typer.Option(min=0, help="Source sentences shown before each.", rich_help_panel=SHOW)] = 2,
    output: Annotated[str, typer.Option("-o", "--output", help="File to write, or - for standard output.")] = "-",
) -> None:
    """Compare several systems: scores, intervals, differences from a baseline and p-values, or their translations."""
    from hf_docmt.files import check_writable_file, write_text

    check_writable_file(output, [*reports, reference])
    if show:
        refuse(call, TABLE_OPTIONS, "is for tables of scores, but --show is given")
        options = {"names": name, "baseline": baseline, "context": context, "translators": names(translator)}
        text = _shown(reports, reference, output, source_lang, target_lang, sentences, order, format, options)
    else:
        refuse(call, SHOW_OPTIONS, "is for translations side by side, but --show is not given")
        options = {"names": name, "may_differ": tuple(may_differ or ()), "runs": runs, "baseline": baseline}
        options |= {"method": method, "samples": samples, "seed": seed}
        text = _table(reports, breakdown, format, picture, picture_of, options)
    if output == "-":
        print(text)
    else:
        write_text(f"{text}\n", output)


def _table(reports: list[str], breakdown: str, format: str, picture: str | None, picture_of: str, options: dict) -> str:
    """The comparison of reports; the picture is drawn."""
    from shutil import get_terminal_size

    from hf_docmt.analysis.pictures.comparison import draw_accuracy_by_distance, draw_scores
    from hf_docmt.evaluation.comparison import compare as compare_reports
    from hf_docmt.reports.comparison import select_breakdown
    from hf_docmt.reports.comparison_tables import format_comparison

    found = compare_reports(reports, breakdown="all" if picture else breakdown, **options)
    if picture and picture_of == "distance":
        draw_accuracy_by_distance(found, picture)
    elif picture:
        draw_scores(found, picture, axis=picture_of)
    return format_comparison(select_breakdown(found, breakdown), format, width=get_terminal_size((100, 24)).columns)


def _shown(
    paths: list[str],
    reference: str | None,
    output: str,
    source_lang: str | None,
    target_lang: str | None,
    sentences: str,
    order: str,
    format: str,
    options: dict,
) -> str:
    """Translations side by side; ValueError where the output is a file that they are read from."""
    from hf_docmt.evaluation.comparison import side_by_side
    from hf_docmt.files import check_writable_file
    from hf_docmt.reports.result_groups import check_known
    from hf_docmt.reports.side_by_side import side_by_side_text
    from hf_docmt.reports.side_by_side_page import side_by_side_page

    check_known(format, ("text", "html"), "format", "translations are shown as")
    found = side_by_side(paths, reference, source_lang, target_lang, **options)
    check_writable_file(output, found.files)
    write = side_by_side_text if format == "text" else side_by_side_page
    return write(found.select(sentences, order), found.summary())
