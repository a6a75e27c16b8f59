"""The memory of a layer, how sentences read and rewrite it, and the memories of a whole stack as one state."""

import torch
from torch import nn
from transformers.activations import ACT2FN
from transformers.masking_utils import create_bidirectional_mask

from .configuration_docmt import DocMTConfig
from .layers import Attention, dropout
from .segments import sinusoid


class MemoryUnit(nn.Module):
    """Output and update attention of one layer's memory M (Feng et al. 2022, sections 3.2 and 3.3).

    The paper writes h~ = MHA(h, M, M) (equation 5) and leaves open what stands around it. By default it is added to
    the sentence state, h~ = h + dropout(MHA(h, M, M)): 16 vectors cannot replace the state of every word, and with the
    output projection at zero the layer is that of the sentence-level model. `memory_residual="none"` is the equation as
    it stands, without dropout, and cannot start neutral. The update (equations 2 to 4) is as written,
    M + PE is query and residual, and its norms come after the sum in any backbone, which keeps a memory that is
    rewritten thousands of times at the same scale. Where layers normalise their input (`normalize_before`), both
    attentions see the normalised state.
    """

    def __init__(self, config: DocMTConfig, num_heads: int, ffn_dim: int, layer_idx: int | None = None):
        super().__init__()
        self.dropout, self.activation_dropout = config.dropout, config.activation_dropout
        self.residual = config.memory_residual
        self.activation_fn = ACT2FN[config.activation_function]
        self.output_attn = Attention(config, num_heads, layer_idx, source_name="memory")
        if config.normalize_before:
            self.state_layer_norm = nn.LayerNorm(config.d_model)
        self.update_attn = Attention(config, num_heads)
        self.update_attn_layer_norm = nn.LayerNorm(config.d_model)
        self.fc1 = nn.Linear(config.d_model, ffn_dim)
        self.fc2 = nn.Linear(ffn_dim, config.d_model)
        self.final_layer_norm = nn.LayerNorm(config.d_model)

    def start_neutral(self) -> None:
        if self.residual == "none":
            raise ValueError(
                "memory_residual='none' puts what is read from the memory in place of the sentence state, so that the "
                "model cannot begin with the translations of the sentence-level one: use 'add', or leave "
                "training.neutral_start out."
            )
        nn.init.zeros_(self.output_attn.out_proj.weight)
        nn.init.zeros_(self.output_attn.out_proj.bias)

    def read(self, hidden_states, memory, cache=None) -> tuple[torch.Tensor, torch.Tensor]:
        """Output attention: h (B, T, D), M (B or fewer, M, D) -> h~ (B, T, D), and the state that an update is from."""
        normed = self.state_layer_norm(hidden_states) if hasattr(self, "state_layer_norm") else hidden_states
        read = self.output_attn(normed, memory, cache)[0]
        if self.residual == "none":
            return read, normed
        return hidden_states + dropout(read, self.dropout, self.training), normed

    def update(self, memory: torch.Tensor, states: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Update attention: M^t (B or fewer, M, D), h^t (B, T, D), mask as attention takes it -> M^{t+1} (B, M, D)."""
        memory = memory.repeat_interleave(states.shape[0] // memory.shape[0], dim=0)
        slots = torch.arange(memory.shape[1], device=memory.device)
        memory = memory + sinusoid(slots, memory.shape[2]).to(memory.dtype)  # M^t + PE(M^t)
        gathered = self.update_attn(memory, states, attention_mask=mask)[0]
        memory = self.update_attn_layer_norm(memory + dropout(gathered, self.dropout, self.training))
        inner = dropout(self.activation_fn(self.fc1(memory)), self.activation_dropout, self.training)
        inner = dropout(self.fc2(inner), self.dropout, self.training)
        return self.final_layer_norm(memory + inner)


class MemoryLayer:
    """What encoder and decoder layers share: in some of them a memory, read after self-attention.

    Such a layer returns its states, the state h^t (B, T, D) that an update is from, and the memory M^{t+1} (B, M, D)
    after the sentence, None unless `updates_memory`.
    """

    def __init__(self, config: DocMTConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        has_memory = layer_idx in config.layers_with_memory(self.side)
        self.memory_name = f"memory_{layer_idx}" if has_memory else None
        if has_memory:
            sizes = (getattr(config, f"{self.side}_{size}") for size in ("attention_heads", "ffn_dim"))
            self.memory = MemoryUnit(config, *sizes, layer_idx if self.side == "decoder" else None)

    def read_memory(self, hidden_states: torch.Tensor, cache=None, **layer_inputs):
        """States (B, T, D) that have read the memory, and h^t; None where the layer has no memory."""
        if self.memory_name is None:
            return hidden_states, None
        return self.memory.read(hidden_states, layer_inputs[self.memory_name], cache)

    def with_memory(self, hidden_states: torch.Tensor, state: torch.Tensor | None, **layer_inputs):
        """What the layer returns."""
        if self.memory_name is None:
            return hidden_states
        after = None
        if layer_inputs["updates_memory"]:
            after = self.memory.update(layer_inputs[self.memory_name], state, layer_inputs["memory_mask"])
        return hidden_states, state, after


class MemoryStack:
    """What encoder and decoder share: the learned initial memory, and the update after a sentence.

    The memories of all layers that have one stand behind each other, (B, slots, D) with slots = layers x `memory_size`.
    """

    def __init__(self, config: DocMTConfig):
        super().__init__(config)
        self.memory_layers = config.layers_with_memory(self.side)
        if self.memory_layers:
            self.initial_memory = nn.Embedding(len(self.memory_layers) * config.memory_size, config.d_model)
        self.post_init()

    def memory_before(self, memory, document_start, device: torch.device, *rows: int) -> torch.Tensor | None:
        """The memory that a batch of sentences reads, carried over or the initial one, (B or fewer, slots, D).

        `memory` None: all sentences start documents, and share one row; `document_start` (the rows of `memory`,) bool
        tells those that do. `rows`: how many it may have, those of the batch, or of the sources where some rows of the
        batch share one. Raises `ValueError` for a memory of another shape, or where the stack has none.
        """
        if not self.memory_layers:
            if memory is not None:
                raise ValueError(
                    f"{self.side}_memory was given, but this model has no memory in its {self.side} "
                    f"(memory_sides={self.config.memory_sides!r}): leave it out."
                )
            return None
        slots = torch.arange(self.initial_memory.num_embeddings, device=device)
        initial = self.initial_memory(slots)[None]  # (1, slots, D)
        if memory is None:
            return initial
        memory = memory.to(initial.dtype)
        slots, dim = initial.shape[1:]
        if memory.dim() != 3 or memory.shape[1:] != (slots, dim) or memory.shape[0] not in rows:
            raise ValueError(
                f"{self.side}_memory must be the state of these {rows[0]} sentences, ({rows[0]}, {slots}, {dim}); got "
                f"{tuple(memory.shape)}: give the one that came out for the sentences before them, rows in this order."
            )
        if document_start is None:
            return memory
        if tuple(document_start.shape) != (memory.shape[0],):
            raise ValueError(
                f"document_start must have one truth value for each of the {memory.shape[0]} rows of "
                f"{self.side}_memory, got shape {tuple(document_start.shape)}."
            )
        return torch.where(document_start.bool()[:, None, None], initial, memory)

    def by_layer(self, memory: torch.Tensor | None) -> dict[int, torch.Tensor]:
        """(B, slots, D) -> {layer: (B, M, D)}"""
        if memory is None:
            return {}
        return dict(zip(self.memory_layers, memory.split(self.config.memory_size, dim=1)))

    def memory_inputs(self, memory: torch.Tensor | None, updates: bool, batch: int, attention_mask=None) -> dict:
        """Layer inputs: `memory_3` (B or fewer, M, D) for layer 3 and so on, whether it is updated, mask of the update.

        `attention_mask` (B, T), 1 = token that is written into the memory.
        """
        if memory is None:
            return {}
        mask = self.update_mask(batch, attention_mask, memory.device) if updates else None
        memories = {f"memory_{layer}": part for layer, part in self.by_layer(memory).items()}
        return memories | {"updates_memory": updates, "memory_mask": mask}

    def update_mask(self, batch: int, attention_mask: torch.Tensor | None, device: torch.device):
        """Mask of update attention, as attention takes it, from one of tokens (B, T)."""
        if attention_mask is None:
            return None
        return create_bidirectional_mask(
            config=self.config,
            inputs_embeds=self.empty_states(batch, self.config.memory_size, device),
            attention_mask=attention_mask,
            encoder_hidden_states=self.empty_states(*attention_mask.shape, device),
        )

    def memory_outputs(self, layer_outputs: dict[int, tuple]) -> dict:
        """Of what the layers returned: the memory after the sentence (B, slots, D), and {layer: h^t (B, T, D)}."""
        after = [memory for _, memory in layer_outputs.values() if memory is not None]
        return {
            f"{self.side}_memory": torch.cat(after, dim=1) if after else None,
            "memory_states": {layer: state for layer, (state, _) in layer_outputs.items()},
        }

    def memory_after(self, memory, states: dict[int, torch.Tensor], attention_mask=None) -> torch.Tensor | None:
        """M^{t+1} (B, slots, D) from M^t (B or fewer, slots, D) and the h^t (B, T, D) that a forward gave; 1 = token.

        Outside of a forward: for training that goes back through the updates of earlier sentences.
        """
        if memory is None:
            return None
        mask = self.update_mask(next(iter(states.values())).shape[0], attention_mask, memory.device)
        return torch.cat(
            [self.layers[i].memory.update(part, states[i], mask) for i, part in self.by_layer(memory).items()], dim=1
        )
