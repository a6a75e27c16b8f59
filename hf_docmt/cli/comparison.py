"""`docmt compare` and `docmt rerank`: systems side by side, and the best of their translations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import typer

from hf_docmt.cli.loading import check_model
from hf_docmt.cli.options import command, refuse
from hf_docmt.cli.output import terminal_width
from hf_docmt.files import check_writable_file, write_text
from hf_docmt.messages import check_known
from hf_docmt.options import OUTPUT_TEXT, PICTURE, SHOW, argument, named_files, names, option


@dataclass(kw_only=True)
class Tests:
    """Options of significance tests."""

    runs: str | None = option(
        None, "Regular expression of what differs between run names of one system: -seed\\d+.", metavar="REGEX"
    )
    may_differ: list[str] | None = option(
        None, "Signature key that may differ within a row; repeatable.", metavar="KEY"
    )
    method: str = option("randomisation", "Test: randomisation, bootstrap or sacrebleu-bootstrap.", metavar="NAME")
    samples: int | None = option(
        None, "Samples per test. Default: 1000, or 40 for each test in the table if that is more.", least=1
    )
    seed: int = option(1, "Random seed of the tests.")


@dataclass(kw_only=True)
class Tables:
    """Options for the display of results."""

    picture: str | None = PICTURE
    breakdown: str = option("none", "Also show parts: none, all, or an axis such as distance.", metavar="NAME")
    rank: str = option(
        "none",
        "Show systems as rows, best first: baseline (tests against it) or pairs (all pairs, ranks and clusters).",
        metavar="NAME",
    )
    picture_of: str = option("distance", "Axis: distance (accuracies), index or length (scores).", metavar="NAME")
    highlight: Sequence[str] = option((), "Systems shown in colour in the picture; the others are grey.", read=names)


@dataclass(kw_only=True)
class SideBySideOptions:
    """Translations to show side by side."""

    PANEL: ClassVar[str] = SHOW

    reference: str | None = option(None, "Documents with references. Default: named by the reports.", metavar="FILE")
    translators: Sequence[str] = option(
        (), "WMT sets: show references by these translators.", "--translator", read=names
    )
    source_lang: str | None = option(None, "Language of the source.", metavar="CODE")
    target_lang: str | None = option(None, "Language of the references.", metavar="CODE")
    context: int | None = option(
        None, "Source sentences before each. Default: 2; 10 on a page, 8 of them folded.", least=0
    )


@dataclass(kw_only=True)
class Selection:
    """Sentences to show, and their order."""

    PANEL: ClassVar[str] = SHOW

    sentences: str = option("changed", "changed (from the baseline) or all.", metavar="NAME")
    order: str = option("document", "document, or change (largest score difference first).", metavar="NAME")


@command
def compare(
    *,
    call: typer.Context,
    reports: list[str] = argument(
        "Reports of several systems; with --show also files of translations.", metavar="REPORT"
    ),
    name: list[str] | None = option(None, "Name of a system, in the order of the reports; repeatable."),
    baseline: str | None = option(
        None, "System that the others are tested against. Default: the first.", metavar="NAME"
    ),
    format: str = option("text", "text, markdown, latex, csv or json; with --show text or html.", metavar="NAME"),
    show: bool = option(False, "Show translations sentence by sentence."),
    output: str = OUTPUT_TEXT,
    tables: Tables,
    tests: Tests,
    side_by_side: SideBySideOptions,
    selection: Selection,
) -> None:
    """Compare systems: scores, intervals, differences from a baseline, p-values, or their translations.

    Examples:
      docmt compare runs/demo/reports/*.json
      docmt compare a.json b.json --format markdown --rank pairs
      docmt compare a.json b.json --show -o page.html --format html

    Reports are files by docmt evaluate, contrast and others, with -o.
    """
    check_writable_file(output, [*reports, side_by_side.reference])
    systems = {"names": name, "baseline": baseline}
    if show:
        refuse(call, (*vars(tables), *vars(tests)), "is for tables of scores, not for --show")
        text = _shown(reports, format, output, selection, **systems, **vars(side_by_side))
    else:
        reason = "is for translations side by side (--show)"
        refuse(call, (*vars(side_by_side), *vars(selection)), reason)
        if not tables.picture:
            refuse(call, ("picture_of", "highlight"), "is for pictures (--picture)")
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
        raise ValueError("--rank shows whole scores and --breakdown their parts; give one of the two, or --format json")
    if tables.rank != "none" and format != "json":
        return format_ranking(comparison, format)
    return format_comparison(select_breakdown(comparison, tables.breakdown), format, width=terminal_width())


def _shown(reports: list[str], format: str, output: str, selection: Selection, **options) -> str:
    """Translations side by side; ValueError if the output is an input."""
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
    translations: list[str] = argument(
        "JSON lines by docmt translate: of several systems, or of one with candidates.", metavar="FILE"
    ),
    output: str = OUTPUT_TEXT,
    metric: str = option("chrf", "Utility of minimum Bayes risk: chrf or bleu.", metavar="NAME"),
    unit: str = option("sentence", "Choose for each sentence or each document.", metavar="NAME"),
    external: Sequence[tuple[str, str]] | None = option(
        None,
        "Choose by scores of another program: a file per system, in their order, as for docmt evaluate.",
        read=named_files,
        repeated=True,
    ),
) -> None:
    """Choose among translations of several systems the ones that agree most with all others.

    The systems may be seeds or searches of one model. Candidates (docmt translate --nbest) also take part.
    """
    if external:
        refuse(call, ("metric",), "is not used with --external")
    files = [*translations, *(path for _, path in external or ())]
    check_writable_file(output, files)
    check_model(None, *files)
    from hf_docmt.evaluation.reranking import reranked_rows
    from hf_docmt.translation.corpus import write_translations

    write_translations(reranked_rows(translations, metric, unit, external or ()), output)
