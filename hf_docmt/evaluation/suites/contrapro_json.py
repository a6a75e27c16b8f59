"""Items of ContraPro's JSON, a format that the test sets of Lopes et al. have, too."""

import re
from collections.abc import Iterator
from pathlib import Path

from hf_docmt.evaluation.suites.contrapro_documents import SuiteDocuments, Surroundings
from hf_docmt.evaluation.suites.json_fields import entries_of, field_of, own_group
from hf_docmt.evaluation.suites.suite import Suite
from hf_docmt.files import DataError


def json_items(suite: Suite, first_segment: int) -> Iterator[tuple[dict, dict]]:
    """The JSON entry and the fields of every item of a suite, with the context that it asks for.

    `first_segment` is the `segment id` of a document's first sentence. An item has one or more errors.
    """
    documents = _documents(suite, first_segment)
    for number, entry in enumerate(entries_of(suite.content, suite.path), 1):
        where = f"{suite.path}, item {number}"
        source, doc_id = field_of(entry, "src segment", str, where), field_of(entry, "document id", str, where)
        segment = field_of(entry, "segment id", int, where)
        around = documents.around(doc_id, segment, source, where) if documents else Surroundings()
        labels = field_of(entry, "labels", dict, where, optional=True) or {}
        pronouns = [entry.get("src pronoun"), entry.get("ref pronoun")]
        distance = field_of(entry, "ante distance", int, where, optional=True)
        inside = field_of(entry, "intrasegmental", bool, where, optional=True)
        yield (
            entry,
            {
                "source": (*around.source, source),
                "target_context": around.target,
                "candidates": (field_of(entry, "ref segment", str, where), *_errors(entry, where)),
                "phenomenon": ":".join(pronouns).lower() if all(isinstance(p, str) for p in pronouns) else suite.name,
                "distance": distance,
                "labels": labels | ({} if inside is None else {"intrasegmental": "yes" if inside else "no"}),
                "index": segment - first_segment,
                "source_after": around.source_after,
                "target_after": around.target_after,
                **own_group(entry, where, doc_id),
                "languages": documents.languages if documents else (None, _language_ending(doc_id)),
                "location": where,
            },
        )


def _errors(entry: dict, where: str) -> list[str]:
    errors = field_of(entry, "errors", list, where)
    if not errors:
        raise DataError(f"{where}: no contrastive translations, expected at least one; the file seems to be cut")
    return [field_of(error, "contrastive", str, f"{where}, error {i}") for i, error in enumerate(errors, 1)]


def _documents(suite: Suite, first_segment: int) -> SuiteDocuments | None:
    if suite.documents is None and not suite.context and not suite.future_context:
        return None
    path = suite.path.with_name("documents.jsonl") if suite.documents is None else Path(suite.documents)
    return SuiteDocuments(path, suite.path, suite.context, suite.future_context, first_segment)


def _language_ending(doc_id: str) -> str | None:
    """The language that ends a document id such as `1999_1_2.de`."""
    found = re.search(r"\.([a-z]{2})$", doc_id)
    return found[1] if found else None
