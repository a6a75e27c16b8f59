"""Comparison of systems: reports with the scores of every metric, and translations side by side."""

from collections.abc import Sequence
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.base import Metric

from hf_docmt.evaluation.metrics import metric_classes
from hf_docmt.evaluation.references import References, read_references
from hf_docmt.evaluation.translation_files import (
    count_untranslated,
    pair_lines,
    read_translations,
    search_of,
    with_whole_texts,
)
from hf_docmt.files import DataError, data_name, display_path
from hf_docmt.messages import check_known, counted
from hf_docmt.reports.columns import system_names
from hf_docmt.reports.comparison import Comparison, compare_reports
from hf_docmt.reports.report import Report
from hf_docmt.reports.side_by_side import ComparedSentence, SideBySide


def compare(reports: Sequence[str | Path | Report], **options) -> Comparison:
    """The results of several reports side by side; `options` are those of `reports.comparison.compare_reports`.

    The metrics of the package are imported first: they know how their scores follow from the statistics in reports,
    which tests against a `baseline` need. ValueError: see `compare_reports`.

    >>> report = evaluate(translate_corpus(model, tokenizer, documents), documents, name="concat")
    >>> compare([report, replace(report, model={"name": "same"})]).systems
    ('concat', 'same')
    """
    metric_classes()
    return compare_reports(reports, **options)


def side_by_side(
    paths: Sequence[str | Path],
    reference: str | Path | None = None,
    source_lang: str | None = None,
    target_lang: str | None = None,
    *,
    translators: Sequence[str] = (),
    names: Sequence[str] | None = None,
    baseline: str | None = None,
    context: int = 2,
) -> SideBySide:
    """All sentences of the documents in `reference` with the translations of each system, chrF against the reference.

    `paths`: files of translations as `docmt evaluate` reads them, or its reports, which name translations and reference
    next to them or in the working folder. `translators` choose among the references of a set of WMT. Systems
    are called as their files, or by `names`; the `baseline` is the first by default. `context` is the number of source
    sentences shown before each. Documents with an `error`, whose sentences are empty, are warned of. DataError: files
    that do not fit each other, what a report does not name. ValueError: unknown or equal names.
    """
    if context < 0:
        raise ValueError(f"context is {context}, expected 0 or more sentences before each")
    reports = {number: Report.read(path) for number, path in enumerate(paths) if Path(path).suffix == ".json"}
    files = [
        _named_file(reports[number], Path(path), "translations") if number in reports else Path(path)
        for number, path in enumerate(paths)
    ]
    labels = [reports[number].name if number in reports else data_name(file) for number, file in enumerate(files)]
    if reference is None:
        named = [_named_file(report, Path(paths[number]), "reference") for number, report in reports.items()]
        if not named:
            raise DataError("translations need the documents that were translated; give them by --reference")
        if len({path.resolve() for path in named}) > 1:
            different = ", ".join(dict.fromkeys(map(str, named)))
            raise DataError(f"the reports name different references, {different}; compare those of one")
        reference = named[0]
    systems, _ = system_names(files, labels, names)
    baseline = systems[0] if baseline is None else baseline
    check_known(baseline, systems, "baseline", "the systems are")
    languages = {"source_lang": source_lang, "target_lang": target_lang}
    documents = read_references([reference], **languages, translators=translators)
    of_systems = [read_translations(file, documents, **languages) for file in files]
    documents, of_systems = with_whole_texts(documents, of_systems)
    rows = {name: _rows(file, documents, own) for name, file, own in zip(systems, files, of_systems)}
    metric = CHRF()
    sentences = _compared_sentences(documents, rows, metric, context)
    return SideBySide(
        tuple(systems),
        baseline,
        tuple(sentences),
        signature=f"chrF2|{metric.get_signature()}",
        target_lang=target_lang,
        files=(*files, Path(reference)),
        scores=_corpus_scores(sentences, systems, {"BLEU": BLEU(trg_lang=target_lang or ""), "chrF": metric}),
        alone=frozenset(name for name in systems if search_of(rows[name]).get("strategy") == "sentence"),
    )


def _corpus_scores(
    sentences: Sequence[ComparedSentence], systems: Sequence[str], metrics: dict[str, Metric]
) -> dict[str, dict[str, float]]:
    """By metric and system, of all sentences; {} without any."""
    references = list(map(list, zip(*(sentence.references for sentence in sentences))))
    outputs = {name: [sentence.translations[name] for sentence in sentences] for name in systems}
    return {
        metric: {name: scorer.corpus_score(lines, references).score for name, lines in outputs.items()}
        for metric, scorer in metrics.items()
        if sentences
    }


def _compared_sentences(
    documents: References, rows: dict[str, list[dict]], metric: CHRF, context: int
) -> list[ComparedSentence]:
    compared = []
    for index, doc_id in enumerate(documents.ids):
        own = {name: row[index] for name, row in rows.items()}
        source = documents.sources[index] or next(filter(None, (row.get("source") for row in own.values())), None)
        for number in range(len(documents.sides[0][index])):
            references = tuple(side[index][number] for side in documents.sides)
            translations = {name: row["translation"][number] for name, row in own.items()}
            scores = {name: metric.sentence_score(text, references).score for name, text in translations.items()}
            before = tuple(source[max(0, number - context) : number]) if source else ()
            current = source[number] if source else None
            compared.append(ComparedSentence(doc_id, number + 1, before, current, references, translations, scores))
    return compared


def _named_file(report: Report, path: Path, what: str) -> Path:
    """The file of `translations` or the `reference` that a report names, next to it or in the working folder."""
    remedy = "give the files of translations themselves, and the documents by --reference"
    name = report.data.get(what)
    if not isinstance(name, str):
        raise DataError(
            f"{display_path(path)} names no file of its {what}: an earlier version or another command made it; {remedy}"
        )
    file = next((file for file in (path.parent / name, Path(name)) if file.is_file()), None)
    if file is None:
        raise DataError(
            f"{display_path(path)} names {name!r}, which is neither next to it nor in the working folder; {remedy}"
        )
    return file


def _rows(file: Path, documents: References, rows: list[dict]) -> list[dict]:
    """The rows of a system, with its unrepaired lines paired with sentences by number (see `pair_lines`)."""
    count_untranslated(rows, display_path(file))
    sizes = [len(sentences) for sentences in documents.sides[0]]
    if search_of(rows).get("repairs") == "none":
        rows = [{**row, "translation": pair_lines(row["translation"], size)} for row, size in zip(rows, sizes)]
    for doc_id, row, size in zip(documents.ids, rows, sizes):
        for what in ("translation", "source"):
            if row.get(what) is not None and len(row[what]) != size:
                raise DataError(
                    f"{display_path(file)}: document {doc_id!r} has {counted(len(row[what]), 'sentence')} as its "
                    f"{what}, {documents.path} {size}; only translations with one line per sentence can be compared"
                )
    return rows
