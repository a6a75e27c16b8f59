"""What an architecture says of its steps of decoding, so that these can run on the compiled primitives."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import nn


def reads(how: str) -> Callable:
    """Marks the `forward` of attention that is not the backbone's: what it reads, see `kernel_primitives.py`."""

    def mark(method: Callable) -> Callable:
        method.reads = how
        return method

    return mark


class StepLimits(NamedTuple):
    """What new tokens read in a step of decoding: of a "sentence", of a "group" (and its source), or of a "window".

    `borders` (S, N + 1): where the sentences of a source begin among its tokens, and the end. `width` is that of a
    window on either side, `ratio` the source tokens a target token along which it goes, 0 = from where a sentence
    begins.
    """

    kind: str
    separator: int | None
    borders: torch.Tensor | None = None
    width: int = 0
    ratio: float = 0.0


class ContextSublayer(NamedTuple):
    """What a block of a decoder layer does that reads a further source, as attention to the source does.

    `methods`: modules and names of their methods that do it, which are marked as those of the backbone. What
    `attention` reads is added to the states, with a norm before or after where there is one, or mixed in by a gate of
    both, sigmoid(W_x x + W_y y), of two `gates`. `inputs`: the name of the layer input that is read (with
    "context_states" there may be "context_mask" and "context_absent" or "context_present").
    """

    methods: Sequence[tuple[nn.Module, str]]
    attention: nn.Module
    norm: nn.LayerNorm | None
    inputs: str
    gates: Sequence[nn.Module] = ()
