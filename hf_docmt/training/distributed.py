"""Training in several processes: shares of the batches of an update, and what sharded parameters need."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
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

    The batches of one step of those processes are consecutive, as are the steps, and every
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


# Sharded parameters (FSDP2 of accelerate)


def check_sharding(accelerator: Accelerator) -> None:
    """Raise `ValueError` for settings of FSDP that accelerate would ignore, and for those that give no checkpoints."""
    plugin = getattr(accelerator.state, "fsdp_plugin", None)
    if plugin is None:
        if os.environ.get("ACCELERATE_USE_FSDP", "false").lower() == "true" and accelerator.num_processes > 1:
            raise ValueError(
                "ACCELERATE_USE_FSDP: accelerate shards parameters on accelerators only, these processes run on "
                f"{accelerator.device.type}; launch them without FSDP"
            )
        return
    kind = plugin.state_dict_type
    if "FULL_STATE_DICT" not in str(kind):
        raise ValueError(
            f"fsdp_state_dict_type is {getattr(kind, 'name', kind)}, expected FULL_STATE_DICT: checkpoints hold the "
            "whole model, for averaging and for the model folder"
        )


@contextmanager
def tied_embeddings_in_root(model: torch.nn.Module) -> Iterator[None]:
    """While accelerate shards the model the embeddings count as parts of the root.

    It would make a group of two of the modules that share the table (`get_input_embeddings`, `get_output_embeddings`),
    but here encoder and decoder have it as well, and all that share a parameter must be in one group.
    """
    names = ("get_input_embeddings", "get_output_embeddings")
    for name in names:
        setattr(model, name, lambda: None)
    try:
        yield
    finally:
        for name in names:
            delattr(model, name)


def equal_rounds(batches) -> Iterator[tuple[Any, bool]]:
    """The batches of a loader and whether they count: the same number in every process, the last one repeated.

    Sharded parameters are gathered in every forward pass, so that all processes need the same number of them. One that
    has none takes the first example.
    """
    missing = max(gather_object([len(batches)])) - len(batches)
    last = None
    for last in batches:
        yield last, True
    if missing and last is None:
        last = batches.collate_fn([batches.dataset[0]])
    for _ in range(missing):
        yield last, False
