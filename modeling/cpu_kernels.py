"""The compiled primitives of `cpu_kernels.c`: where they are, and whether this processor runs them.

They are built with the package where a C compiler is there. `DOCMT_KERNELS=0` leaves them out.
"""

import ctypes
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import torch

ABI = 2  # of the structures below
PRODUCT, NORM, SELF_ATTENTION, SOURCE_ATTENTION = range(4)
NONE, AVX2, VNNI, AMX = range(4)  # instructions for products
BLOCK = 16  # outputs of a product that stand side by side; rows of a tile
MULTIPLE = 8  # of which sizes of states and heads have to be
ROWS = {VNNI: 64, AMX: 512}  # up to so many over the number of threads, a product is faster than that of torch


class Operation(ctypes.Structure):
    """One primitive: what it reads and writes, by address."""

    _fields_ = (
        ("kind", ctypes.c_int64),
        ("sizes", ctypes.c_int64 * 8),
        ("tensors", ctypes.c_void_p * 8),
        ("number", ctypes.c_float),
    )


class Step(ctypes.Structure):
    """What all operations of a step share."""

    _fields_ = (
        ("rows", ctypes.c_int64),
        ("length", ctypes.c_int64),
        ("ancestors", ctypes.c_void_p),
        ("first", ctypes.c_void_p),
        ("integers", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
        ("places", ctypes.c_void_p),
    )


@lru_cache(maxsize=1)
def kernels() -> ctypes.CDLL | None:
    """The library, or None where it was not built, is of another version, or needs another processor."""
    for path in sorted(Path(__file__).parent.glob("_cpu_kernels*.so")):
        try:
            library = ctypes.CDLL(str(path))
            library.docmt_abi.restype = library.docmt_level.restype = ctypes.c_int64
            library.docmt_level.argtypes = (ctypes.c_int64,)
            library.level = library.docmt_level(AMX) if library.docmt_abi() == ABI else NONE
        except (OSError, AttributeError):
            continue
        if library.level != NONE:
            library.docmt_run.argtypes = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
            library.docmt_run.restype = None
            return library
    return None


def run(operations: Sequence[Operation], step: Step) -> None:
    """Run operations one after the other."""
    array = operations if isinstance(operations, ctypes.Array) else (Operation * len(operations))(*operations)
    kernels().docmt_run(array, len(array), ctypes.byref(step))


def kernel_product(
    states: torch.Tensor, weights: torch.Tensor, scales: torch.Tensor, bias: torch.Tensor, outputs: int
) -> torch.Tensor:
    """States (..., D_in) float32 -> (..., outputs), with weights as `int8_linear.kernel_weights` has them."""
    rows = states.reshape(-1, states.shape[-1]).contiguous()
    count, size = rows.shape
    output, numbers = rows.new_empty(count, outputs), rows.new_empty(count)
    integers = torch.empty(count + -count % BLOCK, size, dtype=torch.int8)
    tensors = (rows, output, weights, scales, bias)
    addresses = (ctypes.c_void_p * 8)(*(tensor.data_ptr() for tensor in tensors))
    operation = Operation(PRODUCT, (ctypes.c_int64 * 8)(size, outputs), addresses)
    step = Step(rows=count, integers=integers.data_ptr(), numbers=numbers.data_ptr())
    kernels().docmt_run(ctypes.byref(operation), 1, ctypes.byref(step))
    return output.view(*states.shape[:-1], outputs)


def most_rows(size: int) -> int:
    """How many rows of `size` values the kernels, which have one thread, multiply faster than torch."""
    if size % MULTIPLE or not are_used():
        return 0
    level, threads = kernels().level, torch.get_num_threads()
    return 2**63 if level == AMX and threads <= 2 else ROWS.get(level, 0) // threads


def are_used() -> bool:
    """Whether steps run on the kernels."""
    return os.environ.get("DOCMT_KERNELS") != "0" and kernels() is not None
