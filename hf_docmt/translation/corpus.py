"""Translation of files: documents in, JSON lines or plain lines out."""

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
    """Rows `{"doc_id", "source", "translation", "repairs"}`, in the order of the documents.

    `source` and `translation` are lists of equal length; `repairs` says what had to be translated again or in parts,
    see `translate_documents`. Further arguments go to `generate`.
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
    """Write JSON lines, or with `plain` the translations one a line, to a file or `-` (standard output).

    A file appears when it is complete; one that was there before stays until then. Raises `OSError`.
    """
    lines = plain_lines(rows) if plain else (json.dumps(row, ensure_ascii=False) for row in rows)
    if str(path) == "-":
        for line in lines:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
        return
    write_lines(lines, path)


def plain_lines(rows: list[dict]) -> Iterator[str]:
    """One line a sentence; a line break inside a translation becomes a blank, so that lines keep their number."""
    for row in rows:
        for sentence in row["translation"]:
            yield " ".join(sentence.splitlines())
