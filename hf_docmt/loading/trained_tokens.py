"""Rows of the embeddings that an adapter trains, without a copy of the whole table for every use of it."""

import torch
from peft.tuners.trainable_tokens import TrainableTokensLayer
from torch import nn


class TrainedTokens(TrainableTokensLayer):
    """As peft's layer, which copies the table (V, D) with the trained rows put in, at every lookup and for the logits.

    Here what was looked up, or the logits, of these tokens alone is put in place: memory does not grow with V.
    """

    def forward_adapters(self, x: torch.Tensor, active_adapters, *args, **kwargs) -> torch.Tensor:
        """Ids (...) -> embeddings (..., D), or states (..., D) -> logits (..., V)."""
        if self.disable_adapters or self.merged or not active_adapters:
            return super().forward_adapters(x, active_adapters, *args, **kwargs)
        self._check_overlapping_tokens(active_adapters)
        output = self.base_layer(x, *args, **kwargs)
        for adapter in active_adapters:
            tokens, rows = self.token_indices[adapter], self.trainable_tokens_delta[adapter]  # (n,), (n, D)
            if isinstance(self.base_layer, nn.Embedding):
                for token, row in zip(tokens, rows.to(output.dtype)):
                    output = torch.where((x == token)[..., None], row, output)
            else:
                logits = nn.functional.linear(x, rows.to(x.dtype)).to(output.dtype)  # (..., n)
                output = output.index_copy(-1, torch.tensor(tokens, device=x.device), logits)
        return output
