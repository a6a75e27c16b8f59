"""`docmt translate`: documents in, documents out; `docmt serve`: the same behind HTTP."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import typer

from hf_docmt.cli.options import command
from hf_docmt.cli.translation_settings import JobOptions, MarkupOptions, SystemOptions, translation_settings
from hf_docmt.messages import install_command
from hf_docmt.options import (
    MODEL,
    OUTPUT_TEXT,
    Computation,
    DocumentSearch,
    ModelLanguages,
    ServerLimits,
    argument,
    option,
)

if TYPE_CHECKING:
    from hf_docmt.translation.group_translation import TranslationSettings
    from hf_docmt.translation.input_parts import InputParts
    from hf_docmt.translation.job import Engine, TranslationJob
    from hf_docmt.translation.job_input import JobInput


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
    markup: MarkupOptions,
    system: SystemOptions,
) -> None:
    """Translate documents, N sentences in, N out: JSON lines, or plain lines where the input is plain text.

    A document with markup (Markdown, HTML, DOCX, PO, XLIFF, ...) is written as it was, its text translated and all tags
    in place: docmt translate MODEL report.docx -o report.de.docx. A folder of them becomes a folder.

    The model is one of this package, any encoder-decoder model of transformers (Marian, NLLB, mBART, ...) or a causal
    language model.

    Only with --repairs none may the number of lines be another one. --format text is written as text again: paragraphs,
    line ends and items of lists as they were.

    A file appears when all is translated; until then FILE.journal holds what is done, for --resume.

    A pipe is written as documents come in. Plain lines are one document, but for strategy sentence and for models of
    other packages without --past-context and --chunk-sentences.

    With --engine ray the input may also be a folder, a pattern with * or a URL of JSON lines and Parquet files.
    """
    from hf_docmt.loading.hub_access import check_within_reach

    check_within_reach(model, options.revision)  # before what takes seconds to import
    if options.engine != "ray" and "-" not in input.replace("=", ",").split(","):  # many files, or a pipe
        check_files(input, output, options, markup)
    from hf_docmt.translation.interruption import Interrupted, interruption

    try:
        with interruption() as signals:
            settings = translation_settings(model, languages, search, options, system)
            job = translation_job(settings, input, output, options, markup)
            if options.estimate:
                from hf_docmt.translation.estimate import estimate_job

                return print(estimate_job(settings, job.input.rows(), options.processes or 1).text())
            summary = job.run(signals)
    except Interrupted as stopped:
        print(f"docmt: {stopped}", file=sys.stderr)
        raise typer.Exit(stopped.exit_code) from stopped
    print(summary.text(), file=sys.stderr)
    if summary.failed or summary.is_mostly_empty or summary.problems:
        raise typer.Exit(1)


def check_files(input: str, output: str, options: JobOptions, markup: MarkupOptions) -> None:
    """ValueError for an input that is missing or of no known format, and for an output that cannot be written."""
    from hf_docmt.data.documents import UNNAMED
    from hf_docmt.translation.document_output import check_document_output
    from hf_docmt.translation.job_input import JobInput
    from hf_docmt.translation.job_output import check_output

    documents = JobInput(input, options.format, UNNAMED, options=markup.arguments())
    if documents.reader.output_format == "document":
        check_document_output(output, documents, options.resume)
    else:
        check_output(output, options.resume, documents.paths)


def translation_job(
    settings: TranslationSettings, input: str, output: str, options: JobOptions, markup: MarkupOptions
) -> TranslationJob:
    """The job on this machine or on a Ray cluster. ValueError: options that do not fit the engine."""
    if options.engine not in ("local", "ctranslate2", "ray"):
        raise ValueError(f"--engine is {options.engine!r}, expected local, ctranslate2 or ray")
    if options.engine != "ray" and options.address is not None:
        raise ValueError("--address is that of a Ray cluster; give --engine ray, too, or leave it out")
    from hf_docmt.translation.job import TranslationJob
    from hf_docmt.translation.job_output import check_output, open_output

    documents = job_input(settings, input, options, markup)
    documents.reader.check_repairs(settings.search.get("repairs"))
    if options.nbest is not None and documents.reader.output_format != "jsonl":
        raise ValueError(f"--nbest is for JSON lines, translations of {documents.reader.name} are none; leave it out")
    if documents.reader.output_format == "document":
        from hf_docmt.data.documents import json_line
        from hf_docmt.translation.document_output import check_document_output, write_documents

        if not settings.carry:
            raise ValueError(
                f"--no-carry is for sentences, got {documents.reader.name}, whose tags and code stand in "
                "sentences and have to be carried; leave it out"
            )
        check_document_output(output, documents, options.resume)
        how = {"render": lambda document, result: json_line(result), "write": partial(write_documents, documents)}
    else:
        check_output(output, options.resume, documents.paths)
        how = {"render": documents.renderer()}
    open_job_output = partial(open_output, output, resume=options.resume, **how)
    return TranslationJob(settings, documents, partial(job_engine, options), open_job_output)


def job_input(
    settings: TranslationSettings, input: str, options: JobOptions, markup: MarkupOptions
) -> JobInput | InputParts:
    """The documents; for a Ray cluster they may also be many files of JSON lines and Parquet."""
    from hf_docmt.translation.job_input import JobInput

    reads_html = settings.carry and settings.search.get("repairs") != "none"
    if options.engine == "ray" and options.format == "auto":
        from hf_docmt.translation.input_parts import InputParts, has_parts

        if has_parts(input):
            return InputParts(input, settings.source_lang, reads_html)
    return JobInput(
        input,
        options.format,
        settings.source_lang,
        settings.line_by_line,
        settings.target_lang,
        markup.arguments(),
        reads_html,
    )


def job_engine(options: JobOptions, settings: TranslationSettings) -> Engine:
    """What translates: this process, others of this machine, or a Ray cluster."""
    from hf_docmt.translation import processes

    if options.engine != "ray":
        return processes.job_engine(settings, options.processes or 1)
    from hf_docmt.translation.ray_tasks import ray_engine

    return ray_engine(settings, options.address, options.processes)


@dataclass(kw_only=True)
class ServerOptions(Computation):
    """Where the server listens, and how its model computes."""

    host: str = option("127.0.0.1", "Address to listen at; 0.0.0.0: of all networks.")
    port: int = option(5000, "Port to listen at.", least=0)


@command
def serve(
    *,
    model: str = MODEL,
    server: ServerOptions,
    limits: ServerLimits,
    search: DocumentSearch,
    languages: ModelLanguages,
    system: SystemOptions,
) -> None:
    """Answer requests for translations with HTTP, as LibreTranslate does; documents and sessions with context, too.

    curl localhost:5000/translate -d q="She sleeps." -d source=en -d target=de

    HF_DOCMT_API_KEYS holds the keys that are let in, with commas between them; without it all are.
    """
    try:
        from hf_docmt.serving.server import make_server
    except ImportError as error:
        raise ValueError(f"docmt serve needs starlette, uvicorn and more: {install_command('serve')}") from error
    options = {name: value for name, value in vars(server).items() if name not in ("host", "port")}
    settings = translation_settings(model, languages, search, JobOptions(**options), system)
    source_lang = None if settings.source_lang == "source" else settings.source_lang
    make_server(settings.load(), (source_lang, settings.target_lang), limits, server.host, server.port).run()
