"""The primitives of `cpu_kernels.c` on tensors, and memory for them."""

import ctypes

import torch

from hf_docmt.engine.cpu_kernels import BLOCK, MULTIPLE, PRODUCT, Operation, Step, are_used, kernels


def memory(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Memory for the primitives, whatever type and device are the default."""
    return torch.empty(shape, dtype=dtype, device="cpu")


def give_scratch(step: Step, rows: int, places: int) -> None:
    """Give a step threads, and memory for each of them, for this number of rows and of places that they read."""
    step.threads, step.scratch = torch.get_num_threads(), max(rows, places + MULTIPLE)
    step.scratches = [memory(step.threads, step.scratch, dtype=dtype) for dtype in (torch.float32, torch.long)]
    step.numbers, step.offsets = (tensor.data_ptr() for tensor in step.scratches)


def kernel_product(
    states: torch.Tensor, weights: torch.Tensor, scales: torch.Tensor | None, bias: torch.Tensor, outputs: int
) -> torch.Tensor:
    """States (..., D_in) float32 -> (..., outputs), with weights as `int8_linear.kernel_weights` has them.

    Without scales weights are float32, as `scope.in_blocks` has them.
    """
    rows = states.reshape(-1, states.shape[-1]).contiguous()
    count, size = rows.shape
    output, numbers = rows.new_empty(count, outputs), rows.new_empty(count)
    integers = memory(count + -count % BLOCK, size, dtype=torch.int8)
    addresses = (weights.data_ptr(), None if scales is None else scales.data_ptr(), bias.data_ptr())
    operation = Operation(PRODUCT, 0, 1, (size, outputs), addresses)
    buffers = (ctypes.c_void_p * 2)(rows.data_ptr(), output.data_ptr())
    step = Step(ctypes.addressof(buffers), count, integers=integers.data_ptr(), numbers=numbers.data_ptr())
    step.threads = torch.get_num_threads()
    kernels().docmt_run(ctypes.byref(operation), 1, ctypes.byref(step))
    return output.view(*states.shape[:-1], outputs)


def best_of(
    scores: torch.Tensor, count: int, added: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor, bool] | None:
    """The best of scores (R, V), best first, the first of equal ones: values, indices (R, count), whether some tie.

    With numbers that are added to rows, (B, R / B), over the rows of a group: (B, count), indices into R / B times V.
    None for scores that are not float32 on a CPU or fewer than `count`, and without the kernels.
    """
    tensors = (scores,) if added is None else (scores, added)
    if not are_used() or not all(one.is_cpu and one.dtype is torch.float32 and one.is_contiguous() for one in tensors):
        return None
    groups, rows = (len(scores), 1) if added is None else added.shape
    if rows * scores.shape[1] < count:
        return None
    values, indices = scores.new_empty(groups, count), scores.new_empty(groups, count, dtype=torch.long)
    addresses = (scores.data_ptr(), None if added is None else added.data_ptr())
    sizes = (groups, rows, scores.shape[1], count)
    are_tied = kernels().docmt_best(*addresses, *sizes, values.data_ptr(), indices.data_ptr())
    return values, indices, bool(are_tied)


def checksum_of(values: torch.Tensor) -> torch.Tensor | None:
    """A hash of the bits of values, (1,) int64; None unless they are contiguous on a CPU, and without the kernels."""
    if not are_used() or not values.is_cpu or not values.is_contiguous():
        return None
    return torch.tensor([kernels().docmt_checksum(values.data_ptr(), values.nbytes)], device="cpu")
