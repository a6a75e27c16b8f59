"""Bawden et al. (2018): hand-written pairs for anaphora and lexical choice, each with one sentence before it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hf_docmt.evaluation.suites.suite import Suite, read_json
from hf_docmt.evaluation.suites.suite_files import Sides, check_texts, field_of, read_parallel_text
from hf_docmt.files import DataError
from hf_docmt.systems.items import SuiteItem

PAIRS = {"anaphora": 4, "lexical_choice": 2}  # in a block
LANGUAGES = ("en", "fr")


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
    text_name = re.compile(r"(.+)\.(?:prev|current)\.(en|fr)")
    unit = "block"
    options = {"records": "text files of Bawden"}
    published = {
        "anaphora": {"items": 200, "groups": 50, "kind=correct": 100, "kind=semi-correct": 100},
        "lexical_choice": {"items": 200, "groups": 100},
    }

    @classmethod
    def matches_json(cls, content: object) -> bool:
        return isinstance(content, dict)

    @classmethod
    def group_breakdown(
        cls, items: Sequence[SuiteItem], groups: Mapping[str, Sequence[bool]]
    ) -> dict[str, Sequence[bool]]:
        """Whole blocks: one is right if all of its pairs are, which no model can be without context.

        Blocks of which pairs are missing are left out.
        """
        sizes = {item.group: item.group_size for item in items}
        blocks = [right for name, right in groups.items() if sizes.get(name) in (None, len(right))]
        return {"block=all right": [all(right) for right in blocks]}

    def json_items(self) -> Iterator[SuiteItem]:
        number = 0
        for key, block in _blocks(self.content, self.path).items():
            pairs = list(_pairs(block, f"{self.path}, block {key}"))
            for number_in_block, (labels, *pair) in enumerate(pairs, 1):
                number += 1
                where = f"{self.path}, block {key}, pair {number_in_block}"
                source, right, wrong = (_two_sentences(side, where) for side in pair)
                if right[0] != wrong[0]:
                    raise DataError(
                        f"{where}: the previous target sentence is {right[0]!r} before the right translation, "
                        f"{wrong[0]!r} before the wrong one; a pair has one, so the file is altered"
                    )
                texts = (source[1], right[1], wrong[1])
                block_of = {"key": key, "size": len(pairs), "labels": labels}
                yield self._pair(_set_name(self.name), number, (source[:1], right[:1]), texts, where, **block_of)

    def text_items(self) -> Iterator[SuiteItem]:
        prefix = self.text_name.fullmatch(self.path.name)[1]
        name, path = _set_name(prefix), self.records_path(prefix)
        records = path and list(Bawden(path, context=1, content=read_json(path)).json_items())
        files = [
            [self.path.with_name(f"{prefix}.{part}.{language}") for language in LANGUAGES]
            for part in ("current", "prev")
        ]
        current = read_parallel_text(*files[0])
        contexts = current.contexts(*files[1], 1)
        if records is None and name not in PAIRS:
            raise DataError(
                f"{self.path}: which pairs are a block is known of {' and '.join(PAIRS)}; give the set's JSON as "
                "records"
            )
        blocks = current.equal_blocks(2) if records is None else current.blocks([2] * len(records))
        for number, block in enumerate(list(blocks), 1):
            before = contexts.of(block)
            texts = (block.source, *block.candidates)
            size = PAIRS.get(name, 1)
            block_of = {"key": (number - 1) // size + 1, "size": size, "labels": {}}
            if records is not None:
                item = records[number - 1]
                expected = (*item.source[:1], *item.target_context, item.source[1], *item.candidates)
                check_texts(block.where, (*before[0], *before[1], *texts), expected, item.location)
                block_of = {"key": item.group.rpartition(":")[2], "size": item.group_size, "labels": item.labels}
            yield self._pair(name, number, before, texts, block.where, **block_of)

    def _pair(
        self, name: str, number: int, before: Sides, texts: Sequence[str], where: str, *, key, size: int, labels: dict
    ) -> SuiteItem:
        """An item from its context, and `texts`: the current source sentence, the right and the wrong translation."""
        if [len(side) for side in before] != [1, 1] or not all(side[0].strip() for side in before):
            raise DataError(f"{where}: its previous sentence is missing or empty; the pair cannot be scored without it")
        return self.item(
            number,
            item_id=f"{name}:{number}",
            source=(*before[0], texts[0]),
            target_context=before[1],
            candidates=tuple(texts[1:]),
            phenomenon=name,
            distance=None,
            labels=labels,
            index=1,
            group=f"{name}:{key}",
            group_size=size,
            languages=LANGUAGES,
            location=where,
        )


def _blocks(content: object, path: Path) -> dict[str, dict]:
    """A JSON value as an object of blocks, at least one, each an object; where all keys are numbers, in their order."""
    if not isinstance(content, dict) or not content:
        raise DataError(f"{path}: a suite is a JSON object of blocks, at least one, got {type(content).__name__}")
    for key, block in content.items():
        if not isinstance(block, dict):
            raise DataError(f"{path}, block {key}: expected an object, got {type(block).__name__}")
    numbered = all(key.isdecimal() for key in content)
    return {key: content[key] for key in sorted(content, key=int)} if numbered else content


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


def _two_sentences(side: Sequence, where: str) -> tuple[str, str]:
    if len(side) != 2 or not all(isinstance(sentence, str) for sentence in side):
        raise DataError(f"{where}: got {side!r}, expected two sentences, the previous and the current one")
    return tuple(side)


def _set_name(name: str) -> str:
    return name.replace("-", "_")
