"""`docmt demo`, `docmt train` and `docmt info`: models from recipes."""

from __future__ import annotations

import json

from hf_docmt.cli.loading import import_transformers
from hf_docmt.cli.options import command
from hf_docmt.options import AS_JSON, argument, option


@command
def demo(
    *,
    folder: str = argument("New folder for corpus, models, report and card.", default="runs/demo"),
    seed: int = option(1, "Seed of corpus and training."),
    as_json: bool = AS_JSON,
) -> None:
    """Train a sentence-level and a document-level model on the built-in corpus and compare them."""
    import_transformers()
    from hf_docmt.hub.demo import run_demo

    facts = run_demo(folder, seed=seed)
    table = facts.pop("table")
    print(json.dumps(facts) if as_json else table)


@command
def train(
    *,
    recipe: str = argument("YAML file, or name of a packaged recipe; see examples/recipes."),
    overrides: list[str] | None = argument("key=value, such as training.max_steps=100.", default=None),
    resume: bool = option(False, "Continue an interrupted run of this recipe."),
) -> None:
    """Train the model of a recipe; prints the folder of the trained model."""
    import_transformers()
    from accelerate import PartialState

    from hf_docmt.training.recipe import load_recipe
    from hf_docmt.training.run import train as run

    folder = run(load_recipe(recipe, overrides or ()), resume=resume)
    if PartialState().is_main_process:
        print(folder)


@command
def info(
    *,
    target: str = argument("Model folder, Hub name, recipe file or name of a packaged recipe."),
    overrides: list[str] | None = argument("Of a recipe: key=value, such as model.past_context=1.", default=None),
    as_json: bool = AS_JSON,
) -> None:
    """Show architecture, parameters and context reach of a model or a recipe."""
    import_transformers()
    from hf_docmt.training.info import describe, render

    facts = describe(target, overrides or ())
    print(json.dumps(facts, indent=1) if as_json else render(facts))
