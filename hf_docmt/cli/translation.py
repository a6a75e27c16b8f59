"""`docmt translate`: documents in, documents out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hf_docmt.translation.group_translation import TranslationSettings
    from hf_docmt.translation.job import TranslationJob

from hf_docmt.cli.options import BatchSize, Beams, Lang, Model, OutputText, Strategy


def translate(
    model: Model,
    input: Annotated[
        str,
        typer.Argument(
            help="File of documents, - for standard input, or arguments of the format: path=owner/name,split=test."
        ),
    ] = "-",
    output: OutputText = "-",
    format: Annotated[str, typer.Option(help="Format of the input: auto, jsonl, lines, text, tsv, dtag, ...")] = "auto",
    strategy: Strategy = None,
    past_context: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Sentences before the current one that sliding and sequential read; default: what the model's "
            "config says, else as many as in training, and for sequential of chunks what fits into one.",
        ),
    ] = None,
    repairs: Annotated[
        str | None,
        typer.Option(
            help="none: leave segments of full and windows of sliding as they were written. Documents may then have "
            "more or fewer lines than sentences."
        ),
    ] = None,
    alignment: Annotated[
        str | None,
        typer.Option(help="Of window models: one_to_one, linear or sentence; default: the configuration's."),
    ] = None,
    beams: Beams = None,
    length_penalty: Annotated[float | None, typer.Option(help="Exponent of the length in beam scores.")] = None,
    max_new_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Most tokens of a translated segment; default: twice its source tokens and 32."),
    ] = None,
    batch_size: BatchSize = 16,
    batch_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Source tokens of a batch, padding included, in place of --batch-size; sequential and stream, whose "
            "rows are documents, keep that.",
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, ...; default: a GPU where there is one.")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(help="fp32, bf16 or fp16, to compute in, or int8 weights on a CPU; default: as saved.")
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of a model on the Hub.")] = None,
    source_lang: Lang = None,
    target_lang: Lang = None,
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="Processes that translate, each with its share of the cores, or with a GPU."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="local: this machine; ctranslate2: this machine, a folder of docmt export --ctranslate2; ray: a Ray "
            "cluster, from a folder or URL of parts to shards."
        ),
    ] = "local",
    address: Annotated[
        str | None, typer.Option(help="Of the Ray cluster; default: RAY_ADDRESS, else this machine alone.")
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Print how long it takes, from a sample of a minute; write nothing.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with the job of this output that was stopped or killed, from what is done, if anything is.",
        ),
    ] = False,
) -> None:
    """Translate documents, N sentences in, N out: JSON lines, or plain lines where the input is plain text.

    Only with --repairs none may the number of lines be another one.

    A file appears when all is translated; FILE.partial and FILE.journal hold what is done, for --resume.

    A pipe is written as documents come in. Plain lines are one document, but for strategy sentence.

    Started by accelerate launch or torchrun, each of their processes translates.

    With --engine ray the output is a folder of shards, JSON lines, with a manifest.
    """
    from hf_docmt.translation.interruption import Interrupted, interruption

    search = {"num_beams": beams, "length_penalty": length_penalty}
    search |= {"past_context": past_context, "repairs": repairs, "alignment": alignment}
    search |= {"max_new_tokens": max_new_tokens, "batch_tokens": batch_tokens}
    try:
        with interruption() as signals:
            from hf_docmt.translation.processes import is_first_rank, serve_rank

            if not is_first_rank():
                return None if estimate else serve_rank()
            languages = (source_lang, target_lang)
            settings = _settings(model, languages, strategy, batch_size, search, device, dtype, revision, engine)
            job = _job(settings, input, output, format, resume, engine, address, processes)
            if estimate:
                from hf_docmt.translation.estimate import estimate_job

                return print(estimate_job(settings, job.input.rows(), processes or 1).text())
            summary = job.run(signals)
    except Interrupted as stopped:
        print(f"docmt: {stopped}", file=sys.stderr)
        raise typer.Exit(stopped.exit_code) from stopped
    print(summary.text(), file=sys.stderr)
    if summary.exit_code:
        raise typer.Exit(summary.exit_code)


def _settings(model, languages, strategy, batch_size, search, device, dtype, revision, engine) -> TranslationSettings:
    from hf_docmt.cli.loading import default_device
    from hf_docmt.registry import load_config
    from hf_docmt.translation.group_translation import TranslationSettings, check_device, checked_dtype

    device = check_device(device or default_device())
    library = "ctranslate2" if engine == "ctranslate2" else "transformers"
    if library == "transformers":
        checked_dtype(dtype, device)
    config = load_config(model, revision)
    codes = config.language_codes(*languages)
    config.sequence_format(codes.get("source_lang"), languages[1])  # refuses a target that the model does not write
    if "source_lang" not in codes:
        _check_source(model, languages[0], config.source_lang)
    search = {name: value for name, value in (search | codes).items() if value is not None}
    source_lang = languages[0] or config.source_lang or "source"
    return TranslationSettings(model, source_lang, device, strategy, batch_size, search, dtype, revision, library)


def _check_source(model: str, given: str | None, own: str | None) -> None:
    """ValueError for another source language than that of a model without language codes, where both are known.

    Codes of different length, such as those of documents with sides `src` and `tgt`, are not compared.
    """
    from hf_docmt.data.language_codes import primary_language

    codes = {primary_language(code) for code in (given, own) if code}
    if len(codes) == 2 and len(set(map(len, codes))) == 1:
        raise ValueError(
            f"--source-lang is {given!r}, but {model} translates from {own!r}; leave it out, or give a model of this "
            "language"
        )


def _job(settings, input, output, format, resume, engine, address, processes) -> TranslationJob:
    from hf_docmt.cli.loading import hide_progress_bars

    if engine not in ("local", "ctranslate2", "ray"):
        raise ValueError(f"--engine is {engine!r}, expected local, ctranslate2 or ray")
    if engine != "ray" and address is not None:
        raise ValueError("--address is that of a Ray cluster; give --engine ray, too, or leave it out")
    hide_progress_bars()
    if engine == "ray":
        return _sharded_job(settings, input, output, format, resume, address, processes)
    return _local_job(settings, input, output, format, resume, processes or 1)


def _local_job(settings, input, output, format, resume, processes) -> TranslationJob:
    from hf_docmt.registry import load_config
    from hf_docmt.translation.group_translation import translates_without_context
    from hf_docmt.translation.job import TranslationJob
    from hf_docmt.translation.job_input import JobInput
    from hf_docmt.translation.job_output import check_output, open_output
    from hf_docmt.translation.outputs import check_repairs, renderer
    from hf_docmt.translation.processes import job_engine

    config = load_config(settings.model, settings.revision)
    is_line_by_line = translates_without_context(config, settings.strategy)
    documents = JobInput(
        input, format, settings.source_lang, is_line_by_line, settings.search.get("target_lang") or config.target_lang
    )
    check_output(output, resume, documents.paths)
    check_repairs(documents.reader, settings.search.get("repairs"))
    render = renderer(documents.reader)
    return TranslationJob(
        settings,
        documents,
        make_engine=lambda settings: job_engine(settings, processes),
        open_output=lambda identity: open_output(output, identity, render, resume),
    )


def _sharded_job(settings, input, output, format, resume, address, actors) -> TranslationJob:
    from hf_docmt.files import STDIN, STDOUT
    from hf_docmt.translation.job import TranslationJob
    from hf_docmt.translation.ray_actors import ray_engine
    from hf_docmt.translation.shards import PartitionedInput, ShardFolder

    if format != "auto":
        raise ValueError(f"--engine ray reads JSON lines and Parquet, by the files' names; leave --format {format} out")
    if input == STDIN or output == STDOUT:
        raise ValueError("--engine ray reads files and writes shards; give a folder, pattern or URL, and -o FOLDER")
    documents = PartitionedInput(input, settings.source_lang)
    engine = ray_engine(settings, address, actors)
    return TranslationJob(
        settings,
        documents,
        make_engine=lambda settings: engine,
        open_output=lambda identity: ShardFolder(output, identity, documents, resume),
    )
