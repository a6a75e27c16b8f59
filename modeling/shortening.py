"""Sequence shortening: the states of a sentence to fewer vectors, by pooling, latent grouping or latent selecting."""

import torch
from torch import nn
from transformers.activations import ACT2FN
from transformers.masking_utils import create_bidirectional_mask

from .context_inputs import tokens_first
from .layers import Attention
from .segments import is_right_padded

POOLINGS = ("avg", "max", "linear")
LATENT = ("grouping", "selecting")


def sentence_mean(hidden_states: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean over the tokens of each sentence: (P, L, D), mask (P, L), 1 = token -> (P, 1, D), (P, 1).

    Maka et al. (2024), section 4.3. Their code divides by the padded length; here it is the true one.
    """
    present = mask.to(hidden_states.dtype)[..., None]
    mean = (hidden_states * present).sum(1, keepdim=True) / present.sum(1, keepdim=True).clamp(min=1)
    return mean, mask.any(dim=1, keepdim=True)


def sparsemax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """The point of the probability simplex that is nearest to the scores (Martins and Astudillo 2016), in fp32.

    Like softmax, with exact zeros; a score of minus infinity gets none.
    """
    scores = scores.float().transpose(dim, -1)
    scores = scores - scores.amax(dim=-1, keepdim=True).detach()  # exact for large ones, too
    ordered = scores.sort(dim=-1, descending=True).values  # z_(1) >= z_(2) >= ...
    number = torch.arange(1, ordered.shape[-1] + 1, device=scores.device)
    total = ordered.cumsum(dim=-1)
    support = (1 + number * ordered > total).sum(dim=-1, keepdim=True).clamp(min=1)  # k(z); scores may be no numbers
    threshold = (total.gather(-1, support - 1) - 1) / support  # tau(z)
    return (scores - threshold).clamp(min=0).transpose(dim, -1)


class Shortener(nn.Module):
    """Shared by all kinds: G = LayerNorm(G~ + Attn(G~, H, H)) (Maka et al. 2024, equation 2), then a learned position.

    A subclass makes G~ from H in `pool`. The norm follows the sum in any backbone, as the equation has it.
    """

    def __init__(self, config, positions: int):
        super().__init__()
        self.config = config
        self.size = config.shortening_size  # K
        self.attn = Attention(config, config.encoder_attention_heads)
        self.layer_norm = nn.LayerNorm(config.d_model)
        self.embed_positions = nn.Embedding(positions, config.d_model)

    def forward(self, hidden_states: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """H (P, L, D), mask (P, L), 1 = token -> G (P, N, D), and what of it is there (P, N); padding changes none."""
        pooled, kept = self.pool(hidden_states, mask)
        if pooled.shape[1] > self.embed_positions.num_embeddings:
            raise ValueError(
                f"a context sentence of {mask.shape[1]} tokens gives {pooled.shape[1]} shortened ones, but there are "
                f"positions for {self.embed_positions.num_embeddings} (max_position_embeddings="
                f"{self.config.max_position_embeddings}): give shorter sentences."
            )
        seen = create_bidirectional_mask(
            config=self.config, inputs_embeds=pooled, attention_mask=mask, encoder_hidden_states=hidden_states
        )
        shortened = self.layer_norm(pooled + self.attn(pooled, hidden_states, attention_mask=seen)[0])
        return shortened + self.embed_positions(torch.arange(pooled.shape[1], device=pooled.device)), kept

    def pool(self, hidden_states: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        raise NotImplementedError


class PoolingShortener(Shortener):
    """Neighbours side by side, K at a time: ceil(M / K) vectors of a sentence of M tokens (section 3.2).

    The last ones may be fewer than K: their average and maximum are over the existing ones, or with
    `pooling_padding` `zeros` over K, as in the released code; the linear layer reads zeros for the others.
    """

    def __init__(self, config):
        super().__init__(config, positions=-(-config.max_position_embeddings // config.shortening_size))
        self.kind, self.counts_zeros = config.shortening, config.pooling_padding == "zeros"
        if self.kind == "linear":
            self.pooling = nn.Linear(self.size * config.d_model, config.d_model)

    def pool(self, hidden_states, mask):
        if not is_right_padded(mask):  # windows begin with the first token
            front = tokens_first(mask.bool())
            hidden_states = hidden_states.gather(1, front[..., None].expand_as(hidden_states))
            mask = mask.gather(1, front)
        missing = -mask.shape[1] % self.size
        mask = nn.functional.pad(mask.bool(), (0, missing)).unflatten(1, (-1, self.size))  # (P, N, K)
        states = nn.functional.pad(hidden_states, (0, 0, 0, missing)).unflatten(1, (-1, self.size))  # (P, N, K, D)
        kept, present = mask.any(dim=2), mask[..., None]
        if self.kind == "max":
            lowest = 0 if self.counts_zeros else torch.finfo(states.dtype).min
            return states.masked_fill(~present, lowest).amax(dim=2) * kept[..., None], kept
        states = states * present
        if self.kind == "linear":
            return self.pooling(states.flatten(2)), kept
        count = self.size if self.counts_zeros else present.sum(dim=2).clamp(min=1)
        return states.sum(dim=2) / count, kept


class LatentShortener(Shortener):
    """K vectors, sums of the tokens' states with weights that a small network gives (sections 4.1 and 4.2).

    g~_k = sum_i c_ik h_i (equation 4): with `grouping` every token shares itself out to the groups (softmax or
    sparsemax over k, equation 3), with `selecting` every group chooses its tokens (over i). As in the equation the sum
    is not divided by its weights, though the text calls it an average. There are always K vectors, for a sentence of
    fewer tokens, too.
    """

    def __init__(self, config):
        super().__init__(config, positions=config.shortening_size)
        self.fc1 = nn.Linear(config.d_model, config.categorizer_dim)
        self.activation_fn = ACT2FN[config.activation_function]
        self.fc2 = nn.Linear(config.categorizer_dim, self.size)

    def categories(self, hidden_states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """c: (P, L, D), mask (P, L), 1 = token -> (P, L, K) fp32, zero at padding."""
        scores = self.fc2(self.activation_fn(self.fc1(hidden_states))).float()
        normalize = sparsemax if self.config.categorizer == "sparsemax" else torch.softmax
        absent = ~mask.bool()[..., None]
        if self.config.shortening == "grouping":
            return normalize(scores, dim=2).masked_fill(absent, 0)
        return normalize(scores.masked_fill(absent, torch.finfo(scores.dtype).min), dim=1).masked_fill(absent, 0)

    def pool(self, hidden_states, mask):
        weights = self.categories(hidden_states, mask).to(hidden_states.dtype)
        groups = weights.transpose(1, 2) @ hidden_states  # (P, K, D)
        return groups, mask.new_ones(groups.shape[:2], dtype=torch.bool)


def new_shortener(config) -> Shortener | None:
    """The module that `config.shortening` needs; None for those without one of their own."""
    if config.shortening in POOLINGS:
        return PoolingShortener(config)
    return LatentShortener(config) if config.shortening in LATENT else None
