"""Batches with a maximum of tokens and about equal numbers of target tokens, for one or many processes.

`batch_budget` explains what `max_tokens` of a recipe counts, and the target tokens that follow from it.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from hf_docmt.data.examples import Examples

Budget = Literal["padded", "fairseq", "fairseq_current"]
BUDGETS = ("padded", "fairseq", "fairseq_current")
FILLED = 2 / 3  # of max_tokens, by an average batch of padded separate context
ROOM = 2  # maximum tokens of a batch in a budget of fairseq, padding included, over those of an average one without
FAIRSEQ_ROWS = 8  # rows of fairseq's batches are a multiple of this (required_batch_size_multiple)


class TokenBudgetBatchSampler:
    """Batches (lists of indices) of examples of like length with at most `max_tokens` tokens, padding included.

    `lengths` (examples, 2): source and target tokens of each example, context included; a batch of B rows then costs B
    * (longest source + longest target). The same holds for other numbers of columns; with (examples,) it costs B *
    longest. An example longer than `max_tokens` is a batch of its own.

    `target_tokens` makes updates of equal weight: a batch ends as near to this number of target tokens (the second
    column, without padding) as `max_tokens` lets it. A third column is the context, of a length of its own: batches are
    then cut from bands of similar context, in each by length. They pad less than batches cut from the longest column
    on.

    The batches depend on (seed, epoch) only; each of
    `world_size` processes gets its own, all the same number, of similar length at the same step and with near-equal
    tokens in the epoch. For equal numbers a few batches are cut in two; where all have one example, the shortest are
    given twice. Without `shuffle` the longest come first. ValueError: fewer examples than processes, or numbers out of
    range.

    Use it as `DataLoader(batch_sampler=...)`, which is then complete: with `world_size` set here the loader must not be
    split among processes again. Call `set_epoch` before each epoch.
    """

    def __init__(
        self,
        lengths: Sequence[int] | np.ndarray,
        max_tokens: int,
        *,
        target_tokens: int | None = None,
        seed: int = 0,
        shuffle: bool = True,
        rank: int = 0,
        world_size: int = 1,
    ):
        lengths = np.asarray(lengths)
        if lengths.ndim > 2 or 0 in lengths.shape[1:] or len(lengths) < max(world_size, 1):
            raise ValueError(
                f"lengths of shape {lengths.shape} cannot be shared by world_size={world_size} processes; give shape "
                "(examples,) or (examples, columns) and at least one example per process"
            )
        lengths = np.maximum(lengths.reshape(len(lengths), -1), 1)
        self.lengths = lengths.astype(np.int32)  # (N, sides)
        for name, value in (("max_tokens", max_tokens), ("target_tokens", target_tokens)):
            if value is not None and value < 1:
                raise ValueError(f"{name}={value} must be 1 or more")
        self.max_tokens, self.target_tokens, self.seed, self.shuffle = max_tokens, target_tokens, seed, shuffle
        self.rank, self.world_size = rank, world_size
        self.epoch = 0
        self._rank = self._ranks()
        self._bounds = self._batch_bounds(self.lengths[np.argsort(self._rank, kind="stable")])

    def __len__(self) -> int:
        """Batches of this process in an epoch, the same in every epoch."""
        return -(-(len(self._bounds) - 1) // self.world_size)

    def __iter__(self) -> Iterator[list[int]]:
        return (batch.tolist() for batch in self._epoch_batches())

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def _ranks(self) -> np.ndarray:
        """Ranks (N,) of the examples in the order in which batches are cut.

        Sorted by rank, every order of the examples has the same lengths in the same positions.
        """
        lengths = self.lengths.astype(np.int64)
        # the longer side, all tokens, source tokens
        keys = [key.max() - key for key in (lengths.max(axis=1), lengths.sum(axis=1), lengths[:, 0])]
        if self.target_tokens is not None and lengths.shape[1] > 2:
            keys = _banded(lengths, self.target_tokens)
        rank, size = np.zeros(len(lengths), dtype=np.int64), 1
        for key in (*keys, *lengths.T[1:]):
            key_size = int(key.max()) + 1
            if size * key_size >= 2**62:
                values, rank = np.unique(rank, return_inverse=True)
                size = len(values)
            rank, size = rank * key_size + key, size * key_size
        ranks, rank = np.unique(rank, return_inverse=True)
        return rank.astype(np.uint16 if len(ranks) <= 2**16 else np.int32)  # numpy sorts the former in linear time

    def _batch_bounds(self, ordered: np.ndarray) -> list[int]:
        """Borders of the batches in `ordered` (N, sides), the lengths of all examples in order."""
        bounds = [0]
        while (start := bounds[-1]) < len(ordered):
            most = max(1, self.max_tokens // int(ordered[start].sum()))  # the first row alone allows no more
            rows = ordered[start : start + most]
            cost = np.maximum.accumulate(rows).sum(axis=1) * np.arange(1, len(rows) + 1)
            count = int(np.searchsorted(cost, self.max_tokens, side="right"))
            if self.target_tokens is not None:
                count = min(count, _nearest(np.cumsum(rows[:, 1]), self.target_tokens))
            bounds.append(start + max(1, count))
        while (len(bounds) - 1) % self.world_size:
            sizes = np.diff(bounds)
            largest = int(sizes.argmax())
            if sizes[largest] == 1:
                break
            bounds.insert(largest + 1, bounds[largest] + int(sizes[largest]) // 2)
        return bounds

    def _epoch_batches(self) -> list[np.ndarray]:
        """The batches of this process, in the order of this epoch."""
        random = np.random.default_rng([self.seed, self.epoch])
        order = np.arange(len(self.lengths), dtype=np.int32)
        if self.shuffle:
            random.shuffle(order)
        order = order[np.argsort(self._rank[order], kind="stable")]
        batches = [order[start:stop] for start, stop in zip(self._bounds, self._bounds[1:])]
        missing = -len(batches) % self.world_size
        batches += batches[len(batches) - missing :]
        steps = [batches[start : start + self.world_size] for start in range(0, len(batches), self.world_size)]
        share = self._share(steps)
        if self.shuffle:
            share = [share[number] for number in random.permutation(len(share))]
        return share

    def _share(self, steps: list[list[np.ndarray]]) -> list[np.ndarray]:
        """This process's batch of every step: the process with the fewest tokens so far takes the largest batch."""
        if self.world_size == 1:
            return [step[0] for step in steps]
        totals, share = np.zeros(self.world_size, dtype=np.int64), []
        for step in steps:
            tokens = np.array([self.lengths[batch].sum() for batch in step])
            ranks, largest_first = np.argsort(totals, kind="stable"), np.argsort(-tokens, kind="stable")
            totals[ranks] += tokens[largest_first]
            share.append(step[largest_first[int(np.flatnonzero(ranks == self.rank)[0])]])
        return share


def _banded(lengths: np.ndarray, target_tokens: int) -> list[np.ndarray]:
    """Keys (N,) of an order of `lengths` (N, 3): band of context, longer side, up and down in turn, all tokens, source.

    If the number of bands equals that of batches in a band, neither the context nor the sentence pads much.
    """
    bands = math.isqrt(int(lengths[:, 1].sum()) // target_tokens) + 1
    band = np.searchsorted(np.quantile(lengths[:, 2], np.arange(1, bands) / bands), lengths[:, 2], side="right")
    longest = lengths[:, :2].max(axis=1)
    snake = np.where(band % 2, longest.max() - longest, longest)
    return [band, snake, lengths.sum(axis=1), lengths[:, 0]]


def _nearest(totals: np.ndarray, wanted: int) -> int:
    """How many rows have a total as near to `wanted` as can be; `totals` (rows,) rise."""
    below = int(np.searchsorted(totals, wanted))
    if below == 0 or below == len(totals):
        return max(1, below)
    return below + int(totals[below] - wanted < wanted - totals[below - 1])


def batch_budget(examples: Examples, max_tokens: int, budget: Budget = "padded") -> tuple[int, int | None]:
    """`max_tokens` and `target_tokens` of a `TokenBudgetBatchSampler` over `examples.side_lengths`.

    `padded`: `max_tokens` are all tokens of a batch, padding included, a bound of memory. Where context is an input of
    its own a batch gets the target tokens that fill 2/3 of it on average: batches are of equal weight, and few are
    cut short by the bound. Segments, whose context is in source and target, just fill it.

    `fairseq`: `max_tokens` are counted on the longer side of each example, context included, as fairseq does. Batches
    get the average number of target tokens of fairseq's batches; the bound of memory is twice what these take on
    average. `fairseq_current` does not count context that is a separate input.
    """
    lengths = examples.side_lengths  # (examples, columns)
    tokens, targets = int(lengths.sum()), int(lengths[:, 1].sum())
    if budget == "padded":
        if lengths.shape[1] < 3:
            return max_tokens, None
        return max_tokens, max(1, int(FILLED * max_tokens * targets / tokens))
    sides = examples.side_lengths_with_context if budget == "fairseq" else lengths[:, :2]
    target_tokens = targets / fairseq_batches(sides, max_tokens)
    return round(ROOM * target_tokens * tokens / targets), round(target_tokens)


def fairseq_batches(lengths: np.ndarray, max_tokens: int) -> int:
    """The number of fairseq's batches for examples with these source and target tokens, (examples, 2).

    It sorts by source, then target, and fills batches while rows * (longest side) <= max_tokens, then leaves off rows
    to a multiple of eight (`batch_by_size` in `fairseq/data/data_utils.py`).
    """
    longer = lengths.max(axis=1)[np.lexsort((lengths[:, 1], lengths[:, 0]))].astype(np.int64)  # (examples,)
    batches = start = 0
    while start < len(longer):
        rows = longer[start : start + max(1, max_tokens // int(longer[start]))]
        cost = np.maximum.accumulate(rows) * np.arange(1, len(rows) + 1)
        count = max(1, int(np.searchsorted(cost, max_tokens, side="right")))
        if start + count < len(longer) and count > FAIRSEQ_ROWS:
            count -= count % FAIRSEQ_ROWS
        start, batches = start + count, batches + 1
    return batches
