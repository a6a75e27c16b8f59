"""Devices and number types by their names, checked before weights are loaded."""

import torch

from hf_docmt.messages import closest_hint

INT8 = "int8"  # of the weights of linear layers; the others, and what is computed between layers, stay as saved
DTYPES = dict.fromkeys(("fp32", "float32"), torch.float32)
DTYPES |= dict.fromkeys(("bf16", "bfloat16"), torch.bfloat16) | dict.fromkeys(("fp16", "float16"), torch.float16)
DTYPES |= {INT8: torch.int8}
TORCH_ERRORS = (RuntimeError, AssertionError, ValueError, NotImplementedError)


def check_device(device: str) -> str:
    """The name of a device that torch can use, such as `cpu`, `cuda` or `cuda:1`; ValueError for others."""
    try:
        torch.zeros(1, device=device) + 1
    except TORCH_ERRORS as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(f"device {device!r} cannot be used here ({reason}); give cpu, or omit it") from error
    return device


def checked_dtype(name: str | None, device: str) -> torch.dtype | None:
    """The dtype of this name; None for None and auto, that of the saved weights.

    ValueError for an unknown one and one that the device does not compute.
    """
    if name in (None, "auto"):
        return None
    if name not in DTYPES:
        hint = closest_hint(name, DTYPES, " (did you mean {!r}?)")
        raise ValueError(f"unknown dtype {name!r}{hint}; choose one of {', '.join(DTYPES)}")
    if name == INT8 and torch.device(device).type != "cpu":
        raise ValueError(f"int8 is for the CPU, got device {device!r}; choose device cpu, or another dtype")
    dtype = DTYPES[name]
    if name == INT8:
        return dtype
    try:
        states = torch.ones(2, 8, 8, device=device, dtype=dtype)
        states = torch.nn.functional.linear(states, states[0])
        states = torch.nn.functional.layer_norm(states, (8,))
        torch.nn.functional.scaled_dot_product_attention(*[states[:, None]] * 3).softmax(-1)
    except TORCH_ERRORS as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(f"{device} does not compute in {name} ({reason}); choose another dtype") from error
    return dtype
