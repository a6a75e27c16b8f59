"""`docmt translate`: documents in, documents out; `docmt serve`: the same behind HTTP."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hf_docmt.cli.loading import check_model
from hf_docmt.cli.options import command
from hf_docmt.cli.translation_settings import JobOptions, MarkupOptions, SystemOptions, translation_settings
from hf_docmt.files import is_address
from hf_docmt.messages import install_command
from hf_docmt.options import (
    BASIC,
    MODEL,
    OUTPUT_TEXT,
    REQUIRED,
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
        "File or folder; - is standard input. Or arguments of a format: path=owner/name,split=test.", default="-"
    ),
    output: str = OUTPUT_TEXT,
    search: DocumentSearch,
    languages: ModelLanguages,
    options: JobOptions,
    markup: MarkupOptions,
    system: SystemOptions,
) -> None:
    """Translate documents: N sentences in, N sentences out.

    Examples:
      docmt translate MODEL letter.txt                     # a sentence per line
      docmt translate MODEL book.txt --format text -o book.de.txt
      docmt translate MODEL report.docx -o report.de.docx  # keeps the markup
      docmt translate MODEL website -o website.de          # a whole folder
      docmt translate MODEL page.md -o page.xlf            # then docmt merge
      docmt translate http://localhost:8080/v1 page.md --model NAME -o page.de.md
      docmt translate MODEL talks.jsonl -o talks.de.jsonl --strategy sequential
      cat letter.txt | docmt translate MODEL

    Strategies, which give a document model its context:
      sentence          each sentence alone
      sliding           each sentence with the source sentences around it
      sequential        each sentence after the translations of the ones before
      full              several sentences at once, in windows or chunks
      chunk_sequential  as full, but sentence by sentence within a chunk
      stream            sentence by sentence, with a recurrent memory

    MODEL is a model of this package, an encoder-decoder model of transformers (Marian, NLLB, mBART, ...), a causal
    language model, or the URL of an endpoint (DOCMT_API_KEY holds the key). A text file is one document, or,
    without context, one document per line.

    The output has the format of the input: text, JSON lines, or Markdown, HTML, DOCX, PO, XLIFF and others with their
    markup. It appears when everything is translated. Until then FILE.journal holds the finished part, for --resume.
    """
    check_model(model, revision=options.revision)
    if options.format == "auto" and input.endswith(".txt") and output.endswith((".xlf", ".xliff")):
        options.format = "txt"  # as in folders: with sentences in the lines
    if options.engine != "ray" and "-" not in input.replace("=", ",").split(","):  # many files, or a pipe
        from hf_docmt.data.documents import UNNAMED
        from hf_docmt.data.readers.running_text import sentence_splitter
        from hf_docmt.translation.document_output import is_update, known_previous
        from hf_docmt.translation.job_input import JobInput

        if Path(input).is_dir() and not (markup.previous or markup.bilingual):
            markup.previous = known_previous(output, options.resume)
        documents = JobInput(input, options.format, UNNAMED, options=markup.arguments())
        check_files(documents, output, options)
        if is_update(output, documents):
            print(f"{output}: what did not change keeps its translation; delete it to translate all", file=sys.stderr)
        if documents.reader.output_format in ("document", "text"):
            sentence_splitter(UNNAMED)  # which may not be installed
    from hf_docmt.translation.interruption import Interrupted, interruption

    try:
        with interruption() as signals:
            settings = translation_settings(model, languages, search, options, system)
            job = translation_job(settings, input, output, options, markup)
            summary = job.run(signals)
    except Interrupted as stopped:
        print(f"docmt: {stopped}", file=sys.stderr)
        raise typer.Exit(stopped.exit_code) from stopped
    print(summary.text(), file=sys.stderr)
    if summary.failed or summary.is_mostly_empty or summary.problems:
        raise typer.Exit(1)


@command
def merge(
    *,
    xliff: str = argument("File of docmt translate -o page.xlf, after the review."),
    document: str = argument("The document that was translated."),
    output: str = option(REQUIRED, "File to write.", "-o", "--output", metavar="FILE"),
    format: str = option("auto", "Format of the document. Default: auto.", metavar="NAME"),
    all: bool = option(False, "PO, TMX: translate was called with --all."),
    columns: str | None = option(None, "Tables: the columns of translate.", metavar="A,B"),
) -> None:
    """Put the reviewed translations of an XLIFF file into its document.

    Examples:
      docmt translate MODEL page.md -o page.xlf
      docmt merge page.xlf page.md -o page.de.md

    Where nothing was changed, the result is that of docmt translate MODEL page.md -o page.de.md. An empty translation
    leaves the source.
    """
    from hf_docmt.formats.file_translation import merge_file

    written = merge_file(xliff, document, output, format=format, columns=columns, all="yes" if all else None)
    print(written.text(), file=sys.stderr)
    if written.problems:
        raise typer.Exit(1)


def check_files(documents: JobInput | InputParts, output: str, options: JobOptions) -> None:
    """ValueError for an output that cannot be written, or not from this input."""
    from hf_docmt.translation.document_output import check_document_output, check_report
    from hf_docmt.translation.job_output import check_output

    check_report(options.report, [output, *documents.paths], documents.reader)
    if documents.reader.output_format == "document":
        check_document_output(output, documents, options.resume)
    else:
        check_output(output, options.resume, documents.paths, documents.reader)


def translation_job(
    settings: TranslationSettings, input: str, output: str, options: JobOptions, markup: MarkupOptions
) -> TranslationJob:
    """The job on this machine or on a Ray cluster. ValueError: options that do not fit the engine."""
    if options.engine not in ("local", "ctranslate2", "ray"):
        raise ValueError(f"--engine: got {options.engine!r}, expected local, ctranslate2 or ray")
    if options.engine != "ray" and options.address is not None:
        raise ValueError("--address is the address of a Ray cluster; add --engine ray, or remove it")
    from hf_docmt.translation.document_output import has_scores
    from hf_docmt.translation.job import TranslationJob
    from hf_docmt.translation.job_output import open_output

    documents = job_input(settings, input, options, markup)
    check_files(documents, output, options)
    documents.reader.check_repairs(settings.search.get("repairs"))
    if options.nbest is not None and documents.reader.output_format != "jsonl":
        raise ValueError(f"--nbest needs JSON lines as input, got {documents.reader.name}; remove it")
    if documents.reader.output_format == "document":
        from hf_docmt.data.documents import json_line
        from hf_docmt.reports import file_report
        from hf_docmt.translation.document_output import write_documents

        if not settings.carry:
            raise ValueError(
                f"--no-carry is for sentences, got {documents.reader.name}, whose sentences hold tags and code; "
                "remove it"
            )
        write_report = options.report and partial(file_report.write_report, options.report)
        write = partial(write_documents, documents, report=write_report)
        how = {"render": lambda document, result: json_line(result), "write": write}
    else:
        how = {"render": documents.renderer()}
    compares = options.report is not None
    settings = replace(settings, scores=compares or has_scores(output, documents.reader), compares=compares)
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
    """The engine: this process, others of this machine, or a Ray cluster."""
    from hf_docmt.translation import processes

    if options.engine != "ray":
        return processes.job_engine(settings, options.processes or 1)
    from hf_docmt.translation.ray_tasks import ray_engine

    return ray_engine(settings, options.address, options.processes)


@dataclass(kw_only=True)
class ServerOptions(Computation):
    """Address of the server, and settings of its model."""

    host: str = option("127.0.0.1", "Address to listen on; 0.0.0.0 is every network.", metavar="IP", panel=BASIC)
    port: int = option(5000, "Port to listen on.", least=0, most=65535, panel=BASIC)


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
    """Serve translations over HTTP: the API of LibreTranslate, and a web page at /.

    Examples:
      docmt serve MODEL --port 5000
      curl localhost:5000/translate -d q="She sleeps." -d source=en -d target=de

    The server also translates files and keeps sessions with context. The variable HF_DOCMT_API_KEYS lists the allowed
    API keys, separated by commas; without it no key is needed.
    """
    check_model(model, revision=server.revision)
    try:
        from hf_docmt.serving.server import make_server
    except ImportError as error:
        raise ValueError(f"docmt serve needs starlette, uvicorn and more: {install_command('serve')}") from error
    options = {name: value for name, value in vars(server).items() if name not in ("host", "port")}
    if is_address(model):
        raise ValueError(f"docmt serve is for models on this machine, got {model}; give a folder or a Hub name")
    settings = translation_settings(model, languages, search, JobOptions(**options), system)
    source_lang = None if settings.source_lang == "source" else settings.source_lang
    make_server(settings.load(), (source_lang, settings.target_lang), limits, server.host, server.port).run()
