"""`docmt contrast`, `translate-suite`, `ctxpro` and `cxmi`: what models make of test sets for context."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from hf_docmt.cli.loading import NOT_FOR_TRANSLATION, languages_of, system_of_command
from hf_docmt.cli.options import command, refuse
from hf_docmt.cli.output import check_report, print_report
from hf_docmt.files import data_name
from hf_docmt.options import (
    AS_JSON,
    CONDITIONS,
    CONTEXT,
    DETAILS,
    DOCUMENTS,
    FUTURE_CONTEXT,
    LIMIT,
    MODEL,
    OPTION_PAIRS,
    OUTPUT,
    ModelLanguages,
    SuiteItems,
    SystemSearch,
    argument,
    names,
    option,
)

SYSTEM_OPTIONS = ("source_lang", "target_lang", "context", "conditions", "option_pairs")


@command
def contrast(
    *,
    call: typer.Context,
    model: str = argument("Model folder or Hub name; with --scores a name for the system."),
    suites: list[str] = argument("Suites of ContraPro, Voita, Lopes or Bawden: files or folders."),
    items: SuiteItems,
    normalization: str = option(
        "sum",
        "Of the tokens' log-probabilities: sum; mean (released code of Maka et al.); window-mean, of all tokens of the "
        "target window (released code of Lupo et al.).",
    ),
    languages: ModelLanguages,
    context: int | None = CONTEXT,
    future_context: int | None = FUTURE_CONTEXT,
    conditions: Sequence[str] = CONDITIONS,
    scores: str | None = option(None, "Read scores from this file instead of scoring with a model."),
    better: str = option("lower", "Which scores of that file are better: lower or higher."),
    write_scores: str | None = option(None, "Folder to write scores to, in the published order."),
    option_pairs: list[str] | None = OPTION_PAIRS,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """Contrastive accuracy by forced decoding, of a translation or language model, or from a file of scores."""
    from hf_docmt.evaluation.contrast import contrast_report, score_file_report

    check_report(output, [*suites, scores, items.documents, items.records], details=items.details)
    if scores is not None:
        reason = "is for a model that is scored, but --scores gives what another system wrote"
        refuse(call, (*SYSTEM_OPTIONS, "normalization", "future_context", "write_scores"), reason)
        if len(suites) != 1:
            raise ValueError(f"--scores is a file of one suite, got {len(suites)} suites; score them one by one")
        report = score_file_report(model, suites[0], scores, better=better, **vars(items))
    else:
        refuse(call, ("better",), "is for a file of scores, but --scores is not given")
        reach = {"context": context, "future_context": future_context}
        system = system_of_command(model, option_pairs=option_pairs, model_languages=languages, **reach)
        scoring = {"conditions": conditions, "normalization": normalization, "scores_folder": write_scores}
        report = contrast_report(system, suites, **scoring, **vars(items))
    print_report(report, as_json, output)


@command
def translate_suite(
    *,
    model: str = MODEL,
    suite: str = argument("A suite of ContraPro, Voita, Lopes or Bawden: file or folder."),
    items: SuiteItems,
    discourse: Sequence[str] = option(
        (), "Also score pronouns, formality, connectives, terms; separated by commas.", read=names
    ),
    tagger: str = option("spacy", "Tagger for pronouns and formality in German: spacy or hanta."),
    languages: ModelLanguages,
    context: int | None = CONTEXT,
    future_context: int | None = FUTURE_CONTEXT,
    search: SystemSearch,
    option_pairs: list[str] | None = OPTION_PAIRS,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """Translate the sentences of a contrastive suite in their contexts: BLEU, chrF, TER, pronoun F1."""
    from hf_docmt.evaluation.suite_translation import suite_translation_report

    check_report(output, [suite, items.documents, items.records], details=items.details)
    reach = {"context": context, "future_context": future_context}
    system = load_translator(model, search, option_pairs=option_pairs, model_languages=languages, **reach)
    report = suite_translation_report(system, suite, discourse=discourse, tagger=tagger, **vars(items))
    print_report(report, as_json, output)


@command
def ctxpro(
    *,
    call: typer.Context,
    model: str = argument("Model folder or Hub name; with --translations a name for the system."),
    sets: list[str] = argument("Evaluation sets, evalsets/NAME.json."),
    inputs: str | None = option(None, "Source texts of the set; default: inputs/NAME beside it."),
    translations: str | None = option(
        None,
        "Judge this file instead of translating: a line for each item of the set, also with --limit. With --rule line "
        "the translation of the current sentence, or of more with <eos> before it; with published any text. Without "
        "--rule that is line if every item with context has its <eos>, else published.",
    ),
    languages: ModelLanguages,
    context: int | None = CONTEXT,
    conditions: Sequence[str] = CONDITIONS,
    rule: str | None = option(
        None,
        "line (default of a model): look for the expected word in the translation of the current sentence; published: "
        "as the released script does (needs hf-docmt\\[ctxpro]).",
    ),
    search: SystemSearch,
    limit: int | None = LIMIT,
    details: str | None = DETAILS,
    option_pairs: list[str] | None = OPTION_PAIRS,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """Generative accuracy on ctxpro's sets: does the translation have the word that the context requires?"""
    from hf_docmt.evaluation.ctxpro import generative_report, translation_file_report

    check_report(output, [*sets, inputs, translations], details=details)
    shared = {"inputs": inputs, "limit": limit, "details": details} | ({"rule": rule} if rule else {})
    if translations is not None:
        reason = "is for a model that translates, but --translations gives what another system wrote"
        refuse(call, (*SYSTEM_OPTIONS, *vars(search)), reason)
        if len(sets) != 1:
            raise ValueError(f"--translations is a file of one set, got {len(sets)} sets; judge them one by one")
        report = translation_file_report(model, sets[0], translations, **shared)
    else:
        options = {"option_pairs": option_pairs, "model_languages": languages, "context": context}
        report = generative_report(load_translator(model, search, **options), sets, conditions=conditions, **shared)
    print_report(report, as_json, output)


def load_translator(model: str, search: SystemSearch, **options):
    """The system that translates as asked for; what is None is the system's own. `options`: of `system_of_command`."""
    chosen = {name: value for name, value in vars(search).items() if value is not None}
    return system_of_command(model, excluded=NOT_FOR_TRANSLATION, **options, **chosen)


@command
def cxmi(
    *,
    model: str = MODEL,
    documents: str = DOCUMENTS,
    languages: ModelLanguages,
    context: int | None = CONTEXT,
    conditions: Sequence[str] = CONDITIONS,
    normalization: str = option("sum", "Of a sentence's tokens: sum; mean (released code of Fernandes et al.)."),
    details: str | None = DETAILS,
    option_pairs: list[str] | None = OPTION_PAIRS,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """CXMI: what context adds to the log-probability of references, in nats per sentence (Fernandes et al. 2021)."""
    from hf_docmt.data.readers import read_documents
    from hf_docmt.evaluation.cxmi import cxmi_report

    check_report(output, [documents], details=details)
    system = system_of_command(model, context=context, option_pairs=option_pairs, prompt_languages=languages)
    named = languages_of(system, languages)
    scoring = {"normalization": normalization, "conditions": conditions, "details": details, **named}
    read = read_documents(path=documents, allow_empty=True, **named)
    report = cxmi_report(system, read, dataset=data_name(documents), **scoring)
    print_report(report, as_json, output)
