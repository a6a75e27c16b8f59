"""From files to reports: scores of translated documents, contrastive accuracy of a model."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from hf_docmt import registry
from hf_docmt.data.documents import DataError, sentences
from hf_docmt.data.readers import detect_format, read_documents
from hf_docmt.data.readers.files import parse_json, read_lines
from hf_docmt.evaluation.metrics import score_translations
from hf_docmt.evaluation.report import build_report
from hf_docmt.evaluation.scorer import contrastive_result, judge, score_suite
from hf_docmt.evaluation.suites import read_suite

PAIRS = ("dtag", "blank", "voita")  # formats of two files without document ids
CHUNK_CONTEXT = 3  # sentences before the current one that a suite gives a model of chunks, as ContraPro has them


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
) -> dict:
    """The report of translated documents against reference documents with the same ids in any order.

    Plain lines are compared with plain lines, as one document. Formats of two files (dtag, blank, voita) are given the
    target file as reference; they have no ids, so documents are matched by their order. `name` (of the system),
    `strategy` and `beams` are written down. `DataError` where documents or sentences are missing, or the languages of
    the reference are not told.
    """
    plain = (format if format != "auto" else detect_format({"path": reference})) in ("lines", "text")
    if plain:
        if detect_format({"path": translations}) == "jsonl":
            raise DataError(f"{translations} holds JSON lines, {reference} plain lines; give the reference documents")
        sides = [plain_sentences(path) for path in (translations, reference)]
        hypotheses, references, ids, details = [sides[0]], [sides[1]], [Path(reference).stem], {}
    else:
        found = read_translations(translations)
        details = {"repairs": count_repairs(found.values())}
        hypotheses, references, ids = matched(found, translations, reference, format, source_lang, target_lang)
    results = score_translations(
        hypotheses,
        references,
        dataset=Path(reference).stem,
        split="all",
        target_lang=target_lang,
        doc_ids=ids,
        strategy=strategy,
        beams=beams,
        details=details,
    )
    data = {"reference": Path(reference).name, "documents": len(ids)}
    return build_report(model={"name": name or Path(translations).stem}, data=data, results=results)


def plain_sentences(path: str | Path) -> list[str]:
    return sentences(read_documents("lines", source_lang="text", path=path)[0], "text")


def matched(
    found: dict[str, dict], translations, reference, format, source_lang, target_lang
) -> tuple[list, list, list[str]]:
    """Hypotheses and references of the same documents, in the order of the reference, and their ids."""
    if not target_lang or not (source_lang or format in PAIRS):
        raise DataError("the languages of the reference are needed: give --source-lang and --target-lang")
    if format in PAIRS:
        documents = read_documents(format, source_lang=target_lang, source=reference)
        if len(found) != len(documents):
            raise DataError(
                f"{translations} has {len(found)} documents, {reference} {len(documents)}; translate them all"
            )
        ids = list(found)
    else:
        documents = read_documents(format, source_lang=source_lang, target_lang=target_lang, path=reference)
        ids = list(documents["doc_id"])
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


def contrast_files(
    model,
    tokenizer,
    suites: Sequence[str | Path],
    *,
    name: str,
    documents: str | Path | None = None,
    normalization: str = "sum",
    context: int | None = None,
) -> dict:
    """The report of a model's contrastive accuracy on suite files.

    `context` is the number of sentences before the current one, by default those of the model's windows, or 3 for a
    model of chunks. ValueError: more than a model of windows takes.
    """
    results = contrast(model, tokenizer, suites, documents=documents, normalization=normalization, context=context)
    data = {"suites": [Path(suite).name for suite in suites]}
    return build_report(model=describe_model(name, model), data=data, results=results)


def contrast(
    model, tokenizer, suites, *, documents=None, normalization="sum", context=None, split: str = "all"
) -> list[dict]:
    """One report result for every suite file; see `contrast_files`."""
    config, architecture = model.config, registry.for_config(model.config)
    collate = architecture.collator(config, tokenizer, context_discount=0.0)
    window = architecture.view(config) != "chunk"
    past = (config.past_context if window else CHUNK_CONTEXT) if context is None else context
    if past < 0 or (window and past > config.past_context):
        raise ValueError(f"context: got {past}, expected 0 to {config.past_context}, the windows of this model")
    context = {"past_context": past, "future_context": config.future_context}
    results = []
    for suite in suites:
        items = read_suite(suite, documents=documents, context=past)
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
        "name": Path(name).name,
        "architecture": registry.for_config(config).name,
        "parameters": model.num_parameters(),
        "config": {field: getattr(config, field) for field in shown if hasattr(config, field)},
    }
