"""s-BLEU, d-BLEU, chrF and TER through sacrebleu, each over a module of `evaluate` that is loaded from its file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import sacrebleu.metrics

from hf_docmt.evaluation.metrics.metric import Measurement, Metric
from hf_docmt.evaluation.metrics.segments import scores_from_sums
from hf_docmt.evaluation.metrics.translated_documents import TranslatedDocuments
from hf_docmt.messages import closest_hint
from hf_docmt.reports.signature import Signature

if TYPE_CHECKING:
    import evaluate

MODULES = {"s-BLEU": "s_bleu", "d-BLEU": "d_bleu", "chrF": "chrf", "TER": "ter"}


def load_metric(name: str) -> evaluate.Metric:
    """The `evaluate` module of that name, loaded from the package's own path; nothing is fetched.

    `compute(predictions=..., references=...)` takes documents, each a list of sentences, and returns `score` (percent),
    `signature`, `n` (segments scored), `statistics` (of each document, the sufficient statistics of each segment) and
    what the metric knows besides. ValueError: unknown name.
    """
    import evaluate

    if name not in MODULES:
        raise ValueError(f"unknown metric {name!r}: expected one of {', '.join(MODULES)}{closest_hint(name, MODULES)}")
    script = Path(__file__).parent / "evaluate_modules" / f"{MODULES[name]}.py"
    return evaluate.load(str(script), keep_in_memory=True)


class CorpusScore(Metric):
    """A score of sacrebleu, by the module of its name."""

    default = True

    def module_options(self, documents: TranslatedDocuments) -> dict[str, Any]:
        """The options of `compute` of the module."""
        return {}

    def measure(self, documents: TranslatedDocuments) -> Measurement:
        sides = {"predictions": documents.hypotheses, "references": documents.references}
        found = load_metric(self.name).compute(**sides, **self.module_options(documents))
        value, signature, n, statistics = (found.pop(key) for key in ("score", "signature", "n", "statistics"))
        return Measurement(statistics, Signature.parse(signature), n, value, found)


class SentenceBleu(CorpusScore):
    """BLEU with sentences as segments (Papineni et al. 2002; Post 2018).

    `tokenize` is a tokenizer of sacrebleu; None: the one for the target language, else 13a.
    """

    name = "s-BLEU"

    def __init__(self, lowercase: bool = False, tokenize: str | None = None):
        self.lowercase, self.tokenize = lowercase, tokenize

    def module_options(self, documents):
        return {"lowercase": self.lowercase, "tokenize": self.tokenize, "target_lang": documents.target_lang}

    @staticmethod
    def score_from_sums(sums):
        return scores_from_sums(sacrebleu.metrics.BLEU, sums)


class DocumentBleu(SentenceBleu):
    """BLEU with documents as segments, their sentences joined by a space; it has no breakdown by index."""

    name = "d-BLEU"
    segment = "document"


class CharacterF(CorpusScore):
    """chrF2 with sentences as segments (Popović 2015)."""

    name = "chrF"

    def __init__(self, lowercase: bool = False):
        self.lowercase = lowercase

    def module_options(self, documents):
        return {"lowercase": self.lowercase}

    @staticmethod
    def score_from_sums(sums):
        return scores_from_sums(sacrebleu.metrics.CHRF, sums)


class TranslationEditRate(CorpusScore):
    """TER with sentences as segments (Snover et al. 2006), always sacrebleu's case-insensitive one."""

    name = "TER"

    @staticmethod
    def score_from_sums(sums):
        return scores_from_sums(sacrebleu.metrics.TER, sums)
