"""From translated documents, in files or in memory, to a report of their scores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from datasets import Dataset

from hf_docmt.data.documents import check_documents, id_text, sentences
from hf_docmt.evaluation.alignment import align_documents, alignment_results
from hf_docmt.evaluation.breakdowns import Domains
from hf_docmt.evaluation.builtin_test_sets import builtin_references
from hf_docmt.evaluation.evaluation_options import Evaluation
from hf_docmt.evaluation.metrics.metric import Metric, ScoreSettings
from hf_docmt.evaluation.metrics.registry import default_metrics, metric_class
from hf_docmt.evaluation.metrics.translated_documents import Documents, TranslatedDocuments
from hf_docmt.evaluation.references import column_references, label_column, read_references
from hf_docmt.evaluation.sentence_scores import sentence_metrics, write_sentence_scores
from hf_docmt.evaluation.translation_files import (
    count_repairs,
    mark_untranslated,
    pair_lines,
    read_translations,
    search_of,
)
from hf_docmt.files import DataError, data_name, display_path
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Result
from hf_docmt.reports.signature import Signature


def evaluate_files(
    translations: str | Path,
    reference: str | Path | Sequence[str | Path] = (),
    format: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
    *,
    name: str | None = None,
    strategy: str | None = None,
    beams: int | None = None,
    test_set: str | None = None,
    origlang: str | None = None,
    translators: Sequence[str] = (),
    reference_columns: Sequence[str] = (),
    system: str | None = None,
    **options,
) -> Report:
    """The report of translated documents against reference documents with the same ids in any order.

    `translations` are the JSON lines of `docmt translate`, plain lines, one for each sentence of the references, or
    the output of a `system` in an XML set of WMT. Several files of references, `translators` of a set of WMT or
    `reference_columns` of JSON lines are several references (see `read_references`); plain lines are one document. In
    place of files `test_set` names one of sacrebleu's (see `builtin_references`). `origlang` leaves documents written
    in that language, after the translations of all were read; it and the domains of `by` are columns of documents, or
    come with a test set.

    Formats with a file a side (dtag, blank, voita, sgm, iwslt) are given the target file as reference; in the first
    three, which have no ids, documents are matched by their order. `name` (of the system), `strategy` and `beams`
    (None: as the rows say) are written down. Documents with an `error` are scored as they are, with a warning, and
    counted in the results' details as `untranslated`. `options` are those of `Evaluation`; COMET and some metrics need
    the `source` that JSON lines of `docmt translate` hold. `DataError` where documents, sentences or sources are
    missing, or the languages of the reference are not given; `ValueError` as for `Evaluation`.
    """
    evaluation, languages = Evaluation(**options), {"source_lang": source_lang, "target_lang": target_lang}
    evaluation.discourse_metrics(source_lang, target_lang)  # unfit ones, before files are read
    paths = [reference] if isinstance(reference, str | Path) else list(reference)
    if bool(paths) == (test_set is not None):
        raise ValueError("give either files of references or a test set of sacrebleu (-t), not both or none")
    if test_set is None:
        known = read_references(paths, format, **languages, translators=translators, columns=reference_columns)
    elif format != "auto" or reference_columns:
        raise ValueError("format and reference columns are for files of references; leave them out with a test set")
    else:
        known = builtin_references(test_set, source_lang, target_lang, translators)
    rows = read_translations(translations, known, system, **languages)
    if origlang is not None:
        known, rows = known.written_in(origlang, rows)
    evaluation = evaluation.with_domains(known.domains)
    search = search_of(rows)
    documents = TranslatedDocuments(
        [row["translation"] for row in rows],
        known.sides[0],
        [row.get("source") for row in rows],
        known.ids,
        dataset=known.dataset,
        split=known.split,
        strategy=strategy or search.get("strategy"),
        beams=beams or search.get("beams"),
        details={} if known.matched_by == "line" else {"repairs": count_repairs(rows)},
        other_references=known.sides[1:],
        **languages,
    )
    data = {"translations": Path(translations).name, "documents": len(known.ids)}
    data["reference"] = test_set or ", ".join(Path(path).name for path in paths)
    model = {"name": name or system or data_name(translations)} | system_settings(search)
    results = mark_untranslated(evaluation_results(documents, evaluation, search), rows, display_path(translations))
    return Report(model=model, data=data, results=results)


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
    source_lang, target_lang = check_documents(documents)
    if target_lang is None:
        raise ValueError(f"the documents have no references, only {source_lang!r}; read them with a target language")
    rows: dict[str, Mapping] = {}
    for row in translations:
        if (doc_id := id_text(row["doc_id"])) in rows:
            raise ValueError(f"document {doc_id!r} was translated twice; give one translation for each document")
        rows[doc_id] = row
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
        other_references=column_references(documents, reference_columns),
    )
    evaluation = Evaluation(**options).with_domains(label_column(documents, "domain"))
    results = mark_untranslated(evaluation_results(scored, evaluation, search), rows.values(), name)
    return Report(model={"name": name} | system_settings(search), data={"documents": len(ids)}, results=results)


def system_settings(search: Mapping[str, Any]) -> dict[str, dict]:
    """What the `model` of a report says of the search, beside the strategy and beams of every result."""
    settings = {name: value for name, value in search.items() if name not in ("strategy", "beams")}
    return {"config": settings} if settings else {}


def evaluation_results(
    documents: TranslatedDocuments, evaluation: Evaluation, search: Mapping[str, Any] | None = None
) -> list[Result]:
    """Results of an alignment, of the metrics chosen, of further ones and of COMET, in this order."""
    chosen = evaluation.corpus_metrics()
    further = evaluation.discourse_metrics(documents.source_lang, documents.target_lang)
    unit = evaluation.unit or ("document" if len(documents.ids) > 1 else "sentence")
    comet, settings = evaluation.comet_metrics(), ScoreSettings(evaluation.by, evaluation.domains, unit=unit)
    if evaluation.sentence_scores is not None:
        sentence_metrics(chosen)  # none: an error before the work
    _check_references(documents, [*chosen, *further, *comet], evaluation.align)
    _check_sources(documents, [metric for metric in (*chosen, *further, *comet[:1]) if metric.needs_sources])
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
    for metric in chosen:
        results += metric.score(documents, settings)
    results += measured
    for metric in comet:
        results += metric.score(documents, settings)
    if evaluation.sentence_scores is not None:
        write_sentence_scores(evaluation.sentence_scores, documents, chosen)
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
    chrf = {"lowercase": lowercase}
    accepted = {"s-BLEU": bleu, "d-BLEU": bleu, "chrF": chrf, "chrF++": chrf}
    results = []
    for name in default_metrics() if metrics is None else metrics:
        results += metric_class(name)(**accepted.get(name, {})).score(documents, settings)
    return results


def _check_references(documents: TranslatedDocuments, metrics: Sequence[Metric], align: bool) -> None:
    """ValueError where there are several references for what takes one only."""
    single = [metric.choice or metric.name for metric in metrics if not metric.several_references]
    single += ["alignment"] * align
    if documents.other_references and single:
        count = 1 + len(documents.other_references)
        raise ValueError(f"{count} references, but {', '.join(single)} take one only; give one, or leave these out")


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
