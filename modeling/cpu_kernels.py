"""The compiled primitives of `cpu_kernels.c`: where they are, and whether this processor runs them.

They are built with the package where a C compiler is there. `DOCMT_KERNELS=0` leaves them out.
"""

import ctypes
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

ABI = 1  # of the structures below
PRODUCT, NORM, SELF_ATTENTION, SOURCE_ATTENTION = range(4)
BLOCK = 16  # outputs of a product that stand side by side
MULTIPLE = 8  # of which sizes of states and heads have to be


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
            library.docmt_abi.restype = library.docmt_supported.restype = ctypes.c_int64
            is_usable = library.docmt_abi() == ABI and library.docmt_supported()
        except (OSError, AttributeError):
            continue
        if is_usable:
            library.docmt_run.argtypes = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
            library.docmt_run.restype = None
            return library
    return None


def run(operations: Sequence[Operation], step: Step) -> None:
    """Run operations one after the other."""
    array = operations if isinstance(operations, ctypes.Array) else (Operation * len(operations))(*operations)
    kernels().docmt_run(array, len(array), ctypes.byref(step))


def are_used() -> bool:
    """Whether steps run on the kernels."""
    return os.environ.get("DOCMT_KERNELS") != "0" and kernels() is not None
