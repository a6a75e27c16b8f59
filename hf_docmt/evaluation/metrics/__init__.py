"""Corpus scores of translated documents through sacrebleu, as `evaluate.Metric` modules of this package."""

from collections.abc import Sequence
from pathlib import Path

import evaluate

from hf_docmt.evaluation.breakdowns import Domains, break_down, check_axes, document_labels, sentence_labels
from hf_docmt.evaluation.metrics.segments import check_aligned
from hf_docmt.messages import closest_hint
from hf_docmt.reports.resampling import document_details
from hf_docmt.reports.result import Part, Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import column_sums

METRICS = ("s-BLEU", "d-BLEU", "chrF", "TER")


def load_metric(name: str) -> evaluate.Metric:
    """The metric module of that name, loaded from the package's own path; nothing is fetched.

    `compute(predictions=…, references=…)` takes documents, each a list of sentences, and returns `score` (percent),
    `signature`, `n` (segments scored), `statistics` (of each document, the sufficient statistics of each segment) and
    what the metric knows besides. ValueError: unknown name.
    """
    if name not in METRICS:
        raise ValueError(f"unknown metric {name!r}: expected one of {', '.join(METRICS)}{closest_hint(name, METRICS)}")
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
    by: Sequence[str] = (),
    domains: Domains | None = None,
    alignment: Signature | None = None,
    samples: int = 1000,
    seed: int = 1,
) -> list[Result]:
    """One report result per metric for translated documents, each a list of sentences.

    `target_lang` and `tokenize` choose BLEU's tokenizer (None: sacrebleu's for the language, else 13a); `lowercase`
    is for BLEU and chrF, TER is always sacrebleu's case-insensitive one. `details` are added to every result, with
    `statistics` of each document, from which significance tests are made, and the 95 % `interval` from `samples` draws
    of documents (none for 0 samples, or one document). `by` asks for a breakdown by `index`, `length` or `domain` (see
    `breakdowns`); d-BLEU has none by index. `alignment` is the signature of an alignment that made the hypotheses.
    ValueError: another number of documents, or of sentences in a document, on the two sides; an unknown axis.
    """
    check_aligned(hypotheses, references, doc_ids)
    check_axes(by, domains)
    ids = list(doc_ids) if doc_ids is not None else [str(number) for number in range(1, len(references) + 1)]
    lengths = [len(document) for document in references]
    options = {"lowercase": lowercase, "tokenize": tokenize, "target_lang": target_lang}
    accepted = {"s-BLEU": options, "d-BLEU": options, "chrF": {"lowercase": lowercase}, "TER": {}}
    results = []
    for name in metrics:
        found = load_metric(name).compute(predictions=hypotheses, references=references, **accepted[name])
        value, signature, n, rows = (found.pop(key) for key in ("score", "signature", "n", "statistics"))
        sums = [column_sums(document, len(next(filter(None, rows))[0])) for document in rows]
        labels = (document_labels if name == "d-BLEU" else sentence_labels)(ids, lengths, by, domains)
        results.append(
            Result(
                task="translation",
                dataset=dataset,
                split=split,
                metric=name,
                value=value,
                signature=(alignment or Signature()) + Signature.parse(signature),
                n=n,
                strategy=strategy,
                beams=beams,
                breakdown=_parts(name, rows, labels, ids, samples, seed),
                details={**(details or {}), **found, **document_details(name, ids, sums, samples, seed)},
            )
        )
    return results


def _parts(name: str, rows: list, labels: list[list[str]], ids: list[str], samples: int, seed: int) -> dict[str, Part]:
    groups = [doc_id for doc_id, document in zip(ids, rows) for _ in document]
    return break_down(name, [row for document in rows for row in document], labels, groups, samples, seed)
