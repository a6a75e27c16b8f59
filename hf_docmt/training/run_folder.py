"""The folder of a training run: in use or not, resumable or not, and the files that say so."""

import json
from pathlib import Path
from typing import Any

from hf_docmt.files import write_text
from hf_docmt.training.recipe import Recipe, load_recipe

RECIPE, FACTS = "recipe.yaml", "training.json"  # the latter is written last: with it the run is finished


def prepare_folder(output: Path, recipe: Recipe, resume: bool) -> None:
    """Make the output folder, or check that the run in it has this recipe and can go on.

    Raises `ValueError` for a folder in use, and for one without a run that `resume` could go on with.
    """
    if not resume:
        if output.exists() and (not output.is_dir() or any(output.iterdir())):
            raise ValueError(
                f"output_dir: {output} exists and is not an empty folder; choose another one, delete it, or resume the "
                "run in it"
            )
        output.mkdir(parents=True, exist_ok=True)
        return
    if (output / FACTS).exists():
        raise ValueError(f"output_dir: the run in {output} is finished; choose another folder for a new one")
    if not (output / RECIPE).is_file():
        raise ValueError(f"output_dir: {output} has no run to resume ({RECIPE} is missing); start without resume")
    changed = _differences(load_recipe(output / RECIPE).to_dict(), recipe.to_dict())
    if changed:
        raise ValueError(
            f"output_dir: the run in {output} has another recipe: {'; '.join(changed)}; resume with {output / RECIPE}"
        )


def write_facts(output: Path, facts: dict[str, Any]) -> None:
    """Write `training.json`, one fact a line."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in facts.items())
    write_text(f"{{\n{lines}\n}}\n", output / FACTS)


def _differences(there: dict, here: dict, section: str = "") -> list[str]:
    """In words, the values in which two recipes differ."""
    changed = []
    for name in sorted(there.keys() | here.keys()):
        old, new, key = there.get(name), here.get(name), f"{section}{name}"
        if isinstance(old, dict) and isinstance(new, dict):
            changed += _differences(old, new, f"{key}.")
        elif old != new:
            changed.append(f"{key} is {old!r} there, {new!r} here")
    return changed
