"""Translation of corpora: documents in, rows out, which are written as JSON lines or plain lines."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.data.documents import check_documents, sentences
from hf_docmt.files import write_lines


def translate_corpus(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    documents: Dataset,
    *,
    strategy: str | None = None,
    batch_size: int = 16,
    **generate_kwargs,
) -> list[dict]:
    """Translate all documents of a corpus: rows `{"doc_id", "source", "translation", "repairs"}`, in their order.

    `source` and `translation` are lists of sentences of equal length. `repairs` is a list of dicts `{"sentence",
    "kind", "detail"}`: sentences (by index) that were translated in parts, again, or not to their end. `strategy`,
    `batch_size` and further arguments are those of `model.translate_documents`; None is the model's own strategy.

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
    return [
        {"doc_id": doc_id, "source": source, "translation": translation, "repairs": repaired}
        for doc_id, source, translation, repaired in zip(documents["doc_id"], sources, translations, repairs)
    ]


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
    """A line for each sentence; a line break inside a translation becomes a blank, so that N lines stay N lines."""
    for row in rows:
        for sentence in row["translation"]:
            yield " ".join(sentence.splitlines())
