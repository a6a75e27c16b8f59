"""The study: systems, seeds, evaluations, tables and figures, read from one YAML file."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hf_docmt.messages import closest_hint
from hf_docmt.training.recipe_files import merged, read_recipe, read_values
from hf_docmt.training.recipe_schema import RecipeError, build, check_keys, check_mapping, hint

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")  # of systems and the like, which become names of files
PLACES = ("output_dir", "model", "work", "report", "system", "seed")  # what commands may name in braces
SET_BY_STUDY = ("output_dir", "seed")  # keys of recipes
JOBS = ("prepare", "train")  # those that are no evaluations
FACTS = (
    "parameters", "context", "architecture", "training tokens/s", "updates", "training seconds", "validation loss"
)  # fmt: skip


@dataclass
class EvaluationSection:
    """Commands that score one model; the last one writes `{report}`. `systems`: only these, null = all.

    `options` are those that a system has beside the others' in the last command, such as the context to score with.
    """

    commands: list[str]
    systems: list[str] | None = None
    options: dict[str, str] = field(default_factory=dict)

    def commands_of(self, system: str) -> list[str]:
        """The commands for a system."""
        return [*self.commands[:-1], " ".join(filter(None, [self.commands[-1], self.options.get(system)]))]


@dataclass
class ColumnSection:
    """A column of a table: a score of an evaluation, a part of it, or a fact about the run.

    `context` is the condition of an evaluation that has several; with `minus_context` the column is the difference from
    the score under that one. `digits` are those behind the point.
    """

    evaluation: str | None = None
    metric: str | None = None
    dataset: str | None = None
    part: str = ""  # label in the breakdown, such as distance=3
    context: str = "true"
    minus_context: str | None = None
    strategy: str | None = None
    fact: str | None = None
    digits: int = 1

    def __post_init__(self):
        if (self.evaluation is None) == (self.fact is None):
            raise RecipeError("column", f"expected evaluation or fact, got {self.evaluation!r} and {self.fact!r}")
        if self.fact is not None and self.fact not in FACTS:
            raise RecipeError("fact", f"unknown fact {self.fact!r}{hint(self.fact, FACTS)}")
        if self.digits < 0:
            raise RecipeError("digits", f"expected at least 0, got {self.digits}")


@dataclass
class TableSection:
    """Systems in rows, scores in columns; `baseline` is the system that the others are tested against."""

    columns: dict[str, ColumnSection]
    title: str = ""
    systems: list[str] | None = None
    baseline: str | None = None


@dataclass
class FigureSection:
    """Scores of systems as lines, along the labels of a breakdown."""

    evaluation: str
    axis: Literal["distance", "exact_distance", "index", "length"] = "distance"
    datasets: list[str] = field(default_factory=list)
    metric: str | None = None
    context: str = "true"
    systems: list[str] | None = None


@dataclass
class Study:
    """What a study file says, checked. `file` is where it stands, `budget` the one that was chosen.

    Paths in commands are relative to the caller. `recipe` lies under the recipe of every system. `systems` are recipes
    without `output_dir` and `seed`, whose `init_from` may be the name of another system: its run of the same seed.
    `prepare` are commands that come before all others, by name. `only` are the systems that are run where no others are
    asked for, null = all. RecipeError, a ValueError, names the key that is wrong.
    """

    output_dir: str
    systems: dict[str, dict[str, Any]]
    evaluations: dict[str, EvaluationSection]
    recipe: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    seeds: list[int] = field(default_factory=lambda: [1])
    only: list[str] | None = None
    prepare: dict[str, str] = field(default_factory=dict)
    tables: dict[str, TableSection] = field(default_factory=dict)
    figures: dict[str, FigureSection] = field(default_factory=dict)
    file: Path = Path()
    budget: str | None = None

    def __post_init__(self):
        for section in ("systems", "evaluations", "prepare", "tables", "figures"):
            for name in getattr(self, section):
                if not isinstance(name, str) or not NAME.fullmatch(name):
                    raise RecipeError(f"{section}.{name}", "expected a name of letters, digits and . _ + -")
        if not self.systems or not self.seeds:
            raise RecipeError("study", "it has no systems or no seeds; name at least one of each")
        are_seeds = all(type(seed) is int and 0 <= seed < 2**32 for seed in self.seeds)
        if not are_seeds or len(set(self.seeds)) < len(self.seeds):
            raise RecipeError("seeds", f"expected different whole numbers from 0 to 2^32 - 1, got {self.seeds!r}")
        for name in self.systems:
            self.lineage(name)
        for name, command in self.prepare.items():
            check_command(command, ("output_dir",), f"prepare.{name}")
        for name, evaluation in self.evaluations.items():
            self._check_evaluation(name, evaluation)
        for name, table in self.tables.items():
            self._check_table(name, table)
        for name, figure in self.figures.items():
            check_names([figure.evaluation], self.evaluations, f"figures.{name}: no evaluation")
            check_names(figure.systems or (), self.systems, f"figures.{name}: no system")
        check_names(self.only or (), self.systems, "only: no system")

    def _check_evaluation(self, name: str, evaluation: EvaluationSection) -> None:
        key = f"evaluations.{name}"
        if name in JOBS:
            raise RecipeError(key, f"{' and '.join(JOBS)} are other jobs; choose another name")
        if not evaluation.commands:
            raise RecipeError(f"{key}.commands", "expected at least one command, got none")
        check_names(evaluation.systems or (), self.systems, f"{key}: no system")
        check_names(evaluation.options, self.systems, f"{key}.options: no system")
        for system, options in evaluation.options.items():
            if not isinstance(options, str):
                raise RecipeError(f"{key}.options.{system}", f"expected a text, got {options!r}")
        for command in dict.fromkeys(line for system in self.systems for line in evaluation.commands_of(system)):
            check_command(command, PLACES, key)
        if "{report}" not in evaluation.commands[-1]:
            raise RecipeError(key, "the last command writes no {report}; add -o {report}")

    def _check_table(self, name: str, table: TableSection) -> None:
        key = f"tables.{name}"
        check_names([*(table.systems or ()), *filter(None, [table.baseline])], self.systems, f"{key}: no system")
        if not table.columns:
            raise RecipeError(f"{key}.columns", "expected at least one column, got none")
        for title, column in table.columns.items():
            if not isinstance(title, str):
                problem = f'expected texts as names of columns, got {title!r}: write "{title}" in quotes'
                raise RecipeError(f"{key}.columns", problem)
            check_names(filter(None, [column.evaluation]), self.evaluations, f"{key}: no evaluation")

    def recipe_of(self, system: str) -> dict[str, Any]:
        """The recipe of a system over that of all systems."""
        return merged(self.recipe, self.systems[system])

    def lineage(self, system: str) -> list[str]:
        """The system, the one that it begins from, and so on to one that begins elsewhere or from scratch."""
        line = [system]
        while isinstance(origin := self.recipe_of(line[-1]).get("init_from"), str) and origin in self.systems:
            if origin in line:
                raise RecipeError(f"systems.{system}.init_from", f"a circle, {' -> '.join([*line, origin])}")
            line.append(origin)
        return line


def load_study(path: str | Path, budget: str | None = None) -> Study:
    """Read a study file; with a `budget`, the values at `budgets.<name>` lie over all others.

    `recipe` and systems may have a `base`, the name of a packaged recipe or a path relative to the study file.
    Raises `RecipeError` (a `ValueError`) that names the file, the key, what was found and what is allowed.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: no such study; check the path, or start from one of examples/studies")
    try:
        values = read_values(path)
        check_mapping(values, "study")
        of_file = [name for name in (*Study.__annotations__, "budgets") if name not in ("file", "budget")]
        check_keys(values, of_file, "")
        budgets = values.pop("budgets", {})
        check_mapping(budgets, "budgets")
        if budget is not None:
            if budget not in budgets:
                raise RecipeError("budgets", f"no budget {budget!r}{hint(budget, budgets)}")
            check_mapping(budgets[budget], f"budgets.{budget}")
            values = merged(values, budgets[budget])
        for key in ("recipe", "systems", "evaluations"):
            check_mapping(values.setdefault(key, {}), key)
        values["recipe"] = with_base(values["recipe"], path, "recipe")
        values["systems"] = {
            name: with_base(recipe, path, f"systems.{name}") for name, recipe in values["systems"].items()
        }
        values["evaluations"] = {
            name: {"commands": section} if isinstance(section, list) else section
            for name, section in values["evaluations"].items()
        }
        return build(Study, {**values, "file": path, "budget": budget})
    except RecipeError as error:
        raise RecipeError(str(path), str(error)) from error


def with_base(recipe: Any, path: Path, key: str) -> dict[str, Any]:
    """A recipe over the `base` that it names, without what the study sets for every run."""
    check_mapping(recipe, key)
    for name in SET_BY_STUDY:
        if name in recipe:
            raise RecipeError(f"{key}.{name}", "the study sets it for every run; leave it out")
    values = read_recipe(path, recipe)[0]
    return {name: value for name, value in values.items() if name not in SET_BY_STUDY}


def check_command(command: Any, places: Sequence[str], key: str) -> None:
    """RecipeError for what is no command of this package, and for a place in braces that is not known."""
    if not isinstance(command, str) or command.split()[:1] != ["docmt"]:
        raise RecipeError(key, f"expected commands that begin with docmt, got {command!r}")
    try:
        shlex.split(command)
    except ValueError as error:
        raise RecipeError(key, f"{error} in {command!r}; close it, or write \\' for the sign itself") from error
    for place in re.findall(r"\{([^{}]*)\}", command):
        if place not in places:
            raise RecipeError(key, f"unknown place {{{place}}} in {command!r}{hint(place, places)}")


def check_names(names: Any, allowed: Mapping, problem: str) -> None:
    """RecipeError with this problem and the closest name for one that is not allowed."""
    for name in names:
        if not isinstance(name, str) or name not in allowed:
            raise RecipeError(f"{problem} {name!r}", f"known are {', '.join(allowed)}{closest_hint(name, allowed)}")
