"""Batches of at most so many tokens, for one or many processes."""

from collections.abc import Iterator, Sequence

import numpy as np


class TokenBudgetBatchSampler:
    """Batches (lists of indices) of examples of like length with at most `max_tokens` tokens, padding included.

    `lengths` (examples, 2): source and target tokens of each example, context included; a batch of B rows then costs
    B * (longest source + longest target). Other numbers of columns likewise; with (examples,) it costs B * longest. An
    example longer than `max_tokens` is a batch of its own. The batches depend on (seed, epoch) only; each of
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
        seed: int = 0,
        shuffle: bool = True,
        rank: int = 0,
        world_size: int = 1,
    ):
        lengths = np.asarray(lengths)
        if lengths.ndim > 2 or 0 in lengths.shape[1:] or len(lengths) < max(world_size, 1):
            raise ValueError(
                f"lengths of shape {lengths.shape} cannot be shared by world_size={world_size} processes; give shape "
                "(examples,) or (examples, columns) and at least one example a process"
            )
        lengths = np.maximum(lengths.reshape(len(lengths), -1), 1)
        if int(lengths.max()) * lengths.shape[1] >= 2**31:
            raise ValueError(f"lengths go up to {lengths.max()} tokens, which no batch can hold; check them")
        self.lengths = lengths.astype(np.int32)  # (N, sides)
        if max_tokens < 1:
            raise ValueError(f"max_tokens={max_tokens} must be 1 or more")
        if not 0 <= rank < world_size:
            raise ValueError(f"rank={rank} must be from 0 to world_size - 1 = {world_size - 1}")
        self.max_tokens, self.seed, self.shuffle = max_tokens, seed, shuffle
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
        """Ranks (N,) of the examples, longest first: by the longer side, all tokens, source tokens.

        Sorted by rank, every order of the examples has the same lengths in the same positions.
        """
        longest, total, first = self.lengths.max(axis=1), self.lengths.sum(axis=1), self.lengths[:, 0]
        key = (longest.max() - longest) * (total.max() + 1) + total.max() - total
        _, rank = np.unique(key, return_inverse=True)
        rank *= int(first.max()) + 1
        rank += first.max() - first
        ranks, rank = np.unique(rank, return_inverse=True)
        return rank.astype(np.uint16 if len(ranks) <= 2**16 else np.int32)  # numpy sorts the former in linear time

    def _batch_bounds(self, descending: np.ndarray) -> list[int]:
        """Borders of the batches in `descending` (N, sides), the lengths of all examples, longest first."""
        bounds = [0]
        while (start := bounds[-1]) < len(descending):
            most = max(1, self.max_tokens // int(descending[start].sum()))  # the first row alone allows no more
            longest = np.maximum.accumulate(descending[start : start + most])  # (rows, sides)
            cost = longest.sum(axis=1) * np.arange(1, len(longest) + 1)
            bounds.append(start + max(1, int(np.searchsorted(cost, self.max_tokens, side="right"))))
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
