"""`docmt new architecture`: the files of your own architecture."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from hf_docmt.cli.options import command
from hf_docmt.options import argument

new_app = typer.Typer(help="Write the files of a new part.", no_args_is_help=True)


@new_app.command("architecture")
@command
def architecture(
    *,
    name: str = argument("Name in recipes and reports: lower-case letters and digits."),
    package: str | None = argument("New Python package for it. Default: this folder, a checkout.", default=None),
) -> None:
    """Write a working architecture to start from: configuration, model, model card and tests; registers it."""
    from hf_docmt.loading.new_architecture import next_steps, write_architecture

    for path in write_architecture(name, package and Path(package)):
        print(path)
    print(next_steps(name, package and Path(package)), file=sys.stderr)
