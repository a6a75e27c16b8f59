"""`docmt analyze`, for files: losses of training runs, translations of several systems."""

from __future__ import annotations

from collections.abc import Sequence

from hf_docmt.cli.options import command
from hf_docmt.cli.output import check_files, check_folder, print_table, write_reports
from hf_docmt.options import AS_JSON, OUTPUT, OUTPUT_FOLDER, PICTURE, ReferenceReading, argument, option


@command
def losses(
    *,
    runs: list[str] = argument("Folders of finished training runs."),
    picture: str | None = PICTURE,
    as_json: bool = AS_JSON,
) -> None:
    """Training losses of several runs, for example with different optimisation windows (Feng et al. 2022)."""
    from hf_docmt.analysis.losses import read_losses
    from hf_docmt.analysis.pictures.analyses import draw_losses

    check_files(picture, None)
    runs = read_losses(runs)
    rows = [run.summary() for run in runs]
    cells = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    print_table(cells, [row | {"losses": run.training} for row, run in zip(rows, runs)], as_json)
    if picture:
        draw_losses(runs, picture)


@command
def by_index(
    *,
    system: str = argument("Translations of a system, JSON lines of docmt translate."),
    baseline: str = argument("Translations of the baseline."),
    reference: str = argument("Reference documents."),
    every: int = option(10, "Sentence indices in a range.", least=1),
    samples: int = option(1000, "Bootstrap samples for the intervals; 0 = none.", least=0),
    reading: ReferenceReading,
    picture: str | None = PICTURE,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """Difference of s-BLEU by sentence index in the document (Feng et al. 2022, figure 3)."""
    from hf_docmt.analysis.pictures.analyses import draw_by_index
    from hf_docmt.analysis.translation_files import by_index_files

    files = [system, baseline, reference]
    check_files(picture, output, files)
    ranges, report = by_index_files(*files, every=every, samples=samples, **vars(reading))
    names = [report.name, report.data["baseline"]]
    cells = [["index", *names, "difference", "95 % interval", "sentences"]]
    for scores in ranges:
        interval = "{:.2f} to {:.2f}".format(*scores.interval) if scores.interval else "-"
        values = [f"{value:.2f}" for value in (scores.system, scores.baseline, scores.difference)]
        cells.append([scores.label, *values, interval, str(scores.n)])
    print_table(cells, report, as_json, output)
    if picture:
        draw_by_index(ranges, picture, title=f"{names[0]} less {names[1]}")


def listed_words(text: str) -> list[str]:
    """Words or phrases separated by commas."""
    return [word.strip() for word in text.split(",")]


@command
def connectives(
    *,
    reference: str = argument("Reference documents."),
    systems: list[str] = argument("Translations of systems, JSON lines of docmt translate."),
    words: Sequence[str] | None = option(
        None,
        "Words or phrases to count, separated by commas; default: those of the paper, for English.",
        read=listed_words,
    ),
    reading: ReferenceReading,
    output: str | None = OUTPUT_FOLDER,
    as_json: bool = AS_JSON,
) -> None:
    """Counts of connectives in the reference and in systems side by side (Fei et al. 2022, Table 4).

    Whole words are counted, ignoring case. The last row sums the absolute differences from the reference's counts.
    `docmt compare` tests the reports of systems against each other.
    """
    from hf_docmt.analysis.translation_files import by_name, connective_files, count_rows

    check_folder(output, by_name(systems), [reference, *systems])
    counts, reports = connective_files(reference, systems, words=words, **vars(reading))
    write_reports(reports, output)
    print_table(count_rows(counts), list(reports.values()), as_json)
