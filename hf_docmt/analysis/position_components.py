"""How many principal components the encodings of positions need."""

from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from hf_docmt.modeling.segments import sinusoid

SHARES = (0.9, 0.95, 0.99, 0.999, 0.9999)


@dataclass(frozen=True)
class PositionComponents:
    """Share of the variance of `positions` encodings that the first 1, 2, ... principal components explain."""

    positions: int
    cumulative: list[float]

    def needed(self, share: float) -> int:
        """The fewest components that explain this share of the variance."""
        return next(number for number, reached in enumerate(self.cumulative, start=1) if reached >= share)


def position_components(encodings: torch.Tensor) -> PositionComponents:
    """Lupo et al. (2023), section 2.3 and figure 1: the variance of PE (positions, D) by principal component.

    ValueError: fewer than two positions; encodings that do not differ, as of models whose attention has the positions.
    """
    if len(encodings) < 2:
        raise ValueError(f"components of {len(encodings)} positions, expected at least 2: give more of them")
    centred = encodings.detach().double().cpu()
    centred = centred - centred.mean(dim=0)
    variance = torch.linalg.svdvals(centred).square()
    if not float(variance.sum()) > 0:
        raise ValueError("the encodings of all positions are the same: the model has no positions at its input")
    return PositionComponents(len(encodings), (variance.cumsum(0) / variance.sum()).tolist())


def model_positions(model: PreTrainedModel, positions: int) -> torch.Tensor:
    """Encodings of positions 0 to `positions` - 1 at the encoder's input, (positions, D). ValueError: it has fewer."""
    config, limit = model.config, model.config.max_position_embeddings
    if config.position_type == "learned" and positions > limit:
        raise ValueError(f"the model has learned encodings of {limit} positions, got {positions}: ask for fewer")
    with torch.inference_mode():
        return model.get_encoder().position_encoding(torch.arange(positions)[None])[0].float()


def sinusoidal_positions(positions: int, dim: int) -> torch.Tensor:
    """Encodings of Vaswani et al. (2017), (positions, dim). ValueError: a dimension that is not even."""
    if dim % 2:
        raise ValueError(f"sinusoids have an even number of dimensions, got {dim}")
    return sinusoid(torch.arange(positions), dim)
