"""Conditional cross-mutual information: what context adds to the log-probability of reference translations."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset

from hf_docmt.data.documents import sentences
from hf_docmt.evaluation.context_ablation import condition_label, with_context
from hf_docmt.evaluation.contrastive_accuracy import by_group
from hf_docmt.evaluation.item_records import ItemRecords
from hf_docmt.evaluation.suites import SuiteItem, check_language, items_digest
from hf_docmt.messages import __version__, check_known
from hf_docmt.reports.report import Report
from hf_docmt.reports.resampling import bootstrap_interval
from hf_docmt.reports.result import Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import Statistics, score_function
from hf_docmt.systems import System
from hf_docmt.systems.model_system import word_spans

NORMALIZATIONS = ("sum", "mean")


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
) -> Report:
    """The report of what context adds to the log-probability of references: CXMI, with the words that gain most.

    One result for each of `conditions`, see `pointwise_cxmi`; `details` is a `ItemRecords` of every sentence.
    ValueError: documents of other languages than the system's.

    >>> languages = {"source_lang": "en", "target_lang": "de"}
    >>> report = cxmi_report(load_system("runs/concat"), documents, dataset="test", **languages)
    >>> report.results[0].metric
    'CXMI'
    """
    check_known(normalization, NORMALIZATIONS, "normalization", "expected one of")
    languages, reach = {"source_lang": source_lang, "target_lang": target_lang}, system.context
    items = document_items(documents, **languages, past_context=reach.past, future_context=reach.future)
    check_language(items, *system.languages)
    digest = items_digest(items)
    for condition in conditions:  # tried before the first one is scored
        with_context(items, condition)
    results, file = [], ItemRecords(details)
    for condition in conditions:
        records = pointwise_cxmi(system, items, condition, file)
        about = {"normalization": normalization, "context": condition_label(condition), "data": digest}
        result = cxmi_result(system, items, records, dataset=dataset, **about)
        results.append(result.with_details({"gains": [list(row) for row in word_gains(records)[:20]]}))
    file.finish()
    return Report(model=system.describe(), data={"documents": len(documents), **languages}, results=results)


def token_gains(record: Mapping[str, Any]) -> list[float]:
    """P-CXMI of every token, in nats (Fernandes et al. 2023): log q(y_t | x, C) - log q(y_t | x)."""
    return [full - alone for full, alone in zip(record["with_context"], record["without_context"])]


def words_with_gains(tokens: Sequence[str], gains: Sequence[float]) -> list[tuple[str, float]]:
    """(word, P-CXMI) of the words of a sentence, of its runs of punctuation and of its end token, which is the last.

    The gain of a word is the sum over its tokens; a token counts for the word in which it begins, one that adds no
    text for the word before it.
    """
    *tokens, end = (token.replace("\ufffd", "") for token in tokens)
    text = "".join(tokens)
    words = word_spans(text)
    sums, position, number = [0.0] * len(words), 0, 0
    for token, gain in zip(tokens, gains):
        begin = position + len(token) - len(token.lstrip())
        while token.strip() and number + 1 < len(words) and words[number + 1][0] <= begin:
            number += 1
        position += len(token)
        if words:
            sums[number] += gain
    return [*((text[start:stop], gain) for (start, stop), gain in zip(words, sums)), (end, gains[-1])]


def document_items(
    documents: Dataset, *, source_lang: str, target_lang: str, past_context: int, future_context: int = 0
) -> list[SuiteItem]:
    """Every sentence as an item whose one candidate is its reference, with the context that it has in its document.

    Sentences that are blank on either side are not items, but stay as context.
    """
    items = []
    for row in documents:
        source, target = (tuple(sentences(row, lang)) for lang in (source_lang, target_lang))
        for i, (current, reference) in enumerate(zip(source, target, strict=True)):
            if not current.strip() or not reference.strip():
                continue
            start, stop = max(0, i - past_context), i + 1 + future_context
            item = SuiteItem(
                item_id=f"{row['doc_id']}:{i + 1}",
                source=source[start : i + 1],
                target_context=target[start:i],
                candidates=(reference,),
                correct=0,
                phenomenon="reference",
                distance=None,
                index=i,
                source_after=source[i + 1 : stop],
                target_after=target[i + 1 : stop],
                group=row["doc_id"],
                languages=(source_lang, target_lang),
            )
            items.append(item)
    return items


def pointwise_cxmi(
    system: System,
    items: Sequence[SuiteItem],
    condition: str = "true",
    details: ItemRecords | None = None,
) -> list[dict]:
    """The right candidate of every item, forced with its context (gold target context) and with none.

    `condition` is the kind of context, see `with_context`; the released code of Fernandes et al. (2021) has the `true`
    one and a random one, whose source and target sentences it draws independently, from any document, and the same
    number at the start of a document as elsewhere. Intended for one model that was trained with and without context.
    The record of a sentence has its `tokens`, the end token last, their log-probabilities `with_context` and
    `without_context`, and its `words` (see `words_with_gains`). ValueError names an item without finite scores.
    """
    items = [replace(item, candidates=(item.candidates[item.correct],), correct=0) for item in items]
    items, label, reach = with_context(items, condition), condition_label(condition), system.context
    facts = {"past": reach.past, "future": reach.future, "context": label, "without": "empty"}
    return (details or ItemRecords()).records(items, lambda part: _records(system, part), system, **facts)


def word_gains(records: Sequence[Mapping[str, Any]], least: int = 5) -> list[tuple[str, float, int]]:
    """(word, mean P-CXMI, how often) of words seen at least so often, those that profit most first."""
    by_word: dict[str, list[float]] = defaultdict(list)
    for record in records:
        for word, gain in record["words"]:
            by_word[word].append(gain)
    means = [(word, math.fsum(some) / len(some), len(some)) for word, some in by_word.items() if len(some) >= least]
    return sorted(means, key=lambda row: (-row[1], row[0]))


def cxmi_result(
    system: System,
    items: Sequence[SuiteItem],
    records: Sequence[Mapping[str, Any]],
    *,
    dataset: str,
    normalization: str = "sum",
    context: str = "true",
    data: str | None = None,
    samples: int = 1000,
    seed: int = 1,
) -> Result:
    """CXMI of a system as a report result: the mean of its sentences' P-CXMI, in nats, with a bootstrap interval.

    Fernandes et al. (2021): a sentence counts by the `sum` over its tokens, N is the number of sentences;
    their released code takes each sentence's `mean` over tokens instead. `context` names the one that was given where
    it is not the `true` one, `data` is the digest of the items. Documents are resampled.
    """
    if not records:
        raise ValueError("CXMI of 0 sentences: expected at least one")
    gains = [math.fsum(own) / (1 if normalization == "sum" else len(own)) for own in map(token_gains, records)]
    documents = by_group(items, gains)
    statistics = Statistics(list(documents), [[math.fsum(some), len(some)] for some in documents.values()])
    rows, reach = np.array(statistics.rows), system.context
    interval = bootstrap_interval(rows, score_function("CXMI", 2, scale=1.0), samples, seed)
    signature = {
        "unit": "nats",
        "sentence": normalization,
        "tokens": "current",
        "target-context": reach.target,
        **({} if context == "true" else {"context": context}),
        "without": "empty",
        **reach.entries(),
        "version": __version__,
        **({"data": data} if data else {}),
    }
    return Result(
        task="context use",
        dataset=dataset,
        split="all",
        metric="CXMI",
        value=float(rows[:, 0].sum() / rows[:, 1].sum()),
        signature=Signature.of(signature),
        n=len(gains),
        details={"statistics": statistics.to_dict()} | ({"interval": list(interval)} if interval else {}),
    )


def _records(system: System, items: Sequence[SuiteItem]) -> list[dict]:
    """The records of sentences in details files: log-probabilities with and without context by token and word."""
    with_it = system.token_log_probabilities(items)
    without, texts = system.token_log_probabilities(with_context(items, "empty")), system.token_texts(items)
    records = []
    for item, (full,), (alone,), (tokens,) in zip(items, with_it, without, texts, strict=True):
        if len(full) != len(alone) or not all(map(math.isfinite, [*full, *alone])):
            raise ValueError(
                f"{item.where}: log-probabilities {full} with context and {alone} without; expected equally many, all "
                "finite: check the model's weights and separator"
            )
        record = {
            "target_context": list(item.target_context),
            "reference": item.candidates[0],
            "tokens": list(tokens),
            "with_context": list(full),
            "without_context": list(alone),
        }
        records.append(record | {"words": [list(pair) for pair in words_with_gains(tokens, token_gains(record))]})
    return records
