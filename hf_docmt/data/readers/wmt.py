"""Test sets in one XML file with the source, references and system outputs of each document, as WMT has since 2021."""

from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.readers.marked import MarkedDocument, Side, marked_documents, matched_side
from hf_docmt.data.readers.markup import xml_events
from hf_docmt.files import DataError


def read_wmt(languages: list[str], path: str | Path, translator: str | None = None) -> Iterator[tuple[str, dict]]:
    """Rows of `<doc id>` with `<src lang>` and `<ref lang translator>`, matched by `<seg id>`.

    Left out are outputs of systems and documents of test suites (`<doc testsuite>`), which have no reference.
    `translator` chooses among several references of a document; a reference that is alone needs no choice.
    """
    for document in marked_documents(path, xml_events(path)):
        if "testsuite" in document.attributes:
            continue
        doc_id, whole = document.doc_id, document.sides[0]
        if whole.sentences:
            raise DataError(f"{whole.place}: document {doc_id!r} has <seg> outside <src> and <ref>; use format iwslt")
        source = _one(document, "src", languages[0])
        target = None
        if len(languages) == 2:
            target = matched_side(doc_id, source, _one(document, "ref", languages[1], translator))
        yield source.place, make_row(source.place, doc_id, list(source.sentences.values()), target, languages)


def _one(document: MarkedDocument, name: str, lang: str, translator: str | None = None) -> Side:
    """The source or the reference asked for; DataError unless there is exactly one."""
    sides = [side for side in document.sides if side.name == name]
    found = [side for side in sides if side.attributes.get("lang") == lang]
    if not found:
        have = ", ".join(sorted({repr(side.attributes.get("lang")) for side in sides})) or "none at all"
        raise DataError(
            f"{document.sides[0].place}: document {document.doc_id!r} has no <{name}> in {lang!r}, it has {have}; "
            "correct the language" + ", or read the source side only" * (name == "ref")
        )
    chosen = [side for side in found if translator in (None, side.attributes.get("translator"))]
    if len(chosen) != 1:
        names = ", ".join(repr(side.attributes.get("translator")) for side in found)
        asked = f", asked for is {translator!r}" if translator is not None else ""
        raise DataError(
            f"{document.sides[0].place}: document {document.doc_id!r} has {len(found)} <{name}> in {lang!r}, "
            f"translators {names}{asked}; choose one of them with translator="
        )
    return chosen[0]
