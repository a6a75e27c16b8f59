"""The study: systems, seeds, evaluations, tables and figures, read from one YAML file."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hf_docmt.messages import closest_hint
from hf_docmt.studies.run_tables import FACTS
from hf_docmt.training.recipe_files import merged, read_recipe, read_values
from hf_docmt.training.recipe_schema import RecipeError, build, check_keys, check_mapping, hint

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")  # of systems and the like, which become names of files
COMMAND = "docmt"
PLACES = ("output_dir", "model", "work", "report", "system", "seed")  # what commands may name in braces
SET_BY_STUDY = ("output_dir", "seed")  # keys of recipes
JOBS = ("prepare", "train")  # those that are no evaluations
OF_CALLER = ("file", "budget")  # fields of a study that do not stand in its file
OF_ALL = ("output_dir",)  # those that a preparing command may name


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
            self._check_origin(name)
        self._check_commands()
        self._check_names()

    def _check_origin(self, name: str) -> None:
        seen = [name]
        while (origin := self.origin_of(seen[-1])) is not None:
            if origin in seen:
                raise RecipeError(f"systems.{name}.init_from", f"a circle, {' -> '.join([*seen, origin])}")
            seen.append(origin)

    def _check_commands(self) -> None:
        for name, command in self.prepare.items():
            check_command(command, OF_ALL, f"prepare.{name}")
        for name, evaluation in self.evaluations.items():
            if name in JOBS:
                raise RecipeError(f"evaluations.{name}", f"{' and '.join(JOBS)} are other jobs; choose another name")
            if not evaluation.commands:
                raise RecipeError(f"evaluations.{name}.commands", "expected at least one command, got none")
            for system, options in evaluation.options.items():
                if not isinstance(options, str):
                    raise RecipeError(f"evaluations.{name}.options.{system}", f"expected a text, got {options!r}")
            for command in dict.fromkeys(line for system in self.systems for line in evaluation.commands_of(system)):
                check_command(command, PLACES, f"evaluations.{name}")
            if "{report}" not in evaluation.commands[-1]:
                raise RecipeError(f"evaluations.{name}", "the last command writes no {report}; add -o {report}")

    def _check_names(self) -> None:
        """That what names systems and evaluations names some that there are."""
        for system in self.only or ():
            check_name(system, self.systems, f"only: no system {system!r}")
        for name, evaluation in self.evaluations.items():
            for system in evaluation.options:
                check_name(system, self.systems, f"evaluations.{name}.options: no system {system!r}")
        for section in ("evaluations", "tables", "figures"):
            for name, part in getattr(self, section).items():
                for system in [*(part.systems or ()), *filter(None, [getattr(part, "baseline", None)])]:
                    check_name(system, self.systems, f"{section}.{name}: no system {system!r}")
        for name, figure in self.figures.items():
            check_name(figure.evaluation, self.evaluations, f"figures.{name}: no evaluation {figure.evaluation!r}")
        for name, table in self.tables.items():
            if not table.columns:
                raise RecipeError(f"tables.{name}.columns", "expected at least one column, got none")
            for title, column in table.columns.items():
                if not isinstance(title, str):
                    problem = f'expected texts as names of columns, got {title!r}: write "{title}" in quotes'
                    raise RecipeError(f"tables.{name}.columns", problem)
                if column.evaluation is not None:
                    where = f"tables.{name}: no evaluation {column.evaluation!r}"
                    check_name(column.evaluation, self.evaluations, where)

    def origin_of(self, system: str) -> str | None:
        """The system that another one begins from, None where it begins from elsewhere or from scratch."""
        origin = self.recipe_of(system).get("init_from")
        return origin if isinstance(origin, str) and origin in self.systems else None

    def recipe_of(self, system: str) -> dict[str, Any]:
        """The recipe of a system over that of all systems."""
        return merged(self.recipe, self.systems[system])


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
        check_keys(values, [name for name in (*Study.__annotations__, "budgets") if name not in OF_CALLER], "")
        values = with_budget(dict(values), budget)
        for key in ("recipe", "systems"):
            check_mapping(values.get(key, {}), key)
        values["recipe"] = with_base(values.get("recipe", {}), path, "recipe")
        systems = values.get("systems", {}).items()
        values["systems"] = {name: with_base(recipe, path, f"systems.{name}") for name, recipe in systems}
        evaluations = values.get("evaluations", {})
        check_mapping(evaluations, "evaluations")
        short = {name: {"commands": found} for name, found in evaluations.items() if isinstance(found, list)}
        return build(Study, {**values, "evaluations": {**evaluations, **short}, "file": path, "budget": budget})
    except RecipeError as error:
        raise RecipeError(str(path), str(error)) from error


def with_budget(values: dict[str, Any], budget: str | None) -> dict[str, Any]:
    """The values of a study with those of a budget laid over them; ValueError: an unknown budget."""
    budgets = values.pop("budgets", {})
    check_mapping(budgets, "budgets")
    if budget is None:
        return values
    if budget not in budgets:
        raise RecipeError("budgets", f"no budget {budget!r}{hint(budget, budgets)}")
    check_mapping(budgets[budget], f"budgets.{budget}")
    return merged(values, budgets[budget])


def with_base(recipe: Any, path: Path, key: str) -> dict[str, Any]:
    """A recipe over the `base` that it names, without what the study sets for every run."""
    check_mapping(recipe, key)
    for name in SET_BY_STUDY:
        if name in recipe:
            raise RecipeError(f"{key}.{name}", "the study sets it for every run; leave it out")
    values = read_recipe(path, recipe)[0]
    return {name: value for name, value in values.items() if name not in SET_BY_STUDY}


def check_command(command: Any, places: tuple[str, ...], key: str) -> None:
    """RecipeError for what is no command of this package, and for a place in braces that is not known."""
    if not isinstance(command, str) or command.split()[:1] != [COMMAND]:
        raise RecipeError(key, f"expected commands that begin with {COMMAND}, got {command!r}")
    try:
        shlex.split(command)
    except ValueError as error:
        raise RecipeError(key, f"{error} in {command!r}; close it, or write \\' for the sign itself") from error
    for found in re.findall(r"\{([^{}]*)\}", command):
        if found not in places:
            raise RecipeError(key, f"unknown place {{{found}}} in {command!r}{hint(found, places)}")


def check_name(name: Any, known: Mapping, problem: str) -> None:
    """RecipeError with this problem and the closest name for one that is not known."""
    if not isinstance(name, str) or name not in known:
        raise RecipeError(problem, f"known are {', '.join(known)}{closest_hint(name, known)}")


def command_arguments(command: str, places: Mapping[str, Any]) -> tuple[str, ...]:
    """The arguments of a command line behind its name, places in braces filled in after it was split at blanks."""
    filled = [re.sub(r"\{(\w+)\}", lambda found: str(places[found.group(1)]), word) for word in shlex.split(command)]
    return tuple(filled[1:])
