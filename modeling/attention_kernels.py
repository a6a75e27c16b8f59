"""Which of torch's kernels compute attention."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch.backends import cuda
from torch.nn.attention import SDPBackend, sdpa_kernel

KERNELS = {
    SDPBackend.FLASH_ATTENTION: cuda.flash_sdp_enabled,
    SDPBackend.EFFICIENT_ATTENTION: cuda.mem_efficient_sdp_enabled,
    SDPBackend.MATH: cuda.math_sdp_enabled,
}


def without_cudnn(states: torch.Tensor) -> AbstractContextManager:
    """Scope in which torch's attention to states on a GPU does not use cuDNN.

    cuDNN plans for half a second at each new shape, and documents have many shapes.
    """
    if not states.is_cuda or torch.compiler.is_compiling() or not cuda.cudnn_sdp_enabled():
        return nullcontext()
    return sdpa_kernel([kernel for kernel, is_enabled in KERNELS.items() if is_enabled()])
