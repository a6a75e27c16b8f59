"""A study from its file to its tables: what is missing is trained, evaluated and rendered."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hf_docmt.analysis.pictures.figures import check_matplotlib
from hf_docmt.evaluation.metrics import metric_classes
from hf_docmt.files import write_text
from hf_docmt.studies.figures import draw_study_figure
from hf_docmt.studies.jobs import Job, StudyPlan
from hf_docmt.studies.processes import RunCommand, last_lines, run_jobs
from hf_docmt.studies.run_reports import best_report, keep_report
from hf_docmt.studies.run_tables import RunTable
from hf_docmt.studies.study import load_study
from hf_docmt.training.run_folder import folder_lock

SUFFIXES = {"text": "txt", "markdown": "md", "latex": "tex"}


@dataclass
class StudyOutcome:
    """What a call of `run_study` did: jobs that ran and failed, files of tables and figures.

    `missing` are the reports that the study file asks for and that are not there yet.
    """

    finished: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    rendered: list[Path] = field(default_factory=list)
    missing: int = 0


def run_study(
    file: str | Path,
    run_command: RunCommand,
    *,
    only: Sequence[str] = (),
    budget: str | None = None,
    results: str | Path | None = None,
    processes: int = 1,
    on_progress: Callable[[str], None] = print,
) -> StudyOutcome:
    """Train, translate and score what is missing of a study, then make its tables and figures from the reports.

    `only`: patterns of systems or runs; what they need is made, too. `run_command(arguments)` runs a command of the
    package. See `StudyPlan` for the files, `run_jobs` for `processes` and interruptions. A job that fails leaves out
    what needs it, the others go on. ValueError: a study that cannot be used, another process that works on it, figures
    without matplotlib.
    """
    plan = StudyPlan(load_study(file, budget), results)
    if plan.study.figures:
        check_matplotlib()
    plan.output.mkdir(parents=True, exist_ok=True)
    outcome = StudyOutcome()
    with folder_lock(plan.output):
        jobs = plan.pending(only)
        on_progress(": ".join(filter(None, [plan.study.title, f"{len(jobs)} jobs to do"])))

        def finished(job: Job, seconds: float) -> None:
            try:
                if job.evaluation:
                    keep_report(plan, job, seconds)
            except ValueError as error:  # the other jobs go on
                outcome.failed.append(job.name)
                on_progress(f"failed: {error}")
                return
            outcome.finished.append(job.name)
            on_progress(f"{len(outcome.finished)}/{len(jobs)}  {job.name}  {seconds:.0f} s")

        def failed(job: Job) -> None:
            outcome.failed.append(job.name)
            on_progress(f"failed: {job.name}, see {plan.log_file(job)}\n{last_lines(plan.log_file(job))}")

        run_jobs(plan, jobs, run_command, processes, finished, failed)
        outcome.rendered = render(plan)
    runs = plan.chosen_runs()
    outcome.missing = sum(1 for job in plan.missing() if job.run in runs)
    return outcome


def render(plan: StudyPlan) -> list[Path]:
    """Make tables and figures from the reports that are there; returns their files.

    ValueError: see `is_done`; and, when all others are made, tables and figures that reports do not fit.
    """
    reports: dict[str, dict[str, list]] = {name: {} for name in plan.study.evaluations}
    for job in plan.jobs.values():
        if job.evaluation and plan.is_done(job):
            reports[job.evaluation].setdefault(job.run.system, []).append(best_report(plan, job))
    if not any(reports.values()):
        return []
    metric_classes()  # they know how scores follow from the statistics in reports, which tests need
    files, problems = [], []
    for name, section in plan.study.tables.items():
        try:
            table = RunTable(section, reports, section.systems or list(plan.study.systems))
        except ValueError as error:
            problems.append(f"tables.{name}: {error}")
            continue
        for style, suffix in SUFFIXES.items() if table.systems else ():
            files.append(plan.results / "tables" / f"{name}.{suffix}")
            files[-1].parent.mkdir(parents=True, exist_ok=True)
            write_text(table.to_text(style) + "\n", files[-1])
    for name, figure in plan.study.figures.items():
        chosen = figure.systems or list(plan.study.systems)
        runs = {system: reports[figure.evaluation][system] for system in chosen if system in reports[figure.evaluation]}
        try:
            if runs:
                files.append(draw_study_figure(figure, runs, plan.results / "figures" / f"{name}.png"))
        except ValueError as error:
            problems.append(f"figures.{name}: {error}")
    if problems:
        raise ValueError("; ".join(problems))
    return files
