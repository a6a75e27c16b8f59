"""Corpus scores as `evaluate.Metric` modules, each loaded from its own file; see `corpus_scores.load_metric`."""

from collections.abc import Sequence

import datasets
import evaluate

_INPUTS = """
Args:
    predictions: translated documents, each a list of sentences.
    references: their references, the same number of sentences in every document; for every sentence one, or a list of
        several, the same number for each.
Returns:
    score in percent, signature, n (number of segments), statistics (of each document, the sufficient statistics of its
    segments), and details of the metric.
"""


class DocumentMetric(evaluate.Metric):
    """A metric whose inputs are documents as lists of sentences."""

    def add_batch(self, *, predictions=None, references=None, **options):
        """As in `evaluate.Metric`, with one reference for every sentence or several."""
        super().add_batch(predictions=predictions, references=[_listed(document) for document in references], **options)

    def add(self, *, prediction=None, reference=None, **options):
        """As `add_batch`, for one document."""
        super().add(prediction=prediction, reference=_listed(reference), **options)


def metric_info(description: str, citation: str) -> evaluate.MetricInfo:
    """Description of a metric whose inputs are documents as lists of sentences, these with lists of references."""
    documents = datasets.List(datasets.Value("string"))
    return evaluate.MetricInfo(
        description=description,
        citation=citation,
        inputs_description=_INPUTS,
        features=datasets.Features({"predictions": documents, "references": datasets.List(documents)}),
    )


def _listed(document: Sequence[str | Sequence[str]]) -> Sequence[str | Sequence[str]]:
    """The references of every sentence as a list; what is no list of sentences stays, for the check of the inputs."""
    if isinstance(document, str):
        return document
    return [[sentence] if isinstance(sentence, str) else sentence for sentence in document]
