"""What a study has to do: its runs, a system and a seed each, with their recipes, commands and files."""

import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from hf_docmt.files import write_text
from hf_docmt.messages import closest_hint
from hf_docmt.studies.packed_reports import read_reports
from hf_docmt.studies.study import Study
from hf_docmt.training.recipe import parse_recipe
from hf_docmt.training.recipe_schema import RecipeError
from hf_docmt.training.run_folder import FACTS, RECIPE

SNAKEFILE = Path(__file__).with_name("Snakefile")


@dataclass(frozen=True)
class Run:
    """One system with one seed."""

    system: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.system}-seed{self.seed}"


class StudyPlan:
    """The runs of a study, and the files and commands of its jobs, which the Snakefile lays out.

    `output` (the study's `output_dir`) has `recipes`, `models`, `reports`, `work` (translations and the like), `logs`
    and `prepared`. `results` has tables, figures, and all reports in one file; it is by default the folder beside the
    study file that has its name, and that of the budget. An evaluation whose report is there is done, also without a
    model. `docmt` is how a shell calls the command. ValueError: the study cannot be used, or a report was made in
    another way than the study says now.
    """

    def __init__(self, study: Study, results: str | Path | None = None, docmt: str = "docmt"):
        self.study, self.docmt = study, docmt
        self.output = Path(study.output_dir)
        name = study.file.stem if study.budget is None else f"{study.file.stem}-{study.budget}"
        self.results = Path(results) if results is not None else study.file.with_name(name)
        if self.results.exists() and not self.results.is_dir():
            raise ValueError(f"{self.results} is a file; give another folder for the results with --results")
        all_runs = [Run(system, seed) for seed in study.seeds for system in study.systems]
        self.runs = {run.name: run for run in all_runs}
        for run in all_runs[: len(study.systems)]:
            try:
                parse_recipe(yaml.safe_load(self.recipe_text(run)))
            except RecipeError as error:
                raise RecipeError(f"{study.file}: systems.{run.system}", str(error)) from error
        self.evaluations = [
            (name, run)
            for run in all_runs
            for name, section in study.evaluations.items()
            if section.systems is None or run.system in section.systems
        ]
        self.reports = read_reports(self.results)
        for name, run in self.evaluations:
            report = self.reports.get((name, run.name))
            if report is not None and (report.data.get("study") or {}).get("digest") != self.digest(name, run):
                raise ValueError(
                    f"{self.results}: the report {name}/{run.name} was made from another recipe or by other commands "
                    f"than {study.file} has now; give the system another name, or another folder with --results"
                )

    def pending(self, only: Sequence[str] = ()) -> list[tuple[str, Run]]:
        """Evaluations without a report whose run, or its system, matches one of the patterns; all of `only` without.

        ValueError: a pattern that matches none.
        """
        for pattern in only:
            if not any(matches(run, pattern) for run in self.runs.values()):
                raise ValueError(
                    f"--only {pattern}: no such system or run"
                    f"{closest_hint(pattern, [*self.study.systems, *self.runs])}; the systems are "
                    f"{', '.join(self.study.systems)}, a run is called {next(iter(self.runs))}"
                )
        patterns = only or self.study.only or ["*"]
        return [
            (name, run)
            for name, run in self.evaluations
            if any(matches(run, pattern) for pattern in patterns) and (name, run.name) not in self.reports
        ]

    def recipe_of(self, run: Run) -> dict[str, Any]:
        """The recipe of a run but for its folder, as the study gives it."""
        return self.study.recipe_of(run.system) | {"seed": run.seed}

    def recipe_text(self, run: Run) -> str:
        """The recipe file of a run."""
        values = self.recipe_of(run) | {"output_dir": str(self.model(run))}
        if origin := self.origin(run):
            values["init_from"] = str(self.model(origin))
        if isinstance(data := values.get("data", {}), Mapping):  # else the recipe is refused
            values["data"] = {"cache": str(self.output / "cache")} | data  # shared by all runs
        return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)

    def write_recipes(self) -> None:
        """Write the recipes, and what models are made from. ValueError: one was made from another recipe."""
        for run in self.runs.values():
            file, made_from = self.recipe(run).with_suffix(".json"), json.dumps(self._made_from(run), sort_keys=True)
            has_begun = any((self.model(run) / name).exists() for name in (RECIPE, FACTS))
            if has_begun and file.exists() and file.read_text(encoding="utf-8") != made_from:
                raise ValueError(
                    f"{file} has another recipe than {run.name} in {self.study.file}; give the system another name, or "
                    f"delete {self.model(run)}"
                )
            file.parent.mkdir(parents=True, exist_ok=True)
            write_text(made_from, file)
            write_text(self.recipe_text(run), self.recipe(run))

    def digest(self, evaluation: str, run: Run) -> str:
        """What tells an evaluation from others: recipes of the run and of what it begins with, and all commands."""
        commands = [self.study.prepare, self.study.evaluations[evaluation].commands_of(run.system)]
        return digest_of([self._made_from(run)["recipes"], commands, run.seed])

    def origin(self, run: Run) -> Run | None:
        """The run that another one begins with."""
        line = self.study.lineage(run.system)
        return Run(line[1], run.seed) if len(line) > 1 else None

    def recipe(self, run: Run) -> Path:
        return self.output / "recipes" / f"{run.name}.yaml"

    def model(self, run: Run) -> Path:
        return self.output / "models" / run.name

    def report(self, evaluation: str, run: Run) -> Path:
        """What the last command of an evaluation writes; other commands write another file."""
        return self.output / "reports" / evaluation / f"{run.name}-{self.digest(evaluation, run)}.json"

    def seconds(self, evaluation: str, run: Run) -> Path:
        """Snakemake's measurements of an evaluation."""
        return self.output / "seconds" / evaluation / f"{run.name}-{self.digest(evaluation, run)}.tsv"

    def needs(self, run: Run) -> list[Path]:
        """The files without which a run cannot begin: of `prepare`, named by their commands, and of its origin."""
        prepared = [f"{name}-{digest_of(command)}" for name, command in self.study.prepare.items()]
        origin = self.origin(run)
        return [self.output / "prepared" / name for name in prepared] + ([self.model(origin) / FACTS] if origin else [])

    def prepare_command(self, name: str) -> str:
        return self._shell(self.study.prepare[name], {"output_dir": self.output})

    def train_command(self, run: Run) -> str:
        """A line for the shell; a run that was interrupted goes on, one that had not begun starts anew."""
        train = self._shell("docmt train {recipe}", {"recipe": self.recipe(run)})
        folder = shlex.quote(str(self.model(run)))
        return f"if test -e {folder}/{RECIPE}; then {train} --resume; else rm -rf {folder}; {train}; fi"

    def evaluation_commands(self, evaluation: str, run: Run) -> str:
        """The commands of an evaluation, in a line for the shell."""
        work = self.output / "work" / evaluation / run.name
        places = {
            "output_dir": self.output,
            "model": self.model(run),
            "work": work,
            "report": self.report(evaluation, run),
            "system": run.system,
            "seed": run.seed,
        }
        commands = self.study.evaluations[evaluation].commands_of(run.system)
        folder = shlex.quote(str(work))
        new_folder = f"rm -rf {folder} && mkdir -p {folder}"
        return " && ".join([new_folder, *(self._shell(command, places) for command in commands)])

    def _shell(self, command: str, places: Mapping[str, Any]) -> str:
        """A command for the shell, places in braces filled in after it was split at blanks."""
        words = [re.sub(r"\{(\w+)\}", lambda place: str(places[place[1]]), word) for word in shlex.split(command)]
        return f"{self.docmt} {shlex.join(words[1:])}"

    def _made_from(self, run: Run) -> dict[str, Any]:
        recipes = [self.recipe_of(Run(system, run.seed)) for system in self.study.lineage(run.system)]
        return {"recipes": recipes, "prepare": self.study.prepare}


def matches(run: Run, pattern: str) -> bool:
    """Whether a pattern is about a run."""
    return fnmatch(run.name, pattern) or fnmatch(run.system, pattern)


def digest_of(values: Any) -> str:
    """A short name of values that JSON can hold."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]
