"""An accelerator that is not there: tensors with their values on the CPU that say they are on another device.

Two devices that meet in one operation raise `RuntimeError`, as on a real one, so that forwards, training and decoding
are checked for tensors on the wrong device on a machine without an accelerator.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

aten = torch.ops.aten
BETWEEN_DEVICES = {aten.copy_.default, aten._to_copy.default}
NAME = "pretended"
UNABLE = {  # tests of what torch does for each device it knows
    "test_gradient_checkpointing",
    "test_bf16_autocast_is_close",
    "test_half_precision",
    "test_one_graph",
    "test_a_step_is_compiled_whole",
    "test_flex_attention",
    "test_two_updates",
    "test_sharded_in_one_process",
}


class Backend(_DummyBackendModule):
    """What torch asks of a device's module."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


class PretendedTensor(torch.Tensor):
    """A tensor on the device; `values_on_cpu` has what is in it."""

    @staticmethod
    def __new__(cls, values: torch.Tensor):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            values.shape,
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=NAME,
        )
        made.values_on_cpu = values
        return made

    def __repr__(self):
        return f"PretendedTensor({self.values_on_cpu})"

    def tolist(self):
        return self.values_on_cpu.tolist()

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return call(function, args, kwargs or {})


class Factories(TorchDispatchMode):
    """Tensors that are made on the device."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return call(function, args, kwargs or {})


class Attention(TorchFunctionMode):
    """Scaled dot-product attention by its formula: torch chooses a kernel by the device, which has none here."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is not torch.nn.functional.scaled_dot_product_attention:
            return function(*args, **kwargs)
        mask = kwargs.get("attn_mask")
        if mask is not None and mask.dtype == torch.bool:
            kwargs = kwargs | {"attn_mask": torch.zeros_like(mask, dtype=args[0].dtype).masked_fill(~mask, -math.inf)}
        return aten._scaled_dot_product_attention_math(*args, **kwargs)[0]


def call(function, args, kwargs):
    """The operation on the values, its tensors on the device of its arguments or on the one that is asked for."""
    tensors = [value for value in tree_flatten((args, kwargs))[0] if isinstance(value, torch.Tensor)]
    pretended = [tensor for tensor in tensors if isinstance(tensor, PretendedTensor)]
    others = [tensor for tensor in tensors if not isinstance(tensor, PretendedTensor) and tensor.dim()]
    if pretended and others and function not in BETWEEN_DEVICES:
        shapes = [tuple(tensor.shape) for tensor in others]
        raise RuntimeError(f"{function}: expected all tensors on one device, got some on the CPU, of shapes {shapes}")
    asked = kwargs.get("device")
    if asked is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    on_device = bool(pretended) if asked is None else torch.device(asked).type == NAME
    if not on_device and not pretended:
        return function(*args, **kwargs)
    result = function(*tree_map(values_of, args), **tree_map(values_of, kwargs))
    if not on_device or function is aten.copy_.default and not isinstance(args[0], PretendedTensor):
        return result
    result = tree_map(lambda value: PretendedTensor(value) if isinstance(value, torch.Tensor) else value, result)
    return return_and_correct_aliasing(function, args, kwargs, result)


def values_of(value):
    return value.values_on_cpu if isinstance(value, PretendedTensor) else value


@cache
def set_up() -> torch.device:
    """Make the device known to torch, once in a process; within `pretended()` it can be used."""
    _setup_privateuseone_for_python_backend(NAME, Backend())
    return torch.device(NAME)


@contextmanager
def pretended() -> Iterator[None]:
    """Scope in which the device can be used; a model that comes to it by `.to` has to tie its weights again."""
    lifting = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)
    try:
        with Factories(), Attention(), torch.autograd.set_multithreading_enabled(False):
            yield
    finally:
        torch._C._set_only_lift_cpu_tensors(lifting)
