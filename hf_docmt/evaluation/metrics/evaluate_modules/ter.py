"""TER: translation edit rate (lower is better) with sentences as segments, through sacrebleu."""

import evaluate
from sacrebleu.metrics import TER

from hf_docmt.evaluation.metrics import evaluate_modules
from hf_docmt.evaluation.metrics.segments import score_sentences

_CITATION = "Snover et al. (2006), A Study of Translation Edit Rate with Targeted Human Annotation, AMTA."


class TranslationEditRate(evaluate_modules.DocumentMetric):
    """TER: edits (insertion, deletion, substitution, shift) per reference word, in percent; lower is better."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate_modules.metric_info(__doc__, _CITATION)

    def _compute(self, predictions, references, **options) -> dict:
        """`options` are those of sacrebleu's TER: normalized, no_punct, asian_support, case_sensitive."""
        return score_sentences(TER(**options), predictions, references)[1]
