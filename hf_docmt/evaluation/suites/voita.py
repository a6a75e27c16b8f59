"""Voita et al. (2019): Russian deixis, lexical cohesion and ellipsis, four sentences joined by `_eos`."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from hf_docmt.evaluation.suites.suite import Suite, weighted_average
from hf_docmt.evaluation.suites.suite_files import (
    check_texts,
    entries_of,
    field_of,
    own_group,
    read_blocks,
)
from hf_docmt.files import DataError, read_json
from hf_docmt.reports.result import PartScore, Result
from hf_docmt.systems.items import SuiteItem

WEIGHTS = {"deixis": 2500, "lex_cohesion": 1500, "ellipsis_infl": 500, "ellipsis_vp": 500}  # items of the test sets


class Voita(Suite):
    """Russian test sets (Voita et al. 2019): the first of the best candidates is the choice.

    JSON, or the text files that are scored, `NAME.src` and `NAME.dst`, with one line for each candidate. Which lines
    are an item, and which one is right, is in the JSON (`records`): neighbouring items can have the same source.
    """

    format = "voita"
    title = "Voita"
    text_name = re.compile(r"(.+)(?:(?<!\.current)(?<!\.context)\.src|\.dst)")  # the others are Lopes' files
    ties = "first"
    unit = "context"
    json_key = "dst"
    options = {"records": "text files of Voita"}
    published = {
        "deixis_dev": {"items": 500, "candidates": 1000},
        "deixis_test": {"items": 2500, "candidates": 5000},
        "lex_cohesion_dev": {"items": 500, "candidates": 1124},
        "lex_cohesion_test": {"items": 1500, "candidates": 3428},
        "ellipsis_infl": {"items": 500, "candidates": 2520},
        "ellipsis_vp": {"items": 500, "candidates": 5203},
    }

    def __init__(self, path, **options):
        super().__init__(path, **options)
        self.groups: dict[tuple[str, ...], str] = {}  # items with one context, named by the first of them

    def json_fields(self, number, row, where):
        source = _sentences(field_of(row, "src", str, where))
        targets = _targets(row, source, where)
        return {
            "source": source,
            "target_context": targets[0][:-1],
            "candidates": tuple(target[-1] for target in targets),
            "correct": row["true_ind"],
            "phenomenon": re.sub(r"[_-](dev|valid|validation|test|train)$", "", self.name),
            "distance": field_of(row, "ctx_dist", int, where, optional=True),
            "index": len(source) - 1,
            **own_group(row, where, self.groups.setdefault(source[:-1], f"{self.name}:{number}")),
        }

    def text_items(self) -> Iterator[SuiteItem]:
        return self.json_items()  # with the texts of the lines

    def json_rows(self) -> Iterator[tuple[str, Any]]:
        """The items of the JSON; of text files those of its JSON with the texts of the lines."""
        if not self.matches_name(self.path):
            yield from super().json_rows()
            return
        entries = list(Voita(self.records_path(), content=self.content).json_rows())
        sizes = [len(field_of(entry, "dst", list, where)) for where, entry in entries]
        blocks = read_blocks([self.path.with_suffix(suffix) for suffix in (".src", ".dst")], sizes)
        for (location, entry), block in zip(entries, blocks):
            field_of(entry, "src", str, location)
            check_texts(block.where, (block.source, *block.candidates), (entry["src"], *entry["dst"]), location)
            yield block.where, entry | {"src": block.source, "dst": list(block.candidates)}

    @cached_property
    def content(self) -> object:
        path = self.records_path() if self.matches_name(self.path) else self.path
        if path is None:
            raise DataError(
                f"{self.path}: which lines are one item is in {self.name}.json, which is not next to it or a folder "
                "above; give it as records"
            )
        return read_json(path)

    @cached_property
    def languages(self) -> tuple[str | None, str | None]:
        """English and Russian for a set of a published name in Cyrillic letters; others use the format, too."""
        entries = entries_of(self.content, self.path) if self.name in self.published else []
        text = "".join(map(str, (entry.get("dst") for entry in entries)))
        letters = [letter for letter in text.replace("_eos", "") if letter.isalpha()]
        cyrillic = sum("\u0400" <= letter <= "\u04ff" for letter in letters)
        return ("en", "ru") if 2 * cyrillic > len(letters) else (None, None)

    @classmethod
    def averages(cls, results: Sequence[Result]) -> list[Result]:
        """`Voita` and `Voita_avg` of Lupo et al. (2023), appendix F, where all four sets have one signature.

        The first has the published sizes of the test sets as weights, the second is the plain mean. `deixis` and
        `lex_cohesion` are both of `dev` or both of `test`.
        """
        groups: dict[tuple, dict[tuple[str, str], Result]] = {}
        for result in results:
            name, part = re.fullmatch(r"(.*?)(?:_(dev|test))?", result.details["suite"]).groups()
            groups.setdefault((result.split, result.signature), {})[name, part or ""] = result
        averages = []
        for group in groups.values():
            for part in ("dev", "test", ""):
                names = {name: (name, "" if name.startswith("ellipsis") else part) for name in WEIGHTS}
                if not all(key in group for key in names.values()):
                    continue
                parts = {name: PartScore(group[key].value, group[key].n) for name, key in names.items()}
                dataset, first = f"voita_{part}".rstrip("_"), group[names["deixis"]]
                averages.append(weighted_average("Voita", dataset, first, parts, WEIGHTS))
                averages.append(weighted_average("Voita_avg", dataset, first, parts, dict.fromkeys(WEIGHTS, 1)))
        return averages


def _targets(entry: dict, source: tuple[str, ...], where: str) -> list[tuple[str, ...]]:
    """The sentences of every candidate."""
    candidates, correct = field_of(entry, "dst", list, where), field_of(entry, "true_ind", int, where)
    if len(candidates) < 2 or not 0 <= correct < len(candidates):
        raise DataError(
            f"{where}: true_ind is {correct} with {len(candidates)} candidates in 'dst'; expected two or more "
            "candidates and the index, from 0, of the right one"
        )
    targets = []
    for number, candidate in enumerate(candidates):
        if not isinstance(candidate, str):
            raise DataError(f"{where}: candidate {number} is {candidate!r}, expected text")
        target = _sentences(candidate)
        if len(target) != len(source):
            raise DataError(
                f"{where}: candidate {number} has {len(target)} sentences, the source has {len(source)}; "
                "both need the same number, joined by ' _eos '"
            )
        if targets and target[:-1] != targets[0][:-1]:
            raise DataError(f"{where}: candidate {number} has another context; only the last sentence may differ")
        targets.append(target)
    return targets


def _sentences(text: str) -> tuple[str, ...]:
    return tuple(sentence.strip() for sentence in text.split("_eos"))
