"""Options and arguments that several commands share, and the values that are read from their text."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print all results as JSON.")]
BatchSize = Annotated[int, typer.Option(min=1, help="Segments translated at once.")]
Beams = Annotated[int | None, typer.Option(min=1, help="Beam size; default: the model's.")]
Conditions = Annotated[
    str, typer.Option(help="Contexts to score with: true, empty, random, wrong-document; separated by commas.")
]
Context = Annotated[
    int | None,
    typer.Option(
        help="Sentences of past context. Default: the model's own; 3 for a model of chunks; all for a recurrent memory."
    ),
]
FutureContext = Annotated[
    int | None,
    typer.Option(min=0, help="Sentences of future context, for a model of chunks; default: none."),
]
Details = Annotated[
    str | None,
    typer.Option(help="JSON lines with texts, scores and verdict of every item; what is there is not scored again."),
]
Limit = Annotated[int | None, typer.Option(min=1, help="At most so many items of each suite, the first ones.")]
Lang = Annotated[str | None, typer.Option(help="Language code, for example en; default: that of the model.")]
DocumentLang = Annotated[
    str | None, typer.Option(help="Language of the documents, as they name it, for example en; plain lines need none.")
]
Model = Annotated[str, typer.Argument(help="Model folder or Hub name.")]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        help="KEY=VALUE, an option of Seq2SeqSystem or CausalSystem, such as tgt_lang=deu_Latn; repeatable.",
    ),
]
OutputText = Annotated[str, typer.Option("-o", "--output", help="File to write, or - for standard output.")]
Output = Annotated[str | None, typer.Option("-o", "--output", help="Report file to write.")]
OutputFolder = Annotated[str | None, typer.Option("-o", "--output", help="Folder to write a report of each system to.")]
Picture = Annotated[str | None, typer.Option(help="Also draw a picture: a file ending in .png or .svg.")]
ReferenceFormat = Annotated[str, typer.Option(help="Format of the reference.")]
ReferencedDocuments = Annotated[str, typer.Argument(help="Documents with references, JSON lines or TSV.")]
Rows = Annotated[int, typer.Option(min=1, help="Documents processed in parallel, one per row of a batch.")]
Strategy = Annotated[
    str | None,
    typer.Option(help="sentence, sliding, sequential, chunk_sequential, full or stream; default: the model's."),
]


def item_range(text: str | None) -> tuple[int, int] | None:
    """`FIRST-LAST` as two numbers; None stays None."""
    if text is None:
        return None
    first, dash, last = text.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal()):
        raise ValueError(f"--items is {text!r}, expected FIRST-LAST, two numbers such as 1-100")
    return int(first), int(last)


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise ValueError(f"--{option} is {text!r}, expected whole numbers with commas between them")
    return tuple(map(int, parts))


def distinct_names(text: str) -> list[str]:
    """Names separated by commas, without blanks around them, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


def names(text: str) -> tuple[str, ...]:
    """Names separated by commas; empty ones are dropped."""
    return tuple(filter(None, text.split(",")))


def refuse(call: typer.Context, options: tuple[str, ...], reason: str) -> None:
    """Raise `ValueError` where one of these options was given on the command line."""
    for name in options:
        if call.get_parameter_source(name).name != "DEFAULT":
            raise ValueError(f"--{name.replace('_', '-')} {reason}; leave it out")
