"""sacrebleu's metrics on documents: their segments, the statistics of each, and scores from sums of these."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import sacrebleu.metrics
from sacrebleu.metrics.base import Metric

from hf_docmt.data.language_codes import primary_language
from hf_docmt.evaluation.metrics.translated_documents import Documents, check_aligned
from hf_docmt.messages import closest_hint

References = Sequence[Sequence[Sequence[str]]]  # [document][sentence][reference]


def bleu(
    lowercase: bool, tokenize: str | None, target_lang: str | None, effective_order: bool = False
) -> sacrebleu.metrics.BLEU:
    """sacrebleu's BLEU; the tokenizer is the one named, else that of the language, else 13a.

    `effective_order` is for single sentences. ValueError: an unknown tokenizer, or one whose dictionary or model is
    not installed.
    """
    allowed = sorted(sacrebleu.metrics.BLEU.TOKENIZERS)
    if tokenize is not None and tokenize not in allowed:
        hint = closest_hint(tokenize, allowed)
        raise ValueError(f"unknown BLEU tokenizer {tokenize!r}: expected one of {', '.join(allowed)}{hint}")
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


def score_sentences(metric: Metric, predictions: list[list[str]], references: References) -> tuple:
    """(score object, fields every module returns) with one segment per sentence."""
    return _score(metric, predictions, reference_sides(references), "sentence")


def score_documents(metric: Metric, predictions: list[list[str]], references: References) -> tuple:
    """(score object, fields every module returns) with one segment per document, sentences joined by a space."""
    sides = reference_sides(references)
    for side in sides:
        check_aligned(predictions, side)
    joined = [[[" ".join(document)] for document in side] for side in (predictions, *sides)]
    return _score(metric, joined[0], joined[1:], "document|joiner:space")


def reference_sides(references: References) -> list[Documents]:
    """A list of documents for each of the references that every sentence has, (references, documents, sentences).

    ValueError: sentences with different numbers of references.
    """
    counts = {len(sentence) for document in references for sentence in document}
    if not counts:
        return [references]
    if len(counts) > 1:
        found = " and ".join(map(str, sorted(counts)))
        raise ValueError(f"sentences with {found} references; give every sentence as many, empty ones included")
    (count,) = counts
    return [[[sentence[number] for sentence in document] for document in references] for number in range(count)]


def _score(metric: Metric, predictions: list[list[str]], references: Sequence[Documents], segments: str) -> tuple:
    """The corpus score of the segments of all documents, from the sums of their statistics."""
    for side in references:
        check_aligned(predictions, side)
    flat = [[segment for document in side for segment in document] for side in (predictions, *references)]
    rows = segment_statistics(metric, flat[0], *flat[1:])
    found = metric._aggregate_and_compute(rows)  # what corpus_score does with them
    ends = list(accumulate(len(document) for document in predictions))
    fields = {
        "score": float(found.score),
        "signature": f"segments:{segments}|{metric.get_signature()}",
        "n": len(rows),
        "statistics": [rows[end - len(document) : end] for end, document in zip(ends, predictions)],
    }
    return found, fields


def segment_statistics(metric: Metric, hypotheses: Sequence[str], *references: Sequence[str]) -> list[list[float]]:
    """sacrebleu's statistics of every segment, against one reference or several.

    BLEU: [hypothesis length, reference length, 4 numbers of matching n-grams, 4 of n-grams]; chrF: [hypothesis n-grams,
    reference n-grams, matching] for each order, 6 of characters, and 2 of words in chrF++; TER: [edits, mean of
    reference words]. sacrebleu has no public way to them: they come from the method that its own `PairedTest` uses.
    """
    return metric._extract_corpus_statistics(hypotheses, references)


def scores_from_sums(metric: Metric, sums: np.ndarray) -> np.ndarray:
    """Scores from sums of statistics, (samples, columns) -> (samples,).

    Of the options that change scores from given statistics only the word order of chrF is not sacrebleu's default.
    """
    return np.array([float(metric._compute_score_from_stats(row).score) for row in sums.tolist()])
