"""The report of an evaluation as it goes into the results: with facts of the training, long statistics packed."""

import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from hf_docmt.files import write_text
from hf_docmt.info import describe
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Result
from hf_docmt.studies.jobs import Job, StudyPlan
from hf_docmt.studies.run_tables import condition_of
from hf_docmt.training.run_folder import FACTS

LONGEST_STATISTICS = 5000  # characters of JSON that a kept result may have


def keep_report(plan: StudyPlan, job: Job, seconds: float) -> None:
    """Write what an evaluation found into the results. ValueError: its last command has written no report."""
    if not plan.full_report(job).exists():
        raise ValueError(f"{job.name}: its last command has written no {plan.full_report(job)}")
    report, run, folder = Report.read(plan.full_report(job)), job.run, plan.model_folder(job.run)
    facts = describe(folder)
    model = {"name": run.name, "architecture": facts["architecture"], "parameters": facts["parameters"]["total"]}
    study = {
        "name": plan.study.file.stem,
        "system": run.system,
        "seed": run.seed,
        "evaluation": job.evaluation,
        "commands": plan.study.evaluations[job.evaluation].commands_of(run.system),
        "seconds": round(seconds, 1),
        "context_reach": facts["context_reach"],
        "recipe": plan.recipe_values(run),
        "digest": plan.digest(run, job.evaluation),
    }
    whole = replace(
        report,
        model={**report.model, **model},
        data={**report.data, "study": study},
        training=json.loads((folder / FACTS).read_text(encoding="utf-8")),
    )
    plan.report_file(job).parent.mkdir(parents=True, exist_ok=True)
    if any(has_long_statistics(result) for result in report.results):
        write_text(report_text(whole), plan.packed_report(job))
    else:
        plan.packed_report(job).unlink(missing_ok=True)  # of other results
    shown = {column.part for table in plan.study.tables.values() for column in table.columns.values()}
    kept = replace(whole, results=[summary(result, shown) for result in report.results])
    write_text(report_text(kept), plan.report_file(job))


def report_text(report: Report) -> str:
    """The JSON of a report, a line for each result: small, and readable in a difference of versions."""
    found = report.to_dict()
    results = found.pop("results")
    head = json.dumps(found, ensure_ascii=False, allow_nan=False, indent=1).removesuffix("\n}")
    lines = ",\n".join(json.dumps(result, ensure_ascii=False, allow_nan=False) for result in results)
    return f'{head},\n "results": [\n{lines}\n]}}\n'


def best_report(plan: StudyPlan, job: Job) -> Report:
    """The report of an evaluation that is done, with all statistics where a whole one of the same results is there."""
    kept = Report.read(plan.report_file(job))
    for file in filter(Path.exists, (plan.full_report(job), plan.packed_report(job))):
        full = Report.read(file).results
        if [score_alone(result) for result in full] == [score_alone(result) for result in kept.results]:
            return replace(kept, results=full)
    return kept


def summary(result: Result, shown: Collection[str] = ()) -> Result:
    """A result without parts of two axes but those that a table shows; intervals with five digits.

    Statistics stay with the true context, which significance tests are about, where they are short.
    """
    parts = {label: part for label, part in result.breakdown.items() if label.count("=") < 2 or label in shown}
    rounded = {label: replace(part, details=with_rounded_interval(part.details)) for label, part in parts.items()}
    details = with_rounded_interval(result.details)
    if condition_of(result) != "true" or has_long_statistics(result):
        details = {key: value for key, value in details.items() if key != "statistics"}
    return replace(result, details=details, breakdown=rounded)


def has_long_statistics(result: Result) -> bool:
    """Whether statistics that significance tests need are too long for a report that is to be small."""
    return condition_of(result) == "true" and len(json.dumps(result.details.get("statistics"))) > LONGEST_STATISTICS


def score_alone(result: Result) -> Result:
    """A result without parts and details."""
    return replace(result, details={}, breakdown={})


def with_rounded_interval(details: dict[str, Any]) -> dict[str, Any]:
    """Details with the ends of their interval in five significant digits, which is enough for percent and nats."""
    if not details.get("interval"):
        return details
    return {**details, "interval": [float(f"{end:.5g}") for end in details["interval"]]}
