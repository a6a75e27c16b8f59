"""Translation of corpora: documents in, rows out, which are written as JSON lines or plain lines."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.data.documents import check_documents, sentences
from hf_docmt.files import STDOUT, write_parts

SETTINGS = (
    "past_context",
    "repairs",
    "alignment",
    "source_lang",
    "target_lang",
)  # of the search, beside strategy and beams


def translate_corpus(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    documents: Dataset,
    *,
    strategy: str | None = None,
    batch_size: int = 16,
    **generate_kwargs,
) -> list[dict]:
    """Translate documents: rows `{"doc_id", "source", "translation", "repairs", "search"}`, in their order.

    `source` and `translation` are lists of sentences of equal length. `repairs` is a list of dicts `{"sentence",
    "kind", "detail"}`: sentences (by index) that were translated in parts, again, or not to their end. `strategy`,
    `batch_size` and further arguments are those of `model.translate_documents`; None is the model's own strategy. Only
    with `repairs="none"` may a `translation` be longer or shorter than its source. `search` is how they were
    translated: `strategy`, `beams`, of `past_context`, `repairs`, `alignment`, `source_lang`, `target_lang` those that
    were set, and an `engine` other than transformers.

    `documents` are what the readers of `hf_docmt.data.readers` give; only their source side is read. Raises
    `DataError` for other datasets, and `ValueError` for a strategy that the model does not have.

    >>> rows = translate_corpus(model, tokenizer, documents, num_beams=4)
    >>> len(rows[0]["translation"]) == len(rows[0]["source"])
    True
    """
    lang, _ = check_documents(documents)
    sources = [sentences(row, lang) for row in documents]
    return translation_rows(
        model, tokenizer, documents["doc_id"][:], sources, strategy=strategy, batch_size=batch_size, **generate_kwargs
    )


def translation_rows(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    doc_ids: Sequence[str],
    sources: list[list[str]],
    *,
    strategy: str | None = None,
    batch_size: int = 16,
    **generate_kwargs,
) -> list[dict]:
    """The rows of `translate_corpus` for documents given as their ids and their lists of sentences."""
    translations, repairs = model.translate_documents(
        sources, tokenizer, strategy=strategy, batch_size=batch_size, return_report=True, **generate_kwargs
    )
    search = search_settings(model, strategy or model.default_strategy(), generate_kwargs)
    return [
        {"doc_id": doc_id, "source": source, "translation": translation, "repairs": repaired, "search": search}
        for doc_id, source, translation, repaired in zip(doc_ids, sources, translations, repairs)
    ]


def search_settings(model: PreTrainedModel, strategy: str, arguments: dict) -> dict:
    """How `translate_documents` with these arguments searches: strategy, beams and what else is set."""
    given, own = arguments.get("generation_config"), model.generation_config
    beams = arguments.get("num_beams") or (given and given.num_beams) or own.num_beams or 1
    looks_back = strategy in ("sliding", "sequential")
    own = {"past_context": getattr(model.config, "decoding_past_context", None)} if looks_back else {}
    given = {name: arguments[name] for name in SETTINGS if arguments.get(name) is not None}
    own |= {"engine": getattr(model, "engine", None)}  # of a model that is not transformers'
    return {"strategy": strategy, "beams": beams} | {k: v for k, v in (own | given).items() if v is not None}


def write_translations(rows: list[dict], path: str | Path, plain: bool = False) -> None:
    """Write rows of `translate_corpus` as JSON lines, or with `plain` their translations, a sentence on each line.

    `path` is a file or `-` (standard output). A file appears when it is complete; one that was there before stays
    until then. Raises `OSError` if it cannot be written.

    >>> write_translations(translate_corpus(model, tokenizer, documents), "translations.jsonl")
    """
    texts = map(plain_lines if plain else json_line, rows)
    if str(path) == STDOUT:
        sys.stdout.writelines(texts)
        sys.stdout.flush()
        return
    write_parts(texts, path)


def json_line(row: dict) -> str:
    """A result row as a line of JSON; values that JSON does not have, such as dates, as text."""
    return json.dumps(row, ensure_ascii=False, default=str) + "\n"


def plain_lines(row: dict) -> str:
    """A line for each written sentence; a line break inside it becomes a blank, so that N lines stay N lines."""
    return "".join(" ".join(sentence.splitlines()) + "\n" for sentence in row["translation"])
