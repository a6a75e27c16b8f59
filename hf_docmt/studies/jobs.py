"""What a study has to do: its runs, and their jobs with what each needs, what it writes and whether it is done."""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from hf_docmt.files import write_text
from hf_docmt.messages import closest_hint
from hf_docmt.reports.report import Report
from hf_docmt.studies.study import Study, command_arguments
from hf_docmt.training.recipe import parse_recipe
from hf_docmt.training.recipe_schema import RecipeError
from hf_docmt.training.run_folder import FACTS, RECIPE

CACHE = "cache"  # of documents and tokens, shared by all runs


@dataclass(frozen=True)
class Run:
    """One system with one seed."""

    system: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.system}-seed{self.seed}"


@dataclass(frozen=True)
class Job:
    """Commands (arguments of `docmt`) that run one after the other. `evaluation` is empty for other jobs."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    needs: tuple[str, ...] = ()
    run: Run | None = None
    evaluation: str = ""


class StudyPlan:
    """The runs, jobs and files of a study.

    In `output_dir`: `recipes`, `models`, `reports` with all statistics, `work` (translations and the like), `logs`,
    `prepared` (what of `prepare` is done). In `results`: tables, figures, and a report of each evaluation of each run,
    without long statistics of documents; these are in the whole report, which is packed beside. An evaluation is done
    when `results` has its report, a run when its model is there. `results` is by default the folder beside the study
    file that has its name, and that of the budget.
    """

    def __init__(self, study: Study, results: str | Path | None = None):
        self.study = study
        self.output = Path(study.output_dir)
        name = study.file.stem if study.budget is None else f"{study.file.stem}-{study.budget}"
        self.results = Path(results) if results is not None else study.file.with_name(name)
        if self.results.exists() and not self.results.is_dir():
            raise ValueError(f"{self.results} is a file; give another folder for the results with --results")
        self.runs = [Run(system, seed) for seed in study.seeds for system in study.systems]
        for run in self.runs[: len(study.systems)]:
            self._check_recipe(run)
        self.jobs = {job.name: job for job in self._all_jobs()}

    def chosen_runs(self, only: Sequence[str] = ()) -> list[Run]:
        """The runs whose name, or that of their system, matches one of the patterns; without patterns all of `only`.

        ValueError: a pattern that matches none.
        """
        for pattern in only:
            if not any(self._matches(run, pattern) for run in self.runs):
                known = [*self.study.systems, *(run.name for run in self.runs)]
                raise ValueError(
                    f"--only {pattern}: no such system or run{closest_hint(pattern, known)}; the systems are "
                    f"{', '.join(self.study.systems)}, a run is called {self.runs[0].name}"
                )
        patterns = only or self.study.only or ["*"]
        return [run for run in self.runs if any(self._matches(run, pattern) for pattern in patterns)]

    def pending(self, only: Sequence[str] = ()) -> list[Job]:
        """The jobs that the chosen runs still need, in order of seeds, systems and evaluations, each after its needs.

        ValueError: what is there was made from another recipe, or by other commands; so is a report of other runs,
        which would be in the tables, too.
        """
        runs, found = self.chosen_runs(only), {}
        for job in self.missing():
            if job.run in runs:
                self._add(job, found)
        return list(found.values())

    def missing(self) -> list[Job]:
        """The evaluations without a report. ValueError: see `is_done`."""
        return [job for job in self.jobs.values() if job.evaluation and not self.is_done(job)]

    def is_done(self, job: Job) -> bool:
        """Whether what the job makes is there. ValueError: it is, but made in another way."""
        if job.evaluation:
            return self._has_report(job)
        if job.run is None:
            return self._is_prepared(job)
        folder = self.model_folder(job.run)
        has_begun = (folder / RECIPE).exists() or (folder / FACTS).exists()
        for file, text in self._recipe_files(job.run).items():
            if has_begun and file.exists() and file.read_text(encoding="utf-8") != text:
                raise ValueError(
                    f"{file} has another recipe than {job.run.name} in {self.study.file}; give the system another "
                    f"name, or delete {folder}"
                )
        return (folder / FACTS).exists()

    def prepare(self, job: Job) -> tuple[tuple[str, ...], ...]:
        """Make the folders and files that the job's commands need; returns the commands to run now."""
        if job.evaluation:
            shutil.rmtree(self.work_folder(job), ignore_errors=True)  # of an interrupted job
            self.work_folder(job).mkdir(parents=True)
            self.full_report(job).parent.mkdir(parents=True, exist_ok=True)
            self.full_report(job).unlink(missing_ok=True)  # of other commands, or of other results
            return job.commands
        if job.run is None:
            return job.commands
        folder = self.model_folder(job.run)
        for file, text in self._recipe_files(job.run).items():
            file.parent.mkdir(parents=True, exist_ok=True)
            write_text(text, file)
        if (folder / RECIPE).exists():
            return ((*job.commands[0], "--resume"),)
        shutil.rmtree(folder, ignore_errors=True)  # a run that was interrupted before it began
        return job.commands

    def finish(self, job: Job) -> None:
        """Write down that a job which is neither a training nor an evaluation is done."""
        if job.run is None:
            marker = self._prepared_file(job)
            marker.parent.mkdir(parents=True, exist_ok=True)
            write_text(json.dumps(job.commands) + "\n", marker)

    def digest(self, run: Run, evaluation: str) -> str:
        """What tells an evaluation from others: recipes of the run and of what it begins with, and all commands."""
        made = [self.recipe_values(each) for each in self._line_of(run)]
        commands = [self.study.prepare, self.study.evaluations[evaluation].commands_of(run.system)]
        return hashlib.sha256(json.dumps([made, commands, run.seed], sort_keys=True).encode()).hexdigest()[:12]

    def recipe_values(self, run: Run) -> dict[str, Any]:
        """The recipe of a run but for its folder, as the study gives it."""
        return self.study.recipe_of(run.system) | {"seed": run.seed}

    def recipe_text(self, run: Run) -> str:
        """The recipe file of a run."""
        values = self.recipe_values(run) | {"output_dir": str(self.model_folder(run))}
        if origin := self.study.origin_of(run.system):
            values["init_from"] = str(self.model_folder(Run(origin, run.seed)))
        if isinstance(data := values.get("data", {}), Mapping):  # else the recipe is refused
            values["data"] = {"cache": str(self.output / CACHE)} | data
        return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)

    def recipe_file(self, run: Run) -> Path:
        return self.output / "recipes" / f"{run.name}.yaml"

    def model_folder(self, run: Run) -> Path:
        return self.output / "models" / run.name

    def work_folder(self, job: Job) -> Path:
        return self.output / "work" / job.name

    def full_report(self, job: Job) -> Path:
        """The report with statistics of documents, as the last command of an evaluation writes it."""
        return self.output / "reports" / f"{job.name}.json"

    def report_file(self, job: Job) -> Path:
        """The report in the results."""
        return self.results / f"{job.name}.json"

    def packed_report(self, job: Job) -> Path:
        """The report with all statistics, beside that of the results where this has none."""
        return self.results / f"{job.name}.json.gz"

    def log_file(self, job: Job) -> Path:
        return self.output / "logs" / f"{job.name}.log"

    def _all_jobs(self) -> list[Job]:
        fixed = {"output_dir": self.output}
        prepare = [
            Job(f"prepare/{name}", (command_arguments(command, fixed),)) for name, command in self.study.prepare.items()
        ]
        jobs, before = [], tuple(job.name for job in prepare)
        for run in self.runs:
            origin = self.study.origin_of(run.system)
            needs = (*before, *([f"train/{Run(origin, run.seed).name}"] if origin else []))
            jobs.append(Job(f"train/{run.name}", (("train", str(self.recipe_file(run))),), needs, run))
            jobs += [
                self._evaluation(name, run, before)
                for name, evaluation in self.study.evaluations.items()
                if evaluation.systems is None or run.system in evaluation.systems
            ]
        return [*prepare, *jobs]

    def _evaluation(self, evaluation: str, run: Run, before: tuple[str, ...]) -> Job:
        job = Job(f"{evaluation}/{run.name}", (), (*before, f"train/{run.name}"), run, evaluation)
        places = {
            "output_dir": self.output,
            "model": self.model_folder(run),
            "work": self.work_folder(job),
            "report": self.full_report(job),
            "system": run.system,
            "seed": run.seed,
        }
        commands = self.study.evaluations[evaluation].commands_of(run.system)
        return Job(job.name, tuple(command_arguments(one, places) for one in commands), job.needs, run, evaluation)

    def _add(self, job: Job, found: dict[str, Job]) -> None:
        for name in job.needs:
            if name not in found and not self.is_done(self.jobs[name]):
                self._add(self.jobs[name], found)
        found[job.name] = job

    def _check_recipe(self, run: Run) -> None:
        """RecipeError, before anything runs, where the recipe of a system cannot be used."""
        values = yaml.safe_load(self.recipe_text(run))
        try:
            parse_recipe(values)
        except RecipeError as error:
            raise RecipeError(f"{self.study.file}: systems.{run.system}", str(error)) from error

    def _has_report(self, job: Job) -> bool:
        file = self.report_file(job)
        if not file.exists():
            return False
        made = (Report.read(file).data.get("study") or {}).get("digest")
        if made != self.digest(job.run, job.evaluation):
            raise ValueError(
                f"{file} was made from another recipe or by other commands than {self.study.file} has now; delete it, "
                "give the system another name, or give another folder with --results"
            )
        return True

    def _recipe_files(self, run: Run) -> dict[Path, str]:
        """Files that say how a model was made, with what they say: its recipe, and those of what it begins with."""
        files = {self.recipe_file(run): self.recipe_text(run)}
        if origins := [self.recipe_values(origin) for origin in self._line_of(run)[1:]]:
            files[self.output / "recipes" / "origins" / f"{run.name}.json"] = json.dumps(origins, sort_keys=True) + "\n"
        return files

    def _is_prepared(self, job: Job) -> bool:
        marker = self._prepared_file(job)
        if not marker.exists():
            return False
        if json.loads(marker.read_text(encoding="utf-8")) != [list(command) for command in job.commands]:
            raise ValueError(
                f"{job.name} was made by another command than {self.study.file} has now; delete {self.output}, or "
                "give another output_dir"
            )
        return True

    def _prepared_file(self, job: Job) -> Path:
        return self.output / "prepared" / f"{job.name.partition('/')[2]}.json"

    def _line_of(self, run: Run) -> list[Run]:
        """The run, the one that it begins with, and so on."""
        line = [run]
        while origin := self.study.origin_of(line[-1].system):
            line.append(Run(origin, run.seed))
        return line

    @staticmethod
    def _matches(run: Run, pattern: str) -> bool:
        return fnmatch(run.name, pattern) or fnmatch(run.system, pattern)
