"""Conditional cross-mutual information: what context adds to the log-probability of reference translations."""

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from datasets import Dataset

from hf_docmt import __version__
from hf_docmt.evaluation.conditions import condition_label, with_context
from hf_docmt.evaluation.details import DetailsFile
from hf_docmt.evaluation.document_items import document_items
from hf_docmt.evaluation.pointwise_cxmi import PointwiseCXMI, pointwise_cxmi, word_gains
from hf_docmt.evaluation.suites import check_language
from hf_docmt.evaluation.suites.items import context_name
from hf_docmt.evaluation.systems import System
from hf_docmt.evaluation.systems.log_probabilities import NORMALIZATIONS
from hf_docmt.reports.report import Report
from hf_docmt.reports.resampling import bootstrap_interval
from hf_docmt.reports.result import Part, Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import Statistics, score_function


def cxmi_result(
    system: System,
    found: Sequence[PointwiseCXMI],
    *,
    dataset: str,
    split: str = "all",
    normalization: str = "sum",
    context: str = "true",
    samples: int = 1000,
    seed: int = 1,
) -> Result:
    """CXMI of a system as a report result: the mean of its sentences' P-CXMI, in nats, with a bootstrap interval.

    Fernandes et al. (2021): a sentence counts by the `sum` over its tokens, N is the number of sentences;
    their released code takes each sentence's `mean` over tokens instead. `context` names the one that was given where
    it is not the `true` one. Documents are resampled.
    """
    _check_normalization(normalization)
    if not found:
        raise ValueError("CXMI of 0 sentences: expected at least one")
    parts: dict[str, list[PointwiseCXMI]] = defaultdict(list)
    for one in found:
        for name, value in one.labels.items():
            parts[f"{name}={value}"].append(one)
    whole = _part(found, normalization, samples, seed)
    reach = system.context
    signature = {
        "unit": "nats",
        "sentence": normalization,
        "tokens": "current",
        "target-context": reach.target,
        **({} if context == "true" else {"context": context}),
        "without": "empty",
        "past": context_name(reach.past),
        "future": reach.future,
        "version": __version__,
    }
    return Result(
        task="context use",
        dataset=dataset,
        split=split,
        metric="CXMI",
        value=whole.value,
        signature=Signature.of(signature),
        n=whole.n,
        breakdown={
            label: _part(some, normalization, samples, seed)
            for label, some in sorted(parts.items())
            if len(some) < len(found)
        },
        details={"statistics": Statistics(*_rows(found, normalization)).to_dict(), **whole.details},
    )


def cxmi_report(
    system: System,
    documents: Dataset,
    *,
    source_lang: str,
    target_lang: str,
    dataset: str,
    normalization: str = "sum",
    conditions: Sequence[str] = ("true",),
    details: str | Path | None = None,
    seed: int = 0,
) -> Report:
    """The report of what context adds to the log-probability of references: CXMI, with the words that gain most.

    One result for each of `conditions`, see `pointwise_cxmi`; `details` is a `DetailsFile` of every sentence.
    ValueError: documents of other languages than the system's.

    >>> languages = {"source_lang": "en", "target_lang": "de"}
    >>> report = cxmi_report(load_system("runs/concat"), documents, dataset="test", **languages)
    >>> report.results[0].metric
    'CXMI'
    """
    _check_normalization(normalization)
    items = document_items(
        documents,
        source_lang=source_lang,
        target_lang=target_lang,
        past_context=system.context.past,
        future_context=system.context.future,
    )
    check_language(items, *system.languages)
    for condition in conditions:  # tried before the first one is scored
        with_context(items, condition, seed)
    results, file = [], DetailsFile(details)
    for condition in conditions:
        found = pointwise_cxmi(system, items, condition, seed, file)
        label = condition_label(condition, seed)
        result = cxmi_result(system, found, dataset=dataset, normalization=normalization, context=label)
        results.append(result.with_details({"gains": [list(row) for row in word_gains(found)[:20]]}))
    file.finish()
    data = {"documents": len(documents), "source_lang": source_lang, "target_lang": target_lang}
    return Report(model=system.describe(), data=data, results=results)


def _check_normalization(normalization: str) -> None:
    known = [name for name in NORMALIZATIONS if not name.startswith("window")]  # a sentence has no other tokens
    if normalization not in known:
        raise ValueError(f"unknown normalization {normalization!r}: expected {' or '.join(known)}")


def _rows(found: Sequence[PointwiseCXMI], normalization: str) -> tuple[list[str], list[list[float]]]:
    """Documents, and [sum of P-CXMI, sentences] of each; an item without a document stands alone."""
    documents: dict[str, list[float]] = defaultdict(list)
    for one in found:
        documents[one.item_id if one.group is None else one.group].append(one.gain(normalization))
    return list(documents), [[math.fsum(gains), len(gains)] for gains in documents.values()]


def _part(found: Sequence[PointwiseCXMI], normalization: str, samples: int, seed: int) -> Part:
    rows = np.array(_rows(found, normalization)[1])
    interval = bootstrap_interval(rows, score_function("CXMI", 2, scale=1.0), samples, seed)
    value = float(rows[:, 0].sum() / rows[:, 1].sum())
    return Part(value, len(found), {} if interval is None else {"interval": list(interval)})
