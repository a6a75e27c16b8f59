"""The context encoder: encoder layers for context sentences alone."""

import torch
from torch import nn

from .layers import EncoderLayer


class ContextLayers:
    """Adds a context encoder to an encoder, over the embeddings of the encoder that it is added to."""

    def add_context_layers(self, config, layers: int) -> None:
        self.context_layers = nn.ModuleList([EncoderLayer(config, i) for i in range(layers)])
        if config.normalize_before:
            self.context_layer_norm = nn.LayerNorm(config.d_model)
        self.post_init()

    def encode_context(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Ids and mask (B, N), 1 = token -> states (B, N, D)."""
        hidden_states = self.embed(ids, self.positions(ids, mask))
        mask = mask | ~mask.any(dim=1, keepdim=True)  # a softmax needs a key, in a row without context, too
        mask = self.attention_mask(hidden_states, mask)
        for layer in self.context_layers:
            hidden_states = layer(hidden_states, mask)
        return self.context_layer_norm(hidden_states) if self.config.normalize_before else hidden_states
