"""`docmt corpus` and `docmt segment`: data for training and evaluation."""

from __future__ import annotations

from typing import Annotated

import typer

from hf_docmt.cli.options import OutputText


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


def segment(
    input: Annotated[str, typer.Argument(help="Chinese text, plain or with tags, or - for standard input.")] = "-",
    output: OutputText = "-",
) -> None:
    """Separate the words of Chinese text by blanks, line by line, for models trained on segmented text."""
    from hf_docmt.data.word_segmentation import chinese_segmenter, segment_line
    from hf_docmt.files import check_writable_file, read_lines, write_lines

    check_writable_file(output)
    segmenter = chinese_segmenter()
    lines = (segment_line(line, segmenter) for _, line in read_lines(input))
    if output == "-":
        for line in lines:
            print(line)
    else:
        write_lines(lines, output)
