"""The decoding cache of window attention: of self-attention what a window can still see."""

import torch
from transformers.cache_utils import DynamicLayer

from .cache import CompactCache


class WindowLayer(DynamicLayer):
    """Self-attention keys and values of one layer: those of the last w tokens, padding in front of them."""

    def __init__(self, window: int):
        super().__init__()
        self.window, self.length, self.record_past = window, 0, False
        self.read: tuple[torch.Tensor, ...] = ()  # what windows of the newest, or of all recorded tokens could see

    @property
    def is_croppable(self) -> bool:
        return self.record_past

    def activate_past_recording(self) -> None:
        """`crop` can take back what is read from now on, all of which is kept."""
        self.record_past = True
        self.read = (self.keys, self.values) if self.length else ()

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, order=None, *args, **kwargs):
        """Append (B, H, T_new, Dh) keys and values; returns them behind those that were kept, in the order given."""
        new, seen = (key_states, value_states), (key_states, value_states)
        if self.length:
            seen = behind((self.keys, self.values), new)
        if order is not None:
            seen = tuple(in_order(states, order) for states in seen)
        self.dtype, self.device, self.is_initialized = key_states.dtype, key_states.device, True
        self.read = behind(self.read, new) if self.record_past and self.read and order is None else seen
        self.keep_window(seen)
        self.length += key_states.shape[2]
        return seen

    def keep_window(self, states: tuple[torch.Tensor, ...]) -> None:
        """Keep the last w of keys and values (B, H, T, Dh)."""
        self.keys, self.values = (tensor[:, :, -self.window :] for tensor in states)

    def get_seq_length(self) -> int:
        """Number of tokens that were seen, padding included."""
        return self.length

    def crop(self, tokens_to_remove: int) -> None:
        """Take back the last tokens, whose number is given as a negative one."""
        left = self.read[0].shape[2] + tokens_to_remove if self.read else 0
        length = self.length + tokens_to_remove
        if not self.record_past or left < min(self.window, length):
            raise ValueError(f"cannot take back {-tokens_to_remove} tokens: the cache keeps the window only.")
        self.read, self.length = tuple(states[:, :, :left] for states in self.read), length
        self.keep_window(self.read)

    def reset(self) -> None:
        super().reset()
        self.length = 0


class WindowCache(CompactCache):
    """Cache that keeps what a window of self-attention can still see, and a copy of that at the end of the prompt."""

    layer_class = WindowLayer

    def __init__(self, window: int, layers: int) -> None:
        super().__init__([self.layer_class(window) for _ in range(layers)])

    def keep(self, sources: int, length: int) -> None:
        """Go back to the end of the prompt, of `length` tokens, with the first beam of every source."""
        if all(layer.record_past for layer in self.self_attention_cache.layers):
            self.crop(length - self.get_seq_length())
            self.prompt_was_read()
        super().keep(sources, length)


def behind(states: tuple[torch.Tensor, ...], new: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """New keys and values behind others, (B, H, T, Dh) each."""
    return tuple(torch.cat(pair, dim=2) for pair in zip(states, new))


def in_order(states: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Columns of states (B, H, T, Dh) in the order (B, T), or some of them."""
    return states.gather(2, order[:, None, :, None].expand(-1, states.shape[1], -1, states.shape[3]))
