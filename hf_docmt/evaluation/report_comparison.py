"""Comparison of reports with the scores of every metric known."""

from collections.abc import Sequence
from pathlib import Path

from hf_docmt.evaluation.metrics import metric_classes
from hf_docmt.reports.comparison import Comparison, compare_reports
from hf_docmt.reports.report import Report


def compare(reports: Sequence[str | Path | Report], **options) -> Comparison:
    """The results of several reports side by side; `options` are those of `reports.comparison.compare_reports`.

    The metrics of the package are imported first: they know how their scores follow from the statistics in reports,
    which tests against a `baseline` need. ValueError: see `compare_reports`.

    >>> report = evaluate(translate_corpus(model, tokenizer, documents), documents, name="concat")
    >>> compare([report, replace(report, model={"name": "same"})]).systems
    ('concat', 'same')
    """
    metric_classes()
    return compare_reports(reports, **options)
