"""`docmt demo`, `docmt train` and `docmt info`: models from recipes."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hf_docmt.cli.loading import import_transformers
from hf_docmt.cli.options import command
from hf_docmt.files import check_new_folder
from hf_docmt.options import AS_JSON, argument, option


@command
def demo(
    *,
    folder: str = argument("New folder for corpus, models, reports and card.", default="runs/demo"),
    seed: int = option(1, "Random seed of corpus and training."),
    as_json: bool = AS_JSON,
) -> None:
    """Train a sentence-level and a document-level model on the built-in corpus and compare them."""
    check_new_folder(folder)
    import_transformers()
    from hf_docmt.hub.demo import run_demo

    facts = run_demo(folder, seed=seed)
    table = facts.pop("table")
    print(json.dumps(facts) if as_json else table)


@command
def train(
    *,
    recipe: str | None = argument("YAML file, or name of a packaged recipe.", default=None),
    overrides: list[str] | None = argument("Changes to the recipe.", default=None, metavar="KEY=VALUE"),
    resume: bool = option(False, "Continue an interrupted run of this recipe."),
    list_recipes: bool = option(False, "List the packaged recipes.", "--list"),
) -> None:
    """Train the model of a recipe, and print its folder.

    Examples:
      docmt train --list
      docmt corpus runs/demo/corpus && docmt train demo_concat4
      docmt train demo_concat4 training.max_steps=200 output_dir=runs/mine
      docmt train tune.yaml --resume

    A recipe names the data, the model and the settings of the training. A value is YAML: model.past_context=3,
    training.epochs=null. See examples/README.md.
    """
    from hf_docmt.training import recipe_files

    if list_recipes:
        for name, path in recipe_files.packaged_recipes().items():
            print(f"{name:34}{recipe_files.title(path)}")
        return
    if recipe is None:
        raise ValueError("no recipe given, expected a YAML file or a name of docmt train --list")
    overrides = as_overrides(overrides or [])
    recipe_files.check_data(recipe, overrides)
    import_transformers()
    from accelerate import PartialState

    from hf_docmt.training.recipe import load_recipe
    from hf_docmt.training.run import train as run

    folder = run(load_recipe(recipe, overrides), resume=resume)
    if PartialState().is_main_process:
        print(folder)


def as_overrides(arguments: list[str]) -> list[str]:
    """Arguments with `--max-steps 3` as `max_steps=3`, so that errors name the key of the recipe."""
    named = re.sub(r"(?<![^\0])--([\w-]+)[=\0]", lambda flag: flag[1].replace("-", "_") + "=", "\0".join(arguments))
    return named.split("\0") if arguments else []


@command
def info(
    *,
    target: str = argument("Model folder, name on the Hub, recipe file, or name of a packaged recipe."),
    overrides: list[str] | None = argument(
        "Changes to the recipe: model.past_context=1.", default=None, metavar="KEY=VALUE"
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Show architecture, parameters and context of a model or a recipe."""
    from hf_docmt.training import recipe_files

    if target.endswith(recipe_files.SUFFIXES) or ("/" not in target and not Path(target).exists()):
        recipe_files.read_recipe(recipe_files.find_recipe(target))
    import_transformers()
    from hf_docmt.training.info import describe, render

    facts = describe(target, overrides or ())
    print(json.dumps(facts, indent=1) if as_json else render(facts))
