"""The batches of an update, given out to processes, also to another number than they were made for."""

from collections.abc import Iterator

from torch.utils.data import DataLoader

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
    """A batch sampler that gives a process its share of batches made for `sampler.world_size` processes.

    The batches of one step of those processes come one after the other, the batches of all steps likewise, and every
    `processes`-th belongs to this process. With the accumulation of `accumulation_for` an update has the same batches.
    The epoch is passed on to `dataset`, too, where it takes one: a run that is resumed inside an epoch has a loader of
    accelerate, which sets that of the batch sampler only.
    """

    def __init__(self, sampler: TokenBudgetBatchSampler, rank: int, processes: int, dataset: object = None):
        self.sampler, self.rank, self.processes, self.dataset = sampler, rank, processes, dataset

    def __len__(self) -> int:
        return len(self.sampler) * self.sampler.world_size // self.processes

    def __iter__(self) -> Iterator[list[int]]:
        if self.processes == self.sampler.world_size:
            self.sampler.rank = self.rank
            yield from self.sampler
            return
        shares = []
        for rank in range(self.sampler.world_size):
            self.sampler.rank = rank
            shares.append(list(self.sampler))
        batches = [batch for step in zip(*shares, strict=True) for batch in step]
        yield from batches[self.rank :: self.processes]

    def set_epoch(self, epoch: int) -> None:
        self.sampler.set_epoch(epoch)
        if hasattr(self.dataset, "set_epoch"):
            self.dataset.set_epoch(epoch)


class EpochDataLoader(DataLoader):
    """A loader that passes the epoch on to its batch sampler; the trainer and accelerate call `set_epoch`."""

    def set_epoch(self, epoch: int) -> None:
        if hasattr(self.batch_sampler, "set_epoch"):
            self.batch_sampler.set_epoch(epoch)
