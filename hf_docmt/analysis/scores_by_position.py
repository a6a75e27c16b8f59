"""Difference of two systems' s-BLEU by sentence index in the document (Feng et al. 2022, figure 3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hf_docmt.evaluation.metrics.corpus_scores import SentenceBleu, bleu, segment_statistics
from hf_docmt.evaluation.metrics.translated_documents import check_aligned
from hf_docmt.evaluation.references import read_references
from hf_docmt.evaluation.translation_files import read_translated
from hf_docmt.files import data_name
from hf_docmt.reports.report import Report
from hf_docmt.reports.resampling import bootstrap_interval
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.signature import Signature

REFERENCE_LENGTH = 1  # column of BLEU's statistics, see segments.segment_statistics


@dataclass(frozen=True)
class Range:
    """s-BLEU of two systems, averaged over the sentence indices from `first` to `last` (from 1) that documents have.

    `n` sentences; `interval`: 95 % interval of the difference, None where fewer than 2 documents are that long.
    """

    first: int
    last: int
    system: float
    baseline: float
    n: int
    interval: tuple[float, float] | None = None

    @property
    def label(self) -> str:
        """`1-10`, or `3` for a single index."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    @property
    def difference(self) -> float:
        """System less baseline."""
        return self.system - self.baseline


def by_index(
    system: Sequence[Sequence[str]],
    baseline: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    every: int = 10,
    target_lang: str | None = None,
    samples: int = 1000,
    seed: int = 1,
) -> list[Range]:
    """s-BLEU of the sentences at each index in their documents, averaged over ranges of `every` indices.

    Feng et al. (2022), section 5.2, metric breakdown: corpus BLEU (sacrebleu) of the sentences at one index of all
    documents, then the unweighted mean over ten indices (`docmt evaluate --by index` takes the sentences of a range as
    one corpus instead). Intervals are of the difference, from `samples` bootstrap samples of documents, none for 0. All
    three are documents as lists of sentences, in the same order. ValueError: other documents or numbers of sentences,
    `every` less than 1.
    """
    if every < 1:
        raise ValueError(f"a range has at least 1 index, got every={every}")
    rows = [document_rows(side, references, target_lang) for side in (system, baseline)]
    score, ranges = SentenceBleu.score_from_sums, []
    for first in range(0, rows[0].shape[1], every):
        last = min(first + every, rows[0].shape[1])
        parts = [side[:, first:last] for side in rows]  # (documents, indices, columns)
        values = [mean_score(part.sum(axis=0, keepdims=True), score)[0] for part in parts]
        n = sum(max(0, min(len(document), last) - first) for document in references)
        joined = np.stack(parts, axis=1)  # (documents, 2, indices, columns)
        interval = difference_interval(joined, score, samples, seed) if samples else None
        ranges.append(Range(first + 1, last, *values, n, interval))
    return ranges


def document_rows(side, references, target_lang: str | None) -> np.ndarray:
    """BLEU's statistics of each sentence, (documents, longest, columns), zeros after the end of a document."""
    check_aligned(side, references)
    metric = bleu(False, None, target_lang)
    statistics = [segment_statistics(metric, *pair) if len(pair[0]) else [] for pair in zip(side, references)]
    width = len(next(filter(None, statistics))[0])
    rows = np.zeros((len(statistics), max(map(len, statistics)), width))
    for number, document in enumerate(statistics):
        rows[number, : len(document)] = np.reshape(document, (-1, width))
    return rows


def mean_score(sums: np.ndarray, score) -> np.ndarray:
    """(samples, indices, columns) -> mean score over the indices that have a reference, (samples,)."""
    present = sums[:, :, REFERENCE_LENGTH] > 0
    scores = score(sums.reshape(-1, sums.shape[2])).reshape(present.shape)
    return (scores * present).sum(axis=1) / present.sum(axis=1).clip(min=1)


def difference_interval(joined: np.ndarray, score, samples: int, seed: int) -> tuple[float, float] | None:
    """95 % interval of the difference from statistics (documents, 2, indices, columns)."""
    shape = joined.shape[1:]

    def difference(sums: np.ndarray) -> np.ndarray:
        sums = sums.reshape(-1, *shape)
        return mean_score(sums[:, 0], score) - mean_score(sums[:, 1], score)

    return bootstrap_interval(joined.reshape(len(joined), -1), difference, samples, seed)


def by_index_files(
    system: str | Path,
    baseline: str | Path,
    reference: str | Path,
    format: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
    **options,
) -> tuple[list[Range], Report]:
    """The ranges, and their report, of two files of `docmt translate` against reference documents with the same ids.

    `options` are those of `by_index`. DataError as in `evaluate_files`.
    """
    documents = read_references([reference], format, source_lang, target_lang)
    sides = [read_translated(path, documents) for path in (system, baseline)]
    ranges = by_index(*sides, documents.sides[0], target_lang=target_lang, **options)
    names = [data_name(path) for path in (system, baseline)]
    data = {"reference": Path(reference).name, "documents": len(documents.ids), "baseline": names[1]}
    result = index_result(ranges, data_name(reference), signature_of(target_lang))
    return ranges, Report(model={"name": names[0]}, data=data, results=[result])


def signature_of(target_lang: str | None) -> Signature:
    """BLEU's signature, which sacrebleu completes when it has seen references."""
    metric = bleu(False, None, target_lang)
    segment_statistics(metric, [""], [""])
    return Signature.parse(str(metric.get_signature()))


def index_result(ranges: Sequence[Range], dataset: str, signature: Signature) -> Result:
    """The difference as a result of a report; its value is the mean over all indices."""
    sizes = [index_range.last - index_range.first + 1 for index_range in ranges]
    parts = {}
    for index_range in ranges:
        interval = {"interval": list(index_range.interval)} if index_range.interval else {}
        parts[f"index={index_range.label}"] = PartScore(index_range.difference, index_range.n, interval)
    return Result(
        task="translation",
        dataset=dataset,
        split="all",
        metric="s-BLEU difference",
        value=sum(index_range.difference * size for index_range, size in zip(ranges, sizes)) / sum(sizes),
        signature=Signature.of({"segments": "sentence", "mean": "indices"}) + signature,
        n=sum(index_range.n for index_range in ranges),
        breakdown=parts,
        details={name: [getattr(index_range, name) for index_range in ranges] for name in ("system", "baseline")},
    )
