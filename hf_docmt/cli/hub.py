"""`docmt export`: folders for the Hub."""

from __future__ import annotations

from typing import Annotated

import typer

from hf_docmt.cli.loading import load_model


def export(
    model: Annotated[str, typer.Argument(help="Model folder.")],
    folder: Annotated[str, typer.Argument(help="New folder to write: code, weights, tokenizer and card.")],
    report: Annotated[list[str] | None, typer.Option(help="Report for the card; repeatable.")] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Training data on the Hub; repeatable.")] = None,
    repo_id: Annotated[str | None, typer.Option(help="Name on the Hub, for the card's example.")] = None,
    license: Annotated[str | None, typer.Option(help="Licence of the weights.")] = None,
) -> None:
    """Write a folder for the Hub, with a model card made from reports."""
    from hf_docmt.hub.export import collect_reports, export_model

    loaded, tokenizer = load_model(model, device="cpu")
    facts = collect_reports(report or (), model, repo_id)
    card = {"repo_id": repo_id, "license": license, "datasets": dataset or ()}
    print(export_model(loaded, tokenizer, folder, facts, **card))
