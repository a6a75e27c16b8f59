"""Test sets of WMT: one XML file with all sides since 2021, JSON lines of running text since 2025."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.documents import json_line, make_row
from hf_docmt.data.language_codes import other_spellings, primary_language
from hf_docmt.data.readers.reader import Evidence, Reader, Sample
from hf_docmt.data.readers.row_files import json_rows
from hf_docmt.data.readers.running_text import (
    TEXT_LINES,
    document_text,
    html_column,
    sentence_splitter,
    sides_of,
    split_lines,
)
from hf_docmt.data.readers.tagged_documents import (
    PROLOGUE,
    Side,
    TaggedDocument,
    matched_side,
    tagged_documents,
    xml_events,
)
from hf_docmt.files import DataError, display_path
from hf_docmt.messages import counted
from hf_docmt.modeling.text_splitting import check_unicode

KEPT = ("origlang", "domain")  # attributes of documents that are columns
AUTHOR = {"ref": "translator", "hyp": "system"}  # attribute that tells the sides of one language apart

_logger = logging.getLogger(__name__)


class WmtReader(Reader):
    """Documents `<doc id>` with `<src lang>` and `<ref lang translator>`, matched by `<seg id>`.

    Documents of test suites (`<doc testsuite>`), which have no reference, are skipped. `translator` chooses among
    several references of a document; a reference that is alone needs no choice. With `system` the target side is the
    output `<hyp lang system>` of that system; `""` is for the one that is alone. `origlang` and `domain` of documents
    are columns.
    """

    name = "wmt"
    first_bytes = re.compile(PROLOGUE + rb"<dataset\b", re.IGNORECASE | re.DOTALL)

    def read(
        self, languages: list[str], path: str | Path, translator: str | None = None, system: str | None = None
    ) -> Iterator[tuple[str, dict]]:
        if translator is not None and system is not None:
            raise DataError(f"{path}: translator {translator!r} and system {system!r} are two targets; choose one")
        name, author = ("ref", translator) if system is None else ("hyp", system or None)
        for document in tagged_documents(path, xml_events(path)):
            if "testsuite" in document.attributes:
                continue
            doc_id, whole = document.doc_id, document.sides[0]
            if whole.sentences:
                raise DataError(f"{whole.location}: document {doc_id!r} has <seg> outside <src> and <ref>; use iwslt")
            source = _chosen_side(document, "src", languages[0])
            target = None
            if len(languages) == 2:
                target = matched_side(doc_id, source, _chosen_side(document, name, languages[1], author))
            columns = {key: document.attributes[key] for key in KEPT if key in document.attributes}
            sentences = list(source.sentences.values())
            yield source.location, make_row(source.location, doc_id, sentences, target, languages, **columns)


def _chosen_side(document: TaggedDocument, name: str, lang: str, author: str | None = None) -> Side:
    """The source, or the reference or output asked for; DataError unless there is exactly one."""
    sides = [side for side in document.sides if side.name == name]
    others = other_spellings({code for side in sides if (code := side.attributes.get("lang"))}, [lang])
    in_language = [side for side in sides if lang in (code := side.attributes.get("lang"), others.get(code))]
    if not in_language:
        have = ", ".join(sorted({repr(side.attributes.get("lang")) for side in sides})) or "none at all"
        raise DataError(
            f"{document.sides[0].location}: document {document.doc_id!r} has no <{name}> in {lang!r}, it has {have}; "
            "correct the language" + ", or read the source side only" * (name != "src")
        )
    kind = AUTHOR.get(name, "translator")
    chosen = [side for side in in_language if author in (None, side.attributes.get(kind))]
    if len(chosen) != 1:
        names = ", ".join(repr(side.attributes.get(kind)) for side in in_language)
        asked = f", requested was {author!r}" if author is not None else ""
        raise DataError(
            f"{document.sides[0].location}: document {document.doc_id!r} has {len(in_language)} <{name}> in {lang!r}, "
            f"{kind}s {names}{asked}; choose one of them with {kind}= (--{kind})"
        )
    return chosen[0]


TEXT_KEYS = ("src_text", "source_doc")  # of the sets, and of the blind set of 2026
TEXT_KEY = re.compile(rb'[{,]\s*"(' + "|".join(TEXT_KEYS).encode() + rb')"\s*:')
KEPT_KEYS = ("collection_id", "dataset_id", "src_lang", "tgt_lang", "domain")


class WmtJsonlReader(Reader):
    """`{"doc_id", "src_lang", "tgt_lang", "src_text", "refs", ...}`, the text of a whole document in one string.

    A file has many language pairs; the reader takes the rows of the source language and of `tgt_lang`, a code of the
    set such as `de_DE`, or its language alone where the set has it once; without it the one of the target side, or the
    only one. For translation the text is split into sentences, and `text_lines` has their number on each of its lines.
    With a target language, lines are the sentences (blank ones stay, a line end at the end of a text begins no line);
    where source and reference have other numbers of lines, the document is one segment. The target side is the
    reference `translator` of `refs`, or the one that is alone; rows with `refs: {}` are skipped with a warning.
    """

    name = "wmt_jsonl"
    output_format = "wmt_jsonl"

    def recognize(self, sample: Sample) -> Evidence:
        has_text = sample.argument == "path" and TEXT_KEY.search(sample.head)
        return Evidence.NAME_AND_BYTES if has_text else Evidence.NONE

    def read(
        self, languages: list[str], path: str | Path, tgt_lang: str | None = None, translator: str | None = None
    ) -> Iterator[tuple[str, dict]]:
        wanted = tgt_lang or (languages[1] if len(languages) == 2 else None)
        split = sentence_splitter(languages[0]) if len(languages) == 1 else None
        code, others, read, without = None, set(), 0, 0
        for location, _, row in json_rows(path):
            row = _checked(location, row)
            pair = row.get("src_lang"), row.get("tgt_lang")
            if not is_pair(pair, languages[0], wanted):
                others.add(pair)
                continue
            code = code or pair[1]
            if pair[1] != code:
                raise DataError(
                    f"{location}: the file has documents for {code!r} and {pair[1]!r}; choose one by its code as the "
                    "target language, or by tgt_lang="
                )
            if len(languages) == 2 and row.get("refs") == {}:
                without += 1
                continue
            read += 1
            yield location, _text_row(location, row, split, languages, translator)
        if without and not read:
            raise DataError(f"{display_path(path)}: no document for {code} has a reference; omit the target language")
        if without:
            _logger.warning("%s: %s with refs {} skipped", display_path(path), counted(without, "document"))
        if code is None:
            pairs = ", ".join(sorted({f"{source}-{target}" for source, target in others}))
            asked = f"{languages[0]}-{wanted}" if wanted else languages[0]
            raise DataError(
                f"{display_path(path)}: no documents for {asked}, there are {pairs}; correct the languages, "
                "or give the target as the file has it by tgt_lang="
            )

    def render(self, document: dict, result: dict) -> str:
        """A line of a system's output as WMT's general task collects them: ids, languages and `hypothesis`."""
        columns = {name: document[name] for name in KEPT_KEYS if document.get(name) is not None}
        failed = {"error": result["error"]} if "error" in result else {}
        hypothesis = document_text(document, result)
        return json_line({"doc_id": result["doc_id"], **columns, "hypothesis": hypothesis, **failed})


def _checked(location: str, row: dict) -> dict:
    text = next((row[key] for key in TEXT_KEYS if key in row), None)
    for name, value in {"doc_id": row.get("doc_id"), "tgt_lang": row.get("tgt_lang"), "src_text": text}.items():
        if not isinstance(value, str) or not value:
            raise DataError(f"{location}: {name!r} is missing or no string, got {value!r:.60}; every document has one")
    return row | {"src_text": text}


def is_pair(pair: tuple, source_lang: str, tgt_lang: str | None) -> bool:
    """Whether a row is of these languages; one without a source language is of any."""
    source, target = pair
    if source is not None and primary_language(str(source)) != primary_language(source_lang):
        return False
    return tgt_lang in (None, target, primary_language(target))


def _text_row(location: str, row: dict, split, languages: list[str], translator: str | None) -> dict:
    columns = {key: row[key] for key in KEPT_KEYS if isinstance(row.get(key), str)}
    doc_id, text = row["doc_id"], row["src_text"]
    for value in (text, *columns.values()):
        check_unicode(value, f"{location}: document {doc_id!r}", DataError)
    if len(languages) == 1:
        sentences, lines = split_lines(text, split)
        columns |= html_column(text)
        return make_row(location, doc_id, sentences, None, languages, **columns, **{TEXT_LINES: lines})
    reference = _reference(location, doc_id, row.get("refs"), translator)
    source, target = sides_of([text, reference])
    return make_row(location, doc_id, source, target, languages, **columns)


def _reference(location: str, doc_id: str, references: object, translator: str | None) -> str:
    references = references if isinstance(references, dict) else {}
    if translator is None and len(references) == 1:
        translator = next(iter(references))
    chosen = references.get(translator)
    text = chosen.get("ref") if isinstance(chosen, dict) else chosen
    if not isinstance(text, str):
        names = ", ".join(map(repr, references)) or "none"
        raise DataError(
            f"{location}: document {doc_id!r} has the references {names}, got translator {translator!r}; choose one of "
            "them by translator= (docmt evaluate: --translator), or read the source side only"
        )
    return text
