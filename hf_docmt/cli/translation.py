"""`docmt translate`: documents in, documents out."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from hf_docmt.cli.options import command
from hf_docmt.options import (
    BATCH_SIZE,
    MODEL,
    OUTPUT_TEXT,
    STRATEGY,
    DocumentSearch,
    ModelLanguages,
    argument,
    option,
)

if TYPE_CHECKING:
    from hf_docmt.translation.group_translation import TranslationSettings
    from hf_docmt.translation.job import TranslationJob


@dataclass(kw_only=True)
class JobOptions:
    """What a job reads, where and how it computes, and what it writes."""

    format: str = option("auto", "Format of the input: auto, jsonl, lines, text, tsv, dtag, ...")
    strategy: str | None = STRATEGY
    batch_size: int = BATCH_SIZE

    device: str | None = option(None, "cpu, cuda, cuda:1, ...; default: a GPU where there is one.")
    dtype: str | None = option(None, "fp32, bf16 or fp16, to compute in, or int8 weights on a CPU; default: as saved.")
    revision: str | None = option(None, "Branch, tag or commit of a model on the Hub.")
    processes: int | None = option(
        None, "Processes that translate, each with its share of the cores, or with a GPU.", least=1
    )
    engine: str = option(
        "local",
        "local: this machine; ctranslate2: this machine, a folder of docmt export --ctranslate2; ray: a Ray cluster, "
        "from a folder or URL of parts to shards.",
    )
    address: str | None = option(None, "Of the Ray cluster; default: RAY_ADDRESS, else this machine alone.")
    estimate: bool = option(False, "Print how long it takes, from a sample of a minute; write nothing.")
    resume: bool = option(
        False, "Go on with the job of this output that was stopped or killed, from what is done, if anything is."
    )


@command
def translate(
    *,
    model: str = MODEL,
    input: str = argument(
        "File of documents, - for standard input, or arguments of the format: path=owner/name,split=test.", default="-"
    ),
    output: str = OUTPUT_TEXT,
    search: DocumentSearch,
    languages: ModelLanguages,
    options: JobOptions,
) -> None:
    """Translate documents, N sentences in, N out: JSON lines, or plain lines where the input is plain text.

    Only with --repairs none may the number of lines be another one. --format text is written as text again: paragraphs,
    line ends and items of lists as they were.

    A file appears when all is translated; FILE.partial and FILE.journal hold what is done, for --resume.

    A pipe is written as documents come in. Plain lines are one document, but for strategy sentence.

    Started by accelerate launch or torchrun, each of their processes translates.

    With --engine ray the output is a folder of shards, JSON lines, with a manifest.
    """
    from hf_docmt.translation.interruption import Interrupted, interruption

    try:
        with interruption() as signals:
            from hf_docmt.translation.processes import is_first_rank, serve_rank

            if not is_first_rank():
                return None if options.estimate else serve_rank()
            settings = translation_settings(model, languages, search, options)
            job = translation_job(settings, input, output, options)
            if options.estimate:
                from hf_docmt.translation.estimate import estimate_job

                return print(estimate_job(settings, job.input.rows(), options.processes or 1).text())
            summary = job.run(signals)
    except Interrupted as stopped:
        print(f"docmt: {stopped}", file=sys.stderr)
        raise typer.Exit(stopped.exit_code) from stopped
    print(summary.text(), file=sys.stderr)
    if summary.failed or summary.is_mostly_empty:
        raise typer.Exit(1)


def translation_settings(
    model: str, languages: ModelLanguages, search: DocumentSearch, options: JobOptions
) -> TranslationSettings:
    """How the job translates. ValueError: a device, number type or language that is not the model's."""
    from hf_docmt.cli.loading import default_device
    from hf_docmt.generation_settings import load_generation_config, make_repeatable
    from hf_docmt.registry import load_config
    from hf_docmt.translation.group_translation import TranslationSettings, check_device, checked_dtype

    device = check_device(options.device or default_device())
    library = "ctranslate2" if options.engine == "ctranslate2" else "transformers"
    if library == "transformers":
        checked_dtype(options.dtype, device)
    config = load_config(model, options.revision)
    make_repeatable(load_generation_config(model, options.revision), model)  # here for its warning
    codes = config.language_codes(*languages)
    config.sequence_format(codes.get("source_lang"), languages.target_lang)  # refuses a target that is not written
    if "source_lang" not in codes:
        _check_source(model, languages.source_lang, config.source_lang)
    return TranslationSettings(
        model,
        languages.source_lang or config.source_lang or "source",
        device,
        search={name: value for name, value in (vars(search) | codes).items() if value is not None},
        engine=library,
        **{name: getattr(options, name) for name in ("strategy", "batch_size", "dtype", "revision")},
    )


def _check_source(model: str, asked: str | None, own: str | None) -> None:
    """ValueError for another source language than that of a model without language codes, where both are known.

    Codes of different length, such as those of documents with sides `src` and `tgt`, are not compared.
    """
    from hf_docmt.data.language_codes import primary_language

    codes = {primary_language(code) for code in (asked, own) if code}
    if len(codes) == 2 and len(set(map(len, codes))) == 1:
        raise ValueError(
            f"--source-lang is {asked!r}, but {model} translates from {own!r}; leave it out, or "
            "give a model of this language"
        )


def translation_job(settings: TranslationSettings, input: str, output: str, options: JobOptions) -> TranslationJob:
    """The job on this machine or on a Ray cluster. ValueError: options that do not fit the engine."""
    from hf_docmt.cli.loading import hide_progress_bars

    if options.engine not in ("local", "ctranslate2", "ray"):
        raise ValueError(f"--engine is {options.engine!r}, expected local, ctranslate2 or ray")
    if options.engine != "ray" and options.address is not None:
        raise ValueError("--address is that of a Ray cluster; give --engine ray, too, or leave it out")
    hide_progress_bars()
    make_job = _sharded_job if options.engine == "ray" else _local_job
    return make_job(settings, input, output, options)


def _local_job(settings: TranslationSettings, input: str, output: str, options: JobOptions) -> TranslationJob:
    from hf_docmt.registry import load_config
    from hf_docmt.translation.corpus import check_repairs, renderer
    from hf_docmt.translation.group_translation import translates_without_context
    from hf_docmt.translation.job import TranslationJob
    from hf_docmt.translation.job_input import JobInput
    from hf_docmt.translation.job_output import check_output, open_output
    from hf_docmt.translation.processes import job_engine

    config = load_config(settings.model, settings.revision)
    is_line_by_line = translates_without_context(config, settings.strategy)
    target_lang = settings.search.get("target_lang") or config.target_lang
    documents = JobInput(input, options.format, settings.source_lang, is_line_by_line, target_lang)
    check_output(output, options.resume, documents.paths)
    check_repairs(documents.reader, settings.search.get("repairs"))
    render = renderer(documents.reader)
    return TranslationJob(
        settings,
        documents,
        make_engine=lambda settings: job_engine(settings, options.processes or 1),
        open_output=lambda identity: open_output(output, identity, render, options.resume),
    )


def _sharded_job(settings: TranslationSettings, input: str, output: str, options: JobOptions) -> TranslationJob:
    from hf_docmt.files import STDIN, STDOUT
    from hf_docmt.translation.job import TranslationJob
    from hf_docmt.translation.ray_actors import ray_engine
    from hf_docmt.translation.shards import PartitionedInput, ShardFolder

    if options.format != "auto":
        raise ValueError(
            f"--engine ray reads JSON lines and Parquet, by the files' names; leave --format {options.format} out"
        )
    if input == STDIN or output == STDOUT:
        raise ValueError("--engine ray reads files and writes shards; give a folder, pattern or URL, and -o FOLDER")
    documents = PartitionedInput(input, settings.source_lang)
    engine = ray_engine(settings, options.address, options.processes)
    return TranslationJob(
        settings,
        documents,
        make_engine=lambda settings: engine,
        open_output=lambda identity: ShardFolder(output, identity, documents, options.resume),
    )
