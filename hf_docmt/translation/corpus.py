"""Translation of corpora: documents in, rows out, and the text that is written of a row."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_docmt.data.documents import check_documents, sentences
from hf_docmt.data.readers import Reader
from hf_docmt.data.readers.lines import TEXT_LAYOUT
from hf_docmt.data.readers.row_layouts import TEXT_LINES
from hf_docmt.data.readers.running_text import join_lines
from hf_docmt.data.readers.text_layout import join_blocks
from hf_docmt.data.readers.wmt_jsonl import KEPT
from hf_docmt.files import STDOUT, write_parts
from hf_docmt.systems import System, search_settings
from hf_docmt.translation.subtitle_output import subtitle_text

if TYPE_CHECKING:  # takes longer to import than one sentence to translate
    from datasets import Dataset

Render = Callable[[dict, dict], str]


def translate_corpus(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    documents: "Dataset",
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
    were set, an `engine` other than transformers, and settings of generation that change what is found.

    `documents` are what the readers of `hf_docmt.data.readers` give; only their source side is read. Raises
    `DataError` for other datasets, and `ValueError` for a strategy that the model does not have.

    >>> rows = translate_corpus(model, tokenizer, documents, num_beams=4)
    >>> len(rows[0]["translation"]) == len(rows[0]["source"])
    True
    """
    lang, _ = check_documents(documents, allow_empty=True)
    sources = [sentences(row, lang) for row in documents]
    results = model.translate_documents(
        sources, tokenizer, strategy=strategy, batch_size=batch_size, return_report=True, **generate_kwargs
    )
    search = search_settings(model, strategy or model.default_strategy(), generate_kwargs)
    return _rows(documents["doc_id"][:], sources, search, *results)


def translation_rows(system: System, doc_ids: Sequence[str], sources: list[list[str]]) -> list[dict]:
    """The rows of `translate_corpus` by any system, for documents given as their ids and lists of sentences."""
    results = system.translate_with_repairs(sources)
    return _rows(doc_ids, sources, system.search, *results)


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
    rows = [dict(zip(names, values)) | {"search": search} for values in columns]
    return [row | {"candidates": found} for row, found in zip(rows, candidates)] if candidates else rows


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


def renderer(reader: Reader, line_end: str = "\n") -> Render:
    """The function that gives the text of one document from its row of the input and its row of `translate_corpus`.

    The output of a job is what it returns for each document, one after the other. A document that failed has empty
    sentences: blank lines in plain output, and the key `error` in rows of JSON.
    """
    render = RENDERERS[output_format(reader)]
    return render if line_end == "\n" else lambda *rows: render(*rows).replace("\n", line_end)


def output_format(reader: Reader) -> str:
    """How translations of what a reader reads are written."""
    return reader.output_format or ("lines" if reader.plain else "jsonl")


def check_repairs(reader: Reader, repairs: str | None) -> None:
    """ValueError where the output needs a translation of each sentence and `repairs` does not see to that."""
    if repairs == "none" and reader.output_format not in (None, "text"):
        raise ValueError(
            f"repairs='none' may give more or fewer sentences, and translations of {reader.name} are put in the places "
            "of the sentences; leave it out"
        )


def json_row(document: dict, result: dict) -> str:
    """The result row as a line of JSON; that of running text has `text` again in place of its sentences."""
    if TEXT_LINES not in document:
        return json_line(result)
    columns = {key: value for key, value in document.items() if key not in ("doc_id", "translation", TEXT_LINES)}
    rest = {key: value for key, value in result.items() if key not in ("source", "translation")}
    return json_line(columns | {"text": document_text(document, result)} | rest)


def document_text(document: dict, result: dict) -> str:
    """The translation of running text, with the lines of the text; of other lengths than the text's, as one line."""
    is_one_to_one = len(result["translation"]) == len(result["source"])
    return join_lines(result["translation"], document[TEXT_LINES] if is_one_to_one else [len(result["translation"])])


def hypothesis_row(document: dict, result: dict) -> str:
    """A line of a system's output as WMT's general task collects them: ids, languages and `hypothesis`."""
    columns = {name: document[name] for name in KEPT if document.get(name) is not None}
    failed = {"error": result["error"]} if "error" in result else {}
    return json_line({"doc_id": result["doc_id"], **columns, "hypothesis": document_text(document, result), **failed})


def text_again(document: dict, result: dict) -> str:
    """The text file again with translated sentences; where there are more or fewer, a line for each."""
    if len(result["translation"]) != len(document["translation"]):
        return plain_lines(result)
    return join_blocks(result["translation"], document[TEXT_LAYOUT])


RENDERERS: dict[str, Render] = {
    "jsonl": json_row,
    "lines": lambda document, result: plain_lines(result),
    "text": text_again,
    "wmt_jsonl": hypothesis_row,
    "subtitles": subtitle_text,
}
