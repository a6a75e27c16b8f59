"""Rows of different lengths as one tensor."""

from collections.abc import Sequence

import torch
from torch.nn.utils.rnn import pad_sequence


def padded(rows: Sequence[Sequence[float]], value: float, side: str = "right") -> torch.Tensor:
    """Rows of numbers as a tensor (B, longest row), filled up with `value` on the `right` or the `left`."""
    tensors = [torch.tensor(row) for row in rows]
    return pad_sequence(tensors, batch_first=True, padding_value=value, padding_side=side)
