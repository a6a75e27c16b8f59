"""Plain torch in the place of what hf_docmt has for speed: prepacked and int8 weights, drafts, a loss in chunks.

In a Hub folder this file is `acceleration.py`. Results are the same; a CPU is faster with hf_docmt.
"""

from contextlib import nullcontext

import torch
from torch import nn


class Linear(nn.Linear):
    """`nn.Linear` to which a bias may be given in place of its own."""

    def forward(self, hidden_states: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """(..., D_in) -> (..., D_out)"""
        return nn.functional.linear(hidden_states, self.weight, self.bias if bias is None else bias)


class OutputProjection(Linear):
    """States to logits."""


class Quantization:
    """Models with int8 weights are made, and saved with their code, by hf_docmt."""

    def quantize(self, precision: str):
        raise NotImplementedError(f"quantize({precision!r}) needs the package hf_docmt: load the model there.")


def joint_linear(layers, hidden_states: torch.Tensor) -> list[torch.Tensor]:
    """Several layers of one input: (..., D) -> (..., D_i) each."""
    return [layer(hidden_states) for layer in layers]


def is_plain(module: nn.Module) -> bool:
    """Whether a module is a `Linear` as it was built: no adapter around it, no hooks that a call would run."""
    return isinstance(module, Linear) and not (module._forward_hooks or module._forward_pre_hooks)


def faster_attention(*arguments, **settings) -> None:
    """No attention that is faster than torch's own."""


def takes_bias(module: nn.Module) -> bool:
    """Whether the output projection adds a bias that is handed to it; an adapter around it would lose one."""
    return isinstance(module, OutputProjection)


def gives_loss(module: nn.Module) -> bool:
    """Whether the output projection computes the loss without all logits."""
    return False


def prepacked_weights(model: nn.Module):
    """Scope in which the weights do not change."""
    return nullcontext()


def draft_search(translator) -> None:
    """No search with drafts."""
