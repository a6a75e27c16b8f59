"""The command `docmt`: results to standard output, logs and progress to standard error."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from hf_docmt.cli.analyze import analyze
from hf_docmt.cli.bench import bench
from hf_docmt.cli.options import AsJson, Conditions, Context, Lang, Options

app = typer.Typer(
    help="Document-level machine translation: train, translate, score.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(analyze, name="analyze")
app.add_typer(bench, name="bench")
SCORED = ("past_context", "strategy", "batch_size", "max_new_tokens")  # an --option of their own, or no part in scoring
TRANSLATED = ("past_context", "strategy", "batch_size", "batch_tokens")  # the same for translation
ATTENDED = ("strategy", "batch_size", "batch_tokens", "max_new_tokens")  # for attention
MODEL_OPTIONS = ("normalization", "context", "conditions", "write_scores", "option")


def main() -> None:
    """Run the command; what the user can mend ends with one line on standard error and exit code 1."""
    try:
        app()
    except (ValueError, OSError) as error:
        print(f"docmt: {error}", file=sys.stderr)
        sys.exit(1)


@app.command()
def demo(
    folder: Annotated[str, typer.Argument(help="New folder for corpus, models, report and card.")] = "runs/demo",
    seed: Annotated[int, typer.Option(help="Seed of corpus and training.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Train a sentence-level and a document-level model on the built-in corpus and compare them."""
    from hf_docmt.demo import run_demo

    quiet()
    show(run_demo(folder, seed=seed), as_json, "table")


@app.command()
def corpus(
    folder: Annotated[str, typer.Argument(help="New folder for documents and contrastive suites.")],
    seed: int = 0,
    train: Annotated[int, typer.Option(help="Number of documents.")] = 2000,
    validation: int = 200,
    test: int = 200,
    shortest: Annotated[int, typer.Option(help="Sentences of the shortest document.")] = 6,
    longest: Annotated[int, typer.Option(help="Sentences of the longest document.")] = 10,
    suite_items: Annotated[int, typer.Option(help="Suite items for each distance and answer.")] = 30,
    cataphora: Annotated[float, typer.Option(help="How often *it* stands before its noun, with a suite of it.")] = 0.0,
) -> None:
    """Write the built-in English-German discourse corpus: documents and contrastive suites."""
    from hf_docmt.data.synthetic.corpus import write_corpus

    written = write_corpus(
        folder,
        seed=seed,
        train=train,
        validation=validation,
        test=test,
        sentences=(shortest, longest),
        suite_items=suite_items,
        cataphora=cataphora,
    )
    for file in sorted(written.iterdir()):
        print(file)


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="YAML file; see examples/recipes.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value, such as training.max_steps=100.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run of this recipe.")] = False,
) -> None:
    """Train the model of a recipe; prints the folder of the trained model."""
    from accelerate import PartialState

    from hf_docmt.training.recipe import load_recipe
    from hf_docmt.training.run import train as run

    quiet()
    folder = run(load_recipe(recipe, overrides or ()), resume=resume)
    if PartialState().is_main_process:
        print(folder)


@app.command()
def translate(
    model: Annotated[str, typer.Argument(help="Model folder or Hub name.")],
    input: Annotated[str, typer.Argument(help="File of documents, or - for standard input.")] = "-",
    output: Annotated[str, typer.Option("-o", "--output", help="File to write, or -.")] = "-",
    format: Annotated[str, typer.Option(help="Format of the input: auto, jsonl, lines, text, tsv, dtag, ...")] = "auto",
    strategy: Annotated[str | None, typer.Option(help="sentence, sliding, sequential, full or stream.")] = None,
    beams: Annotated[int | None, typer.Option(min=1, help="Beam size; default: the model's.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="Exponent of the length in beam scores.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Segments translated at once.")] = 16,
    source_lang: Lang = None,
) -> None:
    """Translate documents, N sentences in, N out: JSON lines, or plain lines where the input is plain text."""
    from hf_docmt.data.readers import SIDED, detect_format, read_documents
    from hf_docmt.evaluation.translation_scores import count_repairs
    from hf_docmt.files import check_output
    from hf_docmt.translation.corpus import PLAIN, translate_corpus, write_translations

    check_output(output)
    loaded, tokenizer = load(model)
    loaded.to(device())
    files = {"source" if format in SIDED else "path": input}
    format = detect_format(files) if format == "auto" else format
    documents = read_documents(format, source_lang=source_lang or loaded.config.source_lang or "source", **files)
    options = {"num_beams": beams, "length_penalty": length_penalty}
    rows = translate_corpus(
        loaded,
        tokenizer,
        documents,
        strategy=strategy,
        batch_size=batch_size,
        **{name: value for name, value in options.items() if value is not None},
    )
    write_translations(rows, output, plain=format in PLAIN)
    sentences = sum(len(row["translation"]) for row in rows)
    repairs = ", ".join(f"{count} {kind}" for kind, count in sorted(count_repairs(rows).items())) or "none"
    print(f"{len(rows)} documents, {sentences} sentences, repairs: {repairs}", file=sys.stderr)


@app.command()
def words(
    input: Annotated[str, typer.Argument(help="File of Chinese, plain or with tags, or - for standard input.")] = "-",
    output: Annotated[str, typer.Option("-o", "--output", help="File to write, or -.")] = "-",
) -> None:
    """Put blanks between the words of Chinese, line by line, for models that were trained on such text."""
    from hf_docmt.data.word_segmentation import chinese_words, spaced
    from hf_docmt.files import check_output, read_lines, write_lines

    check_output(output)
    cut = chinese_words()
    lines = (spaced(line, cut) for _, line in read_lines(input))
    if output == "-":
        for line in lines:
            print(line)
    else:
        write_lines(lines, output)


@app.command()
def evaluate(
    translations: Annotated[str, typer.Argument(help="JSON lines of docmt translate, or plain lines.")],
    reference: Annotated[str, typer.Argument(help="Reference documents, the target file of a pair, or plain lines.")],
    format: Annotated[str, typer.Option(help="Format of the reference.")] = "auto",
    source_lang: Lang = None,
    target_lang: Lang = None,
    name: Annotated[str | None, typer.Option(help="Name of the system; default: that of the file.")] = None,
    strategy: Annotated[str | None, typer.Option(help="How it was translated, for the report.")] = None,
    beams: Annotated[int | None, typer.Option(help="Beam size it was translated with, for the report.")] = None,
    by: Annotated[str, typer.Option(help="Also by index, length, domain; with commas.")] = "",
    domains: Annotated[str | None, typer.Option(help="Regular expression: the domain in a document's id.")] = None,
    align: Annotated[bool, typer.Option("--align", help="Cut free text where the reference's sentences end.")] = False,
    discourse: Annotated[str, typer.Option(help="Also pronouns, formality, connectives, terms; with commas.")] = "",
    comet: Annotated[str | None, typer.Option(help="Also COMET: Python of an environment with unbabel-comet.")] = None,
    comet_model: Annotated[
        str | None, typer.Option(help="Name on the Hub or checkpoint file; default: Unbabel/wmt22-comet-da.")
    ] = None,
    comet_context: Annotated[int, typer.Option(min=0, help="Also doc-COMET with so many sentences of context.")] = 0,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Report file to write.")] = None,
    as_json: AsJson = False,
) -> None:
    """Score translations: s-BLEU, d-BLEU, chrF and TER, each with its signature."""
    from hf_docmt.evaluation.translation_scores import evaluate_files
    from hf_docmt.files import check_output

    check_output(output or "-")
    report = evaluate_files(
        translations,
        reference,
        format,
        source_lang,
        target_lang,
        name=name,
        strategy=strategy,
        beams=beams,
        by=tuple(filter(None, by.split(","))),
        domains=domains,
        align=align,
        discourse=tuple(filter(None, discourse.split(","))),
        comet=comet,
        comet_model=comet_model,
        comet_context=comet_context,
    )
    show_report(report, as_json, output)


@app.command()
def contrast(
    call: typer.Context,
    model: Annotated[str, typer.Argument(help="Model folder or Hub name; with --scores the name of their system.")],
    suites: Annotated[list[str], typer.Argument(help="Suites of ContraPro, Voita, Lopes or Bawden: files or folders.")],
    format: Annotated[str, typer.Option(help="contrapro, voita, lopes, bawden or auto.")] = "auto",
    documents: Annotated[str | None, typer.Option(help="JSON lines with the contexts of a ContraPro suite.")] = None,
    records: Annotated[str | None, typer.Option(help="JSON that belongs to a suite given as text files.")] = None,
    normalization: Annotated[str, typer.Option(help="sum or mean of the tokens' log-probabilities.")] = "sum",
    context: Context = None,
    conditions: Conditions = "true",
    items: Annotated[str | None, typer.Option(help="Only these items of each suite: FIRST-LAST, from 1.")] = None,
    scores: Annotated[str | None, typer.Option(help="Judge this file of scores instead of a model.")] = None,
    better: Annotated[str, typer.Option(help="Which scores of that file are better: lower or higher.")] = "lower",
    write_scores: Annotated[str | None, typer.Option(help="Folder for scores in the published order.")] = None,
    option: Options = None,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Report file to write.")] = None,
    as_json: AsJson = False,
) -> None:
    """Contrastive accuracy by forced decoding, of any translation or language model, or from a file of scores."""
    from hf_docmt.evaluation.suite_files import contrast_files, judge_files
    from hf_docmt.files import check_output

    check_output(output or "-")
    shared = {"format": format, "documents": documents, "records": records, "only": item_range(items)}
    if scores is not None:
        refuse(call, MODEL_OPTIONS, "is for a model that is scored, but --scores gives what another system wrote")
        if len(suites) != 1:
            raise ValueError(f"--scores is a file of one suite, got {len(suites)} suites; judge them one by one")
        report = judge_files(model, suites[0], scores, better=better, **shared)
    else:
        refuse(call, ("better",), "is for a file of scores, but --scores is not given")
        system = load_scored(model, context, option)
        options = {"normalization": normalization, "scores_folder": write_scores, **shared}
        report = contrast_files(system, suites, conditions=conditions.split(","), **options)
    show_report(report, as_json, output)


@app.command()
def ctxpro(
    model: Annotated[str, typer.Argument(help="Model folder or Hub name.")],
    sets: Annotated[list[str], typer.Argument(help="Evaluation sets, evalsets/NAME.json.")],
    inputs: Annotated[str | None, typer.Option(help="Source texts of the set; default: inputs/NAME beside it.")] = None,
    context: Context = None,
    conditions: Conditions = "true",
    rule: Annotated[str, typer.Option(help="line, the translation of the current sentence, or published.")] = "line",
    strategy: Annotated[str | None, typer.Option(help="sentence, sliding, sequential, full or stream.")] = None,
    beams: Annotated[int | None, typer.Option(min=1, help="Beam size; default: the model's.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Segments translated at once.")] = 16,
    option: Options = None,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Report file to write.")] = None,
    as_json: AsJson = False,
) -> None:
    """Generative accuracy on ctxpro's sets: translated, and judged by the word that context asks for."""
    from hf_docmt.evaluation.generative import ctxpro_files
    from hf_docmt.files import check_output

    check_output(output or "-")
    options = {"batch_size": batch_size, "strategy": strategy, "num_beams": beams}
    options = {name: value for name, value in options.items() if value is not None}
    system = load_scored(model, context, option, TRANSLATED, **options)
    report = ctxpro_files(system, sets, inputs=inputs, conditions=conditions.split(","), rule=rule)
    show_report(report, as_json, output)


@app.command()
def cxmi(
    model: Annotated[str, typer.Argument(help="Model folder or Hub name.")],
    documents: Annotated[str, typer.Argument(help="Documents with references, JSON lines or TSV.")],
    source_lang: Lang = None,
    target_lang: Lang = None,
    context: Context = None,
    option: Options = None,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Report file to write.")] = None,
    as_json: AsJson = False,
) -> None:
    """What context adds to the log-probability of references, in nats a sentence (Fernandes et al. 2021)."""
    from pathlib import Path

    from hf_docmt.data.readers import read_documents
    from hf_docmt.evaluation.suite_files import cxmi_files
    from hf_docmt.files import check_output

    check_output(output or "-")
    system = load_scored(model, context, option, prompted=(source_lang, target_lang))
    languages = languages_of(system, source_lang, target_lang)
    report = cxmi_files(system, read_documents(path=documents, **languages), dataset=Path(documents).stem, **languages)
    show_report(report, as_json, output)


@app.command()
def compare(
    reports: Annotated[list[str], typer.Argument(help="Reports of several systems.")],
    name: Annotated[list[str] | None, typer.Option(help="Names of the systems, in the order of the reports.")] = None,
    baseline: Annotated[str | None, typer.Option(help="System that the others are tested against.")] = None,
    breakdown: Annotated[str, typer.Option(help="none, all, or what to break down by, such as distance.")] = "none",
    may_differ: Annotated[
        list[str] | None, typer.Option(help="Keys of the signature, strategy or beams that a row may mix.")
    ] = None,
    method: Annotated[str, typer.Option(help="randomisation, bootstrap or sacrebleu-bootstrap.")] = "randomisation",
    samples: Annotated[int, typer.Option(min=1, help="Random samples of a test.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of a test.")] = 1,
    format: Annotated[str, typer.Option(help="text, markdown, latex or json.")] = "text",
    picture: Annotated[str | None, typer.Option(help="Also draw a picture: a file ending in .png or .svg.")] = None,
    picture_of: Annotated[str, typer.Option(help="distance (accuracies), index or length (scores).")] = "distance",
) -> None:
    """Several systems in one table, each figure with its signature and interval, significant differences marked."""
    from hf_docmt.analysis.pictures.comparison import draw_accuracy_by_distance, draw_scores
    from hf_docmt.reports.comparison import compare_reports
    from hf_docmt.reports.tables import format_comparison

    options = {"names": name, "may_differ": tuple(may_differ or ())}
    test = {"baseline": baseline, "method": method, "samples": samples, "seed": seed}
    print(format_comparison(compare_reports(reports, breakdown=breakdown, **options, **test), format))
    if picture and picture_of == "distance":
        draw_accuracy_by_distance(compare_reports(reports, breakdown="distance", **options), picture)
    elif picture:
        draw_scores(compare_reports(reports, breakdown=picture_of, **options), picture, axis=picture_of)


@app.command()
def export(
    model: Annotated[str, typer.Argument(help="Model folder.")],
    folder: Annotated[str, typer.Argument(help="New folder to write: code, weights, tokenizer and card.")],
    report: Annotated[list[str] | None, typer.Option(help="Report for the card; may be repeated.")] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Training data on the Hub; may be repeated.")] = None,
    repo_id: Annotated[str | None, typer.Option(help="Name on the Hub, for the card's example.")] = None,
    license: Annotated[str | None, typer.Option(help="Licence of the weights.")] = None,
) -> None:
    """Write a folder for the Hub, with a model card made from a report."""
    from hf_docmt.hub.export import collect_reports, export_model

    loaded, tokenizer = load(model)
    facts = collect_reports(report or (), model, repo_id)
    card = {"repo_id": repo_id, "license": license, "datasets": dataset or ()}
    print(export_model(loaded, tokenizer, folder, facts, **card))


@app.command()
def info(
    target: Annotated[str, typer.Argument(help="Model folder, Hub name or recipe.")], as_json: AsJson = False
) -> None:
    """Show architecture, parameters and context reach of a model or a recipe."""
    from hf_docmt.info import describe, render

    facts = describe(target)
    print(json.dumps(facts, indent=1) if as_json else render(facts))


def load(name: str):
    """Model and tokenizer of a folder or Hub name."""
    from hf_docmt import registry

    quiet()
    return registry.load_model(name)


def device() -> str:
    """The accelerator that torch sees, else the CPU."""
    import torch

    found = torch.accelerator.current_accelerator(check_available=True)
    return "cpu" if found is None else found.type


def load_scored(
    name: str,
    context: int | None,
    pairs: list[str] | None = None,
    without: tuple[str, ...] = SCORED,
    prompted: tuple[str | None, str | None] = (None, None),
    **options,
):
    """The system of a folder or Hub name, reading so many sentences of context; its name is that of the folder.

    `pairs` are those of --option, `without` what is not for it; `prompted` languages are what a language model's prompt
    names, unless --option says otherwise.
    """
    import os

    from hf_docmt.evaluation.suite_files import CHUNK_CONTEXT
    from hf_docmt.evaluation.systems import load_system
    from hf_docmt.evaluation.systems.loading import kind_of, read_options

    quiet()
    kind = kind_of(name)
    if "strategy" in options and kind != "docmt":
        raise ValueError(f"{name} is no model of this package, which alone have strategies; leave --strategy out")
    given = read_options(pairs or (), kind, without)
    if kind == "causal":
        options |= {key: lang for key, lang in zip(("source_lang", "target_lang"), prompted) if lang}
    if context is not None:
        options["past_context"] = context
    system = load_system(name, device=device(), **options | given)
    if "past_context" not in options | given and getattr(system.model.config, "view", None) == "chunk":
        system.past_context = CHUNK_CONTEXT
    for key in ("separator", "context_sides"):
        if key in given and not system.past_context and not system.future_context:
            raise ValueError(f"--option {key} is for context, but the system reads none; give it some, or leave it out")
    system.name = os.path.basename(os.path.abspath(name))
    return system


def languages_of(system, source_lang: str | None, target_lang: str | None) -> dict[str, str]:
    """The languages that were given, else those of the model."""
    config = system.model.config
    languages = {
        "source_lang": source_lang or getattr(config, "source_lang", None),
        "target_lang": target_lang or getattr(config, "target_lang", None),
    }
    if not all(languages.values()):
        raise ValueError("the languages of the documents are needed: give --source-lang and --target-lang")
    return languages


def refuse(call: typer.Context, names: tuple[str, ...], why: str) -> None:
    """ValueError where one of these options was given on the command line."""
    for name in names:
        if call.get_parameter_source(name).name != "DEFAULT":
            raise ValueError(f"--{name.replace('_', '-')} {why}; leave it out")


def item_range(text: str | None) -> tuple[int, int] | None:
    """`FIRST-LAST` as two numbers."""
    if text is None:
        return None
    first, dash, last = text.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal()):
        raise ValueError(f"--items is {text!r}, expected FIRST-LAST, two numbers such as 1-100")
    return int(first), int(last)


def quiet() -> None:
    """No progress bars for loading and saving, which take a moment."""
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()


def show(result: dict, as_json: bool, text: str) -> None:
    print(json.dumps({key: value for key, value in result.items() if key != text}) if as_json else result[text])


def show_report(report: dict, as_json: bool, output: str | None) -> None:
    """Write the report into the file, where one was given, and print it."""
    from hf_docmt.reports.report import format_table, write_report

    if output:
        write_report(report, output)
    print(json.dumps(report, ensure_ascii=False) if as_json else format_table(report))


if __name__ == "__main__":
    main()
