"""`docmt translate`: documents in, documents out."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hf_docmt.cli.loading import load_model
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
    from hf_docmt.data.readers import detect_format, get_reader, input_argument, read_documents
    from hf_docmt.evaluation.translation_files import count_repairs
    from hf_docmt.files import check_writable_file
    from hf_docmt.translation.corpus import translate_corpus, write_translations

    check_writable_file(output)
    loaded, tokenizer = load_model(model)
    files = {input_argument(format): input}
    format = detect_format(files) if format == "auto" else format
    documents = read_documents(format, source_lang=source_lang or loaded.config.source_lang or "source", **files)
    options = {"num_beams": beams, "length_penalty": length_penalty}
    options |= {"past_context": past_context, "repairs": repairs, "alignment": alignment}
    rows = translate_corpus(
        loaded,
        tokenizer,
        documents,
        strategy=strategy,
        batch_size=batch_size,
        **{name: value for name, value in options.items() if value is not None},
    )
    write_translations(rows, output, plain=get_reader(format).plain)
    sentences, lines = (sum(len(row[side]) for row in rows) for side in ("source", "translation"))
    written = f", {lines} lines as written" if repairs == "none" else ""
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(count_repairs(rows).items())) or "none"
    print(f"{len(rows)} documents, {sentences} sentences{written}, repairs: {counts}", file=sys.stderr)
