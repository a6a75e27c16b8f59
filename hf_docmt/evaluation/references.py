"""Reference documents, one reference or several, from files or from the test sets that sacrebleu downloads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import chain, compress, groupby
from pathlib import Path
from typing import TypeVar

import sacrebleu

from hf_docmt.data.documents import sentences
from hf_docmt.data.readers import Reader, detect_format, get_reader, input_argument, iterate_documents
from hf_docmt.data.readers.wmt_terminology import DELIMITER
from hf_docmt.evaluation.metrics.metric import Documents
from hf_docmt.files import DataError, data_name, display_path, read_lines
from hf_docmt.messages import counted
from hf_docmt.reports.signature import content_digest

Row = TypeVar("Row")

PLAIN = "lines"
WITH_TRANSLATORS = ("wmt", "wmt_jsonl")  # formats


@dataclass(frozen=True, kw_only=True)
class References:
    """Reference documents to compare translations with.

    `sides` has the documents of each reference. `matched_by` is the key that pairs translations with them: `id` of the
    document, `order` of the documents, or `line` without documents. `path` is for messages.
    """

    path: str
    dataset: str
    ids: list[str]
    sides: list[Documents]
    sources: Sequence[Sequence[str] | None]
    split: str = "all"
    domains: Mapping[str, str] | None = None  # by document id
    origlangs: Mapping[str, str] | None = None  # languages that the documents were written in
    matched_by: str = "id"
    terms: Mapping[str, list] | None = None  # glossary entries by document id
    delimiters: Mapping[str, str] | None = None  # between paragraphs by document id, of WMT26's terminology task

    @property
    def digest(self) -> str:
        """The digest of the sentences of all non-empty documents, independent of ids and order, and that of sides."""
        documents = zip(self.sources, *self.sides)
        return content_digest([source, *sorted(sides)] for source, *sides in documents if any(sides))

    def cut(self, lines: Sequence[str], path: str | Path) -> list[list[str]]:
        """Lines as sentences of these documents. DataError: other numbers of lines than of sentences."""
        lengths = [len(document) for document in self.sides[0]]
        if len(lines) != sum(lengths):
            raise DataError(
                f"{display_path(path)} has {counted(len(lines), 'line')}, {self.path} "
                f"{counted(sum(lengths), 'sentence')} in {counted(len(lengths), 'document')}; give one line for each "
                "sentence, in the same order"
            )
        remaining = iter(lines)
        return [[next(remaining) for _ in range(length)] for length in lengths]

    def written_in(self, origlang: str) -> tuple[References, list[bool]]:
        """The documents written in this language, or with `non-` before it in another; of each whether it is kept.

        DataError: the languages are not known, or no document was written in it.
        """
        if self.origlangs is None:
            raise DataError(
                f"{self.path} does not say of every document which language it was written in, as test sets of "
                "sacrebleu (-t) and of WMT in XML do, or a column 'origlang'; omit origlang"
            )
        language = origlang.removeprefix("non-")
        kept = [(self.origlangs[doc_id] == language) == (language == origlang) for doc_id in self.ids]
        if not any(kept):
            languages = ", ".join(sorted(set(self.origlangs.values())))
            raise DataError(f"no document of {self.path} with origlang {origlang!r}; there are {languages}")
        return replace(self._only(kept), split=f"{self.split}, origlang {origlang}"), kept

    def with_sentences(self, rows: Sequence[Mapping]) -> tuple[References, list[Mapping]]:
        """The documents that have sentences, here or in their translation, and their rows: others count as nothing."""
        kept = [bool(side or row["translation"]) for side, row in zip(self.sides[0], rows, strict=True)]
        if all(kept):
            return self, list(rows)
        return self._only(kept), list(compress(rows, kept))

    def _only(self, kept: Sequence[bool]) -> References:
        ids, sources, *sides = (list(compress(part, kept)) for part in (self.ids, self.sources, *self.sides))
        return replace(self, ids=ids, sources=sources, sides=sides)

    def with_sides(self, sides: Iterable[Documents]) -> References:
        """With further references."""
        return replace(self, sides=[*self.sides, *sides])

    def in_order(self, rows: Mapping[str, Row], path: str | Path) -> list[Row]:
        """The rows of these documents, in their order. DataError: other documents than these."""
        if self.matched_by == "order":
            if len(rows) != len(self.ids):
                raise DataError(
                    f"{path} has {counted(len(rows), 'document')}, {self.path} {len(self.ids)}; translate them all"
                )
            return list(rows.values())
        lost, own_ids = [name for name in self.ids if name not in rows], set(self.ids)
        other = [name for name in rows if name not in own_ids]
        if lost or other:
            raise DataError(
                f"{display_path(path)} has {counted(len(rows), 'document')}, {self.path} {len(self.ids)}; not "
                f"translated: {', '.join(lost[:3]) or 'none'}; not in the reference: {', '.join(other[:3]) or 'none'}: "
                "translate the whole reference and nothing else"
            )
        return [rows[doc_id] for doc_id in self.ids]


def read_references(
    paths: Sequence[str | Path],
    format: str = "auto",
    source_lang: str | None = None,
    target_lang: str | None = None,
    *,
    translators: Sequence[str] = (),
    columns: Sequence[str] = (),
    terms: str | None = None,
) -> References:
    """The references in files: a file each, or those of `translators` in a set of WMT, or of further `columns`.

    The first file defines the documents; another one has the same, or a line for each of their sentences.
    Plain lines are one document. `translators` names references of such a set, `columns` lists of sentences in the rows
    of JSON lines, in addition to the target side. DataError: languages missing, files that do not fit each other.
    """
    path, *others = paths
    options = {"reference": [Path(file).resolve() for file in paths], "translator": translators, "column": columns}
    for what, names in options.items():
        if twice := next((name for number, name in enumerate(names) if name in names[:number]), None):
            raise DataError(f"the {what} {display_path(twice)} is given twice, and counts once; omit one")
    reader = _reader(path, format)
    if reader.plain:
        if translators or columns or terms:
            raise DataError(f"{path} has plain lines; translators and columns are for documents, give several files")
        lines = plain_sentences(path)
        names = {"path": display_path(path), "dataset": data_name(path), "ids": [data_name(path)]}
        references = References(**names, sides=[[lines]], sources=[None], matched_by="line")
        return references.with_sides([references.cut(plain_sentences(other), other) for other in others])
    one_file_a_side = reader.has_one_file_a_side()
    if not target_lang or not (source_lang or one_file_a_side):
        raise DataError("the languages of the reference are needed: give --source-lang and --target-lang")
    if translators and reader.name not in WITH_TRANSLATORS:
        raise DataError(f"{path} has the format {reader.name}; only sets of WMT have translators, omit them")
    chosen = [{"translator": name} for name in translators] or [{}]
    documents, *further = [_documents(path, reader.name, source_lang, target_lang, **reference) for reference in chosen]
    references = references_of(
        documents,
        None if one_file_a_side else source_lang,
        target_lang,
        columns,
        terms,
        further,
        path=display_path(path),
        dataset=data_name(path),
        split=f"references {', '.join(translators)}" if translators else "all",
        matched_by="id" if reader.document_ids else "order",
    )
    others = [_other_file(other, format, references, source_lang, target_lang) for other in others]
    return references.with_sides(others)


def references_of(
    documents: Sequence[Mapping],
    source_lang: str | None,
    target_lang: str,
    columns: Sequence[str] = (),
    terms: str | None = None,
    further: Sequence[Sequence[Mapping]] = (),
    **fields,
) -> References:
    """The target side of documents as references, with that of `further` ones and those in `columns`."""
    return References(
        ids=[row["doc_id"] for row in documents],
        sides=[
            *([sentences(row, target_lang) for row in side] for side in (documents, *further)),
            *column_references(documents, columns),
        ],
        sources=[None if source_lang is None else sentences(row, source_lang) for row in documents],
        domains=label_column(documents, "domain"),
        origlangs=label_column(documents, "origlang"),
        terms=term_column(documents, terms),
        delimiters=label_column(documents, DELIMITER),
        **fields,
    )


def column_references(documents: Sequence[Mapping], columns: Sequence[str]) -> list[Documents]:
    """Further references of documents, in columns that hold a list of sentences for each. DataError: they do not."""
    for name in columns:
        if name not in (others := _further_columns(documents)):
            raise DataError(f"no column {name!r} of references; the documents have {', '.join(others) or 'no others'}")
        for row in documents:
            doc_id, pairs, side = row["doc_id"], row["translation"], row.get(name)
            if not isinstance(side, list) or not all(isinstance(sentence, str) for sentence in side):
                raise DataError(f"document {doc_id!r}: {name!r} must be a list of sentences, got {side!r:.60}")
            if len(side) != len(pairs):
                raise DataError(f"document {doc_id!r} has {counted(len(pairs), 'sentence')}, {len(side)} in {name!r}")
    return [[row[name] for row in documents] for name in columns]


def term_column(documents: Sequence[Mapping], name: str | None) -> dict[str, list] | None:
    """{doc_id: glossary entries} from the column `name`. DataError: no such column, or other values."""
    if name is None:
        return None
    if name not in (columns := _further_columns(documents)):
        raise DataError(
            f"the glossary {name!r} is neither a file nor a column of the references, which are "
            f"{', '.join(columns) or 'none'}"
        )
    values = {row["doc_id"]: row.get(name) for row in documents}
    for doc_id, entries in values.items():
        own = entries if isinstance(entries, list) else [None]
        if not all(isinstance(entry, dict) and {"source", "targets"} <= {*entry} for entry in own):
            raise DataError(f"document {doc_id!r}: {name!r} must list `source` and `targets`, got {entries!r:.60}")
    return values


def label_column(documents: Sequence[Mapping], name: str) -> dict[str, str] | None:
    """{doc_id: label} from the column `name`, None where not every document has a label."""
    labels = {row["doc_id"]: row.get(name) for row in documents}
    return labels if all(isinstance(label, str) for label in labels.values()) else None


def _further_columns(documents: Sequence[Mapping]) -> list[str]:
    return [name for name in dict.fromkeys(chain(*documents)) if name not in ("doc_id", "translation")]


def plain_sentences(path: str | Path) -> list[str]:
    """The lines of a text file, a sentence each; a byte order mark is part of the first, as sacrebleu reads it."""
    return [line for _, line in read_lines(path, keep_mark=True)]


def _reader(path: str | Path, format: str) -> Reader:
    return get_reader(format if format != "auto" else detect_format({"path": path}))


def _documents(path: str | Path, format: str, source_lang: str | None, target_lang: str, **options) -> list[dict]:
    """The documents of a file, of a format of one file per side with that side only."""
    if input_argument(format) == "source":
        return list(iterate_documents(format, source_lang=target_lang, source=path, allow_empty=True))
    languages = {"source_lang": source_lang, "target_lang": target_lang}
    return list(iterate_documents(format, path=path, allow_empty=True, **languages, **options))


def _other_file(
    path: str | Path, format: str, references: References, source_lang: str | None, target_lang: str
) -> Documents:
    """A further reference of the same documents, from a file of documents or of plain lines."""
    reader = _reader(path, format)
    if reader.plain:
        return references.cut(plain_sentences(path), path)
    documents = _documents(path, reader.name, source_lang, target_lang)
    side = references.in_order({row["doc_id"]: sentences(row, target_lang) for row in documents}, path)
    for doc_id, own, first in zip(references.ids, side, references.sides[0]):
        if len(own) != len(first):
            raise DataError(
                f"document {doc_id!r} has {counted(len(own), 'sentence')} in {display_path(path)}, {len(first)} in "
                f"{references.path}; references need the same sentences, empty ones included"
            )
    return side


def builtin_references(
    name: str, source_lang: str | None, target_lang: str | None, translators: Sequence[str] = ()
) -> References:
    """The test set of this name and language pair, with the references that sacrebleu scores against.

    Documents are those of the set's document ids; a set without them is one document. `translators` names other
    references of the set. Files come from the folder SACREBLEU (~/.sacrebleu), or from the network the first time.
    DataError: an unknown set, pair or translator, or a set that cannot be downloaded.
    """
    if not source_lang or not target_lang:
        raise DataError(f"the test set {name} needs both languages; give them, such as -l en-de")
    if name not in sacrebleu.DATASETS:
        close = " or ".join(get_close_matches(name.lower(), sacrebleu.DATASETS))
        hint = f"; did you mean {close}?" if close else ";"
        raise DataError(f"unknown test set {name!r}{hint} sacrebleu --list prints the names")
    dataset, pair = sacrebleu.DATASETS[name], f"{source_lang}-{target_lang}"
    if pair not in dataset.langpairs:
        raise DataError(f"the test set {name} has no pair {pair}; -l is one of {', '.join(sorted(dataset.langpairs))}")
    try:
        fields = dict(zip(dataset.fieldnames(pair), dataset.get_files(pair)))
        paths = dataset.get_reference_files(pair)
    except (OSError, SystemExit) as error:
        reason = error if isinstance(error, OSError) else "sacrebleu says why"
        raise DataError(
            f"the test set {name} cannot be downloaded ({reason}); run sacrebleu --download {name} -l {pair} where "
            "there is a network, and set SACREBLEU to the folder it went to (default: ~/.sacrebleu)"
        ) from error
    known = {field.removeprefix("ref:"): path for field, path in fields.items() if field.startswith("ref:")}
    if unknown := [translator for translator in translators if translator not in known]:
        has = ", ".join(sorted(known)) or "none"
        raise DataError(f"the test set {name} has no translator {unknown[0]!r}, it has {has}")
    paths = [known[translator] for translator in translators] or paths
    sides = [_lines(path) for path in paths]
    count = len(sides[0])
    columns = {field: _lines(fields[field]) for field in ("src", "docid", "origlang", "domain") if field in fields}
    doc_ids = columns.get("docid", [name] * count)
    runs = [list(run) for _, run in groupby(range(count), key=doc_ids.__getitem__)]
    ids = _distinct([doc_ids[run[0]] for run in runs])
    languages = (source_lang, target_lang)
    documents, *further = [
        [
            {"doc_id": doc_id, "translation": [dict(zip(languages, (columns["src"][n], side[n]))) for n in run]}
            | {field: columns[field][run[0]] for field in ("origlang", "domain") if field in columns}
            for doc_id, run in zip(ids, runs)
        ]
        for side in sides
    ]
    split = pair + (f", references {', '.join(translators)}" if translators else "")
    return references_of(documents, *languages, further=further, path=f"the test set {name}", dataset=name, split=split)


def _lines(path: str | Path) -> list[str]:
    return [line.rstrip() for line in plain_sentences(path)]


def _distinct(ids: list[str]) -> list[str]:
    """The ids, with a number after repeated ones: `a`, `b`, `a-2`."""
    times, distinct = Counter[str](), []
    for doc_id in ids:
        times[doc_id] += 1
        distinct.append(doc_id if times[doc_id] == 1 else f"{doc_id}-{times[doc_id]}")
    return distinct
