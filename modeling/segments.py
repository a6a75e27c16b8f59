"""Token ids to sentences: which sentence a token belongs to, its position, its sentence encoding."""

import math

import torch


def sentence_index(input_ids: torch.Tensor, sep_token_id: int) -> torch.Tensor:
    """Index of every token's sentence in its segment, from 0: the separators before it. (B, T) -> (B, T) int64.

    A separator belongs to the sentence it ends. Computed from the ids alone, so that it survives padding on either
    side, the reordering of beams and a cache.
    """
    is_sep = input_ids == sep_token_id
    return is_sep.cumsum(dim=1) - is_sep.long()


def is_whole_target(input_ids: torch.Tensor, start_token_id: int) -> bool:
    """Whether target ids (B, T) begin with the start token: what a cache has before them is of prefix tuning."""
    return bool((input_ids == start_token_id).any(dim=1).all())


def token_positions(
    shape: tuple[int, int], device: torch.device, attention_mask: torch.Tensor | None = None, past_length=0
) -> torch.Tensor:
    """Position of every token in its row, from 0: (1, T), or (B, T) where a mask tells of padding on the left.

    `attention_mask` (B, past_length + T), 1 = token. `past_length` is a number, of a static cache a tensor.
    """
    if attention_mask is None:
        return (torch.arange(shape[1], device=device) + past_length)[None]  # (1, T)
    return (attention_mask.long().cumsum(dim=1) - 1).clamp(min=0)[:, -shape[1] :]  # (B, T)


def is_right_padded(attention_mask: torch.Tensor) -> bool:
    """Whether every row of a mask (B, T) begins with a token and has its padding at the end; False under tracing."""
    if torch.compiler.is_compiling():
        return False
    return bool((attention_mask[:, 0] == 1).all() and (attention_mask[:, 1:] <= attention_mask[:, :-1]).all())


def sinusoid(positions: torch.Tensor, dim: int, formula: str = "sinusoidal") -> torch.Tensor:
    """Sines (first half) and cosines (second half) of positions, of any size: (...) -> (..., dim) float32.

    Vaswani et al. (2017), section 3.5: frequencies 10000^(-2i/dim). `sinusoidal_t2t` has 10000^(-i/(dim/2-1)), as in
    tensor2tensor and fairseq. Angles are in double precision, so that far positions stay exact.
    """
    half = dim // 2
    steps = half if formula == "sinusoidal" else max(half - 1, 1)
    precise = torch.float32 if positions.device.type == "mps" else torch.float64
    frequencies = torch.exp(torch.arange(half, device=positions.device, dtype=precise) * (-math.log(10000.0) / steps))
    angles = positions[..., None].to(precise) * frequencies  # (..., half)
    return torch.cat([angles.sin(), angles.cos()], dim=-1).float()
