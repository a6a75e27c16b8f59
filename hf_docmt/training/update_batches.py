"""The batches of an update, given out to another number of processes than they were made for."""

from collections.abc import Iterator

from hf_docmt.data.samplers import TokenBudgetBatchSampler


def accumulation_for(processes: int, batch_processes: int, accumulation: int, steps: int) -> int:
    """Batches that each of `processes` accumulates, so that every update has the batches it had.

    They were made for `batch_processes` processes, each with `accumulation` batches an update and `steps` an epoch.
    Raises `ValueError` where the processes cannot have the same number of batches in every update.
    """
    sizes = [batch_processes * accumulation, batch_processes * (steps % accumulation)]  # the latter ends an epoch
    if any(size % processes for size in sizes):
        raise ValueError(
            f"an update has {sizes[0]} batches" + (f", the last of an epoch {sizes[1]}" if sizes[1] else "")
        )
    return sizes[0] // processes


class RegroupedBatches:
    """A batch sampler that gives a process its share of batches made for `batch_processes` processes.

    The batches of one step of those processes come one after the other, the batches of all steps likewise, and every
    `processes`-th belongs to this process. With the accumulation of `accumulation_for` an update has the same batches.
    """

    def __init__(self, sampler: TokenBudgetBatchSampler, rank: int, processes: int):
        self.sampler, self.rank, self.processes = sampler, rank, processes

    def __len__(self) -> int:
        return len(self.sampler) * self.sampler.world_size // self.processes

    def __iter__(self) -> Iterator[list[int]]:
        shares = []
        for rank in range(self.sampler.world_size):
            self.sampler.rank = rank
            shares.append(list(self.sampler))
        batches = [batch for step in zip(*shares, strict=True) for batch in step]
        yield from batches[self.rank :: self.processes]

    def set_epoch(self, epoch: int) -> None:
        self.sampler.set_epoch(epoch)
