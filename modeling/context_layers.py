"""The context encoder: encoder layers for context sentences alone."""

import torch
from torch import nn

from .context_inputs import scatter_sentences, sentences_to_read
from .layers import EncoderLayer


class ContextLayers:
    """Adds a context encoder to an encoder, over the embeddings of the encoder that it is added to."""

    def add_context_layers(self, config, layers: int) -> None:
        self.context_layers = nn.ModuleList([EncoderLayer(config, i) for i in range(layers)])
        if config.normalize_before:
            self.context_layer_norm = nn.LayerNorm(config.d_model)
        self.post_init()

    def start_neutral(self) -> None:
        """The context layers begin as copies of the encoder's first ones, their norm as a copy of its last."""
        for layer, own in zip(self.context_layers, self.layers):
            layer.load_state_dict({name: own.state_dict()[name] for name in layer.state_dict()})
        if self.config.normalize_before:
            self.context_layer_norm.load_state_dict(self.layer_norm.state_dict())

    def encode_context(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Ids and mask (B, N), 1 = token -> states (B, N, D)."""
        hidden_states = self.embed(ids, self.positions(ids, mask))
        mask = mask | ~mask.any(dim=1, keepdim=True)  # a softmax needs a key, in a row without context, too
        mask = self.attention_mask(hidden_states, mask)
        for layer in self.context_layers:
            hidden_states = layer(hidden_states, mask)
        return self.context_layer_norm(hidden_states) if self.config.normalize_before else hidden_states

    def read_context(self, input_ids, attention_mask, is_next: torch.Tensor) -> list[torch.Tensor]:
        """Sentences (P, L), which of them stand after the current one (P,) -> what layers read of them, (P, L, D) each.

        To be defined by encoders that read each context sentence for itself.
        """
        raise NotImplementedError

    def read_present(
        self, ids: torch.Tensor, mask: torch.Tensor, is_next: torch.Tensor
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """`read_context` of the sentences that are there: (B, C, L, D) each, zeros for the others, and the mask.

        `ids`, `mask` (B, C, L), a column for every offset, see `by_offset`; `is_next` (C,).
        """
        rows = sentences_to_read(mask)
        roles = is_next.expand(ids.shape[:2])  # (B, C)
        given = [inputs.flatten(0, 1) for inputs in (ids, mask, roles)]  # (B*C, ...)
        if rows is not None:
            given = [inputs[rows] for inputs in given]  # (P, ...)
        ids, read_mask, is_next = given
        read_mask = read_mask | ~read_mask.any(dim=1, keepdim=True)  # a softmax needs a key
        return [
            scatter_sentences(states, rows, mask.shape[:2]) for states in self.read_context(ids, read_mask, is_next)
        ], mask
