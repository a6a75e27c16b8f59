"""A metric of translated documents as an `evaluate.Metric`, for loops and trainers that take those."""

import datasets
import evaluate

from hf_docmt.evaluation.metrics.metric import ScoreSettings, TranslatedDocuments, metric_class


class DocumentMetric(evaluate.Metric):
    """A metric of this package by its name, such as `d-BLEU`; inputs are documents as lists of sentences.

    `compute` returns the score, its signature, `n` (number of segments) and the details of the metric; `target_lang`
    chooses BLEU's tokenizer. ValueError: an unknown name.

    >>> documents = [["Er schläft.", "Sie auch."]]
    >>> round(DocumentMetric("chrF").compute(predictions=documents, references=documents)["score"])
    100
    """

    def __init__(self, name: str, **options):
        self.metric = metric_class(name)(**options)
        super().__init__(config_name=name)

    def _info(self) -> evaluate.MetricInfo:
        documents = datasets.List(datasets.Value("string"))
        return evaluate.MetricInfo(
            description=type(self.metric).__doc__,
            citation="",
            inputs_description="predictions and references: documents, each a list of the same number of sentences.",
            features=datasets.Features({"predictions": documents, "references": documents}),
        )

    def _compute(self, predictions, references, target_lang: str | None = None) -> dict:
        documents = TranslatedDocuments(predictions, references, target_lang=target_lang)
        (result,) = self.metric.score(documents, ScoreSettings(samples=0))
        details = {name: value for name, value in result.details.items() if name != "statistics"}
        return {"score": result.value, "signature": str(result.signature), "n": result.n, **details}
