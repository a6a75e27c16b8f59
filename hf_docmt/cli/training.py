"""`docmt demo`, `docmt train` and `docmt info`: models from recipes."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from hf_docmt.cli.loading import hide_progress_bars
from hf_docmt.cli.options import AsJson


def demo(
    folder: Annotated[str, typer.Argument(help="New folder for corpus, models, report and card.")] = "runs/demo",
    seed: Annotated[int, typer.Option(help="Seed of corpus and training.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Train a sentence-level and a document-level model on the built-in corpus and compare them."""
    from hf_docmt.demo import run_demo

    hide_progress_bars()
    facts = run_demo(folder, seed=seed)
    table = facts.pop("table")
    print(json.dumps(facts) if as_json else table)


def train(
    recipe: Annotated[str, typer.Argument(help="YAML file, or name of a packaged recipe; see examples/recipes.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value, such as training.max_steps=100.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run of this recipe.")] = False,
) -> None:
    """Train the model of a recipe; prints the folder of the trained model."""
    from accelerate import PartialState

    from hf_docmt.training.recipe import load_recipe
    from hf_docmt.training.run import train as run

    hide_progress_bars()
    folder = run(load_recipe(recipe, overrides or ()), resume=resume)
    if PartialState().is_main_process:
        print(folder)


def info(
    target: Annotated[str, typer.Argument(help="Model folder, Hub name, recipe file or name of a packaged recipe.")],
    as_json: AsJson = False,
) -> None:
    """Show architecture, parameters and context reach of a model or a recipe."""
    from hf_docmt.info import describe, render

    facts = describe(target)
    print(json.dumps(facts, indent=1) if as_json else render(facts))
