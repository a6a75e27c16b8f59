"""From files of translated documents to a report of their scores."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from hf_docmt.data.documents import sentences
from hf_docmt.data.readers import detect_format, get_reader, input_argument, read_documents
from hf_docmt.evaluation.alignment import align_documents, alignment_results
from hf_docmt.evaluation.discourse import connective_result, connectives_of, pronoun_f1, term_consistency
from hf_docmt.evaluation.metrics import score_translations
from hf_docmt.evaluation.metrics.comet_files import MODEL, comet_results
from hf_docmt.files import DataError, parse_json, read_lines
from hf_docmt.reports.report import Report
from hf_docmt.reports.result import Result
from hf_docmt.reports.signature import Signature

UNSPACED = ("zh", "ja", "th", "lo", "km", "my")
DISCOURSE = {"pronouns": "pronoun", "formality": "formality", "connectives": None, "terms": None}


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
    by: Sequence[str] = (),
    domains: str | None = None,
    align: bool = False,
    discourse: Sequence[str] = (),
    comet: str | None = None,
    comet_model: str | None = None,
    comet_context: int = 0,
) -> Report:
    """The report of translated documents against reference documents with the same ids in any order.

    Plain lines are compared with plain lines, as one document. Formats with a file a side (dtag, blank, voita, sgm,
    iwslt) are given the target file as reference; in the first three, which have no ids, documents are matched by their
    order. `name` (of the system), `strategy` and `beams` are written down. `by` and `domains` ask for parts of the
    scores (see `breakdowns`), `align` cuts translations with other sentences than the reference (see `alignment`),
    `discourse` names measures of `DISCOURSE`, and `comet`, the Python of an environment with unbabel-comet, adds COMET
    by `comet_model`, with `comet_context` sentences of context document-level COMET, too. Both need the `source` that
    JSON lines of `docmt translate` hold. `DataError` where documents, sentences or sources are missing, or the
    languages of the reference are not told; `ValueError` for an unknown measure, or options of COMET without `comet`.
    """
    check_discourse(discourse, source_lang, target_lang)
    if comet is None and (comet_model is not None or comet_context):
        raise ValueError(
            "a model or context for COMET, but no COMET: give the Python of an environment with unbabel-comet (--comet)"
        )
    reader = get_reader(format if format != "auto" else detect_format({"path": reference}))
    if reader.plain:
        if detect_format({"path": translations}) == "jsonl":
            raise DataError(f"{translations} holds JSON lines, {reference} plain lines; give the reference documents")
        sides = [plain_sentences(path) for path in (translations, reference)]
        hypotheses, references, ids, details, found = [sides[0]], [sides[1]], [Path(reference).stem], {}, {}
    else:
        found = read_translations(translations)
        details = {"repairs": count_repairs(found.values())}
        hypotheses, references, ids = matched(found, translations, reference, format, source_lang, target_lang)
    sources = [found.get(doc_id, {}).get("source") for doc_id in ids]
    needing = [measure for measure in discourse if measure != "connectives"]
    check_sources(sources, ids, needing if comet is None else [*needing, "COMET"])
    told = {"dataset": Path(reference).stem, "split": "all", "strategy": strategy, "beams": beams}
    results, signature = [], None
    if align:
        alignment = align_documents(hypotheses, references, doc_ids=ids, target_lang=target_lang)
        hypotheses, signature = alignment.documents, alignment.signature
        results = alignment_results(alignment, **told)
    measured = discourse_results(discourse, sources, hypotheses, references, ids, told)  # fails early, if at all
    results += score_translations(
        hypotheses,
        references,
        target_lang=target_lang,
        doc_ids=ids,
        details=details,
        by=by,
        domains=domains,
        alignment=signature,
        **told,
    )
    results += [replace(one, signature=(signature or Signature()) + one.signature) for one in measured]
    if comet is not None:
        options = {"python": comet, "model": comet_model or MODEL, "context": comet_context, "alignment": signature}
        results += comet_results(sources, hypotheses, references, doc_ids=ids, **options, **told)
    data = {"reference": Path(reference).name, "documents": len(ids)}
    return Report(model={"name": name or Path(translations).stem}, data=data, results=results)


def check_discourse(measures: Sequence[str], source_lang: str | None, target_lang: str | None) -> None:
    """ValueError for an unknown measure, or one that is not made for these languages, where they are told."""
    source, target = (lang and lang.lower().replace("-", "_").split("_")[0] for lang in (source_lang, target_lang))
    for measure in measures:
        if measure not in DISCOURSE:
            raise ValueError(f"unknown discourse measure {measure!r}: expected some of {', '.join(DISCOURSE)}")
        if DISCOURSE[measure] and (source or "en", target or "de") != ("en", "de"):
            raise ValueError(f"{measure} are counted from English to German, got {source_lang} to {target_lang}")
        if measure == "connectives" and target_lang:
            connectives_of(target_lang)
        if measure == "terms" and target in UNSPACED:
            raise ValueError(f"terms need a language that parts words by blanks, got {target_lang!r}; leave them out")


def check_sources(sources: list, ids: list[str], measures: Sequence[str]) -> None:
    """DataError where a document has no source that one of these measures needs."""
    lost = [name for name, source in zip(ids, sources) if not isinstance(source, list)]
    if measures and lost:
        raise DataError(
            f"document {lost[0]!r} has no 'source' beside its translation, needed for {', '.join(measures)}; give the "
            "JSON lines that docmt translate writes"
        )


def discourse_results(
    measures: Sequence[str], sources: list, hypotheses, references, ids: list[str], told: dict
) -> list[Result]:
    """One result for each of these measures of `DISCOURSE`."""
    results = []
    for measure in measures:
        if measure == "connectives":
            results.append(connective_result(hypotheses, references, doc_ids=ids, **told))
        elif measure == "terms":
            results.append(term_consistency(sources, hypotheses, references, doc_ids=ids, **told))
        else:
            sides = (sources, hypotheses, references)
            results.append(pronoun_f1(*sides, phenomenon=DISCOURSE[measure], doc_ids=ids, **told))
    return results


def plain_sentences(path: str | Path) -> list[str]:
    return sentences(read_documents("lines", source_lang="text", path=path)[0], "text")


def matched(
    found: dict[str, dict], translations, reference, format, source_lang, target_lang
) -> tuple[list, list, list[str]]:
    """Hypotheses and references of the same documents, in the order of the reference, and their ids."""
    one_file_a_side = input_argument(format) == "source"
    if not target_lang or not (source_lang or one_file_a_side):
        raise DataError("the languages of the reference are needed: give --source-lang and --target-lang")
    reader = get_reader(format if format != "auto" else detect_format({"path": reference}))
    if one_file_a_side:
        documents = read_documents(reader.name, source_lang=target_lang, source=reference)
    else:
        documents = read_documents(reader.name, source_lang=source_lang, target_lang=target_lang, path=reference)
    if not reader.document_ids and len(found) != len(documents):
        raise DataError(f"{translations} has {len(found)} documents, {reference} {len(documents)}; translate them all")
    ids = list(documents["doc_id"]) if reader.document_ids else list(found)
    lost, other = [name for name in ids if name not in found], [name for name in found if name not in set(ids)]
    if lost or other:
        raise DataError(
            f"{translations} has {len(found)} documents, {reference} {len(ids)}; not translated: "
            f"{', '.join(lost[:3]) or 'none'}; not in the reference: {', '.join(other[:3]) or 'none'}: translate the "
            "whole reference and nothing else"
        )
    hypotheses = [found[doc_id]["translation"] for doc_id in ids]
    return hypotheses, [sentences(row, target_lang) for row in documents], ids


def read_translations(path: str | Path) -> dict[str, dict]:
    """Rows by document, from the JSON lines that `docmt translate` writes."""
    found: dict[str, dict] = {}
    for number, line in read_lines(path):
        row = parse_json(line, path, number)
        doc_id, translation = (row.get("doc_id"), row.get("translation")) if isinstance(row, dict) else (None, None)
        if not isinstance(translation, list) or not all(isinstance(sentence, str) for sentence in translation):
            raise DataError(
                f"{path}, line {number}: expected a document with `doc_id` and a list of sentences `translation`, as "
                "docmt translate writes it"
            )
        if doc_id in found:
            raise DataError(f"{path}, line {number}: document {doc_id!r} is there twice; remove one")
        found[doc_id] = row
    return found


def count_repairs(rows: Iterable[dict]) -> dict[str, int]:
    """Number of repairs of each kind, in rows as `docmt translate` writes them."""
    counts: dict[str, int] = {}
    for row in rows:
        for repair in row.get("repairs") or []:
            counts[repair["kind"]] = counts.get(repair["kind"], 0) + 1
    return counts
