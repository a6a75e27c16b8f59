"""Workers: rows in the groups' order, a bounded number of groups in memory, groups of lost workers done by others."""

import random

import pytest

from hf_docmt.files import DataError
from hf_docmt.translation.groups import Group
from hf_docmt.translation.workers import AHEAD, MAX_LOSSES, translate_in_order


class Workers:
    """A pool in this process: workers finish in a random order, and some are lost in between."""

    def __init__(self, size: int, losses: dict[int, int] | None = None):
        self.size, self.idle, self.losses, self.given = size, 0, dict(losses or {}), []
        self.loading = size
        self.busy: list[Group] = []

    def has_idle(self):
        return self.idle > 0

    def submit(self, group):
        assert self.idle > 0
        self.idle -= 1
        self.busy.append(group)
        self.given.append(group.number)

    def wait(self):
        if self.loading:
            self.loading, self.idle = self.loading - 1, self.idle + 1
            return []
        assert self.busy, "would wait for ever"
        group = self.busy.pop(random.randrange(len(self.busy)))
        self.idle += 1  # a lost worker is replaced
        if self.losses.get(group.number):
            self.losses[group.number] -= 1
            return [(group, None)]
        return [(group, [{"number": group.number}])]


def groups(count, taken=None):
    for number in range(count):
        if taken is not None:
            taken.append(number)
        yield Group(number, number, [{"doc_id": f"d{number}"}])


@pytest.mark.parametrize("size", [1, 2, 5])
def test_order_and_bound(size):
    random.seed(size)
    taken, pool = [], Workers(size, {3: 1, 4: MAX_LOSSES - 1})
    for expected, rows in enumerate(translate_in_order(groups(60, taken), pool)):
        assert rows == [{"number": expected}]
        assert len(taken) - expected <= AHEAD * size
    assert expected == 59 and sorted(pool.given) == sorted([*range(60), 3] + [4] * (MAX_LOSSES - 1))


def test_groups_before_a_broken_document_are_given_out():
    def broken():
        yield from groups(9)
        raise DataError("line 10: no JSON")

    found = []
    with pytest.raises(DataError, match="line 10"):
        for rows in translate_in_order(broken(), Workers(2)):
            found += rows
    assert [row["number"] for row in found] == list(range(9))


def test_numbers_of_a_resumed_job_begin_anywhere():
    later = [group for group in groups(9) if group.number > 5]
    assert [rows[0]["number"] for rows in translate_in_order(later, Workers(2))] == [6, 7, 8]
    assert list(translate_in_order([], Workers(2))) == []


def test_rows_do_not_wait_for_groups_that_have_not_arrived():
    """The next group comes when the rows of the one before are given out, as with a program that waits for them."""
    given, asked = [], []

    def arriving():
        for group in groups(4):
            while len(given) < group.number:
                asked.append(group.number)
                assert len(asked) < 100, f"no rows of group {group.number - 1}"
                yield None
            yield group

    for rows in translate_in_order(arriving(), Workers(3)):
        given.append(rows[0]["number"])
    assert given == [0, 1, 2, 3]


def test_a_group_that_loses_its_workers_again_and_again_ends_the_job():
    results = translate_in_order(groups(9), Workers(2, {2: MAX_LOSSES}))
    with pytest.raises(ChildProcessError, match="3 processes ended while they translated documents 'd2' to 'd2'"):
        list(results)
