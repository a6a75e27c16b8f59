"""Scores of documents in memory by the metrics of sacrebleu, as `docmt evaluate` has them."""

from hf_docmt.evaluation.metrics import ScoreSettings, TranslatedDocuments, default_metrics, metric_class


def corpus_results(hypotheses, references, metrics=None, *, settings=None, lowercase=False, tokenize=None, **documents):
    """A result of each metric; `documents` are fields of `TranslatedDocuments`, `settings` those of `ScoreSettings`."""
    translated = TranslatedDocuments(hypotheses, references, **documents)
    lower = {"lowercase": True} if lowercase else {}
    results = []
    for name in metrics or default_metrics():
        options = {} if name == "TER" else lower | ({"tokenize": tokenize} if "BLEU" in name and tokenize else {})
        results += metric_class(name)(**options).score(translated, ScoreSettings(**(settings or {})))
    return results
