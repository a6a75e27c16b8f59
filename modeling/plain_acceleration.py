"""Plain torch in the place of what hf_docmt has for speed and training: prepacked and int8 weights, losses.

In a Hub folder this file is `acceleration.py`. Results are the same; a CPU is faster with hf_docmt.
"""

from contextlib import nullcontext

import torch
from torch import nn
from transformers.cache_utils import DynamicLayer

Linear = nn.Linear  # the class itself, which `quantize_dynamic` of torch looks for


class OutputProjection(nn.Linear):
    """States to logits; a bias may be given in place of its own."""

    def forward(self, hidden_states: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """(..., D_in) -> (..., D_out)"""
        return nn.functional.linear(hidden_states, self.weight, self.bias if bias is None else bias)


class ModelSupport:
    """What hf_docmt does with models besides running them is not in this folder."""

    beam_layer_class = DynamicLayer  # of the decoding cache

    def fast_states(self, hidden_states, attention_mask, input_ids=None, kind: str = "") -> None:
        """Layers are called."""

    def quantize(self, precision: str):
        raise needs_package(f"quantize({precision!r})")

    def write_card(self, folder, name: str | None = None) -> None:
        """A card is written by hf_docmt alone."""


class HeadSupport:
    """The loss with all logits in memory, and the best tokens by torch's own functions."""

    @staticmethod
    def best_token(scores: torch.Tensor) -> torch.Tensor:
        """The best tokens by scores (R, V), (R,)."""
        return scores.argmax(dim=1)

    @staticmethod
    def best_continuations(log_probs: torch.Tensor, scores: torch.Tensor, count: int):
        """`topk` of log-probabilities (B * beams, V) plus scores of beams (B, beams): values, indices (B, count)."""
        return (log_probs.reshape(*scores.shape, -1) + scores[..., None]).flatten(1).topk(count)

    def decoding_step(self, state) -> None:
        """No flat list of a step: `forward` is called."""

    def prepacked_weights(self):
        """Scope in which the weights do not change."""
        return nullcontext()

    def loss(self, hidden_states, labels, label_weights, label_smoothing: float, num_items_in_batch, skip_logits: bool):
        """Sum of weighted, smoothed losses of states (B, T, D) over the number of labels; logits (B, T, V), or None."""
        logits, targets = self.logits_of(hidden_states), labels.flatten()
        logs = logits.flatten(0, 1).float().log_softmax(dim=1)  # (B*T, V)
        losses = nn.functional.nll_loss(logs, targets, reduction="none")  # 0 where a label is -100
        if label_smoothing:
            written = (self.final_logits_bias[0] > -50.0).float()  # others are ruled out
            smoothed = -(logs @ (written / written.sum())) * (targets != -100)
            losses = (1 - label_smoothing) * losses + label_smoothing * smoothed
        if label_weights is not None:
            losses = losses * label_weights.flatten()
        count = (targets != -100).sum() if num_items_in_batch is None else num_items_in_batch
        return losses.sum() / count, None if skip_logits else logits


def needs_package(what: str) -> NotImplementedError:
    """What is raised for the rest."""
    return NotImplementedError(f"{what} needs the package hf_docmt: load the model there.")


def dropout(states: torch.Tensor, p: float, training: bool) -> torch.Tensor:
    """As `torch.nn.functional.dropout`."""
    return nn.functional.dropout(states, p, training)


def joint_linear(layers, hidden_states: torch.Tensor) -> list[torch.Tensor]:
    """Several layers of one input: (..., D) -> (..., D_i) each."""
    return [layer(hidden_states) for layer in layers]


def is_plain(module: nn.Module) -> bool:
    """Whether a module is a `Linear` as it was built: no adapter, no quantized one, no hooks that a call would run."""
    return type(module) is Linear and not (module._forward_hooks or module._forward_pre_hooks)


def faster_attention(*arguments, **settings) -> None:
    """No attention that is faster than torch's own."""


def takes_bias(module: nn.Module) -> bool:
    """Whether the output projection adds a bias that is handed to it; an adapter around it would lose one."""
    return isinstance(module, OutputProjection)
