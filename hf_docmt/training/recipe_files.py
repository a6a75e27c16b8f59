"""Recipe files: found by path or name, read as YAML, laid over their base, changed by overrides."""

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from itertools import takewhile
from os import PathLike
from pathlib import Path
from typing import Any

import yaml

from hf_docmt.files import DataError
from hf_docmt.messages import closest_hint
from hf_docmt.training.recipe_schema import RecipeError, check_mapping, join

SUFFIXES = (".yaml", ".yml")
BASE = "base"
DEMO_CORPUS = Path("runs/demo/corpus")  # of `docmt demo` and the recipes demo_*
FILES = ("path", "source", "target")  # arguments of readers


def packaged_recipes() -> dict[str, Path]:
    """Name and file of the recipes that come with the package (`examples/recipes`); bases alone are not listed."""
    paths = [Path(str(entry)) for entry in files("hf_docmt.recipes").iterdir() if entry.name.endswith(".yaml")]
    return {path.stem: path for path in sorted(paths)}


def find_recipe(target: str | PathLike) -> Path:
    """The file of a recipe: `target` itself, or the packaged recipe of that name if no file or folder has it.

    The file need not exist.
    """
    path = Path(target)
    if path.suffix in SUFFIXES or path.exists():
        return path
    return packaged_recipes().get(str(target), path)


def title(path: Path) -> str:
    """The description of a recipe from its first comment: the sentence up to the paper's figures."""
    lines = takewhile(lambda line: line.startswith("# "), path.read_text(encoding="utf-8").split("\n"))
    text = " ".join(line.removeprefix("# ") for line in lines)
    return re.split(r"(?<! al)\.(?= |$)|[;:] ", text)[0]


def check_data(target: str, overrides: Iterable[str]) -> None:
    """DataError for a file of the data of a recipe that is missing. It imports no torch, and checks nothing else."""
    values, _ = read_recipe(find_recipe(target))
    for override in overrides:
        values = overridden(values, override)
    data = values.get("data") if isinstance(values, Mapping) else None
    for part in ("train", "validation"):
        files = data.get(part) if isinstance(data, Mapping) else None
        for name in FILES if isinstance(files, Mapping) and files.get("format") != "datasets" else ():
            path = files.get(name)
            if isinstance(path, str) and not Path(path).exists():
                remedy = (
                    "check the path" if Path(path).parent != DEMO_CORPUS else f"docmt corpus {DEMO_CORPUS} writes it"
                )
                raise DataError(f"data.{part}.{name}: the file {path} does not exist; {remedy}")


def similar_recipe(target: str | Path) -> str:
    """The end of a message: the packaged recipe with the most similar name, empty without a similar one."""
    return closest_hint(Path(target).name, packaged_recipes(), "; did you mean the packaged recipe {!r}?")


def read_recipe(path: Path) -> tuple[Any, dict[str, Path]]:
    """The values of a recipe file merged into those of its base, and the file that each dotted key comes from.

    `base` names another recipe file, by a path relative to the file that names it or by the name of a packaged recipe.
    Mappings are merged key by key and the nearer file wins, also with null; lists are replaced, and so is a mapping
    that names a `format`, because its other keys belong to that format.

    Raises `RecipeError` for a file that is missing or not YAML, or whose bases form a circle.
    """
    if not path.is_file():
        raise RecipeError(str(path), f"unknown recipe{similar_recipe(path)}; check the path, or see docmt train --list")
    return _over_base(read_values(path), path, ())


def _over_base(values: Any, path: Path, chain: tuple[Path, ...]) -> tuple[Any, dict[str, Path]]:
    """`read_recipe` of the values in a file; `chain` are the files that led to it."""
    if not isinstance(values, Mapping) or BASE not in values:
        return values, dict.fromkeys(_dotted_keys(values), path)
    chain = (*chain, path)
    base = _base_path(values[BASE], path)
    if base.resolve() in [file.resolve() for file in chain]:
        circle = " -> ".join(map(str, (*chain, base)))
        raise RecipeError(str(path), f"base: the bases form a circle, {circle}; one of them must have no base")
    base_values, base_sources = _over_base(read_values(base), base, chain)
    try:
        check_mapping(base_values)
    except RecipeError as error:
        raise RecipeError(str(base), str(error)) from error
    values = {key: value for key, value in values.items() if key != BASE}
    return merged(base_values, values), base_sources | dict.fromkeys(_dotted_keys(values), path)


def _base_path(base: Any, path: Path) -> Path:
    """The file that `base` in the recipe at `path` names."""
    if not isinstance(base, str):
        raise RecipeError(str(path), f"base: expected the path of a recipe file, got {base!r}")
    file = path.parent / base
    if not file.is_file():
        file = packaged_recipes().get(base, file)
    if not file.is_file():
        raise RecipeError(
            str(path),
            f"base: no file {file}{similar_recipe(base)}; give a path relative to {path.parent}, or the name of a "
            "packaged recipe",
        )
    return file


def merged(base: Mapping, values: Mapping) -> dict[str, Any]:
    """Values over those of a base, key by key; a mapping that names a `format` replaces the one of the base."""
    result = dict(base)
    for key, value in values.items():
        inherits = isinstance(value, Mapping) and isinstance(base.get(key), Mapping) and "format" not in value
        result[key] = merged(base[key], value) if inherits else value
    return result


def _dotted_keys(values: Any, key: str = "") -> Iterator[str]:
    for name, value in values.items() if isinstance(values, Mapping) else ():
        yield join(key, name)
        yield from _dotted_keys(value, join(key, name))


def source_of(key: str, sources: Mapping[str, Path], default: Path) -> Path:
    """The file with a dotted key, or with the nearest mapping around it; `default` without one."""
    while key and key not in sources:
        key = key.rpartition(".")[0]
    return sources.get(key, default)


def overridden(values: Any, override: str) -> Any:
    """A copy of the values with an override `section.key=value`, the value in YAML."""
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise RecipeError(f"override {override!r}", "expected key=value, for example training.max_steps=1000")
    if key == BASE:
        raise RecipeError(f"override {override!r}", "only a recipe file can name a base; write one")
    try:
        value = yaml.load(text, Loader=_UniqueKeys)
    except yaml.YAMLError as error:
        raise RecipeError(f"override {override!r}", f"the value is not YAML: {error}") from error
    return _with_value(values, key.split("."), value, override)


def _with_value(values: Any, keys: list[str], value: Any, override: str) -> dict[str, Any]:
    head, *rest = keys
    if not isinstance(values, Mapping | None):
        raise RecipeError(f"override {override!r}", f"{head!r} is inside {values!r}, which is not a mapping")
    values = dict(values or {})
    values[head] = _with_value(values.get(head), rest, value, override) if rest else value
    return values


def read_values(path: Path) -> Any:
    """The content of a YAML file. RecipeError: not YAML, a key twice, or aliases."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RecipeError(str(path), f"not a YAML file in UTF-8: {error}") from error


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a key given twice is an error, and so is an alias: a few of them can stand for gigabytes."""

    def compose_node(self, parent, index):
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.MarkedYAMLError(
                problem=f"alias *{event.anchor} is refused; write the value out, or share it through a base",
                problem_mark=event.start_mark,
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node, deep=False):
        keys = [str(key.value) for key, _ in node.value]
        if len(set(keys)) < len(keys):
            repeated = next(key for index, key in enumerate(keys) if key in keys[:index])
            raise yaml.MarkedYAMLError(problem=f"key {repeated!r} is given twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)
