"""Metrics of translated documents, a class and a file each; see `metric.Metric`."""

from hf_docmt.evaluation.metrics.corpus_scores import CorpusScore as CorpusScore
from hf_docmt.evaluation.metrics.metric import (
    Measurement as Measurement,
    Metric as Metric,
    ScoreSettings as ScoreSettings,
    TranslatedDocuments as TranslatedDocuments,
    default_metrics as default_metrics,
    metric_choices as metric_choices,
    metric_class as metric_class,
    metric_classes as metric_classes,
)
