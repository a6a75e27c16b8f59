"""Scores of single sentences, as `sacrebleu --sentence-level` gives them, as JSON lines."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from hf_docmt.evaluation.metrics.corpus_scores import CorpusScore
from hf_docmt.evaluation.metrics.metric import Metric
from hf_docmt.evaluation.metrics.translated_documents import TranslatedDocuments
from hf_docmt.files import write_lines


def write_sentence_scores(path: str | Path, documents: TranslatedDocuments, metrics: Sequence[Metric]) -> None:
    """Write `sentence_scores` as JSON lines. ValueError: none of the metrics scores sentences."""
    rows = sentence_scores(documents, metrics)
    write_lines((json.dumps(row, ensure_ascii=False) for row in rows), path)


def sentence_scores(documents: TranslatedDocuments, metrics: Sequence[Metric]) -> Iterator[dict]:
    """One row for every sentence: `doc_id`, `sentence` (from 1), `translation`, `references`, `scores`, `signatures`.

    `scores` and `signatures` are {metric: ...} of the scores of sacrebleu that have sentences as segments. BLEU is
    sacrebleu's for sentences, with n-grams only up to the longest that match (`eff:yes`); the mean of such scores is
    not the corpus score. ValueError: none of the metrics scores sentences.
    """
    peers = {metric.name: metric.sentence_metric(documents) for metric in sentence_metrics(metrics)}
    sides = (documents.hypotheses, documents.sentence_references)
    for doc_id, *document in zip(documents.ids, *sides):
        for number, (hypothesis, targets) in enumerate(zip(*document), 1):
            scores = {name: peer.sentence_score(hypothesis, targets).score for name, peer in peers.items()}
            yield {
                "doc_id": doc_id,
                "sentence": number,
                "translation": hypothesis,
                "references": targets,
                "scores": scores,
                "signatures": {name: str(peer.get_signature()) for name, peer in peers.items()},
            }


def sentence_metrics(metrics: Sequence[Metric]) -> list[CorpusScore]:
    """Those of the metrics that score single sentences. ValueError: none."""
    found = [metric for metric in metrics if isinstance(metric, CorpusScore) and metric.segment == "sentence"]
    if not found:
        raise ValueError("no metric scores single sentences; add some of bleu, chrf, chrf++, ter to the metrics")
    return found
