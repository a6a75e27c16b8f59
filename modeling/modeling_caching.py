"""Caching: context sentences through the one encoder, each on its own, kept and shortened."""

import contextlib

import torch
from torch import nn
from transformers import GenerationMixin

from .configuration_caching import CachingConfig
from .context_attention import ContextEncoderOutput, ContextForConditionalGeneration, ContextModel
from .context_cache import SharedEncoderTranslator
from .context_inputs import check_context, completed, given_context, read_each, with_key
from .context_selection import move_rows
from .modeling_docmt import Encoder
from .segments import is_right_padded
from .shortening import new_shortener, sentence_mean


class CachingEncoder(Encoder):
    """The encoder of current and context sentences, the shortening, and the embedding of a sentence's offset."""

    config_class = CachingConfig

    def __init__(self, config: CachingConfig):
        super().__init__(config)
        self.shortener = new_shortener(config)
        self.segment_embedding = nn.Embedding(len(config.segment_rows), config.d_model)
        self.post_init()

    def build_output(self, outputs, layer_inputs, input_ids, attention_mask=None, **kwargs) -> ContextEncoderOutput:
        """With `context_states` (B, N, D) of all context sentences and, if included, the current one."""
        plain = super().build_output(outputs, layer_inputs, input_ids)
        parts = []
        ids, mask, offsets, is_target = given_context(kwargs)
        if self.config.missing_context == "eos":
            ids, mask, offsets = completed(self.config, input_ids, ids, mask, offsets, is_target)
            is_target = None
        elif ids is not None:
            check_context(self.config, input_ids, ids, mask, offsets, is_target)
        if ids is not None:
            vectors, kept = self.context_vectors(ids, mask.bool(), offsets)
            parts.append(self.with_segments(vectors, kept, offsets, is_target))
        if self.config.include_current:
            mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
            vectors, kept = self.shorten(plain.last_hidden_state, mask.bool())
            parts.append(self.with_current_segment(vectors, kept))
        states, kept = (torch.cat(part, dim=1) for part in zip(*parts)) if parts else (None, None)
        return ContextEncoderOutput(**plain, context_states=states, context_mask=kept)

    def context_vectors(self, ids: torch.Tensor, mask: torch.Tensor, offsets: torch.Tensor):
        """Ids and mask (B, C, L) of context sentences, each encoded and shortened -> (B, C, K, D), (B, C, K)."""

        def read(ids, mask):  # (P, L) -> (P, K, D), (P, K)
            with contextlib.nullcontext() if self.config.encoder_gradient else torch.no_grad():
                states = self.encode(ids, mask)
            return self.shorten(states, mask)

        vectors, kept = read_each(read, mask, (ids, with_key(mask)), () if self.training else (ids,))
        kept = kept & mask.any(dim=2, keepdim=True)
        if self.config.shortening_gradient is not None:
            near = offsets.abs() <= self.config.shortening_gradient
            vectors = torch.where(near[..., None, None], vectors, vectors.detach())
        return vectors, kept

    def encode(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Sentences without context: ids and mask (P, L), 1 = token -> states (P, L, D)."""
        positions = self.positions(ids, mask if not is_right_padded(mask) else None)
        return self.run_plain(self.embed(ids, positions), mask, self.layers, getattr(self, "layer_norm", None))

    def read(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Sentences (P, L) -> encoder states (P, L, D), and what is kept of them as context, (P, K, D), (P, K)."""
        states = self.encode(input_ids, attention_mask)
        return states, *self.shorten(states, attention_mask.bool())

    def shorten(self, hidden_states: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Encoder states (P, L, D), mask (P, L) bool -> what is kept of them, (P, K, D), (P, K)."""
        if self.shortener is not None:
            return self.shortener(hidden_states, mask)
        return (hidden_states, mask) if self.config.shortening == "none" else sentence_mean(hidden_states, mask)

    def with_segments(self, vectors, kept, offsets, is_target=None) -> tuple[torch.Tensor, torch.Tensor]:
        """Vectors (B, C, K, D) with the segment embedding of their sentence's offset, as (B, C*K, D), (B, C*K)."""
        slots = offsets + self.config.past_context
        if is_target is not None and self.config.context_sides != "source":
            after = self.config.past_context + 1 + self.config.future_context
            slots = slots + after * is_target.long()
        slots = slots.masked_fill(~kept.any(dim=2), self.config.past_context)  # absent ones may have any
        return (vectors + self.segment_embedding(slots)[:, :, None]).flatten(1, 2), kept.flatten(1, 2)

    def with_current_segment(self, vectors, kept) -> tuple[torch.Tensor, torch.Tensor]:
        """The current sentence's vectors (B, K, D) with the segment embedding of its offset."""
        slot = torch.full((1,), self.config.past_context, device=vectors.device)
        return vectors + self.segment_embedding(slot), kept


class CachingModel(ContextModel):
    """Encoder and decoder, the encoder's context kept and shortened."""

    config_class = CachingConfig
    encoder_class = CachingEncoder


class CachingForConditionalGeneration(ContextForConditionalGeneration, GenerationMixin):
    """Caching of context sentences, with sequence shortening (Maka et al. 2024); see `CachingConfig`.

    Segment embeddings number the offsets that the model knows (the released code has a table of 1025), a missing
    context sentence is skipped (there it is a lone `</s>`, as with `missing_context` `eos`), and context of the target
    side, which the paper leaves to future work, is read by the same encoder. `translate_documents` encodes and shortens
    each sentence once.
    """

    config_class = CachingConfig
    model_class = CachingModel
    translator_class = SharedEncoderTranslator

    def adapt_state_dict(self, state_dict, source_config):
        """Rows of the segment embedding go with their sentences."""
        adapted = super().adapt_state_dict(state_dict, source_config)
        if source_config.model_type != self.config.model_type:
            return adapted
        rows = (source_config.segment_rows, self.config.segment_rows)
        return move_rows(self, *adapted, "model.encoder.segment_embedding.weight", *rows)


CachingModel.register_for_auto_class("AutoModel")
CachingForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["CachingForConditionalGeneration", "CachingModel"]
