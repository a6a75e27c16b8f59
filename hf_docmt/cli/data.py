"""`docmt corpus` and `docmt data stats`: data for training and evaluation."""

from __future__ import annotations

import json
from dataclasses import dataclass

import typer

from hf_docmt.cli.options import command
from hf_docmt.files import file_stem
from hf_docmt.messages import check_known
from hf_docmt.options import AS_JSON, REQUIRED, argument, option

data_app = typer.Typer(help="Statistics of documents.", no_args_is_help=True)


@dataclass(kw_only=True)
class CorpusSizes:
    """The size and content of the built-in corpus."""

    seed: int = option(0, "Random seed.")
    train: int = option(2000, "Number of training documents.")
    validation: int = option(200, "Number of validation documents.")
    test: int = option(200, "Number of test documents.")
    suite_items: int = option(30, "Suite items per distance and answer.")
    cataphora: float = option(0.0, "Share of pronouns that precede their noun; above 0 adds a suite of them.")
    far: int = option(
        0,
        "Maximum distance in sentences between a clue and what depends on it. Above 0 adds competing antecedents and "
        "suites by distance; --longest must be at least 2 more.",
    )


@command
def corpus(
    *,
    folder: str = argument("New folder for documents and suites. The recipes demo_* read runs/demo/corpus."),
    shortest: int = option(6, "Sentences in the shortest document."),
    longest: int = option(10, "Sentences in the longest document."),
    sizes: CorpusSizes,
) -> None:
    """Write the built-in English-German discourse corpus: documents and contrastive suites."""
    from hf_docmt.data.synthetic.corpus import write_corpus

    sentences = (shortest, longest)
    written = write_corpus(folder, sentences=sentences, **vars(sizes))
    for file in sorted(written.iterdir()):
        print(file)


@data_app.command("stats")
@command
def stats(
    *,
    inputs: list[str] = argument("Files of documents; two sides as source=FILE,target=FILE.", metavar="FILE"),
    source_lang: str = option(REQUIRED, "Source language, such as en.", metavar="CODE"),
    target_lang: str | None = option(None, "Target language. Default: count the source only.", metavar="CODE"),
    format: str = option("auto", "Input format, such as jsonl, tsv, dtag.", metavar="NAME"),
    context: int | None = option(
        None, "Also count annotated phenomena that need more than N sentences of context.", least=0
    ),
    style: str = option("text", "Table as text, markdown or latex.", metavar="NAME"),
    as_json: bool = AS_JSON,
) -> None:
    """Count documents, sentences, words and annotated phenomena, one column per file."""
    from hf_docmt.data.readers import input_argument, input_files, read_documents
    from hf_docmt.data.statistics import document_statistics, reading_notes, table_column
    from hf_docmt.reports.tables import STYLES, write_table

    check_known(style, STYLES, "style", "expected one of")
    languages = {"source_lang": source_lang, "target_lang": target_lang}
    counts = {}
    for text in inputs:
        documents = read_documents(format, **languages, **input_files(text, input_argument(format)))
        counts[text] = document_statistics(documents, context)
    notes = reading_notes([lang for lang in languages.values() if lang])
    if as_json:
        facts = [{"input": text, **counted} for text, counted in counts.items()]
        print(json.dumps({"notes": notes, "statistics": facts}, ensure_ascii=False))
        return
    columns = [table_column(counted) for counted in counts.values()]
    labels = dict.fromkeys(label for column in columns for label in column)
    names = [file_stem(text.partition(",")[0].partition("=")[2] or text) for text in inputs]
    header = names if len(set(names)) == len(names) else inputs  # names without folders, if these differ
    cells = [["", *header], *([label, *(column.get(label, "-") for column in columns)] for label in labels)]
    print(write_table(cells, style, notes))
