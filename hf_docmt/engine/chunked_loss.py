"""Cross-entropy of states and output embeddings, a chunk of rows at a time: the logits are never held all at once."""

from functools import partial

import torch
from torch import nn
from torch.autograd import Function

from hf_docmt.modeling.layers import OutputProjection
from hf_docmt.modeling.modeling_docmt import smoothing_target, target_count

CHUNK = 2**20  # minimum of logits in a chunk; a chunk has at least one row per dimension of the states
CACHED = 2**20  # logits whose softmax is computed at a time, on a CPU: they stay in its cache


def chunked_loss(
    model,
    hidden_states: torch.Tensor,
    labels: torch.Tensor,
    label_weights: torch.Tensor | None,
    label_smoothing: float,
    num_items_in_batch: torch.Tensor | int | None,
) -> torch.Tensor | None:
    """The loss of states (B, T, D), equal to `weighted_cross_entropy`; None if it needs all logits.

    It is computed inside of the output projection, where sharded weights are whole.
    """
    if not gives_loss(model.lm_head):
        return None
    scored = (labels.flatten(), label_weights, label_smoothing)
    total = model.lm_head(hidden_states, model.final_logits_bias[0], partial(summed_loss, scored))
    return total / target_count(labels, num_items_in_batch)


def summed_loss(scored: tuple, hidden_states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """The sum of losses, (), of states (B, T, D), the output weights (V, D) and a bias (V,); see `chunked_loss`."""
    labels, label_weights, label_smoothing = scored
    states = hidden_states.flatten(0, -2)  # (N, D)
    weights = None if label_weights is None else label_weights.flatten().float()
    is_scored = labels != -100
    if torch.compiler.is_compiling() or not labels.is_cpu:  # the same number of rows for all labels: no synchronisation
        weights = is_scored.float() if weights is None else weights * is_scored
        labels = labels.clamp(min=0)
    elif not bool(is_scored.all()):
        states, labels = states[is_scored], labels[is_scored]
        weights = None if weights is None else weights[is_scored]
    if not torch.is_grad_enabled():
        states, weight = states.detach(), weight.detach()
    smoothed = smoothing_target(bias) if label_smoothing else None
    return ChunkedCrossEntropy.apply(states, weight, bias, labels, weights, label_smoothing, smoothed)


def gives_loss(module: nn.Module) -> bool:
    """Whether an output projection can compute the loss: no adapter is around it, and no hook waits for its logits.

    The hooks of a subclass (FSDP makes one of each module that it shards separately) belong to its parameters.
    """
    hooked = type(module) is OutputProjection and (module._forward_hooks or module._backward_hooks)
    return isinstance(module, OutputProjection) and not hooked


class ChunkedCrossEntropy(Function):
    """The sum of weighted, label-smoothed losses, with its gradients computed along with it.

    As the gradient of a sum is known up to a factor, every chunk of logits (n, V) is turned in place into its gradient
    and multiplied at once: nothing is computed twice. What is kept are the gradients of states (N, D) and of the weight
    (V, D), or, where one chunk is all there is, that of its logits. The products are in autocast's type, all sums and
    the softmax in fp32.
    """

    @staticmethod
    def forward(ctx, states, weight, bias, labels, label_weights, label_smoothing, smoothed):
        """(N, D), (V, D), (V,) or None, (N,), (N,) or None, number, (V,) or None -> (); labels have no -100."""
        device = states.device.type
        kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else states.dtype
        ctx.types = states.dtype, weight.dtype
        need_states, need_weight = ctx.needs_input_grad[:2]
        if ctx.needs_input_grad[2]:
            raise ValueError("the bias of the output projection is not trained: set requires_grad to False for it.")
        with torch.autocast(device, enabled=False):
            states, matrix = states.to(kind), weight.to(kind)
            bias = None if bias is None else bias.to(kind)
            rows = max(states.shape[1], CHUNK // len(weight))
            ctx.one = len(states) <= rows
            total = torch.zeros((), dtype=torch.float, device=states.device)
            states_grad = torch.empty_like(states) if need_states and not ctx.one else None
            weight_grad = torch.zeros_like(weight, dtype=torch.float) if need_weight and not ctx.one else None
            for start in range(0, max(len(states), 1), rows):
                chunk = slice(start, start + rows)
                part = None if label_weights is None else label_weights[chunk]
                logits = nn.functional.linear(states[chunk], matrix, bias)  # (n, V)
                smoothing = (label_smoothing, smoothed)
                total += summed_losses(logits, labels[chunk], part, smoothing, need_states or need_weight)
                if states_grad is not None:
                    states_grad[chunk] = logits @ matrix
                if weight_grad is not None:
                    add_product(weight_grad, logits.t(), states[chunk])
        if ctx.one:
            ctx.save_for_backward(logits, states, matrix)
        else:
            ctx.save_for_backward(states_grad, weight_grad)
        return total

    @staticmethod
    def backward(ctx, gradient):
        """A factor () -> the gradients of states (N, D) and weight (V, D); RuntimeError for second derivatives."""
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # create_graph=True
            raise RuntimeError("the loss in chunks has no second derivatives: call the model with skip_logits=False.")
        states_type, weight_type = ctx.types
        need_states, need_weight = ctx.needs_input_grad[:2]
        if ctx.one:
            logits, states, matrix = ctx.saved_tensors
            states_grad = logits @ matrix if need_states else None
            weight_grad = logits.t() @ states if need_weight else None
        else:
            states_grad, weight_grad = ctx.saved_tensors
        if need_states:
            states_grad = states_grad.to(states_type) * gradient  # a number: multiplied in fp32, whatever the type
        if need_weight:
            weight_grad = (weight_grad.float() * gradient).to(weight_type)  # fp16 is too small for the scale of a loss
        return states_grad, weight_grad, None, None, None, None, None


def summed_losses(logits, labels, label_weights, smoothing: tuple, to_gradient: bool) -> torch.Tensor:
    """The sum of the losses, (), of logits (n, V), labels (n,), and weights (n,) or None.

    `smoothing`: how much of the target, and what it is, (V,), None = uniform; see `smoothing_target`. With
    `to_gradient` the logits become their own gradient, weight * (softmax - target).
    """
    total = torch.zeros((), dtype=torch.float, device=logits.device)
    vocabulary = logits.shape[1]
    label_smoothing, smoothed = smoothing
    rows = max(1, CACHED // vocabulary) if logits.device.type == "cpu" else len(logits)
    for start in range(0, len(logits), rows):
        part = slice(start, start + rows)
        label = labels[part, None]  # (n, 1)
        logs = nn.functional.log_softmax(logits[part], dim=1, dtype=torch.float)  # (n, V)
        losses = -(1 - label_smoothing) * logs.gather(1, label)
        if label_smoothing:
            mixed = logs.mean(dim=1) if smoothed is None else logs @ smoothed  # (n,)
            losses -= label_smoothing * mixed[:, None]
        factor = None if label_weights is None else label_weights[part, None]  # (n, 1)
        total += losses.sum() if factor is None else (losses * factor).sum()
        if to_gradient:
            gradient = logs.exp_()
            if label_smoothing:
                gradient -= label_smoothing / vocabulary if smoothed is None else label_smoothing * smoothed
            gradient.scatter_add_(1, label, torch.full_like(losses, label_smoothing - 1))
            logits[part] = gradient if factor is None else gradient.mul_(factor)
    return total


def add_product(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """Add left @ right to the fp32 `total`, whatever the type of both."""
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right
