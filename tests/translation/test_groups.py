"""Groups of documents: consecutive, bounded, a function of the rows; from a pipe without waiting for full ones."""

import random
import threading
import time

import pytest

from hf_docmt.translation.groups import PATIENCE, arriving_groups, document_groups


def rows_of(*sizes, text="abc"):
    return [{"doc_id": str(n), "translation": [{"en": text}] * size} for n, size in enumerate(sizes)]


def sizes_of(groups):
    return [[len(row["translation"]) for row in group.rows] for group in groups]


@pytest.mark.parametrize("group", [document_groups, arriving_groups])
def test_bounds(group):
    rows = rows_of(2, 2, 1, 9, 1, 4, 5, 5, 1)
    assert sizes_of(group(rows, 5)) == [[2, 2, 1], [9], [1, 4], [5], [5], [1]]
    assert sizes_of(group(rows, 50, 13)) == [[2, 2], [1], [9], [1], [4], [5], [5], [1]]  # 3 characters a sentence
    assert sizes_of(group(rows)) == [[2, 2, 1, 9, 1, 4, 5, 5, 1]]
    assert sizes_of(group([])) == []
    for bounds in ((0, 1), (1, 0), (1, 1, 0)):
        with pytest.raises(ValueError, match="of a group must be at least 1, got 0"):
            list(group(rows, *bounds))


@pytest.mark.parametrize("group", [document_groups, arriving_groups])
def test_long_documents_fill_batches(group):
    """More sentences than the bound until there are four batches of documents; never more characters."""
    rows = rows_of(*[9] * 20)
    assert sizes_of(group(rows, 5, batch_size=2)) == [[9] * 8, [9] * 8, [9] * 4]
    assert sizes_of(group(rows, 90, batch_size=2)) == [[9] * 10, [9] * 10]
    assert sizes_of(group(rows, 5, 3 * 9 * 3, batch_size=2)) == [[9] * 3] * 6 + [[9] * 2]  # 3 characters a sentence


def test_every_document_is_in_one_group():
    """Against a slow definition: a group ends where the next document would pass a bound."""
    for seed in range(50):
        draw = random.Random(seed)
        rows, limit = rows_of(*draw.choices(range(1, 12), k=40)), draw.randint(1, 20)
        groups = list(document_groups(rows, limit))
        assert [row for group in groups for row in group.rows] == rows
        assert [group.number for group in groups] == list(range(len(groups)))
        for this, following in zip(groups, groups[1:]):
            assert this.first_document + len(this.rows) == following.first_document
            assert this.sentences <= limit or len(this.rows) == 1
            assert this.sentences + len(following.rows[0]["translation"]) > limit


def test_a_group_is_lazy():
    """No more documents are read than the group and the one that does not fit."""
    read = []
    groups = document_groups((read.append(row["doc_id"]) or row for row in rows_of(3, 3, 3, 3)), 3)
    next(groups)
    assert read == ["0", "1"]


def test_arriving_documents_do_not_wait():
    go_on = threading.Event()

    def arriving():
        yield from rows_of(1, 1)
        go_on.wait(10)
        yield from rows_of(1)
        raise ValueError("line 4: broken")

    groups, started = arriving_groups(arriving()), time.monotonic()
    assert sizes_of([next(groups)]) == [[1, 1]] and time.monotonic() - started < PATIENCE + 2
    go_on.set()
    assert sizes_of([next(groups)]) == [[1]]
    with pytest.raises(ValueError, match="line 4: broken"):
        next(groups)
