"""Translation of corpora: documents in, rows out, which are written as JSON lines or plain lines."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.data.documents import check_documents, sentences
from hf_docmt.files import write_lines

SETTINGS = ("past_context", "repairs", "alignment")  # of the search, beside strategy and beams


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
    translated: `strategy`, `beams`, and of `past_context`, `repairs`, `alignment` those that were set.

    `documents` are what the readers of `hf_docmt.data.readers` give; only their source side is read. Raises
    `DataError` for other datasets, and `ValueError` for a strategy that the model does not have.

    >>> rows = translate_corpus(model, tokenizer, documents, num_beams=4)
    >>> len(rows[0]["translation"]) == len(rows[0]["source"])
    True
    """
    lang, _ = check_documents(documents)
    sources = [sentences(row, lang) for row in documents]
    translations, repairs = model.translate_documents(
        sources, tokenizer, strategy=strategy, batch_size=batch_size, return_report=True, **generate_kwargs
    )
    search = search_settings(model, strategy or model.default_strategy(), generate_kwargs)
    return [
        {"doc_id": doc_id, "source": source, "translation": translation, "repairs": repaired, "search": search}
        for doc_id, source, translation, repaired in zip(documents["doc_id"], sources, translations, repairs)
    ]


def search_settings(model: PreTrainedModel, strategy: str, arguments: dict) -> dict:
    """How `translate_documents` with these arguments searches: strategy, beams and what else is set."""
    config = arguments.get("generation_config") or model.generation_config
    beams = arguments.get("num_beams") or config.num_beams or 1
    looks_back = strategy in ("sliding", "sequential")
    own = {"past_context": getattr(model.config, "decoding_past_context", None)} if looks_back else {}
    given = {name: arguments[name] for name in SETTINGS if arguments.get(name) is not None}
    return {"strategy": strategy, "beams": beams} | {k: v for k, v in (own | given).items() if v is not None}


def write_translations(rows: list[dict], path: str | Path, plain: bool = False) -> None:
    """Write rows of `translate_corpus` as JSON lines, or with `plain` their translations, a sentence on each line.

    `path` is a file or `-` (standard output). A file appears when it is complete; one that was there before stays
    until then. Raises `OSError` if it cannot be written.

    >>> write_translations(translate_corpus(model, tokenizer, documents), "translations.jsonl")
    """
    lines = plain_lines(rows) if plain else (json.dumps(row, ensure_ascii=False) for row in rows)
    if str(path) == "-":
        for line in lines:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
        return
    write_lines(lines, path)


def plain_lines(rows: list[dict]) -> Iterator[str]:
    """A line for each written sentence; a line break inside it becomes a blank, so that N lines stay N lines."""
    for row in rows:
        for sentence in row["translation"]:
            yield " ".join(sentence.splitlines())
