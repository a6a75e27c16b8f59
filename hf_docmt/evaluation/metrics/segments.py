"""What the metric modules share: documents become sacrebleu segments, and the signature says how."""

from collections.abc import Sequence

import datasets
import evaluate
import sacrebleu.metrics
from sacrebleu.metrics.base import Metric

_INPUTS = """
Args:
    predictions: translated documents, each a list of sentences.
    references: their references, the same number of sentences in every document.
Returns:
    score in percent, signature, n (number of segments), and details of the metric.
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
    check_aligned(predictions, references)
    hypotheses = [sentence for document in predictions for sentence in document]
    return _score(metric, hypotheses, [sentence for document in references for sentence in document], "sentence")


def score_documents(metric: Metric, predictions: list[list[str]], references: list[list[str]]) -> tuple:
    """(score object, fields every module returns) with one segment per document, sentences joined by a space."""
    check_aligned(predictions, references)
    hypotheses = [" ".join(document) for document in predictions]
    return _score(metric, hypotheses, [" ".join(document) for document in references], "document|joiner:space")


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


def _score(metric: Metric, hypotheses: list[str], references: list[str], segments: str) -> tuple:
    found = metric.corpus_score(hypotheses, [references])
    signature = f"segments:{segments}|{metric.get_signature()}"
    return found, {"score": float(found.score), "signature": signature, "n": len(hypotheses)}
