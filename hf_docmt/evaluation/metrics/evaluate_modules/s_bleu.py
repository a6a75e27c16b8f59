"""s-BLEU: BLEU with sentences as segments, through sacrebleu."""

import evaluate

from hf_docmt.evaluation.metrics import evaluate_modules
from hf_docmt.evaluation.metrics.segments import bleu, score_sentences

_CITATION = "Matt Post (2018), A Call for Clarity in Reporting BLEU Scores, WMT."


class SentenceBleu(evaluate_modules.DocumentMetric):
    """s-BLEU: BLEU with sentences as segments, through sacrebleu."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate_modules.metric_info(__doc__, _CITATION)

    def _compute(self, predictions, references, lowercase=False, tokenize=None, target_lang=None) -> dict:
        found, fields = score_sentences(bleu(lowercase, tokenize, target_lang), predictions, references)
        return fields | {"brevity_penalty": found.bp, "length_ratio": found.ratio, "precisions": list(found.precisions)}
