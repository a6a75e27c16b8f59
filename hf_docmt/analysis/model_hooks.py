"""Observing a model while it runs: forward hooks that are removed, modes that are restored."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from torch import nn
from transformers import PreTrainedModel

from hf_docmt.evaluation.systems.model_system import evaluation_mode


@contextmanager
def forward_hooks(hooks: Iterable[tuple[nn.Module, Callable]]) -> Iterator[None]:
    """Register forward hooks, (module, hook) pairs, and remove them at the end."""
    handles = [module.register_forward_hook(hook) for module, hook in hooks]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def eager_attention(model: PreTrainedModel) -> Iterator[None]:
    """The model in evaluation mode with eager attention, which returns its weights; afterwards as it was."""
    implementation = model.config._attn_implementation
    with evaluation_mode(model):
        model.set_attn_implementation("eager")
        try:
            yield
        finally:
            model.set_attn_implementation(implementation)


def modules_named(model: nn.Module, name: str) -> list[nn.Module]:
    """The modules whose path ends in `name`, in the order of the layers."""
    return [module for path, module in model.named_modules() if path.split(".")[-1] == name]
