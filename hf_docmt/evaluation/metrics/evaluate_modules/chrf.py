"""chrF2 and chrF2++: character n-gram F-score with sentences as segments, through sacrebleu."""

import evaluate
from sacrebleu.metrics import CHRF

from hf_docmt.evaluation.metrics import evaluate_modules
from hf_docmt.evaluation.metrics.segments import score_sentences

_CITATION = "Maja Popović (2015), chrF: character n-gram F-score for automatic MT evaluation, WMT."


class CharacterF(evaluate_modules.DocumentMetric):
    """chrF2 and chrF2++: character n-gram F-score with sentences as segments."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate_modules.metric_info(__doc__, _CITATION)

    def _compute(self, predictions, references, lowercase=False, word_order=0) -> dict:
        return score_sentences(CHRF(lowercase=lowercase, word_order=word_order), predictions, references)[1]
