"""Metrics of translated documents, a class and a file each; see `metric.Metric`."""

from hf_docmt.evaluation.metrics.corpus_scores import CorpusScore
from hf_docmt.evaluation.metrics.metric import (
    Measurement,
    Metric,
    ScoreSettings,
    TranslatedDocuments,
    default_metrics,
    metric_choices,
    metric_class,
    metric_classes,
)

__all__ = [
    "CorpusScore",
    "Measurement",
    "Metric",
    "ScoreSettings",
    "TranslatedDocuments",
    "default_metrics",
    "metric_choices",
    "metric_class",
    "metric_classes",
]
