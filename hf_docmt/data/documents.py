"""The document contract: rows of `doc_id` and `translation`, in order, every sentence in every language.

A row is `{"doc_id": "talk-1", "translation": [{"en": "Hello.", "de": "Hallo."}, ...]}`, its features are
`doc_id: string`, `translation: List(Translation([source, target]))`, and further columns are allowed. Input that is
only to be translated has one language in each sentence. Sentences may be empty strings; a document has at least
one, except where empty documents are allowed: in translation and scoring they count as nothing.
"""

from __future__ import annotations

import json
import os
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from hf_docmt.files import DataError, write_lines
from hf_docmt.messages import counted
from hf_docmt.modeling.text_splitting import Sentence, check_unicode

if TYPE_CHECKING:  # scores of plain lines need none of these, which take longer to import than they take
    import pyarrow as pa
    from datasets import Dataset

ROWS_PER_TABLE = 1000
NAMED_LOCATIONS = 10_000  # number of first documents whose location is kept for messages
CHECKED = "documents that keep the contract"  # description of data sets that were checked when they were read
TARGETS = "docmt_targets"  # column of rows to translate: known translations, by number of the sentence
UNNAMED = "source"  # language of documents to translate, if neither model nor command name one


def make_documents(rows: Iterable[dict], source_lang: str, target_lang: str | None = None) -> Dataset:
    """Check rows of the document contract and put them in a `Dataset`; DataError names the first bad document.

    Without `target_lang` the documents have the source side only. Further columns are kept.

    >>> rows = [{"doc_id": "talk-1", "translation": [{"en": "Hello.", "de": "Hallo."}]}]
    >>> make_documents(rows, "en", "de")["doc_id"][:]
    ['talk-1']
    """
    located = ((f"document {number}", row) for number, row in enumerate(rows, 1))
    return collect_documents(located, source_lang, target_lang)


def collect_documents(
    located_rows: Iterable[tuple[str, dict]], source_lang: str, target_lang: str | None, allow_empty: bool = False
) -> Dataset:
    """As `make_documents`, from pairs of (location for messages, such as "a.jsonl, line 3"; row)."""
    import pyarrow as pa
    from datasets import Dataset, DatasetInfo, Features, List, Translation, Value

    languages = checked_languages(source_lang, target_lang)
    features = Features({"doc_id": Value("string"), "translation": List(Translation(languages))})
    extras: dict[str, list] = {}
    tables, count = [], 0
    rows = checked_rows(located_rows, languages, allow_empty)
    while some := list(islice(rows, ROWS_PER_TABLE)):
        tables.append(pa.Table.from_pylist(some, schema=features.arrow_schema))
        for number, row in enumerate(some, count):
            for name in [name for name in row if name not in ("doc_id", "translation")]:
                values = extras.setdefault(name, [])
                values += [None] * (number - len(values)) + [row[name]]
        count += len(some)
    table = pa.concat_tables(tables)
    others = {name: _column(name, values, count) for name, values in extras.items()}
    features.update(Features.from_arrow_schema(pa.schema([(name, column.type) for name, column in others.items()])))
    table = pa.table([*table.columns, *others.values()], names=[*table.column_names, *others])
    table = table.cast(features.arrow_schema)
    return Dataset(table, info=DatasetInfo(features=features), fingerprint=_fingerprint(table))


def checked_rows(
    located_rows: Iterable[tuple[str, dict]], languages: list[str], allow_empty: bool = False
) -> Iterator[dict]:
    """The rows one by one, each checked against the contract, with their further columns; DataError as above.

    `languages` is [source] or [source, target]. `allow_empty`: documents may have no sentence. The memory does not
    grow except for the ids of documents.
    """
    ids = DocumentIds()
    row = None
    for location, row in located_rows:
        doc_id = id_text(row.get("doc_id"))
        if not isinstance(doc_id, str) or not doc_id:
            raise DataError(f"{location}: document id is missing, got {doc_id!r}; give each document a 'doc_id' string")
        if before := ids.add(doc_id, location):
            raise DataError(f"{location}: document id {doc_id!r} was used before, in {before}; give each its own")
        check_unicode(doc_id, f"{location}: document id {doc_id!r}", DataError)
        translation = _checked_sentences(location, doc_id, row, languages, allow_empty)
        yield {**row, "doc_id": doc_id, "translation": translation}
    if row is None:
        raise DataError("no documents: the input is empty; give at least one document")


def make_row(
    location: str,
    doc_id: str,
    source: Sequence[str],
    target: Sequence[str] | None,
    languages: Sequence[str],
    /,
    **columns,
) -> dict:
    """One row from its two sides; `target` is None where `languages` has the source only. DataError if unequal."""
    if target is None or len(languages) == 1:
        return {"doc_id": doc_id, "translation": [{languages[0]: sentence} for sentence in source], **columns}
    if len(source) != len(target):
        raise DataError(
            f"{location}: document {doc_id!r} has {counted(len(source), 'source sentence')} ({languages[0]}) but "
            f"{counted(len(target), 'target sentence')} ({languages[1]}); the sides must be parallel, use empty "
            "sentences for missing ones"
        )
    src, tgt = languages
    return {"doc_id": doc_id, "translation": [{src: s, tgt: t} for s, t in zip(source, target)], **columns}


def source_sentences(row: Mapping, language: str) -> list[Sentence]:
    """The sentences of a row in this language, with the translations that its column `TARGETS` knows."""
    known = row.get(TARGETS, {})
    return [Sentence(pair[language], known.get(number)) for number, pair in enumerate(row["translation"])]


def check_documents(documents: Dataset, allow_empty: bool = False) -> tuple[str, str | None]:
    """The languages (source, target) of a data set that keeps the contract; DataError says what does not.

    The target is None where the sentences have one language only.
    """
    from datasets import List, Translation

    for column in ("doc_id", "translation"):
        if column not in documents.column_names:
            raise DataError(f"column {column!r} is missing, got {documents.column_names}; see hf_docmt.data.documents")
    feature = documents.features["translation"]
    if not isinstance(feature, List) or not isinstance(feature.feature, Translation):
        raise DataError(
            f"column 'translation' must be List(Translation([source, target])), got {feature}; build the data set with "
            "make_documents or cast the column"
        )
    languages = list(feature.feature.languages)
    if len(languages) not in (1, 2):
        raise DataError(f"documents have a source and at most one target language, got {languages}; select two")
    if documents.info.description != CHECKED:
        _check_values(documents.select_columns(["doc_id", "translation"]).with_format("arrow")[:], allow_empty)
    return languages[0], languages[1] if len(languages) == 2 else None


def checked_languages(source_lang: str | None, target_lang: str | None) -> list[str]:
    """[source] or [source, target]; DataError for a missing or repeated language."""
    if not source_lang:
        raise DataError("source_lang is missing: give a language code such as 'en'")
    if target_lang == "":
        raise DataError("target_lang is empty: give a language code such as 'de', or None for the source side only")
    if source_lang == target_lang:
        raise DataError(f"source_lang and target_lang are both {source_lang!r}; they name the sides and must differ")
    return [source_lang] if target_lang is None else [source_lang, target_lang]


def id_text(doc_id: object) -> object:
    """A document id as text: a whole number in its decimal digits, anything else unchanged."""
    return str(doc_id) if isinstance(doc_id, int) and not isinstance(doc_id, bool) else doc_id


def sentences(row: dict, lang: str) -> list[str]:
    """The sentences of one row in one language, in order."""
    try:
        return [pair[lang] for pair in row["translation"]]
    except KeyError as error:
        languages = sorted(row["translation"][0])
        raise DataError(f"document {row['doc_id']!r} has no language {lang!r}, it has {languages}") from error


def write_documents(documents: Iterable[dict], path: str | os.PathLike) -> None:
    """Write rows as JSON lines; the file appears whole or not at all, an older one stays until then.

    >>> write_documents([{"doc_id": "talk-1", "translation": [{"en": "Hello.", "de": "Hallo."}]}], "talks.jsonl")
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_lines((json.dumps(row, ensure_ascii=False) for row in documents), path)


def json_line(row: dict) -> str:
    """A row as a line of JSON; values that JSON does not have, such as dates, as text."""
    return json.dumps(row, ensure_ascii=False, default=str) + "\n"


def plain_lines(row: dict) -> str:
    """A line for each sentence of a translation; a line break inside it becomes a blank, so that N lines stay N."""
    return "".join(" ".join(sentence.splitlines()) + "\n" for sentence in row["translation"])


def _column(name: str, values: list, rows: int) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(values + [None] * (rows - len(values)))
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise DataError(f"column {name!r} has values that make no column ({error}); give them one type") from error


def _fingerprint(table: pa.Table) -> str:
    """A digest of names, types and values; that of `Dataset` pickles its features column by column."""
    digest = blake2b(table.schema.serialize(), digest_size=8)
    for batch in table.to_batches():
        digest.update(batch.serialize())
    return digest.hexdigest()


def _checked_sentences(location: str, name: str, row: dict, languages: list[str], allow_empty: bool) -> list[dict]:
    pairs = row.get("translation")
    if not isinstance(pairs, list | tuple):
        raise DataError(f"{location}: document {name!r} needs 'translation', a list of {{language: sentence}}")
    if not pairs and not allow_empty:
        raise DataError(f"{location}: document {name!r} is empty; remove it, a document needs at least one sentence")
    for number, pair in enumerate(pairs, 1):
        for lang in languages:
            text = pair.get(lang) if isinstance(pair, dict) else None
            if not isinstance(text, str):
                have = sorted(pair) if isinstance(pair, dict) else pair
                remedy = "an empty sentence is ''; omit a language that is missing"
                if lang == UNNAMED:
                    remedy = "the model names no languages, give one of these as --source-lang"
                raise DataError(
                    f"{location}: document {name!r}, sentence {number} of {len(pairs)} has no text in {lang!r}, got "
                    f"{have!r}; {remedy}"
                )
            check_unicode(text, f"{location}: document {name!r}, sentence {number} ({lang})", DataError)
    return [{lang: pair[lang] for lang in languages} for pair in pairs]


def _check_values(table: pa.Table, allow_empty: bool) -> None:
    """DataError for missing or repeated ids, documents without sentences, null sentences."""
    import pyarrow.compute as pc

    ids = table.column("doc_id")
    if ids.null_count or pc.any(pc.equal(ids, "")).as_py():
        raise DataError("a document id is missing; give every document a 'doc_id' string")
    counts = pc.value_counts(ids.combine_chunks())
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(repeated):
        raise DataError(f"document id {repeated[0]['values'].as_py()!r} is used more than once; give each its own")
    translation = table.column("translation")
    lengths = pc.fill_null(pc.list_value_length(translation), 0)
    empty = pc.index(lengths, 0).as_py()
    if empty >= 0 and not allow_empty:
        raise DataError(f"document {ids[empty].as_py()!r} is empty; remove it, a document needs at least one sentence")
    pairs = pc.list_flatten(translation)
    for chunk in pairs.chunks:
        for field in chunk.type:
            if chunk.field(field.name).null_count or chunk.null_count:
                raise DataError(f"a sentence in {field.name!r} is null; an empty sentence is ''")


class DocumentIds:
    """Ids that were used, as sorted 64-bit digests: 12 bytes a document, and those of the last ones in a dict.

    Two different ids are taken for one with a probability of n^2 / 2^65 for n documents, 3e-8 for a million.
    """

    def __init__(self):
        self._digests, self._numbers = array("Q"), array("I")  # documents from 1
        self._last: dict[int, int] = {}
        self._locations: list[str] = []

    def add(self, doc_id: str, location: str) -> str | None:
        """Note that a document has this id; where the id was used before, or None."""
        digest = int.from_bytes(blake2b(doc_id.encode("utf-8", "surrogatepass"), digest_size=8).digest())
        place = bisect_left(self._digests, digest)
        number = self._last.get(digest)
        if place < len(self._digests) and self._digests[place] == digest:
            number = int(self._numbers[place])
        if number is not None:
            return self._locations[number - 1] if number <= NAMED_LOCATIONS else f"document {number}"
        self._last[digest] = count = len(self._digests) + len(self._last) + 1
        if count <= NAMED_LOCATIONS:
            self._locations.append(location)
        if len(self._last) > 1000 + len(self._digests) // 16:
            import numpy as np

            digests = np.concatenate([self._digests, np.fromiter(self._last, np.uint64)])
            numbers = np.concatenate([self._numbers, np.fromiter(self._last.values(), np.uint32)])
            order = np.argsort(digests)
            self._digests, self._numbers, self._last = digests[order].data, numbers[order], {}
        return None
