"""Bawden et al. (2018): hand-written pairs for anaphora and lexical choice, each with one sentence before it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hf_docmt.evaluation.suites.suite import Suite
from hf_docmt.evaluation.suites.suite_files import Block, field_of
from hf_docmt.files import DataError
from hf_docmt.systems.items import SuiteItem

PAIRS = {"anaphora": 4, "lexical_choice": 2}  # in a block


class Bawden(Suite):
    """Anaphora and lexical choice (Bawden et al. 2018): JSON, or the text `SET.prev.LANG` and `SET.current.LANG`.

    The text files have two lines a pair: correct or semi-correct, then incorrect. Their labels and blocks come from the
    JSON of the set (`records`); without it, blocks have the published number of pairs and the pairs no labels.

    Blocks are of four pairs (anaphora) or two (lexical choice), in which the same two translations are right by turns,
    after another previous sentence: a system that scores them without context has half of the pairs right, up to ties.
    (One pair of anaphora, the fourth of block 17, has a wording of its own, so there it is half of the pairs give or
    take one.) The previous target sentence belongs to the pair: right and wrong translation have the same one, in all
    400 pairs. The phenomenon is the name of the file.
    """

    format = "bawden"
    title = "Bawden"
    text_name = re.compile(r"(.+)\.(?:prev|current)\.(?:en|fr)")
    languages = ("en", "fr")
    unit = "block"
    recorded_context = 1
    options = {"records": "text files of Bawden"}
    published = {
        "anaphora": {"items": 200, "groups": 50, "kind=correct": 100, "kind=semi-correct": 100},
        "lexical_choice": {"items": 200, "groups": 100},
    }

    def __init__(self, path, **options):
        super().__init__(path, **options)
        self.name = self.name.replace("-", "_")

    @classmethod
    def matches_json(cls, content: object) -> bool:
        return isinstance(content, dict)

    @classmethod
    def group_breakdown(
        cls, items: Sequence[SuiteItem], groups: Mapping[str, Sequence[bool]]
    ) -> dict[str, Sequence[bool]]:
        """Whole blocks: one is right if all of its pairs are, which requires context.

        Incomplete blocks are skipped.
        """
        sizes = {item.group: item.group_size for item in items}
        blocks = [right for name, right in groups.items() if sizes.get(name) in (None, len(right))]
        return {"block=all right": [all(right) for right in blocks]}

    def json_rows(self) -> Iterator[tuple[str, Any]]:
        """Every pair of every block; blocks whose keys are all numbers in the order of these."""
        content = self.content
        if not isinstance(content, dict) or not content:
            got = type(content).__name__
            raise DataError(f"{self.path}: a suite is a JSON object of blocks, at least one, got {got}")
        for key in sorted(content, key=int) if all(map(str.isdecimal, content)) else content:
            where = f"{self.path}, block {key}"
            if not isinstance(content[key], dict):
                raise DataError(f"{where}: expected an object, got {type(content[key]).__name__}")
            pairs = list(_pairs(content[key], where))
            yield from ((f"{where}, pair {n}", (key, len(pairs), *pair)) for n, pair in enumerate(pairs, 1))

    def json_fields(self, number, row, where):
        key, size, labels, *sides = row
        for side in sides:
            if len(side) != 2 or not all(isinstance(sentence, str) for sentence in side):
                raise DataError(f"{where}: got {side!r}, expected two sentences, the previous and the current one")
        source, right, wrong = map(tuple, sides)
        if right[0] != wrong[0]:
            raise DataError(
                f"{where}: the previous target sentence is {right[0]!r} before the right translation, {wrong[0]!r} "
                "before the wrong one; a pair has one, so the file is altered"
            )
        texts = {"source": source, "target_context": right[:1], "candidates": (right[1], wrong[1])}
        return texts | self._fields(source[:1], right[:1], where, key, size) | {"labels": labels}

    def text_files(self):
        files = {"files": ("current.en", "current.fr"), "context_files": ("prev.en", "prev.fr")}
        return {**{name: self.beside(*endings) for name, endings in files.items()}, "size": 1}

    def text_fields(self, number, block: Block, record):
        if record is not None:
            key = record.group.rpartition(":")[2]
            return self._fields(*block.before, block.where, key, record.group_size) | {"labels": record.labels}
        if self.name not in PAIRS:
            raise DataError(f"{self.path}: blocks are known of {' and '.join(PAIRS)}; give the set's JSON as records")
        size = PAIRS[self.name]
        return self._fields(*block.before, block.where, (number - 1) // size + 1, size)

    def _fields(self, before: Sequence[str], before_target: Sequence[str], where: str, key: object, size: int) -> dict:
        """Fields of all items; DataError if their previous sentences are missing."""
        if [len(before), len(before_target)] != [1, 1] or not (before[0].strip() and before_target[0].strip()):
            raise DataError(f"{where}: its previous sentence is missing or empty; the pair cannot be scored without it")
        return {"phenomenon": self.name, "index": 1, "group": f"{self.name}:{key}", "group_size": size}


def _pairs(block: dict, where: str) -> Iterator[tuple[dict, object, object, object]]:
    """(labels, source, right, wrong) of every pair of a block; each of two sentences."""
    if "examples" in block:
        kind = field_of(block, "type", str, where, optional=True)
        for number, example in enumerate(field_of(block, "examples", list, where), 1):
            pair = f"{where}, pair {number}"
            target = field_of(example, "trg", dict, pair)
            sides = [field_of(target, name, list, pair) for name in ("correct", "incorrect")]
            yield {"type": kind} if kind else {}, field_of(example, "src", list, pair), *sides
        return
    for number, target in enumerate(field_of(block, "trg", list, where), 1):
        pair = f"{where}, pair {number}"
        name = "semi-correct" if isinstance(target, dict) and "semi-correct" in target else "correct"
        sides = [field_of(target, key, list, pair) for key in (name, "incorrect")]
        kind = field_of(target, "type", str, pair, optional=True)
        yield {"kind": name} | ({"type": kind} if kind else {}), field_of(block, "src", list, where), *sides
