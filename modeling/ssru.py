"""The simpler simple recurrent unit (SSRU) in the place of the decoder's self-attention (Kim et al. 2019)."""

import torch
from torch import nn
from transformers import EncoderDecoderCache
from transformers.cache_utils import DynamicLayer

from .acceleration import Linear, joint_linear
from .configuration_docmt import DocMTConfig


class SSRU(nn.Module):
    """Recurrence over target tokens whose state is one vector, whatever the length (Kim et al. 2019, SSRU).

    f_t = sigmoid(W_f x_t + b_f), c_t = f_t c_{t-1} + (1 - f_t) W x_t, h_t = relu(c_t), c_0 = 0, products by element.
    All steps of a sequence are computed at once. Called as `Attention`; states are float32.
    """

    def __init__(self, config: DocMTConfig, layer_idx: int):
        super().__init__()
        self.layer_idx, self.longest = layer_idx, config.longest_translation
        self.input_proj = Linear(config.d_model, config.d_model, bias=False)
        self.forget_gate = Linear(config.d_model, config.d_model)

    def forward(
        self, hidden_states: torch.Tensor, cache=None, attention_mask: torch.Tensor | None = None, **layer_inputs
    ) -> tuple[torch.Tensor, None]:
        """`hidden_states` (B, T, D) -> (B, T, D), and no weights.

        `attention_mask` (B, T), 1 = token: the state passes others by. A cache has the state before the first token.
        """
        inputs, gate = joint_linear((self.input_proj, self.forget_gate), hidden_states)
        dtype, inputs, gate = inputs.dtype, inputs.float(), gate.float().sigmoid()
        layer = None if cache is None else self.recurrent_layer(cache)
        before = None if layer is None or layer.keys is None else layer.keys[:, None]  # (B, 1, D)
        if before is not None and inputs.shape[1] == 1 and attention_mask is None:
            states = torch.lerp(inputs, before, gate)
        else:
            states = self.all_states(inputs, gate, before, attention_mask)
        if layer is not None:
            layer.update(states[:, -1], states.shape[1])
        return torch.relu(states).to(dtype), None

    def recurrent_layer(self, cache: EncoderDecoderCache) -> "RecurrentLayer":
        """Where a cache, ours or one of transformers, keeps the state of this layer; an empty place is replaced.

        ValueError for keys and values that stand there already, as those of prefix tuning.
        """
        layers = cache.self_attention_cache.layers
        while len(layers) <= self.layer_idx:
            layers.append(RecurrentLayer())
        if not isinstance(layers[self.layer_idx], RecurrentLayer):
            if layers[self.layer_idx].is_initialized and int(layers[self.layer_idx].get_seq_length()):
                raise ValueError(
                    "decoder_autoregression='ssru' has no self-attention that could read the keys and values of a "
                    "prefix (prefix tuning): use LoRA."
                )
            layers[self.layer_idx] = RecurrentLayer()
        return layers[self.layer_idx]

    def all_states(self, inputs, gate, before, attention_mask) -> torch.Tensor:
        """States (B, T, D) of inputs and gates (B, T, D), behind the one `before` (B, 1, D), or None."""
        added = (1 - gate) * inputs
        if attention_mask is not None:
            is_padding = attention_mask[..., None] == 0  # (B, T, 1)
            gate, added = gate.masked_fill(is_padding, 1.0), added.masked_fill(is_padding, 0.0)
        if before is not None:
            added = torch.cat([added[:, :1] + gate[:, :1] * before, added[:, 1:]], dim=1)
        return linear_recurrence(gate, added, self.longest)

    forward.is_recurrence = all_states.is_recurrence = True  # there is a primitive, see `kernel_primitives.py`


def linear_recurrence(gate: torch.Tensor, added: torch.Tensor, longest: int) -> torch.Tensor:
    """c_t = gate_t c_{t-1} + added_t from c_0 = 0 for all t: (B, T, D) each, in log2(T) steps (Hillis and Steele 1986).

    After the step with `shift` s, `added_t` is the sum over the 2s last inputs, `gate_t` the product of their gates. In
    an export, whose T is any number, there are as many steps as `longest` tokens need.
    """
    length, shift = added.shape[1], 1
    limit = longest if torch.compiler.is_exporting() else length
    while shift < limit:
        earlier, product = (nn.functional.pad(x, (0, 0, shift, 0))[:, :length] for x in (added, gate))
        added, gate = added + gate * earlier, gate * product
        shift *= 2
    return added


class RecurrentLayer(DynamicLayer):
    """What the cache keeps of one layer: the state (B, D) after the last token, `keys`, and the number of tokens."""

    is_croppable = False
    length = 0

    def update(self, state: torch.Tensor, tokens: int) -> None:
        """Take over the state (B, D) after so many more tokens."""
        if not self.is_initialized:
            self.lazy_initialization(state, state)
        self.keys, self.values = state, state[:, :0]
        self.length += tokens

    def get_seq_length(self) -> int:
        return self.length

    def crop(self, tokens_to_remove: int) -> None:
        """ValueError where tokens are to be taken out."""
        if tokens_to_remove:
            raise ValueError(
                "a recurrent state cannot go back to fewer tokens, as assistants and prompt lookup need it: leave "
                "assistant_model and prompt_lookup_num_tokens out."
            )

    def reset(self) -> None:
        super().reset()
        self.length = 0
