"""Shared code of the scripts of this folder: arguments, model and documents, tables, pictures."""

import argparse

import torch

import hf_docmt
from hf_docmt.analysis.model_runs import set_languages
from hf_docmt.analysis.pictures import COLOURS, MARKERS, SINGLE, picture
from hf_docmt.evaluation.translation_files import count_untranslated, read_translations


def parser(text: str, *arguments: str) -> argparse.ArgumentParser:
    """A parser with these arguments and the options of all scripts; `text` is what a script says of itself."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    for argument in arguments:
        made.add_argument(argument)
    for side in ("source", "target"):
        made.add_argument(f"--{side}-lang", help="default: the language of the model")
    made.add_argument("--output", help="also write the table as CSV")
    made.add_argument("--picture", help="also draw a picture: a file ending in .png or .svg")
    return made


def load(options: argparse.Namespace) -> tuple:
    """Model and tokenizer, on the accelerator where there is one, with the languages of the options."""
    model, tokenizer = hf_docmt.load_model(options.model)
    set_languages(model, options.source_lang, options.target_lang)
    return model.to(torch.accelerator.current_accelerator(check_available=True) or "cpu"), tokenizer


def documents_of(options: argparse.Namespace, model):
    """The documents, in the languages of the model."""
    languages = {name: getattr(model.config, name) for name in ("source_lang", "target_lang")}
    return hf_docmt.read_documents(path=options.documents, **languages)


def read_translated(path: str, references) -> list[list[str]]:
    """The sentences of the documents of a file of translations; documents with an `error` are warned of."""
    rows = read_translations(path, references)
    count_untranslated(rows, path)
    return [row["translation"] for row in rows]


def show(table, options: argparse.Namespace) -> None:
    """Print a table, and write it where a file is named."""
    print(table.to_string(index=False))
    if options.output:
        table.to_csv(options.output, index=False)


def draw_lines(path: str, table, x: str, columns: list[str], label: str, log: bool = False) -> None:
    """Columns of a table as lines over the column `x`, whose values are at equal distances."""
    with picture(path, SINGLE) as figure:
        axes = figure.subplots()
        for column, colour, marker in zip(columns, COLOURS, MARKERS):
            axes.plot(table[column].to_numpy(), label=column, color=colour, marker=marker)
        axes.set_xticks(range(len(table)), [str(value) for value in table[x]], fontsize=7)
        axes.set(xlabel=x, ylabel=label)
        if log and (table[columns] > 0).any(axis=None):
            axes.set_yscale("log")  # a value of 0 is not drawn
        axes.legend()


def draw_matrices(path: str, matrices: dict, xlabel: str, ylabel: str, size: tuple[float, float]) -> None:
    """Matrices side by side, {title: (matrix, names of its rows)}; one colour scale, darker is more."""
    with picture(path, (size[0] * len(matrices), size[1]), style={"axes.grid": False}) as figure:
        grid = figure.subplots(1, len(matrices), squeeze=False)[0]
        largest = max(matrix.max() for matrix, _ in matrices.values())
        for axes, (title, (matrix, names)) in zip(grid, matrices.items()):
            shown = axes.imshow(matrix, vmin=0, vmax=largest, cmap="viridis_r", aspect="auto")
            axes.set_xticks(range(matrix.shape[1]), range(1, matrix.shape[1] + 1), fontsize=6)
            axes.set_yticks(range(len(names)), names, fontsize=6, parse_math=False)
            axes.set(xlabel=xlabel, ylabel=ylabel)
            axes.set_title(title, fontsize=8, parse_math=False)
        figure.colorbar(shown, ax=list(grid), fraction=0.05)
