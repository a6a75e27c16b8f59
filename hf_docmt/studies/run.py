"""A study from its file to its tables: Snakemake makes the reports that are missing, then tables and figures follow."""

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch

from hf_docmt.analysis.pictures import check_matplotlib
from hf_docmt.evaluation.metrics import metric_classes
from hf_docmt.files import write_text
from hf_docmt.info import describe
from hf_docmt.messages import install_command
from hf_docmt.reports.report import Report
from hf_docmt.studies.packed_reports import write_reports
from hf_docmt.studies.plan import SNAKEFILE, Run, StudyPlan
from hf_docmt.studies.tables import RunTable, draw_figure
from hf_docmt.training.run_folder import FACTS, folder_lock

SUFFIXES = {"text": "txt", "markdown": "md", "latex": "tex"}


def run_study(plan: StudyPlan, only: Sequence[str] = (), processes: int = 1, dry_run: bool = False) -> int:
    """Let Snakemake make the reports that are missing, with so many jobs at a time; returns its exit status.

    Each job has its share of the cores, and one of the GPUs where there are some. A job that fails leaves out what
    needs it, the others go on; called again, all goes on. ValueError: a study that another process works on, patterns
    that match no run, figures without matplotlib, no Snakemake.
    """
    if find_spec("snakemake") is None:
        raise ValueError(f"studies need Snakemake, which is not installed: {install_command('studies')}")
    if plan.study.figures:
        check_matplotlib()
    if not plan.pending(only) and not dry_run:
        return 0
    threads = max(1, torch.get_num_threads() // processes)  # as OMP_NUM_THREADS and taskset leave them
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(torch.cuda.device_count())))
    devices = visible.split(",") if torch.cuda.device_count() else []
    config = {
        "study": str(plan.study.file),
        "budget": plan.study.budget,
        "results": str(plan.results),
        "only": list(only),
        "threads": threads,
        "devices": devices,
        "docmt": plan.docmt,
    }
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE), "--cores", str(threads * processes)]
    command += ["--keep-going", "--nolock", "--rerun-incomplete", "--rerun-triggers", "mtime", "--show-failed-logs"]
    command += ["--printshellcmds", *(["--dry-run"] if dry_run else [])]
    limits = [f"device{number}={-(-processes // len(devices))}" for number in range(len(devices))]
    command += ["--resources", *limits] if limits else []
    command += ["--config", *(f"{key}={json.dumps(value)}" for key, value in config.items() if value)]
    plan.output.mkdir(parents=True, exist_ok=True)
    # A shell lets what runs in its background ignore SIGINT, and what that starts inherits it
    hear_sigint = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with folder_lock(plan.output), subprocess.Popen(command, preexec_fn=hear_sigint, process_group=0) as process:
        stop = lambda *_: os.killpg(process.pid, signal.SIGINT)  # noqa: E731  # Snakemake alone would wait for its jobs
        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            return process.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def collect_reports(plan: StudyPlan) -> None:
    """Take the reports that evaluations have written into the results, with how they came about."""
    made = [(name, run) for name, run in plan.evaluations if (name, run.name) not in plan.reports]
    made = [(name, run) for name, run in made if plan.report(name, run).exists()]
    for name, run in made:
        plan.reports[name, run.name] = study_report(plan, name, run)
    if made:
        write_reports(plan.reports, plan.results)


def study_report(plan: StudyPlan, evaluation: str, run: Run) -> Report:
    """The report of an evaluation with the facts of its run."""
    file, folder = plan.report(evaluation, run), plan.model(run)
    report, facts = Report.read(file), describe(folder)
    with open(plan.seconds(evaluation, run), encoding="utf-8") as times:
        (seconds,) = csv.DictReader(times, delimiter="\t")
    study = {
        "name": plan.study.file.stem,
        "system": run.system,
        "seed": run.seed,
        "evaluation": evaluation,
        "commands": plan.study.evaluations[evaluation].commands_of(run.system),
        "seconds": round(float(seconds["s"]), 1),
        "context_reach": facts["context_reach"],
        "recipe": plan.recipe_of(run),
        "digest": plan.digest(evaluation, run),
    }
    model = {"name": run.name, "architecture": facts["architecture"], "parameters": facts["parameters"]["total"]}
    return replace(
        report,
        model={**report.model, **model},
        data={**report.data, "study": study},
        training=json.loads((folder / FACTS).read_text(encoding="utf-8")),
    )


def render(plan: StudyPlan) -> list[Path]:
    """Make tables and figures from the reports that are there; returns their files.

    ValueError, when all others are made: tables and figures that reports do not fit.
    """
    metric_classes()  # they know how scores follow from the statistics in reports, which tests need
    reports: dict[str, dict[str, list[Report]]] = {name: {} for name in plan.study.evaluations}
    for name, run in plan.evaluations:
        if (name, run.name) in plan.reports:
            reports[name].setdefault(run.system, []).append(plan.reports[name, run.name])
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
    drawn = {name for figure in plan.study.figures.values() for name in figure.systems or plan.study.systems}
    order = [system for system in plan.study.systems if system in drawn]
    for name, figure in plan.study.figures.items():
        chosen, runs = figure.systems or plan.study.systems, reports[figure.evaluation]
        runs = {system: runs[system] for system in chosen if system in runs}
        try:
            path = plan.results / "figures" / f"{name}.png"
            files += [draw_figure(figure, runs, path, order)] if runs else []
        except ValueError as error:
            problems.append(f"figures.{name}: {error}")
    if problems:
        raise ValueError("; ".join(problems))
    return files
