"""The decoding cache of window attention: of self-attention what a window can still see."""

from functools import partial

import torch
from transformers.cache_utils import DynamicLayer

from .cache import DecodingCache


class WindowLayer(DynamicLayer):
    """Self-attention keys and values of one layer: those of the last w tokens, padding in front of them."""

    is_croppable = False

    def __init__(self, window: int):
        super().__init__()
        self.window, self.length = window, 0
        self.read: tuple[torch.Tensor, ...] = ()

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, order=None, *args, **kwargs):
        """Append (B, H, T_new, Dh) keys and values; returns them behind those that were kept, in the order given."""
        keys, values = key_states, value_states
        if self.length:
            keys, values = torch.cat([self.keys, keys], dim=2), torch.cat([self.values, values], dim=2)
        if order is not None:
            keys, values = in_order(keys, order), in_order(values, order)
        self.dtype, self.device, self.is_initialized = keys.dtype, keys.device, True
        self.read = keys, values  # what windows of the new tokens could see
        self.keys, self.values = keys[:, :, -self.window :], values[:, :, -self.window :]
        self.length += key_states.shape[2]
        return keys, values

    def get_seq_length(self) -> int:
        """Number of tokens that were seen, padding included."""
        return self.length

    def crop(self, tokens_to_remove: int) -> None:
        raise ValueError(f"cannot take back {abs(tokens_to_remove)} tokens: the cache keeps the window only.")

    def select_tokens(self, rows: torch.Tensor, columns: torch.Tensor) -> None:
        """Of the rows (N,) keep the tokens in these columns (N, T), padding in front, right after all were read."""
        order = columns[:, -self.window :] - (self.length - self.read[0].shape[2])
        self.keys, self.values = (in_order(states[rows], order.clamp(min=0)) for states in self.read)
        self.length = columns.shape[1]

    def reset(self) -> None:
        super().reset()
        self.length = 0


class WindowCache(DecodingCache):
    """Cache that keeps what a window of self-attention can still see, and a copy of that at the end of the prompt."""

    can_have_holes = False

    def __init__(self, window: int) -> None:
        super().__init__()
        self.self_attention_cache.layer_class_to_replicate = partial(WindowLayer, window)
        self.prompt: list[tuple] = []

    def prompt_was_read(self) -> None:
        """Remember the present state as the end of the prompt."""
        self.prompt = [(layer.keys, layer.values, layer.length) for layer in self.self_attention_cache.layers]

    def keep(self, sources: int, length: int) -> None:
        """Go back to the end of the prompt, of `length` tokens, with the first beam of every source."""
        if not self.prompt or self.prompt[0][2] != length:
            raise ValueError(f"cannot go back to {length} tokens: the prompt was not read with this cache.")
        for layer, (keys, values, _) in zip(self.self_attention_cache.layers, self.prompt):
            rows = torch.arange(0, keys.shape[0], keys.shape[0] // sources, device=keys.device)
            layer.keys, layer.values, layer.length = keys[rows], values[rows], length


def in_order(states: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Columns of states (B, H, T, Dh) in the order (B, T), or some of them."""
    return states.gather(2, order[:, None, :, None].expand(-1, states.shape[1], -1, states.shape[3]))
