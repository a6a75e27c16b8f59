"""Figures of a study: scores along a breakdown, a line for each system, over its runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hf_docmt.analysis.pictures.comparison import draw_accuracy_by_distance, draw_scores
from hf_docmt.reports.comparison import compare_reports
from hf_docmt.reports.report import Report
from hf_docmt.studies.run_tables import condition_of

SEED = r"-seed\d+$"  # what differs in the names of runs of one system


def draw_study_figure(section, runs: Mapping[str, Sequence[Report]], path: Path) -> Path:
    """Draw a figure of the reports of each system's runs. ValueError: nothing is broken down by its axis."""
    path.parent.mkdir(parents=True, exist_ok=True)
    chosen = [with_context(report, section.context) for reports in runs.values() for report in reports]
    several = max(len(reports) for reports in runs.values()) > 1
    names = [report.name if several else system for system, reports in runs.items() for report in reports]
    found = compare_reports(chosen, names=names, breakdown="all", runs=SEED if several else None)
    if "distance" in section.axis:
        return draw_accuracy_by_distance(found, path, axis=section.axis, datasets=section.datasets)
    return draw_scores(found, path, axis=section.axis, datasets=section.datasets, metric=section.metric)


def with_context(report: Report, context: str) -> Report:
    """A report with the results under one condition of context alone."""
    return replace(report, results=[result for result in report.results if condition_of(result) == context])
