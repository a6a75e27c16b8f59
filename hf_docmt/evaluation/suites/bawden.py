"""Bawden et al. (2018): hand-written pairs for anaphora and lexical choice, each with one sentence before it.

A set is JSON (`anaphora.json`, `lexical-choice.json`) or the text files `SET.prev.LANG` and `SET.current.LANG`, with
two lines a pair: correct or semi-correct, then incorrect. Blocks are of four pairs (anaphora) or two (lexical choice),
in which the same two translations are right by turns, after another previous sentence: what scores them without
context has half of the pairs right, up to ties. (One pair of anaphora, the fourth of block 17, has a wording of its
own, so there it is half of the pairs give or take one.) The previous target sentence belongs to the pair: right and
wrong translation have the same one, in all 400 pairs.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from hf_docmt.evaluation.suites.items import SuiteItem, field_of, same_text
from hf_docmt.evaluation.suites.texts import context_of, nearest, read_contexts, read_texts
from hf_docmt.files import DataError, stem

PAIRS = {"anaphora": 4, "lexical_choice": 2}  # in a block
TEXT = re.compile(r"(.+)\.(?:prev|current)\.(en|fr)")


def bawden_items(blocks: dict, path: str | Path, context: int) -> Iterator[SuiteItem]:
    """Items of a JSON object {number of the block: block}; the phenomenon is the file's name."""
    name = _set_name(stem(path))
    number = 0
    for key, block in blocks.items():
        pairs = list(_pairs(block, f"{path}, block {key}"))
        for which, (labels, *pair) in enumerate(pairs, 1):
            number += 1
            place = f"{path}, block {key}, pair {which}"
            source, right, wrong = (_two_sentences(side, place) for side in pair)
            if right[0] != wrong[0]:
                raise DataError(
                    f"{place}: the previous target sentence is {right[0]!r} before the right translation, {wrong[0]!r} "
                    "before the wrong one; a pair has one, so the file is altered"
                )
            before = (source[:1], right[:1])
            texts = (source[1], right[1], wrong[1])
            yield _item(name, number, key, len(pairs), labels, before, texts, place, context)


def bawden_text_items(path: Path, context: int, records: dict | None, records_path: Path | None) -> Iterator[SuiteItem]:
    """Items of the four text files that `path` is one of, with the labels of the JSON `records` of the same set.

    Without records, blocks have the published number of pairs and the pairs no labels.
    """
    name = TEXT.fullmatch(path.name)[1]
    files = {part: [path.with_name(f"{name}.{part}.{lang}") for lang in ("en", "fr")] for part in ("prev", "current")}
    current = read_texts(*files["current"])
    contexts = read_contexts(*files["prev"], current, 1)
    told = list(bawden_items(records, records_path, 1)) if records is not None else None
    name = _set_name(name)
    if told is None and name not in PAIRS:
        raise DataError(
            f"{path}: which pairs are a block is known of {' and '.join(PAIRS)}; give the set's JSON as records"
        )
    pairs = list(current.blocks([2] * len(told)) if told else current.equal_blocks(2))
    for number, block in enumerate(pairs, 1):
        size = PAIRS.get(name, 1)
        labels, key = {}, (number - 1) // size + 1
        before = context_of(block, contexts, files["prev"][0])
        texts = (block.source, *block.candidates)
        if told:
            item = told[number - 1]
            labels, key, size = item.labels, item.group.rpartition(":")[2], item.group_size
            _check_same((*before[0], *before[1], *texts), item, block.place)
        yield _item(name, number, key, size, labels, before, texts, block.place, context)


def _item(name, number, key, size, labels, before, texts, place, context) -> SuiteItem:
    if [len(side) for side in before] != [1, 1] or not all(side[0].strip() for side in before):
        raise DataError(f"{place}: its previous sentence is missing or empty; the pair cannot be judged without it")
    source, target = nearest(before, context)
    return SuiteItem(
        item_id=f"{name}:{number}",
        source=(*source, texts[0]),
        target_context=target,
        candidates=tuple(texts[1:]),
        correct=0,
        phenomenon=name,
        distance=None,
        labels=labels,
        index=1,
        group=f"{name}:{key}",
        group_size=size,
        format="bawden",
        languages=("en", "fr"),
        place=place,
    )


def _pairs(block: object, place: str) -> Iterator[tuple[dict, object, object, object]]:
    """(labels, source, right, wrong) of every pair of a block; each of two sentences."""
    if isinstance(block, dict) and "examples" in block:
        kind = field_of(block, "type", str, place, optional=True)
        for which, example in enumerate(field_of(block, "examples", list, place), 1):
            where = f"{place}, pair {which}"
            target = field_of(example, "trg", dict, where)
            sides = [field_of(target, name, list, where) for name in ("correct", "incorrect")]
            yield {"type": kind} if kind else {}, field_of(example, "src", list, where), *sides
        return
    for which, target in enumerate(field_of(block, "trg", list, place), 1):
        where = f"{place}, pair {which}"
        name = "semi-correct" if isinstance(target, dict) and "semi-correct" in target else "correct"
        sides = [field_of(target, key, list, where) for key in (name, "incorrect")]
        kind = field_of(target, "type", str, where, optional=True)
        yield {"kind": name} | ({"type": kind} if kind else {}), field_of(block, "src", list, place), *sides


def _two_sentences(side: object, place: str) -> tuple[str, str]:
    if len(side) != 2 or not all(isinstance(sentence, str) for sentence in side):
        raise DataError(f"{place}: got {side!r}, expected two sentences, the previous and the current one")
    return tuple(side)


def _check_same(texts: tuple[str, ...], item: SuiteItem, place: str) -> None:
    expected = (*item.source[:1], *item.target_context, item.source[1], *item.candidates)
    for text, other in zip(texts, expected):
        if not same_text(text, other):
            raise DataError(f"{place}: {text!r} is not {other!r}, {item.place}; the files are not of one set")


def _set_name(name: str) -> str:
    return name.replace("-", "_")
