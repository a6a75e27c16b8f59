"""Files of translated documents, and the references that belong to them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hf_docmt.data.documents import sentences
from hf_docmt.data.readers import detect_format, get_reader, input_argument, read_documents
from hf_docmt.files import DataError, parse_json, read_lines


def plain_sentences(path: str | Path) -> list[str]:
    """The lines of a text file, a sentence each."""
    return sentences(read_documents("lines", source_lang="text", path=path)[0], "text")


def match_documents(
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


def search_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The `search` of rows as `docmt translate` writes them, {} where they name none.

    DataError: rows that were translated in different ways.
    """
    found: dict[str, Any] | None = None
    for row in rows:
        search = row.get("search") or {}
        if found is not None and search != found:
            raise DataError(
                f"document {row['doc_id']!r} was translated by {search}, documents before it by {found}; score "
                "translations of one search"
            )
        found = search
    return found or {}


def pair_lines(lines: Sequence[str], size: int) -> list[str]:
    """Lines as a model wrote them for `size` sentences, line j for sentence j: missing ones empty, the rest at the end.

    So no text is lost, and what is misaligned stays so.
    """
    if len(lines) <= size:
        return [*lines, *[""] * (size - len(lines))]
    if not size:
        return list(lines)
    return [*lines[: size - 1], " ".join(line for line in lines[size - 1 :] if line)]


def count_repairs(rows: Iterable[dict]) -> dict[str, int]:
    """Number of repairs of each kind, in rows as `docmt translate` writes them."""
    counts: dict[str, int] = {}
    for row in rows:
        for repair in row.get("repairs") or []:
            counts[repair["kind"]] = counts.get(repair["kind"], 0) + 1
    return counts
