"""Translation of corpora: documents in, rows out."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hf_docmt.data.documents import check_documents, json_line, plain_lines, sentences
from hf_docmt.files import STDOUT, write_parts
from hf_docmt.modeling.opaque_runs import CarriedSentence, Span, score_of

if TYPE_CHECKING:  # takes longer to import than one sentence to translate
    from datasets import Dataset
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from hf_docmt.systems.system import System

Render = Callable[[dict, dict], str]


def translate_corpus(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    documents: "Dataset",
    *,
    past_context: int | None = None,
    **options,
) -> list[dict]:
    """Translate documents: rows `{"doc_id", "source", "translation", "repairs", "search"}`, in their order.

    `source` and `translation` are lists of sentences, of equal length but with `repairs="none"`. `score` is, for models
    that have it, the mean log-probability of the tokens of each translation, None for a known one. `repairs` are
    `{"sentence", "kind", "detail"}`: sentences (by index) that were translated in parts, again, or not to their end.
    `search` has strategy, beams and what else was set. `options` are those of `DocMTSystem`: `glossary` (a file,
    `{source: target}`, or pairs), `formality`, `consistent`, and those of `model.translate_documents`.

    `documents` are what the readers of `hf_docmt.data.readers` give; only their source side is read. Raises
    `DataError` for other datasets, and `ValueError` for a strategy that the model does not have.

    >>> rows = translate_corpus(model, tokenizer, documents, num_beams=4, glossary={"lamp": "Leuchte"})
    >>> len(rows[0]["translation"]) == len(rows[0]["source"])
    True
    """
    from hf_docmt.systems.docmt import DocMTSystem

    lang, _ = check_documents(documents, allow_empty=True)
    sources = [sentences(row, lang) for row in documents]
    system = DocMTSystem(model, tokenizer, decoding_past_context=past_context, **options)
    system.scores = True
    return _rows(documents["doc_id"][:], sources, system.search, *system.translate_with_repairs(sources))


def translation_rows(
    system: "System",
    doc_ids: Sequence[str],
    sources: list[list[str]],
    given: Sequence[dict[int, list[Span]]] | None = None,
) -> tuple[list[dict], list[dict[int, CarriedSentence]]]:
    """The rows of `translate_corpus` by any system, of documents given as their ids and lists of sentences.

    Opaque runs are carried, see `System.translate_carried`; the second list has the sentences with some. Rows of
    documents with such runs have their number as `carried_runs`, and as `in_parts` that of the sentences that were
    translated around them.
    """
    results, carried = system.translate_carried(sources, given)
    rows = _rows(doc_ids, sources, system.search, *results)
    for row, own in zip(rows, carried):
        counts = {
            "carried_runs": sum(len(each.spans) for each in own.values()),
            "in_parts": sum(each.is_in_parts for each in own.values()),
        }
        row |= {name: count for name, count in counts.items() if count}
    return rows, carried


def _rows(
    doc_ids: Sequence[str],
    sources: list[list[str]],
    search: dict,
    translations: Sequence[list[str]],
    repairs: Sequence[list[dict]],
    candidates: Sequence[list[list[str]]] = (),
) -> list[dict]:
    columns = zip(doc_ids, sources, translations, repairs, strict=True)
    names = ("doc_id", "source", "translation", "repairs")
    rows: list[dict] = [dict(zip(names, values)) | {"search": search} for values in columns]
    for row, lines in zip(rows, translations):
        row |= {"score": scores} if (scores := rounded_scores(lines)) else {}
    return [row | {"candidates": found} for row, found in zip(rows, candidates)] if candidates else rows


def rounded_scores(translations: Sequence[str]) -> list[float | None]:
    """The scores of translations for JSON, see `Sentence`; empty if none has one."""
    scores = list(map(score_of, translations))
    has_scores = any(score is not None for score in scores)
    return [None if score is None else round(score, 3) for score in scores] if has_scores else []


def write_translations(rows: list[dict], path: str | Path, plain: bool = False) -> None:
    """Write rows of `translate_corpus` as JSON lines, or with `plain` their translations, a sentence on each line.

    `path` is a file or `-` (standard output). A file appears when it is complete; an existing one stays until
    then. Raises `OSError` if it cannot be written.

    >>> write_translations(translate_corpus(model, tokenizer, documents), "translations.jsonl")
    """
    texts = map(plain_lines if plain else json_line, rows)
    if str(path) == STDOUT:
        sys.stdout.writelines(texts)
        sys.stdout.flush()
        return
    write_parts(texts, path)
