"""The recipes of the package, the systems that headers name as overrides of one, and the bases that they share."""

import re
from pathlib import Path

from hf_docmt.training.recipe import Recipe, load_recipe

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "recipes"
ALL = sorted(FOLDER.glob("*.yaml"))  # those that can be trained
BASES = sorted(FOLDER.glob("base/*.yaml"))
SYSTEMS = {path.stem: (path, []) for path in ALL}  # name: recipe and overrides
for _path in ALL:
    _header = re.sub(r" \\\n#  +", " ", _path.read_text("utf-8"))
    for _command in re.findall(rf"^#   docmt train {_path.stem} (.+ output_dir=runs/\w+)$", _header, re.MULTILINE):
        SYSTEMS[_command.rpartition("/")[2]] = (_path, _command.split())


def load(name: str, *overrides: str) -> Recipe:
    """The recipe of a system, changed by overrides."""
    path, own = SYSTEMS[name]
    return load_recipe(path, [*own, *overrides])


def header(name: str) -> str:
    """What a header says of a system: the first paragraph of its file, or what stands between two commands."""
    path, own = SYSTEMS[name]
    text = path.read_text("utf-8")
    if not own:
        return text.partition("\n#\n")[0]
    return text[: text.index(f"output_dir=runs/{name}\n")].split("output_dir=runs/")[-1]
