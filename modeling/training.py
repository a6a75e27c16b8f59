"""What training needs: the loss, and the values with which a mechanism changes nothing."""

import torch
from torch import nn

RULED_OUT = -50.0  # a bias in the logits below which no token is written


def weighted_cross_entropy(
    logits: torch.Tensor,
    labels: torch.Tensor,
    label_weights: torch.Tensor | None = None,
    label_smoothing: float = 0.0,
    num_items_in_batch: torch.Tensor | int | None = None,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    """Sum of weighted, label-smoothed token losses divided by the number of target tokens.

    Lupo et al. (2023), appendix A, equation 1: with weight CD on context tokens and 1 on those of the current
    sentence this is the context-discounted loss. The denominator counts every token once, whatever its weight, as in
    the released code; `num_items_in_batch` replaces it where a batch is part of a larger one (gradient accumulation,
    several processes).

    `logits` (B, T, V); `labels` (B, T), -100 = not scored; `label_weights` (B, T) or None = 1; `bias` (V,) of the
    logits, by which `smoothing_target` knows tokens that are never written.
    """
    scores, targets = logits.flatten(0, 1).float(), labels.flatten()  # (B*T, V), (B*T,)
    smoothed = smoothing_target(bias) if label_smoothing and bias is not None else None  # (V,)
    uniform = label_smoothing if smoothed is None else 0.0
    settings = {"ignore_index": -100, "reduction": "none", "label_smoothing": uniform}
    token_loss = nn.functional.cross_entropy(scores, targets, **settings)  # (B*T,), 0 where ignored
    if smoothed is not None:
        smooth_loss = -(scores.log_softmax(dim=1) * smoothed).sum(dim=1) * (targets != -100)  # fp32 in autocast
        token_loss = (1 - label_smoothing) * token_loss + label_smoothing * smooth_loss
    if label_weights is not None:
        token_loss = token_loss * label_weights.flatten().to(token_loss.dtype)
    return token_loss.sum() / target_count(labels, num_items_in_batch)


def smoothing_target(bias: torch.Tensor) -> torch.Tensor | None:
    """What label smoothing mixes into the target, (V,): all tokens alike, but for those that are never written.

    These are the ones that the bias (V,) of the logits rules out: the rest of a source vocabulary that the target does
    not share, separators of a model that writes none. None where, seen on a CPU, there is none of them.
    """
    written = bias > RULED_OUT
    if not torch.compiler.is_compiling() and written.is_cpu and bool(written.all()):
        return None
    return written.float() / written.sum()


def target_count(labels: torch.Tensor, num_items_in_batch: torch.Tensor | int | None) -> torch.Tensor | int:
    """What the sum of losses is divided by: the target tokens of these labels (B, T), or of the whole large batch."""
    return (labels != -100).sum() if num_items_in_batch is None else num_items_in_batch


# Neutral start


@torch.no_grad()
def start_neutral(model: nn.Module) -> None:
    """Call `start_neutral` of all parts of a model that have one, outer parts before those inside them."""
    for module in model.modules():
        if hasattr(module, "start_neutral"):
            module.start_neutral()
