"""Training with sharded parameters (FSDP2 of accelerate): what our models and our evaluation need for it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object


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
    """The batches of a loader and whether they count: in every process as many, the last one repeated.

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
