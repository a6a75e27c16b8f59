"""Multi-encoder: a second encoder reads the context sentences, joined to one sequence."""

import torch
from torch import nn

from .backbone import Encoder, EncoderLayer
from .configuration_multiencoder import MultiEncoderConfig
from .context import ContextEncoderOutput, ContextForConditionalGeneration, ContextModel, check_context
from .context_translation import ContextTranslation


class MultiEncoder(Encoder):
    """The encoder of the current sentence, and beside it layers that encode the context over the same embeddings."""

    def __init__(self, config: MultiEncoderConfig):
        super().__init__(config)
        self.context_layers = nn.ModuleList([EncoderLayer(config, i) for i in range(config.context_layers)])
        if config.normalize_before:
            self.context_layer_norm = nn.LayerNorm(config.d_model)
        self.post_init()

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        context_input_ids=None,
        context_attention_mask=None,
        context_offsets=None,
        context_is_target=None,
        **kwargs,
    ) -> ContextEncoderOutput:
        """As the backbone's, with `context_states` (B, N, D) of the joined context."""
        outputs = super().forward(input_ids=input_ids, attention_mask=attention_mask, **kwargs | {"return_dict": True})
        states = mask = None
        if context_input_ids is not None:
            check_context(self.config, input_ids, context_input_ids, context_attention_mask, context_offsets)
            ids, mask = self.joined(context_input_ids, context_attention_mask.bool(), context_offsets)
            states = self.encode_context(ids, mask)
        return ContextEncoderOutput(**outputs, context_states=states, context_mask=mask)

    def joined(self, ids: torch.Tensor, mask: torch.Tensor, offsets: torch.Tensor):
        """Sentences (B, C, L) as one sequence a row in the document's order, `s1 <sep> s2 ... </s>`: (B, N), (B, N)."""
        config = self.config
        present = mask.any(dim=2)
        far = torch.iinfo(offsets.dtype).max
        order = offsets.masked_fill(~present, far).sort(dim=1, stable=True).indices[..., None].expand_as(ids)
        ids, mask = ids.gather(1, order), mask.gather(1, order)
        present = mask.any(dim=2)
        ends = mask & (mask.flip(2).cumsum(dim=2).flip(2) == 1)  # the last token of each sentence, </s>
        last = present & (present.flip(1).cumsum(dim=1).flip(1) == 1)
        ids = ids.masked_fill(ends & ~last[..., None], config.sep_token_id).flatten(1)  # (B, C*L)
        mask = mask.flatten(1)
        width = max(int(mask.sum(dim=1).max()), 1)
        front = (~mask).long().sort(dim=1, stable=True).indices[:, :width]  # tokens first, in their order
        mask = mask.gather(1, front)
        return ids.gather(1, front).masked_fill(~mask, config.pad_token_id), mask

    def encode_context(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Ids and mask (B, N) -> states (B, N, D)."""
        hidden_states, layer_inputs = self.embed(ids, self.positions(ids))
        seen = self.mask(hidden_states, mask | ~mask.any(dim=1, keepdim=True))  # a row without context has no key else
        for layer in self.context_layers:
            hidden_states = layer(hidden_states, seen, **layer_inputs)
        return self.context_layer_norm(hidden_states) if self.config.normalize_before else hidden_states


class MultiEncoderModel(ContextModel):
    """Two encoders and a decoder over shared token embeddings."""

    encoder_class = MultiEncoder


class MultiEncoderForConditionalGeneration(ContextTranslation, ContextForConditionalGeneration):
    """Multi-encoder translation: the context has an encoder of its own (Jean et al. 2017); see `MultiEncoderConfig`.

    As in the baseline of Maka et al. (2024), section 5.2, the context sentences are joined by separators to one
    sequence; the decoder reads [context; source] as one memory, or has context attention.
    """

    config_class = MultiEncoderConfig
    model_class = MultiEncoderModel


MultiEncoderForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["MultiEncoderForConditionalGeneration", "MultiEncoderModel"]
