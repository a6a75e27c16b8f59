"""Contexts that replace the true one: none, random sentences, the context of another document."""

import random
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace

from hf_docmt.evaluation.suites import SuiteItem
from hf_docmt.messages import check_known

CONDITIONS = ("true", "empty", "random", "wrong-document")
SEED = 0  # of what is drawn


def with_context(items: Sequence[SuiteItem], condition: str, seed: int = SEED) -> list[SuiteItem]:
    """The items with their context replaced on both sides, source and translation; all else stays.

    `true`: unchanged. `empty`: without past and future sentences; the current one keeps its index in the document.
    `random`: every context sentence is drawn, with its translation, from all context sentences of other documents.
    `wrong-document`: the whole context of an item of another document with the same numbers of sentences before and
    after, by a random derangement: every context is used once, except for rare sizes, see `_wrong`. A document is the
    item's `document` or its `group`; items with neither are of the same document if their contexts are the same.
    ValueError: an unknown condition, no other document to draw from (naming the item).
    """
    check_known(condition, CONDITIONS, "context", "expected one of")
    if condition == "true":
        return list(items)
    if condition == "empty":
        return [_with(item, (), ()) for item in items]
    draw = random.Random(seed)
    return _random(items, draw) if condition == "random" else _wrong(items, draw)


def condition_label(condition: str) -> str:
    """The name of a condition in signatures; random ones include their seed."""
    return f"{condition}, seed {SEED}" if condition in ("random", "wrong-document") else condition


def _random(items: Sequence[SuiteItem], draw: random.Random) -> list[SuiteItem]:
    pools: dict[Hashable, dict[tuple[str, str], None]] = defaultdict(dict)
    for item in items:
        pools[_document(item)] |= dict.fromkeys([*_before(item), *_after(item)])
    pool = [(document, pair) for document, pairs in pools.items() for pair in pairs]
    documents = {document for document, _ in pool}
    replaced = []
    for item in items:
        own, sides = _document(item), (_before(item), _after(item))
        if any(sides) and not documents - {own}:
            raise ValueError(f"{item.where}: no other document has context to draw from; give items of several")
        foreign = (pair for document, pair in iter(lambda: draw.choice(pool), None) if document != own)
        replaced.append(_with(item, *([next(foreign) for _ in side] for side in sides)))
    return replaced


def _wrong(items: Sequence[SuiteItem], draw: random.Random) -> list[SuiteItem]:
    """Items of one size in order of their documents, each getting the context of another item, a fixed step further on.

    With a step from the size of the largest document to the number of items less that size no item keeps its own. If
    that is impossible, an item gets the nearest sentences of the context of any item with enough.
    """
    sizes: dict[tuple[int, int], dict[Hashable, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, item in enumerate(items):
        sizes[len(_before(item)), len(_after(item))][_document(item)].append(index)
    replaced = list(items)
    for size, documents in sizes.items():
        if size == (0, 0):
            continue
        groups = list(documents.values())
        draw.shuffle(groups)
        for group in groups:
            draw.shuffle(group)
        order, largest = [index for group in groups for index in group], max(map(len, groups))
        if 2 * largest > len(order):  # one document has most of them
            for index in order:
                replaced[index] = _of_a_longer(items, index, size, draw)
            continue
        step = draw.randint(largest, len(order) - largest)
        for number, index in enumerate(order):
            other = items[order[(number + step) % len(order)]]
            replaced[index] = _with(items[index], _before(other), _after(other))
    return replaced


def _of_a_longer(items: Sequence[SuiteItem], index: int, size: tuple[int, int], draw: random.Random) -> SuiteItem:
    item, own, (past, future) = items[index], _document(items[index]), size
    others = [
        (_before(other)[len(_before(other)) - past :], _after(other)[:future])
        for other in items
        if _document(other) != own and len(_before(other)) >= past and len(_after(other)) >= future
    ]
    if not others:
        raise ValueError(
            f"{item.where}: no item of another document has {past} sentences before and {future} after to take its "
            "context from; read fewer context sentences (--context), give more items, or omit this one"
        )
    return _with(item, *draw.choice(others))


def _document(item: SuiteItem) -> Hashable:
    name = item.group if item.document is None else item.document
    return (item.source[:-1], item.source_after) if name is None else name


def _before(item: SuiteItem) -> list[tuple[str, str]]:
    return list(zip(item.source[:-1], item.target_context, strict=True))


def _after(item: SuiteItem) -> list[tuple[str, str]]:
    return list(zip(item.source_after, item.target_after, strict=True))


def _with(item: SuiteItem, before: Sequence[tuple[str, str]], after: Sequence[tuple[str, str]]) -> SuiteItem:
    return replace(
        item,
        source=(*(source for source, _ in before), item.source[-1]),
        target_context=tuple(target for _, target in before),
        source_after=tuple(source for source, _ in after),
        target_after=tuple(target for _, target in after),
        index=len(item.source) - 1 if item.index is None else item.index,
    )
