"""ContraPro (Müller et al. 2018): German pronouns, as JSON that points into documents, or as the text made from it.

The JSON is a format that the test sets of Lopes et al. have, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from hf_docmt.data.documents import sentences
from hf_docmt.data.readers import read_documents
from hf_docmt.evaluation.suites.suite import Suite, weighted_average
from hf_docmt.evaluation.suites.suite_files import field_of, own_group, replaced_pronouns, same_text
from hf_docmt.files import DataError, parse_json, read_lines
from hf_docmt.reports.result import Result
from hf_docmt.systems.items import SuiteItem

PRONOUNS = ("er", "sie", "es")
RECORDED = ("phenomenon", "distance", "labels", "index", "group", "group_unit")  # fields that the JSON has
DISTANCES = {"0": 2400, "1": 7075, "2": 1510, "3": 573, ">3": 442}  # items at each antecedent distance
DOCUMENT_ID = re.compile(r"\d{4}_\d+_\d+(\.de)?")  # of OpenSubtitles: year, film, subtitles


class DocumentItems(Suite):
    """Items whose JSON names a segment of a document, from which their context is taken; the base of formats.

    An item has one or more errors.
    """

    first_segment: ClassVar[int]  # `segment id` of a document's first sentence

    @cached_property
    def suite_documents(self) -> SuiteDocuments | None:
        """The documents, if given or needed for context."""
        needed = self.documents is not None or self.context or self.future_context
        return SuiteDocuments(self, self.first_segment) if needed else None

    def json_fields(self, number, row, where):
        source, doc_id = field_of(row, "src segment", str, where), field_of(row, "document id", str, where)
        segment, documents = field_of(row, "segment id", int, where), self.suite_documents
        around = documents.around(doc_id, segment, source, where) if documents else [()] * 4
        before, before_target, after, after_target = around
        errors = field_of(row, "errors", list, where)
        if not errors:
            raise DataError(f"{where}: no contrastive translations, expected at least one; the file seems to be cut")
        wrong = [field_of(error, "contrastive", str, f"{where}, error {i}") for i, error in enumerate(errors, 1)]
        ending = re.search(r"\.([a-z]{2})$", doc_id)  # the language, such as in `1999_1_2.de`
        labels = field_of(row, "labels", dict, where, optional=True) or {}
        pronouns = [row.get("src pronoun"), row.get("ref pronoun")]
        inside = field_of(row, "intrasegmental", bool, where, optional=True)
        return {
            "source": (*before, source),
            "target_context": before_target,
            "candidates": (field_of(row, "ref segment", str, where), *wrong),
            "phenomenon": ":".join(pronouns).lower() if all(isinstance(p, str) for p in pronouns) else self.name,
            "distance": field_of(row, "ante distance", int, where, optional=True),
            "labels": labels | ({} if inside is None else {"intrasegmental": "yes" if inside else "no"}),
            "index": segment - self.first_segment,
            "source_after": after,
            "target_after": after_target,
            **own_group(row, where, doc_id),
            "languages": documents.languages if documents else (None, ending and ending[1]),
        }


class ContraPro(DocumentItems):
    """German pronouns er, sie and es (Müller et al. 2018); other suites use the format, too.

    JSON with `segment id` counted from 1 and one or more errors an item; `labels`, an object, may name further
    properties that accuracy is broken down by. The context is taken from `documents`, JSON lines with the source
    language first in every sentence pair, by default `documents.jsonl` next to the suite; given ones are read without
    context, too. Or `NAME.text.en` and `.de`, parallel files with the reference and its two errors as the lines of an
    item, and the context in `NAME.context.en` and `.de`, the same number of lines for each line of text, where empty
    lines replace missing sentences. There the pronoun is read from the translations, all else about an item from
    `records`, the JSON, if it exists.
    """

    format = "contrapro"
    title = "ContraPro"
    text_name = re.compile(r"(.+)\.text\.(?:en|de)")
    languages = ("en", "de")
    lines = 3  # the reference and two errors
    first_segment = 1
    json_key = "src segment"
    options = {"documents": "JSON of ContraPro", "records": "text files of ContraPro"}
    published = {
        "contrapro": {"items": 12000, "candidates": 36000} | {f"distance={d}": n for d, n in DISTANCES.items()}
    }

    def text_files(self):
        files, context_files = self.beside("text.en", "text.de"), self.beside("context.en", "context.de")
        if not self.context:
            return {"files": files}
        needed, lines = (sum(1 for _ in read_lines(side)) for side in (files[0], context_files[0]))
        return {"files": files, "context_files": context_files, "size": max(1, round(lines / needed))}

    def text_fields(self, number, block, record):
        if record is not None:
            return {name: getattr(record, name) for name in RECORDED}
        return {"phenomenon": f"it:{replaced_pronouns(block, PRONOUNS)}", "index": block.index}

    @classmethod
    def published_counts(cls, name: str, items: Sequence[SuiteItem]) -> dict[str, int] | None:
        """The counts of ContraPro for its own name, and under any name for items of its documents."""
        is_contrapro = all(DOCUMENT_ID.fullmatch(item.group or "") for item in items)
        return cls.published.get("contrapro" if is_contrapro else name)

    @classmethod
    def averages(cls, results: Sequence[Result]) -> list[Result]:
        """`CP`, `CP_d>0` and `CP_avg` of Lupo et al. (2023), appendix F, for results with all five distances.

        The weights are the published sizes of the subsets whatever their sizes are here, so that on the whole
        ContraPro `CP` is the accuracy; `CP_avg` is the plain mean of the four distances above 0.
        """
        averages = []
        for result in results:
            parts = {distance: result.breakdown.get(f"distance={distance}") for distance in DISTANCES}
            if not all(parts.values()):
                continue
            far = {distance: part for distance, part in parts.items() if distance != "0"}
            averages += [
                weighted_average("CP", result.dataset, result, parts, DISTANCES),
                weighted_average("CP_d>0", result.dataset, result, far, DISTANCES),
                weighted_average("CP_avg", result.dataset, result, far, dict.fromkeys(far, 1)),
            ]
        return averages


class SuiteDocuments:
    """The documents of which a suite's segments are part: JSON lines, source language first in every pair.

    `first`: the number of a document's first segment.
    """

    def __init__(self, suite: Suite, first: int):
        path = suite.path.with_name("documents.jsonl") if suite.documents is None else Path(suite.documents)
        if not path.is_file():
            raise DataError(
                f"{suite.path}: its documents are needed, but {path} is missing; give the documents (JSON lines) "
                "that the suite was made from, or context=0 and no documents"
            )
        number, line = next(read_lines(path))
        row = parse_json(line, path, number)
        pairs = row.get("translation") if isinstance(row, dict) else None
        if not (isinstance(pairs, list) and pairs and isinstance(pairs[0], dict) and len(pairs[0]) == 2):
            raise DataError(f"{path}, line {number}: documents need 'translation', a list of pairs in two languages")
        self.path, self.past, self.future, self.first = path, suite.context, suite.future_context, first
        self.languages = source_lang, target_lang = tuple(pairs[0])
        rows = read_documents("jsonl", source_lang=source_lang, target_lang=target_lang, path=path)
        self.sides = {row["doc_id"]: tuple(sentences(row, lang) for lang in self.languages) for row in rows}

    def around(self, doc_id: str, segment: int, current: str, where: str) -> list[tuple[str, ...]]:
        """Sentences before a segment, which must hold the text `current`, and after it, each in both languages."""
        sides = self.sides.get(doc_id) or self.sides.get(doc_id.removesuffix(f".{self.languages[1]}"))
        if sides is None:
            raise DataError(f"{where}: document {doc_id!r} is not in {self.path}; give the suite's own documents")
        source = sides[0]
        index, last = segment - self.first, self.first + len(source) - 1
        if not 0 <= index < len(source):
            raise DataError(
                f"{where}: no segment {segment} in document {doc_id!r}, which has {self.first} to {last} in {self.path}"
            )
        if not same_text(source[index], current):
            raise DataError(
                f"{where}: 'src segment' is {current!r}, but segment {segment} of document {doc_id!r} is "
                f"{source[index]!r} in {self.path}; give the suite's own documents, source language first"
            )
        before = slice(max(0, index - self.past), index)
        after = slice(index + 1, index + 1 + self.future)
        return [tuple(side[part]) for part in (before, after) for side in sides]
