"""Files of translations by several systems: s-BLEU by sentence index, and counts of connectives."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from hf_docmt.evaluation.metrics.connectives import Connectives, connectives_of
from hf_docmt.evaluation.metrics.corpus_scores import SentenceBleu, bleu, segment_statistics
from hf_docmt.evaluation.metrics.translated_documents import TranslatedDocuments, check_aligned, check_sides
from hf_docmt.evaluation.references import read_references
from hf_docmt.evaluation.translation_files import read_translated
from hf_docmt.files import data_name
from hf_docmt.reports.report import Report
from hf_docmt.reports.resampling import bootstrap_interval
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.signature import Signature

REFERENCE_LENGTH = 1  # column of BLEU's statistics, see segment_statistics
REFERENCE = "reference"  # name of its column among the counts of systems


# Difference of two systems' s-BLEU by sentence index in the document (Feng et al. 2022, figure 3)


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

        def difference(sums: np.ndarray, shape=joined.shape[1:]) -> np.ndarray:
            system, baseline = (mean_score(side, score) for side in sums.reshape(-1, *shape).swapaxes(0, 1))
            return system - baseline

        interval = bootstrap_interval(joined.reshape(len(joined), -1), difference, samples, seed) if samples else None
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
    metric = bleu(False, None, target_lang)
    segment_statistics(metric, [""], [""])  # sacrebleu completes a signature when it has seen references
    signature = Signature.of({"segments": "sentence", "mean": "indices"}) + Signature.parse(str(metric.get_signature()))
    sizes = [scores.last - scores.first + 1 for scores in ranges]
    result = Result(
        task="translation",
        dataset=data_name(reference),
        split="all",
        metric="s-BLEU difference",
        value=sum(scores.difference * size for scores, size in zip(ranges, sizes)) / sum(sizes),  # mean over indices
        signature=signature,
        n=sum(scores.n for scores in ranges),
        breakdown={
            f"index={scores.label}": PartScore(
                scores.difference, scores.n, {"interval": list(scores.interval)} if scores.interval else {}
            )
            for scores in ranges
        },
        details={name: [getattr(scores, name) for scores in ranges] for name in ("system", "baseline")},
    )
    return ranges, Report(model={"name": names[0]}, data=data, results=[result])


# Connectives of several systems and of the reference (Fei et al. 2022, Table 4)


def connective_files(
    reference: str | Path,
    systems: Sequence[str | Path],
    format: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
    *,
    words: Sequence[str] | None = None,
) -> tuple[pd.DataFrame, dict[str, Report]]:
    """The counts, and a report for each system, of files of `docmt translate` and reference documents with their ids.

    Counts have a row for each connective, a column for the reference, and one for each system.

    `words`: words or phrases to count; None = those of `connectives_of` the target language. ValueError: a
    language that has none, an empty list, no system, two of one name, one called `REFERENCE`, other documents than
    the reference's.
    """
    words = connectives_of(target_lang) if words is None and target_lang else words
    documents, counts, reports = read_references([reference], format, source_lang, target_lang), pd.DataFrame(), {}
    references, ids = documents.sides[0], documents.ids
    for name, path in by_name(systems).items():
        hypotheses = read_translated(path, documents)
        try:
            check_sides(hypotheses, references, doc_ids=ids)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        translated = TranslatedDocuments(hypotheses, references, doc_ids=ids, dataset=data_name(reference))
        (result,) = Connectives(words).score(translated)
        table = pd.DataFrame.from_dict(result.details["table"], orient="index")
        counts = counts.assign(**{REFERENCE: table["reference"], name: table["hypothesis"]})
        data = {"reference": Path(reference).name, "documents": len(ids)}
        reports[name] = Report(model={"name": name}, data=data, results=[result])
    return counts, reports


def count_rows(counts: pd.DataFrame) -> list[list[str]]:
    """A table with a header: a row for each connective, totals, and absolute differences from the reference's counts.

    The differences of a system are summed over the connectives.
    """
    differences = counts.sub(counts[REFERENCE], axis=0).abs().sum().drop(REFERENCE)
    return [
        ["connective", *counts.columns],
        *([word, *map(str, row)] for word, *row in counts.itertuples()),
        ["(total)", *map(str, counts.sum())],
        ["(differences)", "-", *map(str, differences)],
    ]


def by_name(systems: Sequence[str | Path]) -> dict[str, str | Path]:
    """The files by their names without ending. ValueError: none, two of one name, one called REFERENCE."""
    names = [data_name(path) for path in systems]
    if not names:
        raise ValueError("no systems; give files of translations")
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two systems are called {repeated[0]!r}; give their files different names")
    if REFERENCE in names:
        raise ValueError(f"a system is called {REFERENCE!r}, as is its reference; give its file another name")
    return dict(zip(names, systems))
