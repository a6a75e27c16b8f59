"""`docmt corpus` and `docmt data stats`: data for training and evaluation."""

from __future__ import annotations

import json
from dataclasses import dataclass

import typer

from hf_docmt.cli.options import command
from hf_docmt.files import file_stem
from hf_docmt.options import AS_JSON, REQUIRED, argument, option

data_app = typer.Typer(help="Documents of any format.", no_args_is_help=True)


@dataclass(kw_only=True)
class CorpusSizes:
    """What the built-in corpus is made of."""

    seed: int = option(0, "Seed of the random generator.")
    train: int = option(2000, "Number of training documents.")
    validation: int = option(200, "Number of validation documents.")
    test: int = option(200, "Number of test documents.")
    suite_items: int = option(30, "Suite items for each distance and answer.")
    cataphora: float = option(0.0, "Share of pronouns *it* that precede their noun; above 0 adds a suite of them.")
    far: int = option(
        0,
        "Most sentences between a clue and what depends on it, before and after it; adds competing antecedents and "
        "suites by distance, and needs --longest 2 above it. 0: clues are near.",
    )


@command
def corpus(
    *,
    folder: str = argument("New folder for documents and contrastive suites."),
    shortest: int = option(6, "Sentences of the shortest document."),
    longest: int = option(10, "Sentences of the longest document."),
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
    inputs: list[str] = argument("Files of documents; files that belong together as source=FILE,target=FILE."),
    source_lang: str = option(REQUIRED, "Language code of the source, for example en."),
    target_lang: str | None = option(None, "Language code of the target; default: source only."),
    format: str = option("auto", "Format of the inputs: auto, jsonl, tsv, dtag, ..."),
    context: int | None = option(
        None, "Also count what needs a sentence that is further away, where annotated.", least=0
    ),
    style: str = option("text", "text, markdown or latex."),
    as_json: bool = AS_JSON,
) -> None:
    """Count documents, sentences and words, with lengths, and annotated phenomena by distance; files side by side."""
    from hf_docmt.data.readers import input_argument, input_files, read_documents
    from hf_docmt.data.statistics import document_statistics, reading_notes, table_column
    from hf_docmt.reports.tables import check_style, write_table

    check_style(style)
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
    header = ["", *_short_names(inputs)]
    cells = [header, *([label, *(column.get(label, "-") for column in columns)] for label in labels)]
    print(write_table(cells, style, notes))


def _short_names(inputs: list[str]) -> list[str]:
    """The names of the files without folders, where these are different; of several files that of the first."""
    names = [file_stem(text.partition(",")[0].partition("=")[2] or text) for text in inputs]
    return names if len(set(names)) == len(names) else inputs
