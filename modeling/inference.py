"""Inference with a model in any mode: no dropout in this thread, and the model's mode stays as it is."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

DROPOUTS = {
    nn.functional.dropout,
    nn.functional.alpha_dropout,
    nn.functional.feature_alpha_dropout,
    nn.functional.dropout1d,
    nn.functional.dropout2d,
    nn.functional.dropout3d,
    torch.dropout,
}


@contextmanager
def inference(model) -> Iterator[None]:
    """Scope of a translation: weights that do not change, see `prepacked_weights`, and no dropout.

    A model in training mode is not put into evaluation mode, which other threads would see, and which a copy, a fork or
    an error would leave behind: dropout is switched off for the functions that this thread calls. Not reached is
    attention dropout inside the kernels of flash-attention.
    """
    with model.prepacked_weights():
        if not any(module.training for module in model.modules()):
            yield
            return
        with WithoutDropout():
            yield


class WithoutDropout(TorchFunctionMode):
    """Within it the functions of torch that drop values, called from this thread, give all of them, in any mode."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in DROPOUTS:
            return args[0] if args else kwargs["input"]
        if func is torch.native_dropout:
            return args[0], None  # the mask is for a backward pass
        if func is nn.functional.scaled_dot_product_attention:  # (query, key, value, attn_mask, dropout_p, ...)
            args = (*args[:4], 0.0, *args[5:]) if len(args) > 4 else args
            kwargs = {**kwargs, "dropout_p": 0.0} if "dropout_p" in kwargs else kwargs
        return func(*args, **kwargs)
