"""`docmt contrast`, `translate-suite`, `ctxpro` and `cxmi`: test sets for context."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from hf_docmt.cli.loading import NOT_FOR_TRANSLATION, check_model, languages_of, system_of_command
from hf_docmt.cli.options import command, refuse
from hf_docmt.cli.output import check_report, print_report
from hf_docmt.files import data_name
from hf_docmt.options import (
    AS_JSON,
    CONDITIONS,
    CONTEXT,
    DETAILS,
    DOCUMENTS,
    FILES,
    FUTURE_CONTEXT,
    LIMIT,
    MODEL,
    OPTION_PAIRS,
    OUTPUT,
    SUITE,
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
    model: str = argument("Model folder, or name on the Hub; with --scores the name of the system."),
    suites: list[str] = argument(
        "Contrastive suites, files or folders: ContraPro, Voita, Lopes, Bawden.", metavar="SUITE"
    ),
    items: SuiteItems,
    normalization: str = option(
        "sum",
        "Score from token log-probabilities: sum; mean (code of Maka et al.); or window-mean, over the whole target "
        "window (code of Lupo et al.).",
        metavar="NAME",
        panel=SUITE,
    ),
    languages: ModelLanguages,
    context: int | None = CONTEXT,
    future_context: int | None = FUTURE_CONTEXT,
    conditions: Sequence[str] = CONDITIONS,
    scores: str | None = option(None, "Read the scores of another system instead.", metavar="FILE", panel=FILES),
    better: str = option(
        "lower", "Which scores in this file are better: lower or higher.", metavar="NAME", panel=FILES
    ),
    write_scores: str | None = option(
        None, "Write the scores to this folder, in the published order.", metavar="FOLDER", panel=FILES
    ),
    option_pairs: list[str] | None = OPTION_PAIRS,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """Contrastive accuracy: does the model prefer the right translation?

    Examples:
      docmt contrast MODEL runs/demo/corpus/pronoun.json
      docmt contrast MODEL contrapro.json --documents documents.jsonl --limit 100
      docmt contrast MODEL suite.json --conditions true,empty -o report.json

    The model scores every candidate by forced decoding. It is a translation model or a causal language model.
    """
    check_report(output, [*suites, scores, items.documents, items.records], details=items.details)
    check_model(None if scores else model, *suites, scores, items.documents, items.records)
    from hf_docmt.evaluation.contrast import contrast_report, score_file_report

    if scores is not None:
        reason = "is for scoring with a model, but --scores gives the scores of another system"
        refuse(call, (*SYSTEM_OPTIONS, "normalization", "future_context", "write_scores"), reason)
        if len(suites) != 1:
            raise ValueError(
                f"--scores is a file for one suite, got {len(suites)} suites; run the command once per suite"
            )
        report = score_file_report(model, suites[0], scores, better=better, **vars(items))
    else:
        refuse(call, ("better",), "is for a file of scores (--scores)")
        reach = {"context": context, "future_context": future_context}
        system = system_of_command(model, option_pairs=option_pairs, model_languages=languages, **reach)
        scoring = {"conditions": conditions, "normalization": normalization, "scores_folder": write_scores}
        report = contrast_report(system, suites, **scoring, **vars(items))
    print_report(report, as_json, output)


@command
def translate_suite(
    *,
    model: str = MODEL,
    suite: str = argument("Contrastive suite, file or folder: ContraPro, Voita, Lopes or Bawden."),
    items: SuiteItems,
    discourse: Sequence[str] = option((), "Also score pronouns, formality, connectives, terms.", read=names),
    tagger: str = option("spacy", "Tagger for German pronouns and formality: spacy or hanta.", metavar="NAME"),
    languages: ModelLanguages,
    context: int | None = CONTEXT,
    future_context: int | None = FUTURE_CONTEXT,
    search: SystemSearch,
    option_pairs: list[str] | None = OPTION_PAIRS,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """Translate a contrastive suite in context and score it: BLEU, chrF, TER, pronoun F1."""
    check_report(output, [suite, items.documents, items.records], details=items.details)
    check_model(model, suite, items.documents, items.records)
    from hf_docmt.evaluation.suite_translation import suite_translation_report

    reach = {"context": context, "future_context": future_context}
    system = load_translator(model, search, option_pairs=option_pairs, model_languages=languages, **reach)
    report = suite_translation_report(system, suite, discourse=discourse, tagger=tagger, **vars(items))
    print_report(report, as_json, output)


@command
def ctxpro(
    *,
    call: typer.Context,
    model: str = argument("Model folder, or name on the Hub; with --translations the name of the system."),
    sets: list[str] = argument("Evaluation sets, evalsets/NAME.json.", metavar="SET"),
    inputs: str | None = option(
        None, "Source texts of the set. Default: inputs/NAME next to it.", metavar="FILE", panel=FILES
    ),
    translations: str | None = option(
        None,
        "Score this file instead of translating: one line per item of the set, even with --limit.",
        metavar="FILE",
        panel=FILES,
    ),
    languages: ModelLanguages,
    context: int | None = CONTEXT,
    conditions: Sequence[str] = CONDITIONS,
    rule: str | None = option(
        None,
        "line: look for the expected word in the translation of the current sentence, after the last <eos>; "
        "published: in any text, as the released script does (needs the extra ctxpro). Default: line, but published "
        "for a file of translations without <eos>.",
        metavar="NAME",
        panel=SUITE,
    ),
    search: SystemSearch,
    limit: int | None = LIMIT,
    details: str | None = DETAILS,
    option_pairs: list[str] | None = OPTION_PAIRS,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """Accuracy on the sets of CTXPro: does the translation have the word that the context requires?"""
    check_report(output, [*sets, inputs, translations], details=details)
    check_model(None if translations else model, *sets, inputs, translations)
    from hf_docmt.evaluation.ctxpro import generative_report, translation_file_report

    shared = {"inputs": inputs, "limit": limit, "details": details} | ({"rule": rule} if rule else {})
    if translations is not None:
        reason = "is for translating with a model, but --translations gives the output of another system"
        refuse(call, (*SYSTEM_OPTIONS, *vars(search)), reason)
        if len(sets) != 1:
            raise ValueError(
                f"--translations is a file for one set, got {len(sets)} sets; run the command once per set"
            )
        report = translation_file_report(model, sets[0], translations, **shared)
    else:
        options = {"option_pairs": option_pairs, "model_languages": languages, "context": context}
        report = generative_report(load_translator(model, search, **options), sets, conditions=conditions, **shared)
    print_report(report, as_json, output)


def load_translator(model: str, search: SystemSearch, **options):
    """The system with these search options; None is its own choice. `options`: see `system_of_command`."""
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
    normalization: str = option(
        "sum", "Sentence score from its tokens: sum, or mean (code of Fernandes et al.).", metavar="NAME"
    ),
    details: str | None = DETAILS,
    option_pairs: list[str] | None = OPTION_PAIRS,
    output: str | None = OUTPUT,
    as_json: bool = AS_JSON,
) -> None:
    """CXMI: how much context raises the log-probability of references, in nats per sentence.

    See Fernandes et al. (2021).
    """
    check_report(output, [documents], details=details)
    check_model(model, documents)
    from hf_docmt.data.readers import read_documents
    from hf_docmt.evaluation.cxmi import cxmi_report

    system = system_of_command(model, context=context, option_pairs=option_pairs, prompt_languages=languages)
    named = languages_of(system, languages)
    scoring = {"normalization": normalization, "conditions": conditions, "details": details, **named}
    read = read_documents(path=documents, allow_empty=True, **named)
    report = cxmi_report(system, read, dataset=data_name(documents), **scoring)
    print_report(report, as_json, output)
