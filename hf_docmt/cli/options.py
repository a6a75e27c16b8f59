"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON with everything that is known.")]
Conditions = Annotated[str, typer.Option(help="Contexts: true, empty, random, wrong-document, with commas.")]
Context = Annotated[
    int | None,
    typer.Option(help="Sentences before the current one; default: the model's, 3 for chunks, all for a memory."),
]
Lang = Annotated[str | None, typer.Option(help="Language code, for example en; default: that of the model.")]
Model = Annotated[str, typer.Argument(help="Model folder or Hub name.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", help="KEY=VALUE of Seq2SeqSystem or CausalSystem, such as tgt_lang=deu_Latn; repeatable."),
]
Output = Annotated[str | None, typer.Option("-o", "--output", help="Report file to write.")]
Picture = Annotated[str | None, typer.Option(help="Also draw a picture: a file ending in .png or .svg.")]
Referenced = Annotated[str, typer.Argument(help="Documents with references, JSON lines or TSV.")]
Rows = Annotated[int, typer.Option(min=1, help="Documents read side by side.")]
