"""Linear layers that run on packed weights when there is nothing to learn."""

import torch
from torch import nn

ONEDNN = torch.backends.mkldnn.is_available()
PACKED_TYPES = (torch.float32, torch.bfloat16)
SMALLEST = 2**17  # elements of an fp32 matrix from which on packing pays
LEAST_WORK = 2**22  # elements times rows from which on it pays
ROWS = 4  # the number of rows that the packed layout is chosen for; others run well on it, too


class Linear(nn.Linear):
    """`nn.Linear`; without gradients on a CPU it multiplies through oneDNN with weights packed once.

    Decoding multiplies a few rows with large matrices, where packed weights are up to five times faster than the
    default product. The packed copy follows the weights (it is made again when they change) and is never saved.
    Results differ from `nn.Linear` by rounding only.
    """

    def forward(self, hidden_states: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """(..., D_in) -> (..., D_out); `bias` (D_out,) takes the place of the layer's own."""
        bias = self.bias if bias is None else bias
        if torch.is_grad_enabled():
            self.__dict__.pop("_packed", None)
        elif packs(self.weight, hidden_states):
            return packed_linear(self, [self.weight], [bias], hidden_states)
        return nn.functional.linear(hidden_states, self.weight, bias)

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_packed"}


def is_plain(module: nn.Module) -> bool:
    """Whether a module is a `Linear` as it was built: no adapter around it, no hooks that a call would run."""
    return type(module) is Linear and not (module._forward_hooks or module._forward_pre_hooks)


def packs(weight: torch.Tensor, hidden_states: torch.Tensor, matrices: int = 1) -> bool:
    """Whether to multiply by packed weights, by so many matrices of this size side by side.

    It must pay (their product takes some 50 microseconds to begin), and it applies to inference on a CPU in the
    weights' own type, not traced; whoever calls it sees to it that there are no gradients.
    """
    rows = hidden_states.numel() // hidden_states.shape[-1]
    elements = matrices * weight.numel()
    if weight.dtype is torch.bfloat16:
        pays = rows > 1 or elements >= LEAST_WORK
    else:
        pays = elements >= SMALLEST and rows * elements >= LEAST_WORK
    return (
        pays
        and ONEDNN
        and hidden_states.is_cpu
        and hidden_states.dtype is weight.dtype
        and weight.dtype in PACKED_TYPES
        and not torch.compiler.is_compiling()
        and not weight.is_inference()
        and not torch.is_autocast_enabled("cpu")
        and weight.grad is None  # a fused optimizer will change the weights without a trace
    )


def packed_linear(
    owner: nn.Module, weights: list[torch.Tensor], biases: list[torch.Tensor | None], hidden_states: torch.Tensor
) -> torch.Tensor:
    """Products with several matrices, side by side: (..., D) and (D_i, D) each -> (..., sum of D_i).

    The packed matrices are kept on `owner`, as long as no weight or bias was replaced or changed in place, and until
    `owner` runs without them (which training does). Changes through `.data`, of which torch keeps no count, are seen by
    a sample of the values, taken when several tokens go through at once and, by `drop_stale`, when `generate` begins.
    The tensors are kept, too, so that no other takes their address.
    """
    tensors = [tensor for tensor in (*weights, *biases) if tensor is not None]
    key = [(tensor.data_ptr(), tensor._version) for tensor in tensors]
    packed = owner.__dict__.get("_packed")
    step = hidden_states.dim() > 2 and hidden_states.shape[-2] == 1  # of a decoding that has checked at its beginning
    if packed is None or packed[0] != key or not (step or is_fresh(packed)):
        weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        bias = biases[0] if len(biases) == 1 else torch.cat(biases)
        kept = [tensor.detach() for tensor in tensors]
        samples = [(some, some.clone()) for some in map(sample, kept)]
        packed = (key, torch.ops.mkldnn._reorder_linear_weight(weight.detach(), ROWS), bias, kept, samples)
        owner.__dict__["_packed"] = packed
    return torch.ops.mkldnn._linear_pointwise(hidden_states, packed[1], packed[2], "none", [], "")


def is_fresh(packed: tuple) -> bool:
    """Whether the weights still have the values that were packed, as far as a sample shows."""
    return all(torch.equal(now, then) for now, then in packed[4])


def drop_stale(model: nn.Module) -> None:
    """Forget the packed matrices of weights that were changed through `.data`; to be called before decoding."""
    for module in model.modules():
        packed = module.__dict__.get("_packed")
        if packed is not None and not is_fresh(packed):
            del module.__dict__["_packed"]


def sample(tensor: torch.Tensor) -> torch.Tensor:
    """A view of some sixteen values spread over a tensor."""
    return tensor.view(-1)[:: max(1, tensor.numel() // 15)]
