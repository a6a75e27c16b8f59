"""Corpus scores as `evaluate.Metric` modules, each loaded from its own file; see `corpus_scores.load_metric`."""

import datasets
import evaluate

_INPUTS = """
Args:
    predictions: translated documents, each a list of sentences.
    references: their references, the same number of sentences in every document.
Returns:
    score in percent, signature, n (number of segments), statistics (of each document, the sufficient statistics of its
    segments), and details of the metric.
"""


def metric_info(description: str, citation: str) -> evaluate.MetricInfo:
    """Description of a metric whose inputs are documents as lists of sentences."""
    documents = datasets.List(datasets.Value("string"))
    return evaluate.MetricInfo(
        description=description,
        citation=citation,
        inputs_description=_INPUTS,
        features=datasets.Features({"predictions": documents, "references": documents}),
    )
