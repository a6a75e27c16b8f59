"""ContraPro (Müller et al. 2018): German pronouns, as JSON that points into documents, or as the text made from it.

The JSON is a format that the test sets of Lopes et al. have, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hf_docmt.data.documents import sentences
from hf_docmt.data.readers import read_documents
from hf_docmt.evaluation.suites.suite import Suite, read_json, weighted_average
from hf_docmt.evaluation.suites.suite_files import (
    entries_of,
    field_of,
    own_group,
    read_parallel_text,
    recorded_fields,
    replaced_pronouns,
    same_text,
)
from hf_docmt.files import DataError, parse_json, read_lines
from hf_docmt.reports.result import Result
from hf_docmt.systems.items import SuiteItem

LINES = 3  # of an item in the text files: the reference and two errors
PRONOUNS = ("er", "sie", "es")
LANGUAGES = ("en", "de")
RECORDED = ("phenomenon", "distance", "labels", "index", "group", "group_unit")  # what the JSON knows of text files
DISTANCES = {"0": 2400, "1": 7075, "2": 1510, "3": 573, ">3": 442}  # items at each antecedent distance
DOCUMENT_ID = re.compile(r"\d{4}_\d+_\d+(\.de)?")  # of OpenSubtitles: year, film, subtitles


class ContraPro(Suite):
    """German pronouns er, sie and es (Müller et al. 2018); other suites use the format, too.

    JSON with `segment id` counted from 1 and one or more errors an item; `labels`, an object, may name further
    properties that accuracy is broken down by. The context is taken from `documents`, JSON lines with the source
    language first in every sentence pair, by default `documents.jsonl` beside the suite; those that are given are read
    without context, too. Or `NAME.text.en` and `.de`, parallel files with the reference and its two errors as the lines
    of an item, and the context in `NAME.context.en` and `.de`, as many lines for each line of text, where empty lines
    stand for sentences that were not there. There the pronoun is read from the translations, all else about an item
    from `records`, the JSON, where it is there.
    """

    format = "contrapro"
    title = "ContraPro"
    text_name = re.compile(r"(.+)\.text\.(en|de)")
    json_key = "src segment"
    options = {"documents": "JSON of ContraPro", "records": "text files of ContraPro"}
    published = {
        "contrapro": {"items": 12000, "candidates": 36000} | {f"distance={d}": n for d, n in DISTANCES.items()}
    }

    def json_items(self) -> Iterator[SuiteItem]:
        for number, (_, fields) in enumerate(json_entries(self, first_segment=1), 1):
            yield self.item(number, **fields)

    def text_items(self) -> Iterator[SuiteItem]:
        name = self.text_name.fullmatch(self.path.name)[1]
        path = self.records_path(name)
        records = path and list(ContraPro(path, context=0, content=read_json(path)).json_items())
        current = read_parallel_text(*(self.path.with_name(f"{name}.text.{language}") for language in LANGUAGES))
        sizes = [len(record.candidates) for record in records or ()]
        blocks = current.equal_blocks(LINES) if records is None else current.blocks(sizes)
        files = [self.path.with_name(f"{name}.context.{language}") for language in LANGUAGES]
        size = current.context_size(files[0]) if self.context else 0
        contexts = current.contexts(*files, size)
        for number, block in enumerate(blocks, 1):
            context = contexts.of(block)
            if records is None:
                pronoun = replaced_pronouns(block.candidates[0], block.candidates[1:], PRONOUNS, block.where)
                at_least = len(context[0]) + (len(context[0]) == size)  # a full context may be cut off in its document
                fields = {"phenomenon": f"it:{pronoun}", "index": at_least}
            else:
                fields = recorded_fields(records[number - 1], block, *RECORDED)
            yield self.text_item(name, number, block, context, languages=LANGUAGES, **fields)

    @classmethod
    def published_counts(cls, name: str, items: Sequence[SuiteItem]) -> dict[str, int] | None:
        """Those of ContraPro for its own name, and under any name for items of its documents."""
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


def json_entries(suite: Suite, first_segment: int) -> Iterator[tuple[dict, dict]]:
    """The JSON entry and the fields of every item of a suite, with the context that it asks for.

    `first_segment` is the `segment id` of a document's first sentence. An item has one or more errors.
    """
    documents = None
    if suite.documents is not None or suite.context or suite.future_context:
        documents = SuiteDocuments(suite, first_segment)
    for number, entry in enumerate(entries_of(suite.content, suite.path), 1):
        where = f"{suite.path}, item {number}"
        source, doc_id = field_of(entry, "src segment", str, where), field_of(entry, "document id", str, where)
        segment = field_of(entry, "segment id", int, where)
        around = documents.around(doc_id, segment, source, where) if documents else [()] * 4
        before, before_target, after, after_target = around
        errors = field_of(entry, "errors", list, where)
        if not errors:
            raise DataError(f"{where}: no contrastive translations, expected at least one; the file seems to be cut")
        wrong = [field_of(error, "contrastive", str, f"{where}, error {i}") for i, error in enumerate(errors, 1)]
        ending = re.search(r"\.([a-z]{2})$", doc_id)  # the language, such as in `1999_1_2.de`
        labels = field_of(entry, "labels", dict, where, optional=True) or {}
        pronouns = [entry.get("src pronoun"), entry.get("ref pronoun")]
        distance = field_of(entry, "ante distance", int, where, optional=True)
        inside = field_of(entry, "intrasegmental", bool, where, optional=True)
        yield (
            entry,
            {
                "source": (*before, source),
                "target_context": before_target,
                "candidates": (field_of(entry, "ref segment", str, where), *wrong),
                "phenomenon": ":".join(pronouns).lower() if all(isinstance(p, str) for p in pronouns) else suite.name,
                "distance": distance,
                "labels": labels | ({} if inside is None else {"intrasegmental": "yes" if inside else "no"}),
                "index": segment - first_segment,
                "source_after": after,
                "target_after": after_target,
                **own_group(entry, where, doc_id),
                "languages": documents.languages if documents else (None, ending and ending[1]),
                "location": where,
            },
        )


class SuiteDocuments:
    """The documents of which a suite's segments are part: JSON lines, source language first in every pair.

    `first`: the number of a document's first segment.
    """

    def __init__(self, suite: Suite, first: int):
        path = suite.path.with_name("documents.jsonl") if suite.documents is None else Path(suite.documents)
        if not path.is_file():
            raise DataError(
                f"{suite.path}: its documents are needed, but {path} is not there; give the documents (JSON lines) "
                "that the suite was made from, or context=0 and no documents"
            )
        number, line = next(read_lines(path))
        row = parse_json(line, path, number)
        pairs = row.get("translation") if isinstance(row, dict) else None
        if not (isinstance(pairs, list) and pairs and isinstance(pairs[0], dict) and len(pairs[0]) == 2):
            raise DataError(
                f"{path}, line {number}: a suite's documents need 'translation', a list of pairs in two languages"
            )
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
