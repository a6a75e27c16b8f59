"""s-BLEU, d-BLEU, chrF, chrF++ and TER through sacrebleu, over modules of `evaluate` that are loaded from files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import sacrebleu.metrics

from hf_docmt.evaluation.metrics.metric import Measurement, Metric
from hf_docmt.evaluation.metrics.segments import bleu, scores_from_sums
from hf_docmt.evaluation.metrics.translated_documents import TranslatedDocuments
from hf_docmt.messages import closest_hint
from hf_docmt.reports.signature import Signature

if TYPE_CHECKING:
    import evaluate

MODULES = {"s-BLEU": "s_bleu", "d-BLEU": "d_bleu", "chrF": "chrf", "TER": "ter"}


def load_metric(name: str) -> evaluate.Metric:
    """The `evaluate` module of that name, loaded from the package's own path; nothing is fetched.

    `compute(predictions=..., references=...)` takes documents, each a list of sentences (in references each may be a
    list of several references), and returns `score` (percent),
    `signature`, `n` (segments scored), `statistics` (of each document, the sufficient statistics of each segment) and
    what the metric knows besides. ValueError: unknown name.
    """
    import evaluate

    if name not in MODULES:
        raise ValueError(f"unknown metric {name!r}: expected one of {', '.join(MODULES)}{closest_hint(name, MODULES)}")
    script = Path(__file__).parent / "evaluate_modules" / f"{MODULES[name]}.py"
    return evaluate.load(str(script), keep_in_memory=True)


class CorpusScore(Metric):
    """A score of sacrebleu, by the module of its name, with one reference or several."""

    default = True
    several_references = True
    module: ClassVar[str] = ""  # that of MODULES; the name by default

    def module_options(self, documents: TranslatedDocuments) -> dict[str, Any]:
        """The options of `compute` of the module."""
        return {}

    def measure(self, documents: TranslatedDocuments) -> Measurement:
        sides = {"predictions": documents.hypotheses, "references": documents.sentence_references}
        found = load_metric(self.module or self.name).compute(**sides, **self.module_options(documents))
        value, signature, n, statistics = (found.pop(key) for key in ("score", "signature", "n", "statistics"))
        return Measurement(statistics, Signature.parse(signature), n, value, found)

    def sentence_metric(self, documents: TranslatedDocuments) -> sacrebleu.metrics.base.Metric:
        """sacrebleu's metric as its command line has it with `--sentence-level`."""
        raise NotImplementedError


class SentenceBleu(CorpusScore):
    """BLEU with sentences as segments (Papineni et al. 2002; Post 2018).

    `tokenize` is a tokenizer of sacrebleu; None: the one for the target language, else 13a.
    """

    name = "s-BLEU"
    choice = "bleu"
    evaluation_options = {"tokenize": "tokenize", "lowercase": "lowercase"}

    def __init__(self, lowercase: bool = False, tokenize: str | None = None):
        self.lowercase, self.tokenize = lowercase, tokenize

    def module_options(self, documents):
        return {"lowercase": self.lowercase, "tokenize": self.tokenize, "target_lang": documents.target_lang}

    def sentence_metric(self, documents):
        return bleu(**self.module_options(documents), effective_order=True)

    @staticmethod
    def score_from_sums(sums):
        return scores_from_sums(sacrebleu.metrics.BLEU(), sums)


class DocumentBleu(SentenceBleu):
    """BLEU with documents as segments, their sentences joined by a space; it has no breakdown by index."""

    name = "d-BLEU"
    choice = "d-bleu"
    segment = "document"


class CharacterF(CorpusScore):
    """chrF2 with sentences as segments (Popović 2015)."""

    name = "chrF"
    choice = "chrf"
    evaluation_options = {"chrf_lowercase": "lowercase"}
    word_order: ClassVar[int] = 0

    def __init__(self, lowercase: bool = False):
        self.lowercase = lowercase

    def module_options(self, documents):
        return {"lowercase": self.lowercase, "word_order": self.word_order}

    def sentence_metric(self, documents):
        return sacrebleu.metrics.CHRF(**self.module_options(documents))

    @classmethod
    def score_from_sums(cls, sums):
        return scores_from_sums(sacrebleu.metrics.CHRF(word_order=cls.word_order), sums)


class CharacterWordF(CharacterF):
    """chrF2++: chrF2 with n-grams of one and two words besides those of characters (Popović 2017)."""

    name = "chrF++"
    choice = "chrf++"
    default = False
    module = "chrF"
    word_order = 2


class TranslationEditRate(CorpusScore):
    """TER with sentences as segments (Snover et al. 2006), with sacrebleu's options; case counts only if asked for."""

    name = "TER"
    choice = "ter"
    evaluation_options = {f"ter_{name}": name for name in ("normalized", "no_punct", "asian_support", "case_sensitive")}

    def __init__(
        self,
        normalized: bool = False,
        no_punct: bool = False,
        asian_support: bool = False,
        case_sensitive: bool = False,
    ):
        self.options = {"normalized": normalized, "no_punct": no_punct, "asian_support": asian_support}
        self.options["case_sensitive"] = case_sensitive

    def module_options(self, documents):
        return self.options

    def sentence_metric(self, documents):
        return sacrebleu.metrics.TER(**self.options)

    @staticmethod
    def score_from_sums(sums):
        return scores_from_sums(sacrebleu.metrics.TER(), sums)
