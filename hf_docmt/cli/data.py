"""`docmt corpus`, `docmt segment` and `docmt data stats`: data for training and evaluation."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from hf_docmt.cli.options import AsJson, OutputText

data_app = typer.Typer(help="Documents of any format.", no_args_is_help=True)


def corpus(
    folder: Annotated[str, typer.Argument(help="New folder for documents and contrastive suites.")],
    seed: Annotated[int, typer.Option(help="Seed of the random generator.")] = 0,
    train: Annotated[int, typer.Option(help="Number of training documents.")] = 2000,
    validation: Annotated[int, typer.Option(help="Number of validation documents.")] = 200,
    test: Annotated[int, typer.Option(help="Number of test documents.")] = 200,
    shortest: Annotated[int, typer.Option(help="Sentences of the shortest document.")] = 6,
    longest: Annotated[int, typer.Option(help="Sentences of the longest document.")] = 10,
    suite_items: Annotated[int, typer.Option(help="Suite items for each distance and answer.")] = 30,
    cataphora: Annotated[
        float, typer.Option(help="Share of pronouns *it* that precede their noun; above 0 adds a suite of them.")
    ] = 0.0,
    far: Annotated[
        int,
        typer.Option(
            help="Most sentences between a clue and what depends on it, before and after it; adds competing "
            "antecedents and suites by distance, and needs --longest 2 above it. 0: clues are near."
        ),
    ] = 0,
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
        far=far,
    )
    for file in sorted(written.iterdir()):
        print(file)


def segment(
    input: Annotated[str, typer.Argument(help="Chinese text, plain or with tags, or - for standard input.")] = "-",
    output: OutputText = "-",
) -> None:
    """Separate the words of Chinese text by blanks, line by line, for models trained on segmented text."""
    from hf_docmt.data.word_segmentation import chinese_segmenter, segment_line
    from hf_docmt.files import check_writable_file, read_lines, write_lines

    check_writable_file(output, [input])
    segmenter = chinese_segmenter()
    lines = (segment_line(line, segmenter) for _, line in read_lines(input))
    if output == "-":
        for line in lines:
            print(line)
    else:
        write_lines(lines, output)


@data_app.command("stats")
def stats(
    inputs: Annotated[
        list[str],
        typer.Argument(help="Files of documents; files that belong together as source=FILE,target=FILE."),
    ],
    source_lang: Annotated[str, typer.Option(help="Language code of the source, for example en.")],
    target_lang: Annotated[str | None, typer.Option(help="Language code of the target; default: source only.")] = None,
    format: Annotated[str, typer.Option(help="Format of the inputs: auto, jsonl, tsv, dtag, ...")] = "auto",
    context: Annotated[
        int | None, typer.Option(min=0, help="Also count what needs a sentence that is further away, where annotated.")
    ] = None,
    style: Annotated[str, typer.Option(help="text, markdown or latex.")] = "text",
    as_json: AsJson = False,
) -> None:
    """Count documents, sentences and words, with lengths, and annotated phenomena by distance; files side by side."""
    from hf_docmt.data.readers import input_files, read_documents
    from hf_docmt.data.statistics import document_statistics, reading_notes
    from hf_docmt.reports.tables import COMMAND_STYLES, cells_frame, check_style, write_table

    check_style(style, COMMAND_STYLES)
    found = {}
    for text in inputs:
        files = input_files(text, format)
        documents = read_documents(format, source_lang=source_lang, target_lang=target_lang, **files)
        found[text] = document_statistics(documents)
    notes = reading_notes([lang for lang in (source_lang, target_lang) if lang])
    if as_json:
        facts = [{"input": text, **one.to_dict(context)} for text, one in found.items()]
        print(json.dumps({"notes": notes, "statistics": facts}, ensure_ascii=False))
        return
    columns = [one.rows(context) for one in found.values()]
    labels = dict.fromkeys(label for column in columns for label in column)
    cells = [["", *_short_names(inputs)], *([label, *(one.get(label, "-") for one in columns)] for label in labels)]
    print(write_table(cells_frame(cells), style, notes))


def _short_names(inputs: list[str]) -> list[str]:
    """The names of the files without folders, where these are different; of several files that of the first."""
    from hf_docmt.files import file_stem

    names = [file_stem(text.partition(",")[0].partition("=")[2] or text) for text in inputs]
    return names if len(set(names)) == len(names) else inputs
