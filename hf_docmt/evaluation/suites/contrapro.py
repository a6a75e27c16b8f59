"""ContraPro (Müller et al. 2018): German pronouns, as JSON that points into documents, or as the text made from it."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hf_docmt.evaluation.suites.averages import weighted_average
from hf_docmt.evaluation.suites.contrapro_json import json_items
from hf_docmt.evaluation.suites.items import SuiteItem, same_text
from hf_docmt.evaluation.suites.parallel_text import (
    Block,
    context_of,
    context_size,
    find_records,
    nearest,
    read_contexts,
    read_parallel_text,
)
from hf_docmt.evaluation.suites.replaced_pronouns import replaced_pronouns
from hf_docmt.evaluation.suites.suite import Suite, read_json
from hf_docmt.files import DataError
from hf_docmt.reports.result import Result

LINES = 3  # of an item in the text files: the reference and two errors
PRONOUNS = ("er", "sie", "es")
LANGUAGES = ("en", "de")
TEXT = re.compile(r"(.+)\.text\.(en|de)")
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
    json_key = "src segment"
    options = {"documents": "JSON of ContraPro", "records": "text files of ContraPro"}
    published = {
        "contrapro": {"items": 12000, "candidates": 36000} | {f"distance={d}": n for d, n in DISTANCES.items()}
    }

    @classmethod
    def matches_name(cls, path: Path) -> bool:
        return TEXT.fullmatch(path.name) is not None

    def accepted_options(self) -> set[str]:
        return {"records"} if self.matches_name(self.path) else {"documents"}

    def items(self) -> Iterator[SuiteItem]:
        if self.matches_name(self.path):
            yield from self._text_items()
            return
        for number, (_, fields) in enumerate(json_items(self, first_segment=1), 1):
            yield self.item(number, **fields)

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
        found = []
        for result in results:
            parts = {distance: result.breakdown.get(f"distance={distance}") for distance in DISTANCES}
            if not all(parts.values()):
                continue
            far = {distance: part for distance, part in parts.items() if distance != "0"}
            found += [
                weighted_average("CP", result.dataset, result, parts, DISTANCES),
                weighted_average("CP_d>0", result.dataset, result, far, DISTANCES),
                weighted_average("CP_avg", result.dataset, result, far, dict.fromkeys(far, 1)),
            ]
        return found

    def _text_items(self) -> Iterator[SuiteItem]:
        name = TEXT.fullmatch(self.path.name)[1]
        records = self._recorded_items(name)
        current = read_parallel_text(*(self.path.with_name(f"{name}.text.{language}") for language in LANGUAGES))
        sizes = None if records is None else [len(record.candidates) for record in records]
        blocks = current.equal_blocks(LINES) if sizes is None else current.blocks(sizes)
        files = [self.path.with_name(f"{name}.context.{language}") for language in LANGUAGES]
        size = context_size(files[0], current) if self.context else 0
        contexts = read_contexts(*files, current, size) if size else [((), ())] * len(current.source)
        for number, block in enumerate(blocks, 1):
            whole = context_of(block, contexts, files[0])
            source, target = nearest(whole, self.context)
            at_least = len(whole[0]) + (len(whole[0]) == size)  # a full context may be cut off in its document
            yield self.item(
                number,
                item_id=f"{name}:{number}",
                source=(*source, block.source),
                target_context=target,
                candidates=tuple(block.candidates),
                languages=LANGUAGES,
                location=block.where,
                **_properties(block, at_least, records[number - 1] if records else None),
            )

    def _recorded_items(self, name: str) -> list[SuiteItem] | None:
        """The items of the JSON that belongs to the text, without their context; None where there is none."""
        path = find_records(self.path, name) if self.records is None else Path(self.records)
        if path is None:
            return None
        return list(ContraPro(path, context=0, content=read_json(path)).items())


def _properties(block: Block, context: int, record: SuiteItem | None) -> dict:
    """What is known about an item of a text file besides its texts, which are checked against its record."""
    if record is None:
        pronoun = replaced_pronouns(block.candidates[0], block.candidates[1:], PRONOUNS, block.where)
        return {"phenomenon": f"it:{pronoun}", "distance": None, "index": context}
    for text, other in zip((block.source, *block.candidates), (record.source[-1], *record.candidates)):
        if not same_text(text, other):
            raise DataError(
                f"{block.where}: {text!r} is not {other!r}, {record.location}; the files are not of one suite"
            )
    return {
        name: getattr(record, name) for name in ("phenomenon", "distance", "labels", "index", "group", "group_unit")
    }
