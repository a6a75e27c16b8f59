"""chrF2: character n-gram F-score with sentences as segments, through sacrebleu."""

import evaluate
from sacrebleu.metrics import CHRF

from hf_docmt.evaluation.metrics.evaluate_modules import metric_info
from hf_docmt.evaluation.metrics.segments import score_sentences

_CITATION = "Maja Popović (2015), chrF: character n-gram F-score for automatic MT evaluation, WMT."


class CharacterF(evaluate.Metric):
    """chrF2: character n-gram F-score with sentences as segments."""

    def _info(self) -> evaluate.MetricInfo:
        return metric_info(__doc__, _CITATION)

    def _compute(self, predictions, references, lowercase=False) -> dict:
        return score_sentences(CHRF(lowercase=lowercase), predictions, references)[1]
