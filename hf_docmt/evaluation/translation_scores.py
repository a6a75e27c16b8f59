"""Scores of translated documents, in files or in memory, as a report."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_docmt.data.documents import check_documents, id_text
from hf_docmt.evaluation.breakdowns import Domains
from hf_docmt.evaluation.metrics import default_metrics, metric_choices, metric_class
from hf_docmt.evaluation.metrics.corpus_scores import CorpusScore, sentence_metrics, write_sentence_scores
from hf_docmt.evaluation.metrics.external import ExternalScore, write_scorer_input
from hf_docmt.evaluation.metrics.metric import Metric, ScoreSettings, TranslatedDocuments, UndefinedError
from hf_docmt.evaluation.references import (
    References,
    builtin_references,
    read_references,
    references_of,
)
from hf_docmt.evaluation.translation_files import (
    NoDocumentsError,
    count_blank,
    count_repairs,
    count_untranslated,
    pair_lines,
    read_translations,
    search_of,
    with_whole_texts,
)
from hf_docmt.files import DataError, data_name, display_path
from hf_docmt.messages import check_known
from hf_docmt.options import Scoring
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Result

if TYPE_CHECKING:
    from datasets import Dataset

UNITS = ("document", "paragraph", "sentence")
NOT_OF_METRICS = ("metrics", "discourse", "by", "domains", "unit", "samples", "sentence_scores", "repairs", "align")
TERM_METRICS = ("term success", "d-term success", "exclusive term success")  # with a glossary

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Evaluation(Scoring):
    """The measures and their settings: options of `docmt evaluate`, named as in `options.Scoring`, and of Python.

    `metrics` and `discourse` name metrics by their `choice`, those of plugins included; by default s-BLEU, d-BLEU, chrF
    and TER. `domains` may be a mapping, too (see `breakdowns`). `repairs="none"`: documents are lines as a model wrote
    them, more or fewer than sentences, and are scored line by line (see `pair_lines`) unless they are aligned; None =
    as their rows say. `unit` None = sentences for a single document, which otherwise has no interval. Intervals are of
    `samples` draws (0: none). `sentence_scores`: a file for the scores of every sentence (see `sentence_scores`). See
    `ExternalScore` for `external`, `write_scorer_input` for `scorer_input` and `scorer_window`.
    ValueError: an unknown metric, other `repairs`, options of a metric that is not scored.
    """

    domains: Domains | None = None
    unit: str | None = "document"
    sentence_scores: str | Path | None = None
    samples: int = 1000

    def __post_init__(self):
        if self.repairs not in (None, "none"):
            raise ValueError(f"repairs is {self.repairs!r}, expected none, for unrepaired lines, or nothing")
        if self.unit is not None:
            check_known(self.unit, UNITS, "unit", "expected one of")
        if self.scorer_window and not self.scorer_input:
            raise ValueError("scorer_window needs scorer_input; give that, too, or omit the window")
        if isinstance(self.domains, str) and "domain" not in self.by:
            raise ValueError("domains are for scores by domain; add domain to `by` (--by), or omit them")
        names = [name.partition(":")[0] for name, _ in self.external or ()]
        if len(set(names)) < len(names):
            raise ValueError(f"external scores are called {max(names, key=names.count)!r} twice; name each differently")
        chosen, further = self._named
        for option in fields(self):
            if option.name in NOT_OF_METRICS or getattr(self, option.name) == option.default:
                continue
            takers = [metric for metric in metric_choices(None).values() if option.name in metric.evaluation_options]
            if takers and not {*takers} & {*chosen, *further}:
                names = " and ".join(str(metric.choice) for metric in takers)
                raise ValueError(
                    f"{option.name} is an option of {names}, which is not scored; add that metric, or remove the option"
                )

    def metrics_for(self, source_lang: str | None, target_lang: str | None) -> tuple[list[Metric], list[Metric]]:
        """The metrics of `metrics`, or the default ones, and of `discourse`, the same objects each time.

        ValueError for one that is not made for these languages, where they are known.
        """
        for metrics in self._named:
            for metric in metrics:
                metric.check_languages(source_lang, target_lang)
        return self._made

    @cached_property
    def _named(self) -> tuple[list[type[Metric]], list[type[Metric]]]:
        if self.metrics is not None and not self.metrics:
            raise ValueError(f"no metrics; give some of {', '.join(metric_choices(None))}, or omit them")
        named = [*dict.fromkeys(self.metrics or ())], [*dict.fromkeys(self.discourse)]
        choices = metric_choices([*named[0], *named[1]])
        measures = {name: metric for name, metric in choices.items() if not issubclass(metric, CorpusScore)}
        for names, known, kind in zip(named, (choices, measures), ("metric", "discourse measure")):
            for name in names:
                check_known(name, known, kind, "expected some of")
        chosen = [metric_class(name) for name in default_metrics()] if self.metrics is None else []
        chosen += [choices[name] for name in named[0]]
        further = [measures[name] for name in named[1] if measures[name] not in chosen]
        return chosen, further + ([] if self.glossary is None else [metric_class(name) for name in TERM_METRICS])

    @property
    def term_column(self) -> str | None:
        """The column of the references that `glossary` names, None for a file."""
        return None if self.glossary is None or Path(self.glossary).exists() else self.glossary

    @cached_property
    def _made(self) -> tuple[list[Metric], list[Metric]]:
        chosen, further = (
            [
                metric(**{to: getattr(self, option) for option, to in metric.evaluation_options.items()})
                for metric in some
            ]
            for some in self._named
        )
        return chosen, further


def evaluate_files(
    translations: str | Path,
    reference: str | Path | Sequence[str | Path] = (),
    format: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
    *,
    name: str | None = None,
    **options,
) -> Report:
    """The report of translated documents against reference documents with the same ids in any order.

    `translations` are read by `read_translations`, references by `read_references`, or by `builtin_references` for a
    `test_set` of sacrebleu; of formats with a file per side the target file is the reference. `origlang` selects
    documents written in that language. `name` (of the system), `strategy` and `beams` (None: as the rows say) are
    written down. Documents with an `error` are scored as empty, with a warning, and counted in the results' details as
    `untranslated`, as are `blank` sentences. `options` are those of `evaluate_systems` and of `Evaluation`. DataError:
    files that do not fit each other, or lack what a metric needs; ValueError as for `Evaluation`.
    """
    languages = {"source_lang": source_lang, "target_lang": target_lang}
    (report,) = evaluate_systems([translations], reference, format, **languages, names=[name], **options)
    return report


def evaluate_systems(
    translations: Sequence[str | Path],
    reference: str | Path | Sequence[str | Path] = (),
    format: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
    *,
    names: Sequence[str | None] | None = None,
    strategy: str | None = None,
    beams: int | None = None,
    test_set: str | None = None,
    origlang: str | None = None,
    translators: Sequence[str] = (),
    reference_columns: Sequence[str] = (),
    system: str | None = None,
    **options,
) -> list[Report]:
    """A report for each file of translations, as `evaluate_files`; what is known of the references is found once."""
    evaluation, languages = Evaluation(**options), {"source_lang": source_lang, "target_lang": target_lang}
    evaluation.metrics_for(source_lang, target_lang)  # unfit ones, before files are read
    paths = [reference] if isinstance(reference, str | Path) else list(reference)
    if bool(paths) == (test_set is not None):
        raise ValueError("give either files of references or a test set of sacrebleu (-t), not both or none")
    if test_set is None:
        columns = {"columns": reference_columns, "terms": evaluation.term_column}
        references = read_references(paths, format, **languages, translators=translators, **columns)
    elif format != "auto" or reference_columns:
        raise ValueError("format and reference columns are for files of references; omit them with a test set")
    else:
        references = builtin_references(test_set, source_lang, target_lang, translators)
    if len(translations) > 1 and (evaluation.external or evaluation.scorer_input or evaluation.sentence_scores):
        raise ValueError(
            "scores and inputs of other programs, and files of sentence scores, are of one system; evaluate the "
            "systems one by one with -o, and compare their reports"
        )
    named, of_systems = [], []
    for path, name in zip(translations, names or [None] * len(translations)):
        try:
            of_systems.append(read_translations(path, references, system, **languages))
            named.append((path, name or system or data_name(path)))
        except NoDocumentsError as error:
            if len(translations) == 1:
                raise
            _logger.warning("%s; skipped", error)
    if not evaluation.align and evaluation.repairs is None:
        references, of_systems = with_whole_texts(references, of_systems)
    kept = references
    if origlang is not None:
        kept, are_kept = references.written_in(origlang)
        of_systems = [list(compress(rows, are_kept)) for rows in of_systems]
    data = {"documents": len(kept.ids), "reference": test_set or ", ".join(Path(path).name for path in paths)}
    reports = []
    for (path, name), rows in zip(named, of_systems):
        how, files = {"strategy": strategy, "beams": beams, **languages}, {"translations": Path(path).name, **data}
        reports.append(_report(name, kept, rows, evaluation, files, display_path(path), **how))
    return reports


def evaluate(
    translations: Iterable[Mapping[str, Any]],
    documents: Dataset,
    *,
    name: str = "system",
    dataset: str = "documents",
    strategy: str | None = None,
    beams: int | None = None,
    reference_columns: Sequence[str] = (),
    **options,
) -> Report:
    """The report of translations in memory against the documents that were translated, which have the references.

    `translations`: rows of `translate_corpus`, each with `doc_id`, `translation` (a list of sentences) and maybe
    `source`, `repairs` and `search`, in any order; an `error` is warned of, and counted in the results' details as
    `untranslated`. `name` of the system, `dataset`, `strategy` and `beams` (None: as the rows say) are written down.
    `reference_columns` of the documents hold further references, a list of sentences each, and the column `domain` the
    domains of `by`. `options` are those of `Evaluation`. ValueError: not one translation for each document, documents
    without a target side; as for `Evaluation`.

    >>> report = evaluate(translate_corpus(model, tokenizer, documents), documents, name="concat")
    >>> [result.metric for result in report.results]
    ['s-BLEU', 'd-BLEU', 'chrF', 'TER']
    """
    source_lang, target_lang = check_documents(documents, allow_empty=True)
    if target_lang is None:
        raise ValueError(f"the documents have no references, only {source_lang!r}; read them with a target language")
    known = list(documents)
    evaluation = Evaluation(**options)
    columns = (reference_columns, evaluation.term_column)
    references = references_of(known, source_lang, target_lang, *columns, path="documents", dataset=dataset)
    rows: dict[str, Mapping] = {}
    for row in translations:
        if (doc_id := id_text(row["doc_id"])) in rows:
            raise ValueError(f"document {doc_id!r} was translated twice; give one translation for each document")
        rows[doc_id] = row
    ordered = references.in_order(rows, name)
    ordered = [{**row, "source": row.get("source") or source} for row, source in zip(ordered, references.sources)]
    how = {"source_lang": source_lang, "target_lang": target_lang, "strategy": strategy, "beams": beams}
    return _report(name, references, ordered, evaluation, {"documents": len(ordered)}, name, **how)


def _report(
    name: str,
    references: References,
    rows: Sequence[Mapping[str, Any]],
    evaluation: Evaluation,
    data: dict[str, Any],
    label: str,
    **how: str | int | None,
) -> Report:
    """The report on rows as `docmt translate` writes them, which say of the search what is not known otherwise.

    `how` are languages, strategy and beams. Documents with an `error` are counted in the details of the results, and
    warned of; `label` is of the translations.
    """
    search = search_of(rows)
    known = references.ids
    if evaluation.domains is None:
        evaluation = replace(evaluation, domains=references.domains)
    references, rows = references.with_sentences(rows)
    documents = TranslatedDocuments(
        [row["translation"] for row in rows],
        references.sides[0],
        [row.get("source") for row in rows],
        references.ids,
        dataset=references.dataset,
        split=references.split,
        details={} if references.matched_by == "line" else {"repairs": count_repairs(rows)},
        other_references=references.sides[1:],
        without_sentences=set(known) - set(references.ids),
        data=references.digest,
        terms=references.terms,
        **how | {key: how[key] or search.get(key) for key in ("strategy", "beams")},
    )
    results = evaluation_results(documents, evaluation, search.get("repairs"))
    blank = {} if evaluation.align else count_blank(rows, references, label)
    if missing := count_untranslated(rows, label) | blank:
        results = [result.with_details(missing) for result in results]
    settings = {key: value for key, value in search.items() if key not in ("strategy", "beams")}
    return Report(model={"name": name} | ({"config": settings} if settings else {}), data=data, results=results)


def evaluation_results(
    documents: TranslatedDocuments, evaluation: Evaluation, repairs: str | None = None
) -> list[Result]:
    """Results of an alignment, of the metrics chosen, of further ones and of external scores, in this order.

    A measure that is undefined for these documents is skipped with a warning. `repairs` comes from the rows.
    """
    chosen, further = evaluation.metrics_for(documents.source_lang, documents.target_lang)
    unit = evaluation.unit or ("document" if len(documents.ids) > 1 else "sentence")
    settings = ScoreSettings(evaluation.by, evaluation.domains, evaluation.samples, unit=unit)
    if evaluation.sentence_scores is not None:
        sentence_metrics(chosen)  # none: an error before the work
    single = [metric for metric in (*chosen, *further) if not metric.several_references]
    if documents.other_references and (single or evaluation.align):
        names = ", ".join([*(metric.choice or metric.name for metric in single), *["alignment"] * evaluation.align])
        count = 1 + len(documents.other_references)
        raise ValueError(f"{count} references, but {names} use one only; give one, or omit these")
    readers = [metric.choice or metric.name for metric in (*chosen, *further) if metric.needs_sources]
    sources = documents.sources or [None] * len(documents.hypotheses)
    lost = [doc_id for doc_id, source in zip(documents.ids, sources) if not isinstance(source, list)]
    if readers and lost:
        raise DataError(
            f"document {lost[0]!r} has no 'source' next to its translation, needed for {', '.join(readers)}; give the "
            "JSON lines that docmt translate writes"
        )
    results = []
    if evaluation.align:
        from hf_docmt.evaluation.alignment import align_documents

        sides = (documents.hypotheses, documents.references)
        alignment = align_documents(*sides, doc_ids=documents.ids, target_lang=documents.target_lang)
        documents = replace(documents, hypotheses=alignment.documents, alignment=alignment.signature)
        results = _scores(alignment.rates, documents, settings)
    elif "none" in (evaluation.repairs, repairs):
        pairs = zip(documents.hypotheses, documents.references)
        documents = replace(documents, hypotheses=[pair_lines(lines, len(sentences)) for lines, sentences in pairs])
    if evaluation.scorer_input is not None:
        format, path = evaluation.scorer_input
        write_scorer_input(path, documents, format, *(evaluation.scorer_window or ()))
    measured = _scores(further, documents, settings)  # fails early, if at all
    results += [*_scores(chosen, documents, settings), *measured]
    results += _scores([ExternalScore(*named) for named in evaluation.external or ()], documents, settings)
    if evaluation.sentence_scores is not None:
        write_sentence_scores(evaluation.sentence_scores, documents, chosen)
    return results


def _scores(metrics: Sequence[Metric], documents: TranslatedDocuments, settings: ScoreSettings) -> list[Result]:
    results = []
    for metric in metrics:
        try:
            results += metric.score(documents, settings)
        except UndefinedError as error:
            _logger.warning("%s is undefined here and skipped: %s", metric.name, error)
    return results
