"""From files to reports: scores of translated documents, contrastive accuracy of a model."""

from collections.abc import Sequence
from pathlib import Path

from hf_docmt import registry
from hf_docmt.data.documents import DataError, sentences
from hf_docmt.data.readers import detect_format, read_documents
from hf_docmt.data.readers.files import parse_json, read_lines
from hf_docmt.evaluation.metrics import score_translations
from hf_docmt.evaluation.report import build_report
from hf_docmt.evaluation.scorer import contrastive_result, judge, score_suite
from hf_docmt.evaluation.suites import read_suite


def evaluate_files(
    translations: str | Path,
    reference: str | Path,
    format: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
) -> dict:
    """The report of translated documents against reference documents with the same ids in any order.

    Plain lines are compared with plain lines, as one document. `DataError` where documents or sentences are missing,
    or the languages of the reference are not told.
    """
    plain = (format if format != "auto" else detect_format({"path": reference})) in ("lines", "text")
    if plain:
        sides = [plain_sentences(path) for path in (translations, reference)]
        hypotheses, references, ids = [sides[0]], [sides[1]], [Path(reference).stem]
    else:
        hypotheses, references, ids = matched(translations, reference, format, source_lang, target_lang)
    results = score_translations(
        hypotheses, references, dataset=Path(reference).stem, split="all", target_lang=target_lang, doc_ids=ids
    )
    data = {"translations": str(translations), "reference": str(reference), "documents": len(ids)}
    return build_report(model={"name": Path(translations).stem}, data=data, results=results)


def plain_sentences(path: str | Path) -> list[str]:
    return sentences(read_documents("lines", source_lang="text", path=path)[0], "text")


def matched(translations, reference, format, source_lang, target_lang) -> tuple[list, list, list[str]]:
    """Hypotheses and references of the same documents, in the order of the reference, and their ids."""
    if not source_lang or not target_lang:
        raise DataError("the languages of the reference are needed: give --source-lang and --target-lang")
    documents = read_documents(format, source_lang=source_lang, target_lang=target_lang, path=reference)
    found = read_translations(translations)
    ids = list(documents["doc_id"])
    lost = [doc_id for doc_id in ids if doc_id not in found]
    if lost or len(found) != len(ids):
        raise DataError(
            f"{translations} has {len(found)} documents, {reference} {len(ids)}; not translated: "
            f"{', '.join(lost[:3]) or 'none'}: translate the whole reference and nothing else"
        )
    return [found[doc_id] for doc_id in ids], [sentences(row, target_lang) for row in documents], ids


def read_translations(path: str | Path) -> dict[str, list[str]]:
    """Translated sentences by document, from the JSON lines that `docmt translate` writes."""
    found: dict[str, list[str]] = {}
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
        found[doc_id] = translation
    return found


def contrast_files(
    model,
    tokenizer,
    suites: Sequence[str | Path],
    *,
    name: str,
    documents: str | Path | None = None,
    normalization: str = "sum",
) -> dict:
    """The report of a model's contrastive accuracy on suite files, with as much context as the model takes."""
    results = contrast(model, tokenizer, suites, documents=documents, normalization=normalization)
    data = {"suites": [str(suite) for suite in suites]}
    return build_report(model=describe_model(name, model), data=data, results=results)


def contrast(model, tokenizer, suites, *, documents=None, normalization="sum", split: str = "all") -> list[dict]:
    """One report result for every suite file."""
    config, architecture = model.config, registry.for_config(model.config)
    collate = architecture.collator(config, tokenizer, context_discount=0.0)
    context = {"past_context": config.past_context, "future_context": config.future_context}
    results = []
    for suite in suites:
        items = read_suite(suite, documents=documents, context=config.past_context)
        scores = score_suite(model, tokenizer, items, collate=collate, normalization=normalization, **context)
        verdict = judge(items, scores)
        results.append(
            contrastive_result(verdict, dataset=Path(suite).stem, split=split, normalization=normalization, **context)
        )
    return results


def describe_model(name: str, model) -> dict:
    """What a report says about a model."""
    config = model.config
    shown = ("d_model", "encoder_layers", "decoder_layers", "past_context", "future_context", "segment_encoding")
    return {
        "name": str(name),
        "architecture": registry.for_config(config).name,
        "parameters": model.num_parameters(),
        "config": {field: getattr(config, field) for field in shown if hasattr(config, field)},
    }
