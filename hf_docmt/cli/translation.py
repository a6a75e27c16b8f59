"""`docmt translate`: documents in, documents out."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

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
) -> None:
    """Translate documents, N sentences in, N out: JSON lines, or plain lines where the input is plain text.

    Only with --repairs none may the number of lines be another one.
    """
    from hf_docmt.cli.loading import default_device, hide_progress_bars
    from hf_docmt.data.readers import detect_format, get_reader, input_argument, iterate_documents
    from hf_docmt.files import check_writable_file
    from hf_docmt.translation.group_translation import GroupTranslator, TranslationSettings
    from hf_docmt.translation.groups import document_groups
    from hf_docmt.translation.job import local_engine, run_job
    from hf_docmt.translation.outputs import check_repairs, renderer

    check_writable_file(output)
    hide_progress_bars()
    search = {"num_beams": beams, "length_penalty": length_penalty}
    search |= {"past_context": past_context, "repairs": repairs, "alignment": alignment}
    settings = TranslationSettings(
        model,
        source_lang,
        default_device(),
        strategy,
        batch_size,
        {name: value for name, value in search.items() if value is not None},
    )
    translator = GroupTranslator(settings)
    files = {input_argument(format): input}
    format = detect_format(files) if format == "auto" else format
    reader = get_reader(format)
    check_repairs(reader, repairs)
    rows = iterate_documents(format, source_lang=translator.source_lang, **files)
    engine = local_engine(translator)
    summary = run_job(document_groups(rows), engine, output, renderer(reader))
    print(summary.text(), file=sys.stderr)
    if summary.exit_code:
        raise typer.Exit(summary.exit_code)
