"""`docmt translate`: documents in, documents out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hf_docmt.translation.job import TranslationJob

from hf_docmt.cli.options import BatchSize, Beams, Lang, Model, OutputText, Strategy


def translate(
    model: Model,
    input: Annotated[str, typer.Argument(help="File of documents, or - for standard input.")] = "-",
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
    batch_size: BatchSize = 16,
    source_lang: Lang = None,
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            help="Processes that translate, each with its share of the cores, or with a GPU.",
        ),
    ] = 1,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with the job of this output that was stopped or killed, from where it was."
        ),
    ] = False,
) -> None:
    """Translate documents, N sentences in, N out: JSON lines, or plain lines where the input is plain text.

    Only with --repairs none may the number of lines be another one. A file appears when all is translated; until then
    FILE.partial and FILE.journal beside it hold what is done, from which --resume goes on. A pipe is written as
    documents come in; plain lines are one document, but for strategy sentence, which translates each when it comes.
    Started by accelerate launch or torchrun, each of their processes translates.
    """
    from hf_docmt.translation.interruption import Interrupted, interruption
    from hf_docmt.translation.processes import is_first_rank, serve_rank

    if not is_first_rank():
        return serve_rank()
    search = {"num_beams": beams, "length_penalty": length_penalty}
    search |= {"past_context": past_context, "repairs": repairs, "alignment": alignment}
    try:
        with interruption() as signals:
            job = _job(model, input, output, format, source_lang, processes, resume, strategy, batch_size, search)
            summary = job.run(signals)
    except Interrupted as stopped:
        print(f"docmt: {stopped}", file=sys.stderr)
        raise typer.Exit(stopped.exit_code) from stopped
    print(summary.text(), file=sys.stderr)
    if summary.exit_code:
        raise typer.Exit(summary.exit_code)


def _job(model, input, output, format, source_lang, processes, resume, strategy, batch_size, search) -> TranslationJob:
    from hf_docmt.cli.loading import default_device, hide_progress_bars
    from hf_docmt.registry import load_config
    from hf_docmt.translation.group_translation import TranslationSettings, translates_without_context
    from hf_docmt.translation.job import TranslationJob
    from hf_docmt.translation.job_input import JobInput
    from hf_docmt.translation.job_output import check_output
    from hf_docmt.translation.outputs import check_repairs, renderer
    from hf_docmt.translation.processes import job_engine

    check_output(output, resume)
    hide_progress_bars()
    config = load_config(model)
    source_lang = source_lang or config.source_lang or "source"
    search = {name: value for name, value in search.items() if value is not None}
    settings = TranslationSettings(model, source_lang, default_device(), strategy, batch_size, search)
    documents = JobInput(input, format, source_lang, translates_without_context(config, strategy))
    check_repairs(documents.reader, search.get("repairs"))
    return TranslationJob(
        settings,
        documents,
        output,
        make_engine=lambda settings: job_engine(settings, processes),
        render=renderer(documents.reader),
        resume=resume,
    )
