"""Cross-entropy with label smoothing and a weight for every target token."""

import torch
from torch import nn


def weighted_cross_entropy(
    logits: torch.Tensor,
    labels: torch.Tensor,
    label_weights: torch.Tensor | None = None,
    label_smoothing: float = 0.0,
    num_items_in_batch: torch.Tensor | int | None = None,
) -> torch.Tensor:
    """Sum of weighted, label-smoothed token losses divided by the number of target tokens.

    Lupo et al. (2023), appendix A, equation 1: with weight CD on context tokens and 1 on those of the current
    sentence this is the context-discounted loss. The denominator counts every token once, whatever its weight, as in
    the released code; `num_items_in_batch` replaces it where a batch is part of a larger one (gradient accumulation,
    several processes).

    `logits` (B, T, V); `labels` (B, T), -100 = not scored; `label_weights` (B, T) or None = 1.
    """
    token_loss = nn.functional.cross_entropy(
        logits.flatten(0, 1).float(),  # (B*T, V)
        labels.flatten(),
        ignore_index=-100,
        reduction="none",
        label_smoothing=label_smoothing,
    )  # (B*T,), 0 where ignored
    if label_weights is not None:
        token_loss = token_loss * label_weights.flatten().to(token_loss.dtype)
    return token_loss.sum() / target_count(labels, num_items_in_batch)


def target_count(labels: torch.Tensor, num_items_in_batch: torch.Tensor | int | None) -> torch.Tensor | int:
    """What the sum of losses is divided by: the target tokens of these labels (B, T), or of the whole large batch."""
    return (labels != -100).sum() if num_items_in_batch is None else num_items_in_batch
