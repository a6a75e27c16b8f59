"""Files of translated documents: JSON lines, plain lines, and system outputs in WMT's XML."""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from hf_docmt.data.documents import id_text, sentences
from hf_docmt.data.readers import Evidence, Sample, get_reader, iterate_documents
from hf_docmt.data.readers.row_files import IDS, language_texts
from hf_docmt.data.readers.running_text import lines_of
from hf_docmt.data.readers.wmt import is_pair
from hf_docmt.evaluation.references import PLAIN, References, plain_sentences
from hf_docmt.files import DataError, display_path, location_of, parse_json, read_json, read_lines
from hf_docmt.messages import counted
from hf_docmt.modeling.text_splitting import has_text

TEXTS = re.compile(rb'\s*\[\s*"')  # a list of texts of documents
HYPOTHESIS = "hypothesis"  # of a system's output as WMT collects it: the text of a document

_logger = logging.getLogger(__name__)


class NoDocumentsError(DataError):
    """A system of WMT without a document of these references, such as one of another language pair."""


def read_translations(path: str | Path, references: References, system: str | None = None, **languages) -> list[dict]:
    """Rows with `translation`, a list of sentences, and maybe `source` and `repairs`, for each reference document.

    JSON lines are those of `docmt translate`, with their own sources, or WMT's in these languages, whose `hypothesis`
    is a text with a sentence per line. Those and plain lines, one for each sentence of the reference, have its sources;
    lines of a single document may be more or fewer, to be aligned. An XML set of WMT holds the outputs of several
    systems, of which `system` names one. `languages` are `source_lang` and `target_lang`.
    DataError: other documents than the reference's, another number of lines, an unknown system.
    """
    format = translation_format(path)
    if system is not None and format != "wmt":
        raise DataError(f"{display_path(path)} is not an XML set of WMT, and only these have named systems; omit it")
    if references.matched_by == "line" and format != PLAIN:
        raise DataError(
            f"{display_path(path)} holds {'JSON lines' if format == 'jsonl' else 'documents'}, {references.path} plain "
            "lines; give the reference documents"
        )
    if references.delimiters and Path(path).suffix == ".json":
        return _divided_texts(path, references)
    if format == PLAIN:
        lines = plain_sentences(path)
        alone = len(references.ids) == 1  # a document of any number of lines
        documents = [lines] if alone else references.cut(lines, path)
        return [{"translation": document, "source": source} for document, source in zip(documents, references.sources)]
    if format == "jsonl":
        known = references if references.matched_by == "id" else None
        rows = references.in_order(translated_rows(path, known, **languages), path)
        return [{"source": source} | row if HYPOTHESIS in row else row for source, row in zip(references.sources, rows)]
    if not all(languages.get(name) for name in ("source_lang", "target_lang")):
        raise DataError(f"{display_path(path)}: the languages of the outputs are missing; give source and target")
    rows = {}
    for row in iterate_documents(format, path=path, system=system or "", allow_empty=True, **languages):
        source, translation = (sentences(row, languages[name]) for name in ("source_lang", "target_lang"))
        rows[row["doc_id"]] = {"source": source, "translation": translation}
    return references.in_order(rows, path)


def _divided_texts(path: str | Path, references: References) -> list[dict]:
    """Rows of a list of texts, one of each document, as WMT26's terminology task collects them.

    DataError: other numbers of documents or paragraphs than in the references.
    """
    texts, ids = read_json(path), references.ids
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts) or len(texts) != len(ids):
        got = f"a list of {len(texts)}" if isinstance(texts, list) else f"a {type(texts).__name__}"
        raise DataError(
            f"{display_path(path)}: {got}, expected a list of {counted(len(ids), 'text')}, one per document"
        )
    rows = []
    for doc_id, text, reference, source in zip(ids, texts, references.sides[0], references.sources):
        delimiter = references.delimiters[doc_id]
        parts = text.split(delimiter) if delimiter else [text]
        if len(parts) != len(reference):
            raise DataError(
                f"{display_path(path)}: document {doc_id!r} has {counted(len(parts), 'paragraph')} between "
                f"{delimiter!r}, {references.path} has {len(reference)}"
            )
        translation = [part if expected else "" for part, expected in zip(parts, reference)]
        rows.append({"doc_id": doc_id, "translation": translation, "source": source})
    return rows


def translation_format(path: str | Path) -> str:
    """`jsonl`, `wmt`, or `lines` where a file of translations is neither."""
    sample = Sample({"path": path})
    formats = (name for name in ("jsonl", "wmt") if get_reader(name).recognize(sample) is not Evidence.NONE)
    return next(formats, PLAIN)


def holds_translations(path: str | Path) -> bool:
    """Whether a file begins as the JSON lines of `docmt translate` or of a system of WMT do, and no reference does."""
    if translation_format(path) != "jsonl":
        return TEXTS.match(Sample({"path": path}).head) is not None
    _, line = next(read_lines(path))
    try:
        row = parse_json(line, path)
    except DataError:
        return False  # the reader of references says what is wrong
    row = row if isinstance(row, dict) else {}
    translation = row.get("translation")
    listed = isinstance(translation, list) and all(isinstance(sentence, str) for sentence in translation)
    return listed or isinstance(row.get(HYPOTHESIS), str) or isinstance(row.get("terms"), dict)  # as WMT25's systems


def translated_rows(
    path: str | Path,
    references: References | None = None,
    source_lang: str | None = None,
    target_lang: str | None = None,
) -> dict[str, dict]:
    """Rows by document, from the JSON lines that `docmt translate` writes; of WMT's the ones in these languages.

    A row of WMT without a reference is skipped, as are the other language pairs of a file; a warning gives their
    number. Rows of WMT25's terminology task, `{"en": ..., "de": ...}`, have no ids: they are in the references' order.
    DataError: rows of neither kind, or twice the same document.
    """
    rows: dict[str, dict] = {}
    wanted, others = None if references is None else set(references.ids), 0
    for number, line in read_lines(path):
        location, row = location_of(path, number), parse_json(line, path, number)
        row = row if isinstance(row, dict) else {}
        if references and source_lang and target_lang and not {*IDS, "translation"} & row.keys():
            row = _in_place(location, number, language_texts(row, [source_lang, target_lang]), references) or row
        if isinstance(row.get(HYPOTHESIS), str) and "translation" not in row:
            pair = row.get("src_lang"), row.get("tgt_lang") or target_lang
            if not all(code is None or isinstance(code, str) for code in pair):
                raise DataError(f"{location}: `src_lang` and `tgt_lang` must be codes of languages, got {pair}")
            if source_lang and not is_pair(pair, source_lang, target_lang):
                continue
            if wanted is not None and id_text(row.get("doc_id")) not in wanted:
                others += 1
                continue
            row["translation"] = lines_of(row[HYPOTHESIS])
        doc_id, translation = id_text(row.get("doc_id", row.get("id"))), row.get("translation")
        is_list = isinstance(translation, list) and all(isinstance(sentence, str) for sentence in translation)
        if not is_list or not isinstance(doc_id, str):
            raise DataError(
                f"{location}: expected a document with `doc_id` and a list of sentences `translation`, as "
                "docmt translate writes it, or a text `hypothesis`, as WMT collects them"
            )
        if doc_id in rows:
            raise DataError(f"{location}: document {doc_id!r} appears twice; remove one")
        search, repairs = row.get("search") or {}, row.get("repairs") or []
        well_formed = isinstance(search, dict) and isinstance(repairs, list)
        if not well_formed or not all(isinstance(repair, dict) and "kind" in repair for repair in repairs):
            raise DataError(
                f"{location}: `search` must be an object and `repairs` a list of objects with `kind`, as "
                "docmt translate writes them; correct or remove them"
            )
        rows[doc_id] = row | {"doc_id": doc_id}
    if others:
        if not rows:
            raise NoDocumentsError(f"{display_path(path)}: no document has a reference, by the ids of its {others}")
        documents = counted(others, "document")
        _logger.warning("%s: %s without reference skipped, by their ids", display_path(path), documents)
    return rows


def _in_place(location: str, number: int, texts: dict[str, str], references: References) -> dict:
    """The row of the document with this number, {} without texts. DataError: it has another source."""
    sources = references.sources[number - 1 : number]
    source, *hypothesis = texts.values() or [""]
    if hypothesis and (not sources or sources[0] is not None and "\n".join(sources[0]) != "\n".join(lines_of(source))):
        raise DataError(
            f"{location}: the source {source!r:.60} is not the source of document {number} of {references.path}; give "
            "the same documents in the same order"
        )
    return {"doc_id": references.ids[number - 1], HYPOTHESIS: hypothesis[0]} if hypothesis else {}


def _are_lines_of(lines: Sequence[str] | None, source: Sequence[str] | None) -> bool:
    """Whether lines are those of a source that is one segment."""
    return len(source or ()) == 1 != len(lines or ()) and "\n".join(lines or ()) == "\n".join(source or ())


def with_whole_texts(references: References, systems: Sequence[list[dict]]) -> tuple[References, list[list[dict]]]:
    """WMT's documents as one segment each if a system has another number of lines than the reference."""
    pairs = list(zip(references.sides[0], references.sources))
    whole = {
        number
        for rows in systems
        for number, (row, (reference, source)) in enumerate(zip(rows, pairs))
        if len(row["translation"]) != len(reference) and (HYPOTHESIS in row or _are_lines_of(row.get("source"), source))
    }
    if not whole:
        return references, list(systems)

    def joined(documents):
        return [["\n".join(own)] if own and n in whole else own for n, own in enumerate(documents)]

    _logger.warning(
        "%s: %s as one segment each, because line counts differ, the first is %r; score the systems that you compare "
        "in one command",
        references.path, counted(len(whole), "document"), references.ids[min(whole)],
    )  # fmt: skip
    known = replace(references, sides=[*map(joined, references.sides)], sources=joined(references.sources))
    texts = [joined(row["translation"] for row in rows) for rows in systems]
    return known, [
        [
            row | {"translation": text, "source": source} if number in whole else row
            for number, (row, text, source) in enumerate(zip(rows, own, known.sources))
        ]
        for rows, own in zip(systems, texts)
    ]


def search_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The `search` of rows as `docmt translate` writes them, {} where they name none.

    DataError: rows that were translated in different ways.
    """
    common: dict[str, Any] | None = None
    for row in rows:
        search = row.get("search") or {}
        if common is not None and search != common:
            raise DataError(
                f"document {row['doc_id']!r} was translated by {search}, documents before it by {common}; score "
                "translations of one search"
            )
        common = search
    return common or {}


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
    return dict(Counter(repair["kind"] for row in rows for repair in row.get("repairs") or []))


def count_untranslated(rows: Iterable[Mapping[str, Any]], name: str) -> dict[str, int]:
    """`untranslated`: how many documents have an `error`, if any; a warning names the first.

    Such documents have empty sentences, which lower every score. `name` is that of the translations.
    """
    rows = list(rows)
    failed = [row["doc_id"] for row in rows if row.get("error")]
    if failed:
        _logger.warning(
            "%s: %d of %d documents could not be translated, the first is %r; their empty sentences lower the scores: "
            "translate them again",
            name, len(failed), len(rows), failed[0],
        )  # fmt: skip
    return {"untranslated": len(failed)} if failed else {}


def count_blank(rows: Sequence[Mapping[str, Any]], references: References, name: str) -> dict[str, dict[str, int]]:
    """`blank`: how many sentences of how many documents are blank where the reference is not, if any, with a warning.

    Documents with an `error` are left to `count_untranslated`.
    """
    blank = {
        doc_id: sum(
            has_text(expected) and not has_text(text)
            for text, expected in zip_longest(row["translation"], reference, fillvalue="")
        )
        for doc_id, row, reference in zip(references.ids, rows, references.sides[0])
        if not row.get("error")
    }
    blank = {doc_id: count for doc_id, count in blank.items() if count}
    if not blank:
        return {}
    total, first = sum(blank.values()), next(iter(blank))
    _logger.warning(
        "%s: %s in %s, the first in %r, where the reference has text; they are scored as empty",
        name, counted(total, "blank sentence"), counted(len(blank), "document"), first,
    )  # fmt: skip
    return {"blank": {"sentences": total, "documents": len(blank)}}
