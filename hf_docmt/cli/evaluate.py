"""`docmt evaluate`: scores of translations, with sacrebleu's options by the names of its command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hf_docmt.cli.options import AsJson, DocumentLang, Output, ReferenceFormat, names
from hf_docmt.cli.output import check_different, print_report

if TYPE_CHECKING:
    from hf_docmt.reports.report import Report

BLEU, CHRF, TER, COMET = "BLEU", "chrF", "TER", "COMET"  # panels of the help


def evaluate(
    translations: Annotated[
        str, typer.Argument(help="JSON lines of docmt translate, plain lines, or the XML of a WMT set (--system).")
    ],
    reference: Annotated[
        list[str] | None,
        typer.Argument(help="Documents, the target file of a pair, or plain lines; several files: a reference each."),
    ] = None,
    format: ReferenceFormat = "auto",
    source_lang: DocumentLang = None,
    target_lang: DocumentLang = None,
    language_pair: Annotated[
        str | None, typer.Option("-l", "--language-pair", help="Both languages in one, such as en-de.")
    ] = None,
    test_set: Annotated[
        str | None, typer.Option("-t", "--test-set", help="References of a test set of sacrebleu, such as wmt24.")
    ] = None,
    origlang: Annotated[
        str | None,
        typer.Option(help="Only documents written in this language, as the test set says; non-de: in another."),
    ] = None,
    translator: Annotated[
        str, typer.Option(help="Translators of the references to take from a WMT set; separated by commas.")
    ] = "",
    reference_columns: Annotated[
        str, typer.Option(help="Columns of reference JSON lines with further references; separated by commas.")
    ] = "",
    system: Annotated[str | None, typer.Option(help="System of a WMT set in XML whose output to score.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the system; default: the name of the file.")] = None,
    strategy: Annotated[str | None, typer.Option(help="Strategy of the translations, for the report.")] = None,
    beams: Annotated[int | None, typer.Option(help="Beam size of the translations, for the report.")] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "-m", "--metrics", help="bleu, d-bleu, chrf, chrf++, ter; commas or repeated; default: all but chrf++."
        ),
    ] = None,
    discourse: Annotated[
        str,
        typer.Option(help="Also score pronouns, formality, connectives, terms, a plugin's; separated by commas."),
    ] = "",
    by: Annotated[str, typer.Option(help="Break scores down by index, length, domain; separated by commas.")] = "",
    domains: Annotated[
        str | None,
        typer.Option(
            help="Regular expression that finds the domain in a document's id; default: as the references say."
        ),
    ] = None,
    repairs: Annotated[
        str | None,
        typer.Option(
            help="none: score lines as they were written, more or fewer than sentences; default: as the JSON lines say."
        ),
    ] = None,
    align: Annotated[bool, typer.Option("--align", help="Align the text to the reference's sentences.")] = False,
    unit: Annotated[
        str | None,
        typer.Option(
            help="What intervals and tests of BLEU, chrF and TER draw: document, or sentence, the default of a single "
            "document with --baseline."
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Translations of another system, to print differences and p-values beside it.")
    ] = None,
    sentence_scores: Annotated[
        str | None, typer.Option(help="Also write the scores of every sentence to this file, as JSON lines.")
    ] = None,
    tokenize: Annotated[
        str | None,
        typer.Option(help="sacrebleu's tokenizer, such as 13a or char; default: by language.", rich_help_panel=BLEU),
    ] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case.", rich_help_panel=BLEU)] = False,
    chrf_lowercase: Annotated[
        bool, typer.Option("--chrf-lowercase", help="Ignore case.", rich_help_panel=CHRF)
    ] = False,
    ter_case_sensitive: Annotated[
        bool, typer.Option("--ter-case-sensitive", help="Mind case.", rich_help_panel=TER)
    ] = False,
    ter_asian_support: Annotated[
        bool, typer.Option("--ter-asian-support", help="Treat Asian characters as tercom does.", rich_help_panel=TER)
    ] = False,
    ter_no_punct: Annotated[
        bool, typer.Option("--ter-no-punct", help="Leave out punctuation.", rich_help_panel=TER)
    ] = False,
    ter_normalized: Annotated[
        bool, typer.Option("--ter-normalized", help="Normalise and tokenize as tercom does.", rich_help_panel=TER)
    ] = False,
    comet: Annotated[
        str | None, typer.Option(help="Also score COMET: path of a Python with unbabel-comet.", rich_help_panel=COMET)
    ] = None,
    comet_model: Annotated[
        str | None,
        typer.Option(
            help="COMET model, a Hub name or checkpoint; default: Unbabel/wmt22-comet-da.", rich_help_panel=COMET
        ),
    ] = None,
    comet_context: Annotated[
        int, typer.Option(min=0, help="Also score doc-COMET with this many context sentences.", rich_help_panel=COMET)
    ] = 0,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Score translations: s-BLEU, d-BLEU, chrF and TER as sacrebleu has them, each with its signature."""
    from hf_docmt.evaluation.translation_scores import evaluate_files
    from hf_docmt.files import check_writable_file

    inputs = [translations, *(reference or []), baseline]
    for path in (output, sentence_scores):
        check_writable_file(path or "-", inputs)
    check_different(report=output, sentence_scores=sentence_scores)
    languages = languages_of_pair(language_pair, source_lang, target_lang)
    shared = {
        "test_set": test_set,
        "origlang": origlang,
        "translators": names(translator),
        "reference_columns": names(reference_columns),
        "metrics": names(",".join(metrics)) if metrics else None,
        "discourse": names(discourse),
        "by": names(by),
        "domains": domains,
        "repairs": repairs,
        "align": align,
        "unit": unit or (None if baseline else "document"),
        "tokenize": tokenize,
        "lowercase": lowercase,
        "chrf_lowercase": chrf_lowercase,
        "ter_case_sensitive": ter_case_sensitive,
        "ter_asian_support": ter_asian_support,
        "ter_no_punct": ter_no_punct,
        "ter_normalized": ter_normalized,
        "comet": comet,
        "comet_model": comet_model,
        "comet_context": comet_context,
    }
    described = {"name": name, "strategy": strategy, "beams": beams, "system": system}
    described |= {"sentence_scores": sentence_scores}
    report = evaluate_files(translations, reference or [], format, *languages, **described, **shared)
    if baseline is None:
        print_report(report, as_json, output)
        return
    other = evaluate_files(baseline, reference or [], format, *languages, **shared)
    if output:
        report.write(output)
    print_difference(other, report, as_json)


def print_difference(baseline: Report, report: Report, as_json: bool) -> None:
    """Print the scores of two systems with their differences and p-values, as `docmt compare` does."""
    from shutil import get_terminal_size

    from hf_docmt.evaluation.comparison import compare
    from hf_docmt.reports.comparison_tables import format_comparison

    systems = [baseline.name if baseline.name != report.name else f"{baseline.name} (baseline)", report.name]
    found = compare([baseline, report], names=systems, method="randomisation")
    print(format_comparison(found, "json" if as_json else "text", width=get_terminal_size((100, 24)).columns))


def languages_of_pair(
    pair: str | None, source_lang: str | None, target_lang: str | None
) -> tuple[str | None, str | None]:
    """Source and target language, given one by one or as a pair such as `en-de`. ValueError: both, or no pair."""
    if pair is None:
        return source_lang, target_lang
    if source_lang or target_lang:
        raise ValueError(f"--language-pair {pair} and --source-lang or --target-lang; give one of the two")
    codes = pair.split("-")
    if len(codes) != 2 or not all(codes):
        raise ValueError(
            f"--language-pair is {pair!r}, expected two codes such as en-de; for codes with a hyphen in them give "
            "--source-lang and --target-lang"
        )
    return codes[0], codes[1]
