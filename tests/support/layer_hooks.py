"""What arrives in the layers of a model, and where their parameters are used, watched while the model runs."""

from contextlib import contextmanager
from functools import partial

import torch
from torch.overrides import TorchFunctionMode

from hf_docmt.modeling.layers import DecoderLayer, EncoderLayer


def layers_of(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    return {name: module for name, module in model.named_modules() if isinstance(module, EncoderLayer | DecoderLayer)}


@contextmanager
def layer_arguments(model: torch.nn.Module):
    """A list of (layer and argument, value) of all calls of layers."""
    arguments: list[tuple] = []

    def note(name, module, args, kwargs):
        arguments.extend((f"{name} {key}", value) for key, value in [*enumerate(args), *kwargs.items()])

    layers = layers_of(model).items()
    hooks = [layer.register_forward_pre_hook(partial(note, name), with_kwargs=True) for name, layer in layers]
    try:
        yield arguments
    finally:
        for hook in hooks:
            hook.remove()


class ParameterUse(TorchFunctionMode):
    """Names of the layers' parameters that torch functions get inside and outside of the forward of their layer."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.layers = layers_of(model)
        self.owners = [
            (parameter, name, f"{name}.{part}")
            for name, layer in self.layers.items()
            for part, parameter in layer.named_parameters()
        ]
        self.inside, self.outside, self.running = set(), set(), set()

    def __enter__(self):
        self.hooks = []
        for name, layer in self.layers.items():
            begin = layer.register_forward_pre_hook(lambda *_, name=name: self.running.add(name))
            end = layer.register_forward_hook(lambda *_, name=name: self.running.discard(name))
            self.hooks += [begin, end]
        return super().__enter__()

    def __exit__(self, *error):
        for hook in self.hooks:
            hook.remove()
        return super().__exit__(*error)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        parameters = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.nn.Parameter)]
        for value in parameters:
            for parameter, layer, name in self.owners:
                if parameter is value:
                    (self.inside if layer in self.running else self.outside).add(name)
        return function(*args, **kwargs)
