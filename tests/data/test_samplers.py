"""Token-budget batches: budget, completeness, shares, determinism, resume, and use in loaders."""

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

from hf_docmt.data.samplers import TokenBudgetBatchSampler


def lengths_of(count, sides=2, seed=0, longest=60):
    return np.random.default_rng(seed).integers(1, longest, (count, sides))


def everything(batches):
    return sorted(index for batch in batches for index in batch)


def cost(lengths, batch):
    return len(batch) * lengths[batch].reshape(len(batch), -1).max(axis=0).sum()


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("shuffle", [True, False])
def test_budget_holds_and_every_example_comes_once(sides, shuffle):
    lengths = lengths_of(997, sides)
    lengths[:3] = 500  # longer than the budget: alone
    sampler = TokenBudgetBatchSampler(lengths if sides == 2 else lengths[:, 0], 400, shuffle=shuffle)
    batches = list(sampler)
    assert len(batches) == len(sampler) and everything(batches) == list(range(997))
    assert all(cost(lengths, batch) <= 400 or len(batch) == 1 for batch in batches)
    assert sorted(batch[0] for batch in batches if cost(lengths, batch) > 400) == [0, 1, 2]
    assert all(type(index) is int for batch in batches for index in batch)


def test_longest_first_without_shuffle():
    lengths = lengths_of(300, 1)[:, 0]
    order = [lengths[i] for batch in TokenBudgetBatchSampler(lengths, 200, shuffle=False) for i in batch]
    assert order == sorted(order, reverse=True)


def test_deterministic_by_seed_and_epoch():
    lengths = lengths_of(400)

    def batches(epoch, **settings):
        sampler = TokenBudgetBatchSampler(lengths, 300, **settings)
        sampler.set_epoch(epoch)
        return list(sampler)

    assert batches(1) == batches(1)
    assert batches(1) != batches(2) and everything(batches(1)) == everything(batches(2))
    assert batches(1, seed=1) != batches(1, seed=2)
    assert len(batches(1)) == len(batches(2)) == len(batches(7, seed=5))
    fixed = [batches(epoch, shuffle=False) for epoch in (1, 2)]
    assert fixed[0] == fixed[1]


@pytest.mark.parametrize("sides, longest", [(1, 9), (2, 4), (2, 60), (2, 70_000)])
def test_batches_by_definition(sides, longest):
    """Shuffle, sort stably, fill batches from the longest on, shuffle the batches: read off one by one."""
    lengths = lengths_of(400, sides, seed=sides, longest=longest)
    random = np.random.default_rng([6, 2])
    order = sorted(
        random.permutation(400).tolist(), key=lambda n: (-lengths[n].max(), -lengths[n].sum(), -lengths[n, 0])
    )
    batches = [[]]
    for number in order:
        if batches[-1] and cost(lengths, [*batches[-1], number]) > 5 * longest:
            batches.append([])
        batches[-1].append(number)
    expected = [batches[number] for number in random.permutation(len(batches))]
    for kind in (np.int64, np.int32):
        sampler = TokenBudgetBatchSampler(lengths.astype(kind), 5 * longest, seed=6)
        sampler.set_epoch(2)
        assert list(sampler) == expected


def banded(lengths, target_tokens):
    """The examples in order: bands of context that have as many batches as there are bands, each by length in turn."""
    bands = int((lengths[:, 1].sum() // target_tokens) ** 0.5) + 1
    borders = np.quantile(lengths[:, 2], [number / bands for number in range(1, bands)])

    def key(number):
        source, target, context = lengths[number].tolist()
        band = sum(context >= border for border in borders)
        return band, max(source, target) * (-1 if band % 2 else 1), source + target + context, source, target

    return lambda numbers: sorted(numbers, key=key)


@pytest.mark.parametrize("sides", [2, 3])
def test_batches_of_even_target_tokens_by_definition(sides):
    lengths = lengths_of(500, sides, seed=4)
    random = np.random.default_rng([6, 2])
    shuffled = random.permutation(500).tolist()
    if sides == 2:
        order = sorted(shuffled, key=lambda n: (-lengths[n].max(), -lengths[n].sum(), -lengths[n, 0]))
    else:
        order = banded(lengths, 200)(shuffled)
    batches, rest = [], order
    while rest:
        fitting = [n for n in range(1, len(rest) + 1) if n == 1 or cost(lengths, rest[:n]) <= 900]
        count = min(fitting, key=lambda n: (abs(lengths[rest[:n], 1].sum() - 200), n))
        batches.append(rest[:count])
        rest = rest[count:]
    expected = [batches[number] for number in random.permutation(len(batches))]
    sampler = TokenBudgetBatchSampler(lengths, 900, target_tokens=200, seed=6)
    sampler.set_epoch(2)
    assert list(sampler) == expected


@pytest.mark.parametrize("world_size", [2, 3, 4, 7])
@pytest.mark.parametrize("count", [29, 200, 2003])
def test_equal_shares(world_size, count):
    lengths = lengths_of(count)
    samplers = [TokenBudgetBatchSampler(lengths, 400, rank=r, world_size=world_size) for r in range(world_size)]
    for epoch in (0, 3):
        for sampler in samplers:
            sampler.set_epoch(epoch)
        shares = [list(sampler) for sampler in samplers]
        assert {len(share) for share in shares} == {len(samplers[0])}
        assert everything(batch for share in shares for batch in share) == list(range(count))
        assert all(cost(lengths, batch) <= 400 for share in shares for batch in share)
    if count > 2000:
        tokens = [sum(lengths[batch].sum() for batch in share) for share in shares]
        assert max(tokens) < 1.02 * min(tokens)
        for step in list(zip(*shares)):
            longest = [lengths[batch].max() for batch in step]
            assert max(longest) - min(longest) <= 20


def test_more_processes_than_can_share_repeat_the_shortest():
    lengths = np.array([100, 90, 80, 10, 20])
    shares = [list(TokenBudgetBatchSampler(lengths, 10, rank=r, world_size=3)) for r in range(3)]
    assert [len(share) for share in shares] == [2, 2, 2]
    assert everything(batch for share in shares for batch in share) == [0, 1, 2, 3, 3, 4]


def test_in_a_prepared_accelerate_loader():
    lengths = lengths_of(100)
    sampler = TokenBudgetBatchSampler(lengths, 200, seed=1)
    loader = Accelerator(cpu=True).prepare(DataLoader(torch.arange(100), batch_sampler=sampler))
    assert len(loader) == len(sampler)
    for epoch in (0, 1):
        loader.set_epoch(epoch)
        expected = TokenBudgetBatchSampler(lengths, 200, seed=1)
        expected.set_epoch(epoch)
        assert [batch.tolist() for batch in loader] == list(expected)


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"lengths": []}, "lengths of shape"),
        ({"lengths": [[[1, 2, 3]]]}, "lengths of shape"),
        ({"lengths": [5], "world_size": 2}, "at least one example per process"),
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"lengths": [[3, 4]], "target_tokens": 0}, "target_tokens=0"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        TokenBudgetBatchSampler(**{"lengths": [3, 4, 5], "max_tokens": 10} | settings)
