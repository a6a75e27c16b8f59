"""`docmt contrast`, `translate-suite`, `ctxpro` and `cxmi`: what models make of test sets for context."""

from __future__ import annotations

from typing import Annotated

import typer

from hf_docmt.cli.loading import NOT_FOR_TRANSLATION, languages_of, load_system
from hf_docmt.cli.options import (
    AsJson,
    BatchSize,
    Beams,
    Conditions,
    Context,
    Details,
    FutureContext,
    Lang,
    Limit,
    Model,
    Options,
    Output,
    ReferencedDocuments,
    Strategy,
    distinct_names,
    item_range,
    names,
    refuse,
)
from hf_docmt.cli.output import check_different, print_report

Items = Annotated[str | None, typer.Option(help="Only these items of each suite: FIRST-LAST, from 1.")]
SuiteDocuments = Annotated[str | None, typer.Option(help="JSON lines with the contexts of a ContraPro suite.")]
SuiteFormat = Annotated[str, typer.Option(help="contrapro, voita, lopes, bawden, a plugin's, or auto.")]
SuiteRecords = Annotated[str | None, typer.Option(help="JSON file of a suite that is given as text files.")]

SCORED = (
    "normalization",
    "source_lang",
    "target_lang",
    "context",
    "future_context",
    "conditions",
    "write_scores",
    "option",
)
TRANSLATED = ("source_lang", "target_lang", "context", "conditions", "strategy", "beams", "batch_size", "option")


def contrast(
    call: typer.Context,
    model: Annotated[str, typer.Argument(help="Model folder or Hub name; with --scores a name for the system.")],
    suites: Annotated[list[str], typer.Argument(help="Suites of ContraPro, Voita, Lopes or Bawden: files or folders.")],
    format: SuiteFormat = "auto",
    documents: SuiteDocuments = None,
    records: SuiteRecords = None,
    normalization: Annotated[
        str,
        typer.Option(
            help="Of the tokens' log-probabilities: sum; mean (released code of Maka et al.); window-mean, of all "
            "tokens of the target window (released code of Lupo et al.)."
        ),
    ] = "sum",
    source_lang: Lang = None,
    target_lang: Lang = None,
    context: Context = None,
    future_context: FutureContext = None,
    conditions: Conditions = "true",
    items: Items = None,
    scores: Annotated[
        str | None, typer.Option(help="Read scores from this file instead of scoring with a model.")
    ] = None,
    better: Annotated[str, typer.Option(help="Which scores of that file are better: lower or higher.")] = "lower",
    write_scores: Annotated[str | None, typer.Option(help="Folder to write scores to, in the published order.")] = None,
    limit: Limit = None,
    details: Details = None,
    option: Options = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Contrastive accuracy by forced decoding, of a translation or language model, or from a file of scores."""
    from hf_docmt.evaluation.contrast import contrast_report, score_file_report
    from hf_docmt.files import check_writable_file

    check_writable_file(output or "-", [*suites, scores, documents, records])
    check_different(report=output, details=details)
    shared = {"format": format, "documents": documents, "records": records, "only": item_range(items)}
    shared |= {"limit": limit, "details": details}
    if scores is not None:
        refuse(call, SCORED, "is for a model that is scored, but --scores gives what another system wrote")
        if len(suites) != 1:
            raise ValueError(f"--scores is a file of one suite, got {len(suites)} suites; score them one by one")
        report = score_file_report(model, suites[0], scores, better=better, **shared)
    else:
        refuse(call, ("better",), "is for a file of scores, but --scores is not given")
        system = load_system(
            model,
            context=context,
            future_context=future_context,
            option_pairs=option,
            model_languages=(source_lang, target_lang),
        )
        options = {"normalization": normalization, "scores_folder": write_scores, **shared}
        report = contrast_report(system, suites, conditions=distinct_names(conditions), **options)
    print_report(report, as_json, output)


def translate_suite(
    model: Model,
    suite: Annotated[str, typer.Argument(help="A suite of ContraPro, Voita, Lopes or Bawden: file or folder.")],
    format: SuiteFormat = "auto",
    documents: SuiteDocuments = None,
    records: SuiteRecords = None,
    discourse: Annotated[
        str, typer.Option(help="Also score pronouns, formality, connectives, terms; separated by commas.")
    ] = "",
    source_lang: Lang = None,
    target_lang: Lang = None,
    context: Context = None,
    future_context: FutureContext = None,
    strategy: Strategy = None,
    beams: Beams = None,
    batch_size: BatchSize = 16,
    items: Items = None,
    limit: Limit = None,
    details: Details = None,
    option: Options = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Translate the sentences of a contrastive suite in their contexts: BLEU, chrF, TER, pronoun F1."""
    from hf_docmt.evaluation.suite_translation import suite_translation_report
    from hf_docmt.files import check_writable_file

    check_writable_file(output or "-", [suite, documents, records])
    check_different(report=output, details=details)
    reach = {"context": context, "future_context": future_context}
    system = load_translator(model, option, batch_size, strategy, beams, (source_lang, target_lang), **reach)
    options = {"format": format, "documents": documents, "records": records, "only": item_range(items)}
    options |= {"discourse": names(discourse), "limit": limit, "details": details}
    print_report(suite_translation_report(system, suite, **options), as_json, output)


def ctxpro(
    call: typer.Context,
    model: Annotated[str, typer.Argument(help="Model folder or Hub name; with --translations a name for the system.")],
    sets: Annotated[list[str], typer.Argument(help="Evaluation sets, evalsets/NAME.json.")],
    inputs: Annotated[str | None, typer.Option(help="Source texts of the set; default: inputs/NAME beside it.")] = None,
    translations: Annotated[
        str | None,
        typer.Option(
            help="Judge this file instead of translating: a line for each item of the set, also with --limit. With "
            "--rule line the translation of the current sentence, or of more with <eos> before it; with published "
            "any text."
        ),
    ] = None,
    source_lang: Lang = None,
    target_lang: Lang = None,
    context: Context = None,
    conditions: Conditions = "true",
    rule: Annotated[
        str,
        typer.Option(
            help="line: look for the expected word in the translation of the current sentence; published: as the "
            "released script does (needs hf-docmt\\[ctxpro])."
        ),
    ] = "line",
    strategy: Strategy = None,
    beams: Beams = None,
    batch_size: BatchSize = 16,
    limit: Limit = None,
    details: Details = None,
    option: Options = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Generative accuracy on ctxpro's sets: does the translation have the word that the context requires?"""
    from hf_docmt.evaluation.ctxpro import generative_report, translation_file_report
    from hf_docmt.files import check_writable_file

    check_writable_file(output or "-", [*sets, inputs, translations])
    check_different(report=output, details=details)
    shared = {"inputs": inputs, "rule": rule, "limit": limit, "details": details}
    if translations is not None:
        reason = "is for a model that translates, but --translations gives what another system wrote"
        refuse(call, TRANSLATED, reason)
        if len(sets) != 1:
            raise ValueError(f"--translations is a file of one set, got {len(sets)} sets; judge them one by one")
        report = translation_file_report(model, sets[0], translations, **shared)
    else:
        languages = (source_lang, target_lang)
        system = load_translator(model, option, batch_size, strategy, beams, languages, context=context)
        report = generative_report(system, sets, conditions=distinct_names(conditions), **shared)
    print_report(report, as_json, output)


def load_translator(
    model: str,
    option: list[str] | None,
    batch_size: int,
    strategy: str | None,
    beams: int | None,
    languages: tuple[str | None, str | None],
    **reach,
):
    """The system that translates as asked for; what is None is the system's own. `reach`: its context."""
    search = {"batch_size": batch_size, "strategy": strategy, "num_beams": beams}
    search = {name: value for name, value in search.items() if value is not None}
    search |= {"excluded": NOT_FOR_TRANSLATION, "model_languages": languages}
    return load_system(model, option_pairs=option, **reach, **search)


def cxmi(
    model: Model,
    documents: ReferencedDocuments,
    source_lang: Lang = None,
    target_lang: Lang = None,
    context: Context = None,
    conditions: Conditions = "true",
    normalization: Annotated[
        str,
        typer.Option(help="Of a sentence's tokens: sum; mean (released code of Fernandes et al.)."),
    ] = "sum",
    details: Details = None,
    option: Options = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """CXMI: what context adds to the log-probability of references, in nats per sentence (Fernandes et al. 2021)."""
    from hf_docmt.data.readers import read_documents
    from hf_docmt.evaluation.cxmi import cxmi_report
    from hf_docmt.files import check_writable_file, data_name

    check_writable_file(output or "-", [documents])
    check_different(report=output, details=details)
    system = load_system(model, context=context, option_pairs=option, prompt_languages=(source_lang, target_lang))
    languages = languages_of(system, source_lang, target_lang)
    options = {
        "normalization": normalization,
        "conditions": distinct_names(conditions),
        "details": details,
        **languages,
    }
    report = cxmi_report(system, read_documents(path=documents, **languages), dataset=data_name(documents), **options)
    print_report(report, as_json, output)
