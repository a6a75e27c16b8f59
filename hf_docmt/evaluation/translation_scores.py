"""From translated documents, in files or in memory, to a report of their scores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from datasets import Dataset

from hf_docmt.data.documents import check_documents, sentences
from hf_docmt.data.readers import detect_format, get_reader
from hf_docmt.evaluation.alignment import align_documents, alignment_results
from hf_docmt.evaluation.breakdowns import Domains
from hf_docmt.evaluation.metrics.comet import Comet, DocumentComet
from hf_docmt.evaluation.metrics.comet_program import MODEL
from hf_docmt.evaluation.metrics.metric import Metric, ScoreSettings
from hf_docmt.evaluation.metrics.registry import default_metrics, metric_choices, metric_class
from hf_docmt.evaluation.metrics.translated_documents import Documents, TranslatedDocuments
from hf_docmt.evaluation.translation_files import (
    count_repairs,
    match_documents,
    pair_lines,
    plain_sentences,
    read_translations,
    search_of,
)
from hf_docmt.files import DataError
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Result
from hf_docmt.reports.signature import Signature


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What is scored besides the default metrics, and how.

    `by` and `domains` ask for parts of the scores (see `breakdowns`), `align` cuts translations with other sentences
    than the reference (see `alignment`), `discourse` names further metrics by their `choice`, those of plugins
    included. `comet`, the Python of an environment with unbabel-comet, adds COMET by `comet_model`, with
    `comet_context` sentences of context document-level COMET, too. `repairs="none"`: documents are lines as a model
    wrote them, more or fewer than sentences, and are scored line by line (see `pair_lines`) unless they are aligned;
    None = as their rows say. ValueError: an unknown metric, other `repairs`, or options of COMET without `comet`.
    """

    by: Sequence[str] = ()
    domains: Domains | None = None
    align: bool = False
    discourse: Sequence[str] = ()
    comet: str | None = None
    comet_model: str | None = None
    comet_context: int = 0
    repairs: str | None = None

    def __post_init__(self):
        if self.repairs not in (None, "none"):
            raise ValueError(f"repairs is {self.repairs!r}, expected none, for lines as they were written, or nothing")
        if self.comet is None and (self.comet_model is not None or self.comet_context):
            raise ValueError(
                "a model or context for COMET, but no COMET: give the Python of an environment with unbabel-comet "
                "(--comet)"
            )

    def discourse_metrics(self, source_lang: str | None, target_lang: str | None) -> list[Metric]:
        """The metrics of `discourse`; ValueError for one that is not made for these languages, where they are known."""
        known, found = metric_choices(), []
        for choice in self.discourse:
            if choice not in known:
                raise ValueError(f"unknown discourse measure {choice!r}: expected some of {', '.join(known)}")
            known[choice].check_languages(source_lang, target_lang)
            found.append(known[choice]())
        return found

    def comet_metrics(self) -> list[Metric]:
        if self.comet is None:
            return []
        options = {"python": self.comet, "model": self.comet_model or MODEL}
        return [Comet(**options)] + ([DocumentComet(**options, context=self.comet_context)] * bool(self.comet_context))


def evaluate_files(
    translations: str | Path,
    reference: str | Path,
    format: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
    *,
    name: str | None = None,
    strategy: str | None = None,
    beams: int | None = None,
    **options,
) -> Report:
    """The report of translated documents against reference documents with the same ids in any order.

    Plain lines are compared with plain lines, as one document. Formats with a file a side (dtag, blank, voita, sgm,
    iwslt) are given the target file as reference; in the first three, which have no ids, documents are matched by their
    order. `name` (of the system), `strategy` and `beams` (None: as the rows say) are written down. `options` are those
    of `Evaluation`; COMET and some metrics need the `source` that JSON lines of `docmt translate` hold. `DataError`
    where documents, sentences or sources are missing, or the languages of the reference are not given; `ValueError` as
    for `Evaluation`.
    """
    evaluation = Evaluation(**options)
    evaluation.discourse_metrics(source_lang, target_lang)  # unknown ones, before files are read
    reader = get_reader(format if format != "auto" else detect_format({"path": reference}))
    known = {"dataset": Path(reference).stem, "source_lang": source_lang, "target_lang": target_lang}
    search: dict[str, Any] = {}
    if reader.plain:
        if detect_format({"path": translations}) == "jsonl":
            raise DataError(f"{translations} holds JSON lines, {reference} plain lines; give the reference documents")
        sides = [plain_sentences(path) for path in (translations, reference)]
        ids = [Path(reference).stem]
        documents = TranslatedDocuments([sides[0]], [sides[1]], [None], ids, **known, strategy=strategy, beams=beams)
    else:
        found = read_translations(translations)
        hypotheses, references, ids = match_documents(found, translations, reference, format, source_lang, target_lang)
        sources = [found.get(doc_id, {}).get("source") for doc_id in ids]
        details, search = {"repairs": count_repairs(found.values())}, search_of(found.values())
        known |= {"strategy": strategy or search.get("strategy"), "beams": beams or search.get("beams")}
        documents = TranslatedDocuments(hypotheses, references, sources, ids, details=details, **known)
    data = {"reference": Path(reference).name, "documents": len(ids)}
    model = {"name": name or Path(translations).stem} | system_settings(search)
    return Report(model=model, data=data, results=evaluation_results(documents, evaluation, search))


def evaluate(
    translations: Iterable[Mapping[str, Any]],
    documents: Dataset,
    *,
    name: str = "system",
    dataset: str = "documents",
    strategy: str | None = None,
    beams: int | None = None,
    **options,
) -> Report:
    """The report of translations in memory against the documents that were translated, which have the references.

    `translations`: rows of `translate_corpus`, each with `doc_id`, `translation` (a list of sentences) and maybe
    `source`, `repairs` and `search`, in any order. `name` of the system, `dataset`, `strategy` and `beams` (None: as
    the rows say) are written down. `options` are those of `Evaluation`. ValueError: not one translation for each
    document, documents without a target side; as for `Evaluation`.

    >>> report = evaluate(translate_corpus(model, tokenizer, documents), documents, name="concat")
    >>> [result.metric for result in report.results]
    ['s-BLEU', 'd-BLEU', 'chrF', 'TER']
    """
    source_lang, target_lang = check_documents(documents)
    if target_lang is None:
        raise ValueError(f"the documents have no references, only {source_lang!r}; read them with a target language")
    rows = {row["doc_id"]: row for row in translations}
    ids = list(documents["doc_id"])
    if missing := [doc_id for doc_id in ids if doc_id not in rows]:
        raise ValueError(f"no translation of document {missing[0]!r}; translate all {len(ids)} documents")
    if len(rows) > len(ids):
        raise ValueError(f"{len(rows)} translations for {len(ids)} documents; give those of these documents only")
    search = search_of(rows.values())
    sources = [rows[doc_id].get("source") for doc_id in ids]
    sources = [own or sentences(row, source_lang) for own, row in zip(sources, documents)]
    scored = TranslatedDocuments(
        [rows[doc_id]["translation"] for doc_id in ids],
        [sentences(row, target_lang) for row in documents],
        sources,
        ids,
        dataset=dataset,
        source_lang=source_lang,
        target_lang=target_lang,
        strategy=strategy or search.get("strategy"),
        beams=beams or search.get("beams"),
        details={"repairs": count_repairs(rows.values())},
    )
    results = evaluation_results(scored, Evaluation(**options), search)
    return Report(model={"name": name} | system_settings(search), data={"documents": len(ids)}, results=results)


def system_settings(search: Mapping[str, Any]) -> dict[str, dict]:
    """What the `model` of a report says of the search, beside the strategy and beams of every result."""
    settings = {name: value for name, value in search.items() if name not in ("strategy", "beams")}
    return {"config": settings} if settings else {}


def evaluation_results(
    documents: TranslatedDocuments, evaluation: Evaluation, search: Mapping[str, Any] | None = None
) -> list[Result]:
    """Results of an alignment, of the default metrics, of further ones and of COMET, in this order."""
    further = evaluation.discourse_metrics(documents.source_lang, documents.target_lang)
    comet, settings = evaluation.comet_metrics(), ScoreSettings(evaluation.by, evaluation.domains)
    _check_sources(documents, [metric for metric in (*further, *comet[:1]) if metric.needs_sources])
    results = []
    if evaluation.align:
        sides = (documents.hypotheses, documents.references)
        alignment = align_documents(*sides, doc_ids=documents.ids, target_lang=documents.target_lang)
        documents = replace(documents, hypotheses=alignment.documents, alignment=alignment.signature)
        labels = {name: getattr(documents, name) for name in ("dataset", "split", "strategy", "beams")}
        results = alignment_results(alignment, **labels)
    elif "none" in (evaluation.repairs, (search or {}).get("repairs")):
        pairs = zip(documents.hypotheses, documents.references)
        documents = replace(documents, hypotheses=[pair_lines(lines, len(sentences)) for lines, sentences in pairs])
    measured = [result for metric in further for result in metric.score(documents, settings)]  # fails early, if at all
    for name in default_metrics():
        results += metric_class(name)().score(documents, settings)
    results += measured
    for metric in comet:
        results += metric.score(documents, settings)
    return results


def score_translations(
    hypotheses: Documents,
    references: Documents,
    *,
    dataset: str,
    split: str,
    metrics: Sequence[str] | None = None,
    target_lang: str | None = None,
    lowercase: bool = False,
    tokenize: str | None = None,
    strategy: str | None = None,
    beams: int | None = None,
    doc_ids: Sequence[str] = (),
    details: dict | None = None,
    by: Sequence[str] = (),
    domains: Domains | None = None,
    alignment: Signature | None = None,
    samples: int = 1000,
    seed: int = 1,
) -> list[Result]:
    """One report result for each corpus score (s-BLEU, d-BLEU, chrF, TER) of documents, each a list of sentences.

    `target_lang` and `tokenize` choose BLEU's tokenizer (None: sacrebleu's for the language, else 13a); `lowercase`
    is for BLEU and chrF, TER is always sacrebleu's case-insensitive one. `details` are added to every result, with
    `statistics` of each document, from which significance tests are made, and the 95 % `interval` from `samples` draws
    of documents (none for 0 samples, or one document). `by` asks for a breakdown by `index`, `length` or `domain` (see
    `breakdowns`); d-BLEU has none by index. `alignment` is the signature of an alignment that made the hypotheses.
    ValueError: another number of documents, or of sentences in a document, on the two sides; an unknown axis.
    """
    documents = TranslatedDocuments(
        hypotheses,
        references,
        doc_ids=doc_ids,
        dataset=dataset,
        split=split,
        target_lang=target_lang,
        strategy=strategy,
        beams=beams,
        alignment=alignment or Signature(),
        details=details or {},
    )
    settings = ScoreSettings(by, domains, samples, seed)
    bleu = {"lowercase": lowercase, "tokenize": tokenize}
    accepted = {"s-BLEU": bleu, "d-BLEU": bleu, "chrF": {"lowercase": lowercase}}
    results = []
    for name in default_metrics() if metrics is None else metrics:
        results += metric_class(name)(**accepted.get(name, {})).score(documents, settings)
    return results


def _check_sources(documents: TranslatedDocuments, metrics: Sequence[Metric]) -> None:
    """DataError where a document has no source that one of these metrics needs."""
    sources = documents.sources or [None] * len(documents.hypotheses)
    lost = [name for name, source in zip(documents.ids, sources) if not isinstance(source, list)]
    if metrics and lost:
        names = [metric.choice or metric.name for metric in metrics]
        raise DataError(
            f"document {lost[0]!r} has no 'source' beside its translation, needed for {', '.join(names)}; give the "
            "JSON lines that docmt translate writes"
        )
