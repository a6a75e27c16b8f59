"""Corpus scores of translated documents through sacrebleu, as `evaluate.Metric` modules of this package."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import evaluate

from hf_docmt.evaluation.metrics.segments import check_aligned
from hf_docmt.evaluation.report import make_result

METRICS = ("s-BLEU", "d-BLEU", "chrF", "TER")


def load_metric(name: str) -> evaluate.Metric:
    """The metric module of that name, loaded from the package's own path; nothing is fetched.

    `compute(predictions=…, references=…)` takes documents, each a list of sentences, and returns `score` (percent),
    `signature`, `n` (segments scored) and what the metric knows besides. ValueError: unknown name.
    """
    if name not in METRICS:
        close = get_close_matches(name.lower(), [metric.lower() for metric in METRICS], n=1)
        hint = [f"; did you mean {metric!r}?" for metric in METRICS if metric.lower() in close]
        raise ValueError(f"unknown metric {name!r}: expected one of {', '.join(METRICS)}{''.join(hint)}")
    script = Path(__file__).with_name(name.lower().replace("-", "_") + ".py")
    return evaluate.load(str(script), keep_in_memory=True)


def score_translations(
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    dataset: str,
    split: str,
    metrics: Sequence[str] = METRICS,
    target_lang: str | None = None,
    lowercase: bool = False,
    tokenize: str | None = None,
    strategy: str | None = None,
    beams: int | None = None,
    doc_ids: Sequence[str] | None = None,
    details: dict | None = None,
) -> list[dict]:
    """One report result per metric for translated documents, each a list of sentences.

    `target_lang` and `tokenize` choose BLEU's tokenizer (None: sacrebleu's for the language, else 13a); `lowercase`
    is for BLEU and chrF, TER is always sacrebleu's case-insensitive one. `details` are added to every result.
    ValueError: another number of documents, or of sentences in a document, on the two sides.
    """
    check_aligned(hypotheses, references, doc_ids)
    options = {"lowercase": lowercase, "tokenize": tokenize, "target_lang": target_lang}
    accepted = {"s-BLEU": options, "d-BLEU": options, "chrF": {"lowercase": lowercase}, "TER": {}}
    results = []
    for name in metrics:
        metric = load_metric(name)
        found = metric.compute(predictions=hypotheses, references=references, **accepted[name])
        results.append(
            make_result(
                task="translation",
                dataset=dataset,
                split=split,
                metric=name,
                value=found.pop("score"),
                signature=found.pop("signature"),
                n=found.pop("n"),
                strategy=strategy,
                beams=beams,
                details={**(details or {}), **found},
            )
        )
    return results
