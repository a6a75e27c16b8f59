"""Conditional cross-mutual information: what context adds to the log-probability of reference translations."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from datasets import Dataset

from hf_docmt import __version__
from hf_docmt.evaluation.conditions import with_context
from hf_docmt.evaluation.document_items import document_items
from hf_docmt.evaluation.suites import SuiteItem, check_language, labels_of
from hf_docmt.evaluation.suites.items import context_name
from hf_docmt.evaluation.systems import System
from hf_docmt.evaluation.systems.log_probabilities import NORMALIZATIONS, normalized
from hf_docmt.evaluation.systems.token_texts import word_spans
from hf_docmt.reports.report import Report
from hf_docmt.reports.resampling import bootstrap_interval
from hf_docmt.reports.result import Part, Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import Statistics, score_function


@dataclass(frozen=True)
class PointwiseCXMI:
    """What context adds to the log-probability of each token of a reference translation, in nats."""

    item_id: str
    tokens: tuple[str, ...]  # of the current sentence, its end token last
    with_context: tuple[float, ...]
    without_context: tuple[float, ...]
    group: str | None = None
    labels: dict = field(default_factory=dict)

    @property
    def gains(self) -> tuple[float, ...]:
        """P-CXMI of every token (Fernandes et al. 2023): log q(y_t | x, C) - log q(y_t | x)."""
        return tuple(given - alone for given, alone in zip(self.with_context, self.without_context))

    def gain(self, normalization: str = "sum") -> float:
        """P-CXMI of the sentence: the sum of its tokens' (or their `mean`)."""
        return normalized(self.gains, normalization)


def pointwise_cxmi(system: System, items: Sequence[SuiteItem]) -> list[PointwiseCXMI]:
    """The right candidate of every item, forced with its context (gold target context) and with none.

    Meant for one model that was trained with and without context (Fernandes et al. 2021); with others the
    difference also holds how foreign a missing context is to the model. ValueError names an item with scores that are
    not finite.
    """
    given = [replace(item, candidates=(item.candidates[item.correct],), correct=0) for item in items]
    found = []
    with_it, without, texts = (
        system.token_log_probabilities(given),
        system.token_log_probabilities(with_context(given, "empty")),
        system.token_texts(given),
    )
    for item, (full,), (alone,), (tokens,) in zip(given, with_it, without, texts):
        if len(full) != len(alone) or not all(map(math.isfinite, [*full, *alone])):
            raise ValueError(
                f"{item.where}: log-probabilities {full} with context and {alone} without; expected as many, all "
                "finite: check the model's weights and separator"
            )
        found.append(PointwiseCXMI(item.item_id, tuple(tokens), tuple(full), tuple(alone), item.group, labels_of(item)))
    return found


def cxmi_result(
    system: System,
    found: Sequence[PointwiseCXMI],
    *,
    dataset: str,
    split: str = "all",
    normalization: str = "sum",
    samples: int = 1000,
    seed: int = 1,
) -> Result:
    """CXMI of a system as a report result: the mean of its sentences' P-CXMI, in nats, with a bootstrap interval.

    Fernandes et al. (2021): a sentence counts by the `sum` over its tokens, N is the number of sentences;
    their released code takes each sentence's `mean` over tokens instead. Documents are resampled.
    """
    if normalization not in NORMALIZATIONS or not found:
        raise ValueError(
            f"normalization {normalization!r} and {len(found)} sentences: expected {' or '.join(NORMALIZATIONS)}, and "
            "at least one sentence"
        )
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


def word_gains(found: Sequence[PointwiseCXMI], least: int = 5) -> list[tuple[str, float, int]]:
    """(word, mean P-CXMI, how often) of words seen at least so often, those that profit most first.

    The gain of a word, or of a run of punctuation, is the sum over its tokens; a token counts for the word in which it
    begins, one that adds no text for the word before it. The end token is a word of its own.
    """
    gains: dict[str, list[float]] = defaultdict(list)
    for one in found:
        *tokens, end = (token.replace("\ufffd", "") for token in one.tokens)
        text = "".join(tokens)
        words = word_spans(text)
        sums, position, number = [0.0] * len(words), 0, 0
        for token, gain in zip(tokens, one.gains):
            begin = position + len(token) - len(token.lstrip())
            while token.strip() and number + 1 < len(words) and words[number + 1][0] <= begin:
                number += 1
            position += len(token)
            if words:
                sums[number] += gain
        for (start, stop), gain in zip(words, sums):
            gains[text[start:stop]].append(gain)
        gains[end].append(one.gains[-1])
    means = [(word, math.fsum(some) / len(some), len(some)) for word, some in gains.items() if len(some) >= least]
    return sorted(means, key=lambda row: (-row[1], row[0]))


def cxmi_report(system: System, documents: Dataset, *, source_lang: str, target_lang: str, dataset: str) -> Report:
    """The report of what context adds to the log-probability of references: CXMI, with the words that gain most.

    ValueError: documents of other languages than the system's.

    >>> languages = {"source_lang": "en", "target_lang": "de"}
    >>> report = cxmi_report(load_system("runs/concat"), documents, dataset="test", **languages)
    >>> report.results[0].metric
    'CXMI'
    """
    items = document_items(
        documents,
        source_lang=source_lang,
        target_lang=target_lang,
        past_context=system.context.past,
        future_context=system.context.future,
    )
    check_language(items, *system.languages)
    found = pointwise_cxmi(system, items)
    gains = [list(row) for row in word_gains(found)[:20]]
    result = cxmi_result(system, found, dataset=dataset).with_details({"gains": gains})
    data = {"documents": len(documents), "source_lang": source_lang, "target_lang": target_lang}
    return Report(model=system.describe(), data=data, results=[result])


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
