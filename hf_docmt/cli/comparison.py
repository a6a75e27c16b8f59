"""`docmt compare` and `docmt rerank`: systems beside each other, and the best of their translations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import typer

from hf_docmt.cli.options import command, refuse
from hf_docmt.cli.output import terminal_width
from hf_docmt.files import check_writable_file, write_text
from hf_docmt.messages import check_known
from hf_docmt.options import OUTPUT_TEXT, PICTURE, argument, named_files, names, option

SHOW = "Translations side by side (--show)"


@dataclass(kw_only=True)
class Tests:
    """Which results are tested against which, and how."""

    runs: str | None = option(
        None, "Regular expression of what differs in the names of runs of one system, such as -seed\\d+."
    )
    may_differ: list[str] | None = option(None, "Key of the signature that may differ within a row, too; repeatable.")
    method: str = option("randomisation", "randomisation, bootstrap or sacrebleu-bootstrap.")
    samples: int | None = option(
        None, "Random samples of a test; default: 1000, or 40 for each test of the table if that is more.", least=1
    )
    seed: int = option(1, "Seed of a test.")


@dataclass(kw_only=True)
class Tables:
    """What is shown of results."""

    picture: str | None = PICTURE
    breakdown: str = option("none", "none, all, or an axis such as distance.")
    rank: str = option(
        "none",
        "Systems as rows, the best first: baseline (tested against it), or pairs (each against each, with ranks and "
        "clusters).",
    )
    picture_of: str = option("distance", "distance (accuracies), index or length (scores).")
    highlight: Sequence[str] = option((), "Systems of the picture in colour, the others are grey; commas.", read=names)


@dataclass(kw_only=True)
class SideBySideOptions:
    """Which translations are shown beside each other."""

    reference: str | None = option(None, "Documents with references; default: those that the reports name.", panel=SHOW)
    translators: Sequence[str] = option(
        (), "Translators of the references to show of a WMT set; commas.", "--translator", read=names, panel=SHOW
    )
    source_lang: str | None = option(None, "Language code of the source.", panel=SHOW)
    target_lang: str | None = option(None, "Language code of the references.", panel=SHOW)
    context: int | None = option(
        None, "Source sentences shown before each; default: 2, and 8 more to unfold on a page.", least=0, panel=SHOW
    )


@dataclass(kw_only=True)
class Selection:
    """Which sentences are shown, in which order."""

    sentences: str = option("changed", "changed (from the baseline) or all.", panel=SHOW)
    order: str = option("document", "document, or change: the largest differences of scores first.", panel=SHOW)


@command
def compare(
    *,
    call: typer.Context,
    reports: list[str] = argument("Report files of several systems; with --show files of translations, too."),
    name: list[str] | None = option(None, "Name of a system, in the order of the reports; repeatable."),
    baseline: str | None = option(None, "System to test the others against; default: the first."),
    format: str = option("text", "text, markdown, latex, csv or json; with --show text or html."),
    show: bool = option(False, "Show translations sentence by sentence.", panel=SHOW),
    output: str = OUTPUT_TEXT,
    tables: Tables,
    tests: Tests,
    side_by_side: SideBySideOptions,
    selection: Selection,
) -> None:
    """Compare several systems: scores, intervals, differences from a baseline and p-values, or their translations."""
    check_writable_file(output, [*reports, side_by_side.reference])
    systems = {"names": name, "baseline": baseline}
    if show:
        refuse(call, (*vars(tables), *vars(tests)), "is for tables of scores, but --show is given")
        text = _shown(reports, format, output, selection, **systems, **vars(side_by_side))
    else:
        reason = "is for translations side by side, but --show is not given"
        refuse(call, (*vars(side_by_side), *vars(selection)), reason)
        if not tables.picture:
            refuse(call, ("picture_of", "highlight"), "is of a picture, but --picture is not given")
        text = _table(reports, format, tables, **systems, **vars(tests))
    if output == "-":
        print(text)
    else:
        write_text(f"{text}\n", output)


def _table(reports: list[str], format: str, tables: Tables, **options) -> str:
    """The comparison of reports; the picture is drawn."""
    from hf_docmt.analysis.pictures import draw_breakdown
    from hf_docmt.evaluation.comparison import compare as compare_reports
    from hf_docmt.reports.comparison import select_breakdown
    from hf_docmt.reports.comparison_tables import format_comparison
    from hf_docmt.reports.ranking import format_ranking

    check_known(tables.rank, ("none", "baseline", "pairs"), "rank", "expected one of")
    options["may_differ"], options["all_pairs"] = tuple(options["may_differ"] or ()), tables.rank == "pairs"
    comparison = compare_reports(reports, breakdown="all" if tables.picture else tables.breakdown, **options)
    if tables.picture:
        draw_breakdown(comparison, tables.picture, axis=tables.picture_of, highlight=tables.highlight)
    if tables.rank != "none" and tables.breakdown != "none" and format != "json":
        raise ValueError("--rank is of whole scores, and --breakdown of their parts; give one of the two, or json")
    if tables.rank != "none" and format != "json":
        return format_ranking(comparison, format)
    return format_comparison(select_breakdown(comparison, tables.breakdown), format, width=terminal_width())


def _shown(reports: list[str], format: str, output: str, selection: Selection, **options) -> str:
    """Translations side by side; ValueError where the output is a file that they are read from."""
    from hf_docmt.evaluation.comparison import side_by_side
    from hf_docmt.reports.side_by_side import side_by_side_text
    from hf_docmt.reports.side_by_side_page import side_by_side_page

    check_known(format, ("text", "html"), "format", "translations are shown as")
    if options["context"] is None:
        options["context"] = 2 if format == "text" else 10
    translations = side_by_side(reports, **options)
    check_writable_file(output, translations.files)
    write = side_by_side_text if format == "text" else side_by_side_page
    return write(translations.select(**vars(selection)), translations.overview())


@command
def rerank(
    *,
    call: typer.Context,
    translations: list[str] = argument("JSON lines of docmt translate, of several systems, or of one with candidates."),
    output: str = option("-", "JSON lines to write; - is standard output.", "-o", "--output"),
    metric: str = option("chrf", "Utility of minimum Bayes risk: chrf or bleu, of sentences."),
    unit: str = option("sentence", "What is chosen: sentence, or document (each from one system as a whole)."),
    external: Sequence[tuple[str, str]] | None = option(
        None,
        "Scores of another program in place of the risk, NAME=FILE, as docmt evaluate takes them: one for each system, "
        "in their order.",
        read=named_files,
        repeated=True,
    ),
) -> None:
    """Choose among translations of several systems, seeds or searches: that which agrees most with all of them.

    Where systems wrote candidates (docmt translate --nbest), these are chosen among, too.
    """
    from hf_docmt.evaluation.reranking import reranked_rows
    from hf_docmt.translation.corpus import write_translations

    if external:
        refuse(call, ("metric",), "is the utility of minimum Bayes risk, but --external is given")
    check_writable_file(output, [*translations, *(path for _, path in external or ())])
    write_translations(reranked_rows(translations, metric, unit, external or ()), output)
