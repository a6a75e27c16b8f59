"""What the machine can do at most: products of large matrices, and a copy from memory."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch

from hf_docmt.bench.benchmark import Benchmark, OnRow, ignore_row
from hf_docmt.bench.measurement import elapsed_seconds
from hf_docmt.bench.options import CeilingsOptions
from hf_docmt.bench.results import BenchResult, Row

PRODUCTS = ("fp32", "bf16", "int8")
COPY = "copy"
MIB = 2**20


@dataclass(kw_only=True)
class CeilingsBenchmark(CeilingsOptions, Benchmark):
    """GFLOP/s of the product of two square matrices in each precision, GB/s of a copy from memory.

    The product in int8 has sums in int32. A copy counts the bytes that are read and those that are written, of blocks
    that no cache holds. `ours` are medians over `repeats`; `peer` and `ratio` compare a product with that in fp32.
    """

    matrix_size: int = 2048
    copied_mib: int = 256

    def run(self, on_row: OnRow = ignore_row) -> BenchResult:
        rows: list[Row] = []
        for precision in PRODUCTS:
            speed = 2 * self.matrix_size**3 / 1e9 / self.median_seconds(self.product(precision))
            rows.append(Row.of(precision, "GFLOP/s", speed, rows[0].ours if rows else speed))
            on_row(rows[-1])
        speed = 2 * self.copied_mib * MIB / 1e9 / self.median_seconds(self.copy())
        rows.append(Row.of(COPY, "GB/s", speed, None))
        on_row(rows[-1])
        return self.result(rows, [])

    def product(self, precision: str) -> Callable[[], object]:
        """The product of two matrices of one of `PRODUCTS`."""
        shape = (2, self.matrix_size, self.matrix_size)
        if precision == "int8":
            first, second = torch.randint(-100, 100, shape, dtype=torch.int8, device=self.device)
            return lambda: torch._int_mm(first, second.t())
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]
        first, second = torch.randn(shape, dtype=dtype, device=self.device)
        return lambda: first @ second.t()

    def copy(self) -> Callable[[], object]:
        """A copy of a block of memory to another one."""
        source, target = (torch.ones(self.copied_mib * MIB // 4, device=self.device) for _ in range(2))
        return lambda: target.copy_(source)

    def median_seconds(self, work: Callable[[], object]) -> float:
        """Median seconds of some work, after a first time that does not count."""
        work()
        return median(elapsed_seconds(work, self.device) for _ in range(self.repeats))
