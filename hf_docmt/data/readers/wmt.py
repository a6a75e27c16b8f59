"""Test sets in one XML file with the source, references and system outputs of each document, as WMT has since 2021."""

import re
from collections.abc import Iterator
from pathlib import Path

from hf_docmt.data.documents import make_row
from hf_docmt.data.language_codes import other_spellings
from hf_docmt.data.readers.reader import Reader
from hf_docmt.data.readers.tagged_documents import (
    PROLOGUE,
    Side,
    TaggedDocument,
    matched_side,
    tagged_documents,
    xml_events,
)
from hf_docmt.files import DataError

KEPT = ("origlang", "domain")  # attributes of documents that are columns
AUTHOR = {"ref": "translator", "hyp": "system"}  # attribute that tells the sides of one language apart


class WmtReader(Reader):
    """Documents `<doc id>` with `<src lang>` and `<ref lang translator>`, matched by `<seg id>`.

    Documents of test suites (`<doc testsuite>`), which have no reference, are left out. `translator` chooses among
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
                raise DataError(
                    f"{whole.location}: document {doc_id!r} has <seg> outside <src> and <ref>; use format iwslt"
                )
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
        asked = f", asked for is {author!r}" if author is not None else ""
        raise DataError(
            f"{document.sides[0].location}: document {document.doc_id!r} has {len(in_language)} <{name}> in {lang!r}, "
            f"{kind}s {names}{asked}; choose one of them with {kind}= (--{kind})"
        )
    return chosen[0]
