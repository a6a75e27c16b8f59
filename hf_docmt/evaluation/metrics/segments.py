"""What the metric modules share: documents become sacrebleu segments, and the signature says how."""

from collections.abc import Sequence
from functools import partial
from itertools import accumulate

import datasets
import evaluate
import numpy as np
import sacrebleu.metrics
from sacrebleu.metrics.base import Metric

from hf_docmt.reports.statistics import register_score_function

_INPUTS = """
Args:
    predictions: translated documents, each a list of sentences.
    references: their references, the same number of sentences in every document.
Returns:
    score in percent, signature, n (number of segments), statistics (of each document, the sufficient statistics of its
    segments), and details of the metric.
"""


def metric_info(description: str, citation: str) -> evaluate.MetricInfo:
    """Description of a metric whose inputs are documents as lists of sentences."""
    documents = datasets.List(datasets.Value("string"))
    return evaluate.MetricInfo(
        description=description,
        citation=citation,
        inputs_description=_INPUTS,
        features=datasets.Features({"predictions": documents, "references": documents}),
    )


def bleu(lowercase: bool, tokenize: str | None, target_lang: str | None) -> sacrebleu.metrics.BLEU:
    """sacrebleu's BLEU; the tokenizer is the one named, else that of the language, else 13a."""
    allowed = sorted(sacrebleu.metrics.BLEU.TOKENIZERS)
    if tokenize is not None and tokenize not in allowed:
        raise ValueError(f"unknown BLEU tokenizer {tokenize!r}: expected one of {', '.join(allowed)}")
    try:
        return sacrebleu.metrics.BLEU(lowercase=lowercase, tokenize=tokenize, trg_lang=target_lang or "")
    except (RuntimeError, ImportError) as error:
        raise ValueError(
            f"BLEU's tokenizer for {tokenize or target_lang!r} is not installed: {' '.join(str(error).split())}. "
            "Install it, or name another one, such as 'char'"
        ) from error


def score_sentences(metric: Metric, predictions: list[list[str]], references: list[list[str]]) -> tuple:
    """(score object, fields every module returns) with one segment per sentence."""
    return _score(metric, predictions, references, "sentence")


def score_documents(metric: Metric, predictions: list[list[str]], references: list[list[str]]) -> tuple:
    """(score object, fields every module returns) with one segment per document, sentences joined by a space."""
    check_aligned(predictions, references)
    hypotheses = [[" ".join(document)] for document in predictions]
    return _score(metric, hypotheses, [[" ".join(document)] for document in references], "document|joiner:space")


def check_aligned(
    predictions: Sequence[Sequence[str]], references: Sequence[Sequence[str]], doc_ids: Sequence[str] | None = None
) -> None:
    """ValueError unless both sides have the same documents and every document as many sentences on both sides."""
    if len(predictions) != len(references):
        raise ValueError(
            f"{len(predictions)} translated documents for {len(references)} references: "
            "score the same documents in the same order"
        )
    if not any(len(document) for document in references):
        raise ValueError("nothing to score: the references have no sentence")
    for number, (prediction, reference) in enumerate(zip(predictions, references)):
        name = f"document {number + 1}" if doc_ids is None else f"document {doc_ids[number]!r}"
        if isinstance(prediction, str) or isinstance(reference, str):
            raise ValueError(f"{name}: got a string, expected a list of sentences")
        if len(prediction) != len(reference):
            raise ValueError(
                f"{name}: {len(prediction)} translated sentences for {len(reference)} reference sentences; "
                "every source sentence needs exactly one translation, empty ones included"
            )


def _score(metric: Metric, predictions: list[list[str]], references: list[list[str]], segments: str) -> tuple:
    """The corpus score of the segments of all documents, from the sums of their statistics."""
    check_aligned(predictions, references)
    flat = [[segment for document in side for segment in document] for side in (predictions, references)]
    rows = segment_statistics(metric, *flat)
    found = metric._aggregate_and_compute(rows)  # what corpus_score does with them
    ends = list(accumulate(len(document) for document in predictions))
    fields = {
        "score": float(found.score),
        "signature": f"segments:{segments}|{metric.get_signature()}",
        "n": len(rows),
        "statistics": [rows[end - len(document) : end] for end, document in zip(ends, predictions)],
    }
    return found, fields


def segment_statistics(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> list[list[float]]:
    """sacrebleu's statistics of every segment.

    BLEU: [hypothesis length, reference length, 4 numbers of matching n-grams, 4 of n-grams]; chrF: [hypothesis n-grams,
    reference n-grams, matching] for each of 6 orders; TER: [edits, reference words]. sacrebleu has no public way to
    them: they come from the method that its own `PairedTest` uses.
    """
    return metric._extract_corpus_statistics(hypotheses, [references])


def _scores(kind: type[Metric], sums: np.ndarray) -> np.ndarray:
    """Scores from sums of statistics.

    The options that change scores from given statistics are sacrebleu's defaults everywhere in this package.
    """
    metric = kind()
    return np.array([float(metric._compute_score_from_stats(row).score) for row in sums.tolist()])


for _name, _kind in {
    "s-BLEU": sacrebleu.metrics.BLEU,
    "d-BLEU": sacrebleu.metrics.BLEU,
    "chrF": sacrebleu.metrics.CHRF,
    "TER": sacrebleu.metrics.TER,
}.items():
    register_score_function(_name, partial(_scores, _kind))
