"""Translated documents, and a metric of them: a class that registers itself by its name."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import accumulate, chain, zip_longest
from typing import TYPE_CHECKING, Any, ClassVar

from hf_docmt.data.registration import register, registered
from hf_docmt.evaluation.breakdowns import Domains, break_down, check_axes, segment_labels
from hf_docmt.messages import __version__, check_known, counted
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.reports.signature import Signature
from hf_docmt.reports.statistics import column_sums, document_details, register_score_function, score_function

if TYPE_CHECKING:
    import numpy as np

Documents = Sequence[Sequence[str]]
METRICS: dict[str, type[Metric]] = {}  # every class by its name, in the order of registration


@dataclass(frozen=True)
class TranslatedDocuments:
    """Documents as lists of sentences, the same number on every side, and what a report says of them.

    `doc_ids`: `1`, `2`, ... by default. `references` and `sources` may be missing, sources of a document, too (None); a
    metric that needs them says so. `dataset`, `split`, `strategy` and `beams` go into the results. `alignment`: the
    signature of an alignment that made the hypotheses. `other_references`: the documents of each further reference, for
    metrics that take several. `without_sentences`: ids of further documents, which count as nothing. `data`: digest of
    references and sources (see `content_digest`). `details`: fields for the details of every corpus score. `terms`: the
    glossary entries of each document by its id (see `terminology`).
    """

    hypotheses: Documents
    references: Documents | None = None
    sources: Sequence[Sequence[str] | None] | None = None
    doc_ids: Sequence[str] = ()
    dataset: str = "documents"
    split: str = "all"
    source_lang: str | None = None
    target_lang: str | None = None
    strategy: str | None = None
    beams: int | None = None
    alignment: Signature = Signature()
    data: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    other_references: Sequence[Documents] = ()
    without_sentences: Collection[str] = ()
    terms: Mapping[str, Sequence[Mapping[str, Any]]] | None = None

    @property
    def identity(self) -> Signature:
        """The end of the signatures of these documents: what they are."""
        return Signature.of({"data": self.data}) if self.data else Signature()

    @property
    def ids(self) -> list[str]:
        """The id of every document."""
        return list(self.doc_ids) or [str(number) for number in range(1, len(self.hypotheses) + 1)]


class UndefinedError(ValueError):
    """A measure that is undefined for these documents, such as the share of repeated terms without repetition."""


@dataclass(frozen=True)
class ScoreSettings:
    """Breakdowns of scores (see `breakdowns`), and the bootstrap samples of their intervals (0: none).

    `unit` is what is drawn, and what significance tests draw: `document`, `paragraph` (see `unit_of_sentences`), or
    `sentence`, as sacrebleu does. Scores that have documents as segments have no smaller unit.
    """

    by: Sequence[str] = ()
    domains: Domains | None = None
    samples: int = 1000
    seed: int = 1
    unit: str = "document"


@dataclass(frozen=True)
class Measurement:
    """Statistics of each segment of each document, and further facts about a score.

    `statistics`: [document][segment][column]; `n` defaults to the number of segments, `value` to the score of the sums.
    `breakdown`: parts in addition to those of `ScoreSettings.by`.
    """

    statistics: Sequence[Sequence[Sequence[float]]]
    signature: Signature
    n: int | None = None
    value: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    breakdown: Mapping[str, PartScore] = field(default_factory=dict)


class Metric:
    """One way to score translated documents; a subclass with a `name` registers itself.

    The least that a subclass has is a `name` and `segment_statistics`, rows of numbers for every sentence from whose
    sums the score follows: by `score_from_sums`, or as `reports.statistics.score_function` has it for 2 columns (a
    ratio in percent) and 3 (an F1). Intervals, breakdowns and significance tests follow from them. One whose results
    are made in another way overrides `measure`. Options of a metric are arguments of its constructor, all
    with defaults. `sentence_shares.LengthRatio` is a short one.
    """

    name: ClassVar[str] = ""  # in reports
    choice: ClassVar[str | None] = None  # name for `docmt evaluate --metrics` and `--discourse`; None: no choice there
    default: ClassVar[bool] = False  # scored by `docmt evaluate` without --metrics
    task: ClassVar[str] = "translation"  # in reports
    segment: ClassVar[str] = "sentence"  # unit of the rows of statistics; or "document"
    needs_sources: ClassVar[bool] = False
    several_references: ClassVar[bool] = False  # whether it takes more than one reference for a sentence
    evaluation_options: ClassVar[Mapping[str, str]] = {}  # option of `Evaluation` -> argument of the constructor

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            register(METRICS, cls.name, cls, "metric")
            if cls.score_from_sums is not Metric.score_from_sums:
                register_score_function(cls.name, cls.score_from_sums)

    @classmethod
    def check_languages(cls, source_lang: str | None, target_lang: str | None) -> None:
        """ValueError where the metric is not made for these languages; None: not known."""

    @staticmethod
    def score_from_sums(sums: np.ndarray) -> np.ndarray:
        """Scores from summed statistics, (samples, columns) -> (samples,)."""
        raise NotImplementedError

    def segment_statistics(self, documents: TranslatedDocuments) -> Sequence[Sequence[Sequence[float]]]:
        """[document][segment][column], a segment being a sentence, or the document (see `segment`)."""
        raise NotImplementedError(f"{type(self).__name__} has no segment_statistics; write that method, or measure")

    def signature(self, documents: TranslatedDocuments) -> Signature:
        """The facts needed to repeat the measurement."""
        return Signature.of({"segments": self.segment, "version": __version__})

    def required_sources(self, documents: TranslatedDocuments) -> Sequence[Sequence[str]]:
        """The sources of the documents. ValueError if missing."""
        if documents.sources is None:
            raise ValueError(f"{self.name} needs the source sentences of the documents; give sources")
        return documents.sources

    def measure(self, documents: TranslatedDocuments) -> Measurement:
        """Statistics, signature and details of the score."""
        return Measurement(self.segment_statistics(documents), self.signature(documents))

    def score(self, documents: TranslatedDocuments, settings: ScoreSettings | None = None) -> list[Result]:
        """The results of a report, one for most metrics.

        ValueError: another number of documents, or of sentences in a document, on the two sides; an unknown axis.
        """
        settings = settings or ScoreSettings()
        references = documents.hypotheses if documents.references is None else documents.references
        sources = self.required_sources(documents) if self.needs_sources else None
        ids = documents.ids
        check_sides(documents.hypotheses, references, ids)
        if sources is not None:
            check_sides(sources, references, ids, ("source", "translated"))
        if settings.by:
            check_axes(settings.by, settings.domains)
        measured, of_documents = self.measure(documents), self.segment == "document"
        rows = self._checked_rows(measured.statistics, [1 if of_documents else len(one) for one in references])
        width, value, resampling = len(rows[0]), measured.value, (settings.samples, settings.seed)
        unit = "document" if of_documents else settings.unit
        groups = [[doc_id] for doc_id in ids] if of_documents else unit_of_sentences(unit, ids, references)
        by_unit: dict[str, list[Sequence[float]]] = {doc_id: [] for doc_id in ids} if unit == "document" else {}
        for row, group in zip(rows, chain(*groups)):
            by_unit.setdefault(group, []).append(row)
        units, sums = list(by_unit), [column_sums(own, width) for own in by_unit.values()]
        value = self._score_of(column_sums(sums)) if value is None else value
        breakdown = dict(measured.breakdown)
        if settings.by:
            labels = segment_labels(ids, list(map(len, references)), settings.by, settings.domains, of_documents)
            breakdown |= break_down(self.name, rows, labels, list(chain(*groups)), *resampling)
        details = document_details(self.name, units, sums, *resampling, unit=unit)
        result = Result(
            task=self.task,
            dataset=documents.dataset,
            split=documents.split,
            metric=self.name,
            value=value,
            signature=documents.alignment + measured.signature + documents.identity,
            n=len(rows) if measured.n is None else measured.n,
            strategy=documents.strategy,
            beams=documents.beams,
            breakdown=breakdown,
            details={**documents.details, **measured.details, **details},
        )
        return [result]

    def _checked_rows(self, statistics: Sequence, sizes: list[int]) -> list[Sequence[float]]:
        """The rows of all documents. ValueError: not one of finite numbers for each segment, all of one length."""
        expected = f"{type(self).__name__}.segment_statistics: expected [document][{self.segment}][column], "
        got = [len(document) if isinstance(document, Sized) else document for document in statistics]
        for number, (rows, size) in enumerate(zip_longest(got, sizes), 1):
            if rows != size:
                raise ValueError(f"{expected}{size} rows for document {number}; got {rows!r:.80}")
        flat = list(chain.from_iterable(statistics))
        for row in flat:
            if not isinstance(row, Sized) or len(row) != len(flat[0]) or not all(map(math.isfinite, row)):
                raise ValueError(f"{expected}rows of finite numbers, all of one length; got {row!r:.80}")
        return flat

    def _score_of(self, sums: Sequence[float]) -> float:
        """The score from column sums. ValueError: no function is known, or `score_from_sums` gives something else."""
        import numpy as np

        scores = np.asarray(score_function(self.name, len(sums))(np.array([sums], float)))
        if scores.shape != (1,):
            raise ValueError(
                f"{type(self).__name__}.score_from_sums: expected (samples, {len(sums)}) -> (samples,), got the shape "
                f"{scores.shape} for (1, {len(sums)})"
            )
        return float(scores[0])


def check_sides(
    documents: Documents, others: Documents, ids: Sequence[str], names: tuple[str, str] = ("translated", "reference")
) -> None:
    """ValueError unless both sides have the same documents, with the same number of sentences each, and an id each."""
    name, other = names
    if len(documents) != len(others):
        raise ValueError(
            f"{counted(len(documents), f'{name} document')} for {counted(len(others), f'{other} document')}: give the "
            "same documents on both sides, in the same order"
        )
    if len(ids) != len(others) or len(set(ids)) != len(ids):
        raise ValueError(f"{len(ids)} document ids, {len(set(ids))} of them different, for {len(others)} documents")
    if not any(map(len, others)):
        raise ValueError(f"nothing to score: the {other} documents have no sentence")
    for doc_id, document, sentences in zip(ids, documents, others):
        if isinstance(document, str) or isinstance(sentences, str):
            raise ValueError(f"document {doc_id!r}: got a string, expected a list of sentences")
        if len(document) != len(sentences):
            raise ValueError(
                f"document {doc_id!r}: {counted(len(document), f'{name} sentence')} for "
                f"{counted(len(sentences), f'{other} sentence')}; every translation needs exactly one source sentence "
                "and one reference, empty ones included"
            )


def unit_of_sentences(unit: str, ids: Sequence[str], references: Documents) -> list[list[str]]:
    """The unit that each sentence is drawn with: its document, its paragraph, or itself.

    A paragraph ends at a blank sentence of the reference, as those between paragraphs of WMT's documents are.
    """
    if unit == "document":
        return [[doc_id] * len(document) for doc_id, document in zip(ids, references)]
    groups = []
    for doc_id, document in zip(ids, references):
        ends = [unit == "sentence" or not sentence.strip() for sentence in document]
        groups.append([f"{doc_id}:{number}" for number in accumulate(ends[:-1], initial=1)] if document else [])
    return groups


def metric_classes() -> dict[str, type[Metric]]:
    """Every metric by its name, those of this folder first."""
    return registered(METRICS, __package__)


def metric_class(name: str) -> type[Metric]:
    """The metric of this name; ValueError with the closest one for an unknown one."""
    if name not in METRICS:
        check_known(name, metric_classes(), "metric", "expected one of")
    return METRICS[name]


def default_metrics() -> tuple[str, ...]:
    """The names of the default metrics."""
    return tuple(name for name, metric in METRICS.items() if metric.default)


def metric_choices(names: Sequence[str] | None = ()) -> dict[str, type[Metric]]:
    """The metrics that can be asked for, by the names of these choices: all where one of `names` is not known, or None.

    Else those that are imported.
    """
    choices = {metric.choice: metric for metric in METRICS.values() if metric.choice is not None}
    if names is not None and choices.keys() >= set(names):
        return choices
    return {metric.choice: metric for metric in metric_classes().values() if metric.choice is not None}
