"""Reading the weights of a model's attention: hooks, eager attention for a moment, weights by source token."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn
from transformers import PreTrainedModel

from hf_docmt.systems.model_system import evaluation_mode

CROSS_ATTENTION = "encoder_attn"  # name of the module in every decoder layer


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
def kept_outputs(modules: Iterable[nn.Module], part: Callable = lambda output: output) -> Iterator[list]:
    """A list that is filled within the context: a part of what the modules gave, in the order in which they ran."""
    kept: list = []

    def keep(module, inputs, output):
        kept.append(part(output))

    with forward_hooks((module, keep) for module in modules):
        yield kept


@contextmanager
def eager_attention(model: PreTrainedModel) -> Iterator[None]:
    """The model in evaluation mode with eager attention, which returns its weights; restored afterwards."""
    implementation = model.config._attn_implementation
    with evaluation_mode(model):
        model.set_attn_implementation("eager")
        try:
            yield
        finally:
            model.set_attn_implementation(implementation)


def attention_weights(output: Sequence, keys: int) -> torch.Tensor:
    """The weights (B, H, T, S) of an attention module for `keys` source tokens, from its output.

    An architecture that attends to K chosen tokens gives weights (B, H, T, K), and as a third value their positions
    (B, T, K), any position if the weight is 0. ValueError: no weights, or those of other keys.
    """
    _, weights, *positions = output
    positions = positions[0] if positions else None
    if weights is None or positions is None and weights.shape[-1] != keys:
        got = "none" if weights is None else f"those of {weights.shape[-1]} keys"
        raise ValueError(
            f"cross-attention must give its weights for all {keys} source tokens, or weights and positions of the keys "
            f"it has chosen; got {got}"
        )
    if positions is None:
        return weights
    index = positions.clamp(0, keys - 1)[:, None].expand(weights.shape)
    return weights.new_zeros(*weights.shape[:3], keys).scatter_add_(3, index, weights)


def modules_named(model: nn.Module, name: str) -> list[nn.Module]:
    """The modules whose path ends in `name`, in the order of the layers."""
    return [module for path, module in model.named_modules() if path.split(".")[-1] == name]
