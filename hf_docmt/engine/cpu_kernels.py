"""The compiled primitives of `cpu_kernels.c`: where they are, and whether this processor runs them.

They are built with the package if there is a C compiler. `DOCMT_KERNELS=0` disables them.
"""

import ctypes
import os
import sys
import warnings
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

ABI = 19  # of the structures below
PRODUCT, NORM, SELF_ATTENTION, SOURCE_ATTENTION, EMBEDDING, RECURRENCE, MIXTURE, ADDITION = range(8)
ALL, LIMITED, CONTEXT = range(3)  # what attention reads
LIMITS = ("sentence", "group", "window")  # kinds of these, by number
NONE, AVX2, VNNI, AMX, NEON, DOTS = range(6)  # instructions for products, of x86-64, then of aarch64
BLOCK = 16  # adjacent outputs of a product; rows of a tile
is_forked = False  # whether this process began as a copy of another one
LEVELS = 127  # of int8 weights and rows of states, on either side of zero
MIN_ELEMENTS = 2**16  # of a matrix that becomes int8; a product in int8 takes some 20 microseconds to begin
MOST_BEAMS = 32  # of a search
MULTIPLE = 8  # of which sizes of states and heads have to be
FEW_ROWS = 64  # on macOS; of int8 over the number of threads, where torch has several and the kernels one


class Operation(ctypes.Structure):
    """One primitive: the numbers of the buffers that it reads and writes, and its weights by address."""

    _fields_ = (
        ("kind", ctypes.c_int64),
        ("input", ctypes.c_int64),
        ("output", ctypes.c_int64),
        ("sizes", ctypes.c_int64 * 6),
        ("weights", ctypes.c_void_p * 3),
        ("number", ctypes.c_float),
    )


class Limits(ctypes.Structure):
    """The tokens that new ones read in a mechanism that restricts attention, see `cpu_kernels.c`."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("kind", "separator", "width", "count")),
        ("borders", ctypes.c_void_p),
        ("ratio", ctypes.c_double),
    )


class Step(ctypes.Structure):
    """Buffers and tables of all operations of a step, by address, see `cpu_kernels.c`."""

    _fields_ = (
        ("buffers", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("rows", "fresh")),
        ("lengths", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("shared", "places")),
        *((name, ctypes.c_void_p) for name in ("ancestors", "first", "seen", "counts", "tokens", "encodings", "bias")),
        *((name, ctypes.c_void_p) for name in ("integers", "numbers", "offsets", "limits", "ids")),
        ("room", ctypes.c_int64),
        ("ranges", ctypes.c_void_p),
        ("context_places", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("context_seen", "context_counts")),
        *((name, ctypes.c_int64) for name in ("threads", "scratch", "written", "kept")),
        *((name, ctypes.c_void_p) for name in ("slots", "origins")),
    )


class Search(ctypes.Structure):
    """A search and its scratch memory, see `cpu_kernels.c`."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("sources", "most")),
        ("prompts", ctypes.c_void_p),
        ("prompt", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("given", "limits", "ids", "copies")),
        ("room", ctypes.c_int64),
        ("ends", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("end_count", "beams")),
        ("penalty", ctypes.c_double),
        *((name, ctypes.c_int64) for name in ("is_early", "scored")),
        *((name, ctypes.c_void_p) for name in ("words", "is_absent", "log_probs", "sums", "values", "indices")),
        ("kept", ctypes.c_int64),
        ("current", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("next", "is_read", "steps")),
        *((name, ctypes.c_void_p) for name in ("found", "found_scores", "found_lengths", "is_open", "readers")),
        ("reader_count", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("reading", "states", "visible")),
        *((name, ctypes.c_void_p) for name in ("totals", "total_copies", "found_totals")),
    )


@lru_cache(maxsize=1)
def kernels() -> ctypes.CDLL | None:
    """The library, or None where it was not built, is of another version, or needs another processor."""
    for path in sorted(Path(__file__).parent.glob("_cpu_kernels*.so")):
        try:
            library = ctypes.CDLL(str(path))
            library.docmt_abi.restype = library.docmt_level.restype = ctypes.c_int64
            library.docmt_level.argtypes = (ctypes.c_int64,)
            library.level = library.docmt_level(DOTS) if library.docmt_abi() == ABI else NONE
            if library.docmt_abi() != ABI:
                text = f"{path.name} is of another version and is not used: translation is several times slower"
                warnings.warn(f"{text}. Install hf_docmt again to build it", RuntimeWarning, stacklevel=2)
        except (OSError, AttributeError):
            continue
        if library.level != NONE:
            library.docmt_run.argtypes = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
            library.docmt_search.argtypes = (*library.docmt_run.argtypes, ctypes.c_void_p)
            library.docmt_best.argtypes = (*[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 4, *[ctypes.c_void_p] * 2)
            library.docmt_run.restype = library.docmt_openmp.restype = None
            library.docmt_checksum.argtypes = (ctypes.c_void_p, ctypes.c_int64)
            library.docmt_best.restype = library.docmt_checksum.restype = library.docmt_search.restype = ctypes.c_int64
            library.docmt_openmp((ctypes.c_void_p * 4)(*(() if is_forked else openmp_functions())))
            return library
    return None


@lru_cache(maxsize=1)
def openmp_functions() -> tuple[int, ...]:
    """Addresses of what shares work among the threads of torch, as `cpu_threads.h` calls it; none without OpenMP.

    Where torch was not imported, they are of the library that it would load.
    """
    names = ("GOMP_parallel", "GOMP_barrier", "omp_get_thread_num", "omp_get_num_threads")
    folder = Path(find_spec("torch").origin).parent / "lib"
    files = folder.glob("libtorch_cpu.*" if "torch" in sys.modules else "libgomp*")
    for file in (None, *files):  # preloaded libraries come first
        try:
            library = ctypes.CDLL(file and str(file))
            return tuple(ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names)
        except (OSError, AttributeError):
            continue
    return ()


def leave_threads() -> None:
    """Let a forked process work alone: it would wait for threads that it has not."""
    global is_forked
    is_forked = True
    if kernels.cache_info().currsize and (library := kernels()):
        library.docmt_openmp((ctypes.c_void_p * 4)())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=leave_threads)


def threads() -> int:
    """How many threads torch has, or would have: OMP_NUM_THREADS, otherwise one for each core."""
    if "torch" in sys.modules:
        return sys.modules["torch"].get_num_threads()
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if asked.isdecimal():
        return int(asked)
    try:
        cores = [Path(f"/sys/devices/system/cpu/cpu{n}/topology/core_cpus_list") for n in os.sched_getaffinity(0)]
        return len({core.read_text() for core in cores})  # of which each may have two logical processors
    except (OSError, AttributeError):  # not on Linux
        return os.cpu_count() or 1


def lone_threads() -> int:
    """How many threads torch has where the kernels have one; 1 where they share them."""
    return 1 if openmp_functions() and not is_forked else threads()


def run(operations: ctypes.Array, step: Step, first: int = 0, end: int | None = None) -> None:
    """Run operations from the first one on, one after the other, up to the one at `end`."""
    start = ctypes.byref(operations, first * ctypes.sizeof(Operation))
    kernels().docmt_run(start, (len(operations) if end is None else end) - first, ctypes.byref(step))


def search(operations: ctypes.Array, step: Step, search: Search) -> int:
    """Search for translations; returns 0, the length of a target for which there is no room, or -1 after its steps."""
    return kernels().docmt_search(operations, len(operations), ctypes.byref(step), ctypes.byref(search))


def most_rows(size: int, is_float: bool = False) -> int:
    """How many rows of `size` values the kernels multiply faster than torch."""
    if size % MULTIPLE or not are_used() or not is_float and kernels().level < VNNI:
        return 0
    if lone_threads() == 1:  # on macOS torch computes with Accelerate, on matrix units
        return FEW_ROWS if is_float and sys.platform == "darwin" else 2**63
    return 0 if is_float else FEW_ROWS // lone_threads()


def are_used() -> bool:
    """Whether steps run on the kernels."""
    return os.environ.get("DOCMT_KERNELS") != "0" and kernels() is not None
