"""TER: translation edit rate (lower is better, case-insensitive) with sentences as segments, through sacrebleu."""

import evaluate
from sacrebleu.metrics import TER

from hf_docmt.evaluation.metrics.evaluate_modules import metric_info
from hf_docmt.evaluation.metrics.segments import score_sentences

_CITATION = "Snover et al. (2006), A Study of Translation Edit Rate with Targeted Human Annotation, AMTA."


class TranslationEditRate(evaluate.Metric):
    """TER: edits (insertion, deletion, substitution, shift) per reference word, in percent; lower is better."""

    def _info(self) -> evaluate.MetricInfo:
        return metric_info(__doc__, _CITATION)

    def _compute(self, predictions, references) -> dict:
        return score_sentences(TER(), predictions, references)[1]
