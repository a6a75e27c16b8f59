"""`docmt analyze`, for files: losses of training runs, translations of several systems."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from hf_docmt.cli.options import AsJson, DocumentLang, Output, OutputFolder, Picture, ReferenceFormat
from hf_docmt.cli.output import check_files, check_folder, print_table, write_reports


def losses(
    runs: Annotated[list[str], typer.Argument(help="Folders of finished training runs.")],
    picture: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Training losses of several runs, for example with different optimisation windows (Feng et al. 2022)."""
    from hf_docmt.analysis.losses import read_losses
    from hf_docmt.analysis.pictures.curves import draw_losses
    from hf_docmt.reports.tables import cells_frame, write_table

    check_files(picture, None)
    found = read_losses(runs)
    rows = [run.summary() for run in found]
    if as_json:
        print(json.dumps([row | {"losses": run.training} for row, run in zip(rows, found)], ensure_ascii=False))
    else:
        print(write_table(cells_frame([list(rows[0]), *([str(value) for value in row.values()] for row in rows)])))
    if picture:
        draw_losses(found, picture)


def by_index(
    system: Annotated[str, typer.Argument(help="Translations of a system, JSON lines of docmt translate.")],
    baseline: Annotated[str, typer.Argument(help="Translations of the baseline.")],
    reference: Annotated[str, typer.Argument(help="Reference documents.")],
    format: ReferenceFormat = "auto",
    source_lang: DocumentLang = None,
    target_lang: DocumentLang = None,
    every: Annotated[int, typer.Option(min=1, help="Sentence indices in a range.")] = 10,
    samples: Annotated[int, typer.Option(min=0, help="Bootstrap samples for the intervals; 0 = none.")] = 1000,
    picture: Picture = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Difference of s-BLEU by sentence index in the document (Feng et al. 2022, figure 3)."""
    from hf_docmt.analysis.pictures.curves import draw_by_index
    from hf_docmt.analysis.scores_by_position import by_index_files

    check_files(picture, output, [system, baseline, reference])
    options = {"every": every, "samples": samples}
    ranges, report = by_index_files(system, baseline, reference, format, source_lang, target_lang, **options)
    names = [report.name, report.data["baseline"]]
    if output:
        report.write(output)
    cells = [["index", *names, "difference", "95 % interval", "sentences"]]
    for one in ranges:
        interval = "{:.2f} to {:.2f}".format(*one.interval) if one.interval else "-"
        values = [f"{value:.2f}" for value in (one.system, one.baseline, one.difference)]
        cells.append([one.label, *values, interval, str(one.n)])
    print_table(cells, report.to_dict(), as_json)
    if picture:
        draw_by_index(ranges, picture, title=f"{names[0]} less {names[1]}")


def connectives(
    reference: Annotated[str, typer.Argument(help="Reference documents.")],
    systems: Annotated[list[str], typer.Argument(help="Translations of systems, JSON lines of docmt translate.")],
    format: ReferenceFormat = "auto",
    source_lang: DocumentLang = None,
    target_lang: DocumentLang = None,
    words: Annotated[
        str | None,
        typer.Option(help="Words or phrases to count, separated by commas; default: those of the paper, for English."),
    ] = None,
    output: OutputFolder = None,
    as_json: AsJson = False,
) -> None:
    """Counts of connectives in the reference and in systems side by side (Fei et al. 2022, Table 4).

    Whole words are counted, ignoring case. The last row sums the absolute differences from the reference's counts.
    `docmt compare` tests the reports of systems against each other.
    """
    from hf_docmt.analysis.connective_counts import by_name, connective_files, count_rows

    check_folder(output, by_name(systems), [reference, *systems])
    listed = None if words is None else [word.strip() for word in words.split(",")]
    counts, reports = connective_files(reference, systems, format, source_lang, target_lang, words=listed)
    if output:
        write_reports(reports, output)
    print_table(count_rows(counts), [report.to_dict() for report in reports.values()], as_json)
