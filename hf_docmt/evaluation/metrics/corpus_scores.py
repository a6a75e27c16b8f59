"""s-BLEU, d-BLEU, chrF, chrF++ and TER as sacrebleu has them, of documents and of single sentences."""

import json
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

import sacrebleu.metrics

from hf_docmt.data.language_codes import primary_language
from hf_docmt.evaluation.metrics.metric import Documents, Measurement, Metric, TranslatedDocuments, check_sides
from hf_docmt.files import write_lines
from hf_docmt.messages import check_known
from hf_docmt.reports.signature import Signature

JOINERS = {"space": " ", "newline": "\n", "none": ""}  # between the sentences of a document that is a segment
OF_DOCUMENTS = {"joiner": "joiner"}


class CorpusScore(Metric):
    """A score of sacrebleu with one reference or several, from the statistics of its segments.

    `options` are sacrebleu's. If documents are segments, their sentences are joined by a space, or by `joiner`,
    and there is no breakdown by index.
    """

    default = True
    several_references = True
    _key: tuple = ()  # of the references that were scored last, and of their language
    _metric: sacrebleu.metrics.base.Metric

    def __init__(self, joiner: str = "space", **options: Any):
        check_known(joiner, JOINERS, "joiner", "expected one of")
        self.joiner, self.options = joiner, options

    def sacrebleu_metric(self, target_lang: str | None = None, single: bool = False) -> sacrebleu.metrics.base.Metric:
        """sacrebleu's metric of a corpus, or of a `single` sentence as its command has it with `--sentence-level`."""
        raise NotImplementedError

    def measure(self, documents: TranslatedDocuments) -> Measurement:
        """One segment for each sentence, or for each document, its sentences joined by a space."""
        for side in documents.other_references:
            check_sides(documents.references, side, documents.ids)
        metric, hypotheses = self._prepared(documents), self._segments(documents.hypotheses)
        rows = segment_statistics(metric, [segment for document in hypotheses for segment in document])
        score = metric._aggregate_and_compute(rows)  # what corpus_score does with them
        lengths = [len(document) for document in hypotheses]
        segments = f"document|joiner:{self.joiner}" if self.segment == "document" else "sentence"
        return Measurement(
            statistics=[rows[end - length : end] for end, length in zip(accumulate(lengths), lengths)],
            signature=Signature.parse(f"segments:{segments}|{metric.get_signature()}"),
            value=float(score.score),
            details=self.score_details(score),
        )

    def _segments(self, documents: Documents) -> Documents:
        if self.segment == "sentence":
            return documents
        return [[JOINERS[self.joiner].join(document)] for document in documents]

    def _prepared(self, documents: TranslatedDocuments) -> sacrebleu.metrics.base.Metric:
        """sacrebleu's metric with what it finds in the references, kept for the next system on the same ones."""
        key = (documents.target_lang, documents.references, *documents.other_references)
        if len(key) != len(self._key) or any(new is not old for new, old in zip(key, self._key)):
            sides = [[text for document in self._segments(side) for text in document] for side in key[1:]]
            self._key, self._metric = key, self.sacrebleu_metric(documents.target_lang)
            self._metric._ref_cache = self._metric._cache_references(sides)
        return self._metric

    def score_details(self, score: sacrebleu.metrics.base.Score) -> dict:
        """Details of a score from sacrebleu, without its value."""
        return {}

    @classmethod
    def score_from_sums(cls, sums):
        """Scores from sums of statistics, (samples, columns) -> (samples,).

        Options are sacrebleu's defaults, except for the word order of chrF.
        """
        import numpy as np

        metric = cls().sacrebleu_metric()
        return np.array([float(metric._compute_score_from_stats(row).score) for row in sums.tolist()])


class SentenceBleu(CorpusScore):
    """BLEU with sentences as segments (Papineni et al. 2002; Post 2018), see `bleu`."""

    name = "s-BLEU"
    choice = "bleu"
    evaluation_options = {"tokenize": "tokenize", "lowercase": "lowercase"}

    def sacrebleu_metric(self, target_lang=None, single=False):
        return bleu(**self.options, target_lang=target_lang, effective_order=single)

    def score_details(self, score):
        return {"brevity_penalty": score.bp, "length_ratio": score.ratio, "precisions": list(score.precisions)}


class DocumentBleu(SentenceBleu):
    """BLEU with documents as segments."""

    name = "d-BLEU"
    choice = "d-bleu"
    segment = "document"
    evaluation_options = SentenceBleu.evaluation_options | OF_DOCUMENTS


class CharacterF(CorpusScore):
    """chrF2 with sentences as segments (Popović 2015)."""

    name = "chrF"
    choice = "chrf"
    evaluation_options = {"chrf_lowercase": "lowercase"}
    word_order: ClassVar[int] = 0

    def sacrebleu_metric(self, target_lang=None, single=False):
        return sacrebleu.metrics.CHRF(**self.options, word_order=self.word_order)


class DocumentCharacterF(CharacterF):
    """chrF2 with documents as segments."""

    name = "d-chrF"
    choice = "d-chrf"
    default = False
    segment = "document"
    evaluation_options = CharacterF.evaluation_options | OF_DOCUMENTS


class CharacterWordF(CharacterF):
    """chrF2++: chrF2 with n-grams of one and two words in addition to characters (Popović 2017)."""

    name = "chrF++"
    choice = "chrf++"
    default = False
    word_order = 2


class TranslationEditRate(CorpusScore):
    """TER with sentences as segments (Snover et al. 2006), with sacrebleu's options; case counts only if asked for."""

    name = "TER"
    choice = "ter"
    evaluation_options = {f"ter_{name}": name for name in ("normalized", "no_punct", "asian_support", "case_sensitive")}

    def sacrebleu_metric(self, target_lang=None, single=False):
        return sacrebleu.metrics.TER(**self.options)


class DocumentEditRate(TranslationEditRate):
    """TER with documents as segments, which takes its time: its shifts are searched over whole documents."""

    name = "d-TER"
    choice = "d-ter"
    default = False
    segment = "document"
    evaluation_options = TranslationEditRate.evaluation_options | OF_DOCUMENTS


def bleu(
    lowercase: bool = False,
    tokenize: str | None = None,
    target_lang: str | None = None,
    effective_order: bool = False,
) -> sacrebleu.metrics.BLEU:
    """sacrebleu's BLEU; the tokenizer is the one named, otherwise that of the language, otherwise 13a.

    `effective_order` is for single sentences. ValueError: an unknown tokenizer, or one whose dictionary or model is
    not installed.
    """
    if tokenize is not None:
        check_known(tokenize, sorted(sacrebleu.metrics.BLEU.TOKENIZERS), "BLEU tokenizer", "expected one of")
    lang = primary_language(target_lang)
    options = {"lowercase": lowercase, "tokenize": tokenize, "trg_lang": lang, "effective_order": effective_order}
    try:
        return sacrebleu.metrics.BLEU(**options)
    except (RuntimeError, ImportError, AssertionError, OSError) as error:
        extra = {"ja-mecab": "ja", "ko-mecab": "ko"}.get(tokenize or "", lang)
        remedy = f"pip install 'sacrebleu[{extra}]'" if extra in ("ja", "ko") else "install what it needs"
        raise ValueError(
            f"BLEU's tokenizer for {tokenize or target_lang!r} cannot be used ({' '.join(str(error).split())}): "
            f"{remedy}, or name another tokenizer, such as 'char'"
        ) from error


def segment_statistics(
    metric: sacrebleu.metrics.base.Metric, hypotheses: Sequence[str], *references: Sequence[str]
) -> list[list[float]]:
    """sacrebleu's statistics of every segment, against one reference or several, or those that the metric has.

    BLEU: [hypothesis length, reference length, 4 numbers of matching n-grams, 4 of n-grams]; chrF: [hypothesis n-grams,
    reference n-grams, matching] for each order, 6 of characters, and 2 of words in chrF++; TER: [edits, mean of
    reference words]. sacrebleu has no public way to them: they come from the method that its own `PairedTest` uses.
    """
    return metric._extract_corpus_statistics(hypotheses, list(references) or None)


def sentence_metrics(metrics: Sequence[Metric]) -> list[CorpusScore]:
    """The metrics that can score single sentences. ValueError without any."""
    scored = [metric for metric in metrics if isinstance(metric, CorpusScore) and metric.segment == "sentence"]
    if not scored:
        raise ValueError("no metric scores single sentences; add some of bleu, chrf, chrf++, ter to the metrics")
    return scored


def write_sentence_scores(path: str | Path, documents: TranslatedDocuments, metrics: Sequence[Metric]) -> None:
    """JSON lines of every sentence: `doc_id`, `sentence` (from 1), `translation`, `references`, `scores`, `signatures`.

    `scores` and `signatures` are {metric: ...} of the scores of sacrebleu that have sentences as segments. BLEU is
    sacrebleu's for sentences, with n-grams only up to the longest that match (`eff:yes`); the mean of such scores is
    not the corpus score. ValueError: none of the metrics scores sentences.
    """
    lang, rows = documents.target_lang, []
    peers = {metric.name: metric.sacrebleu_metric(lang, single=True) for metric in sentence_metrics(metrics)}
    for doc_id, *sides in zip(documents.ids, documents.hypotheses, documents.references, *documents.other_references):
        for number, (hypothesis, *references) in enumerate(zip(*sides), 1):
            row = {"doc_id": doc_id, "sentence": number, "translation": hypothesis, "references": references}
            row["scores"] = {name: peer.sentence_score(hypothesis, references).score for name, peer in peers.items()}
            row["signatures"] = {name: str(peer.get_signature()) for name, peer in peers.items()}
            rows.append(json.dumps(row, ensure_ascii=False))
    write_lines(rows, path)
