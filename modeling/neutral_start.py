"""Initial values with which a mechanism, before training, changes nothing of what the backbone computes.

They are for weights of a pretrained sentence-level model. A part that can be neutral has a method `start_neutral`,
which sets it by what is in here: projections whose output is added begin as zeros, which get gradients from the first
step on; a norm that stands behind another one takes over its affine part; a context encoder begins as a copy of the
encoder.
"""

import torch
from torch import nn


@torch.no_grad()
def start_neutral(model: nn.Module) -> None:
    """Call `start_neutral` of all parts of a model that have one, outer parts before those inside them."""
    for module in model.modules():
        if hasattr(module, "start_neutral"):
            module.start_neutral()


def fill_with_zeros(*modules: nn.Module) -> None:
    """Set all parameters to zero: what a projection adds is nothing, what a norm scales is nothing."""
    for module in modules:
        for parameter in module.parameters():
            parameter.zero_()


def move_affine(norm: nn.LayerNorm, later: nn.LayerNorm) -> None:
    """Give scale and shift of a norm to the one that stands right behind it.

    LayerNorm(LayerNorm(x) a + b) is not LayerNorm(x) a + b; with 1 and 0 inside, a and b outside it is, but for the
    epsilon in the root.
    """
    later.load_state_dict(norm.state_dict())
    norm.weight.fill_(1.0)
    norm.bias.zero_()
