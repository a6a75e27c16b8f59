"""Multi-encoder: a second encoder reads the context sentences, joined to one sequence."""

import torch
from transformers import GenerationMixin

from .configuration_multiencoder import MultiEncoderConfig
from .context_attention import ContextEncoderOutput, ContextForConditionalGeneration, ContextModel
from .context_inputs import ContextLayers, check_context, given_context, joined, with_end
from .context_strategies import JoinedContextTranslator
from .modeling_docmt import Encoder


class MultiEncoder(ContextLayers, Encoder):
    """The encoder of the current sentence, and layers of their own for its context."""

    config_class = MultiEncoderConfig

    def __init__(self, config: MultiEncoderConfig):
        super().__init__(config)
        self.add_context_layers(config, config.context_layers)

    def build_output(self, outputs, layer_inputs, input_ids, attention_mask=None, **kwargs) -> ContextEncoderOutput:
        """With `context_states` (B, N, D) of the joined context."""
        plain = super().build_output(outputs, layer_inputs, input_ids)
        states = None
        ids, mask, offsets, is_target = given_context(kwargs)
        if ids is not None:
            check_context(self.config, input_ids, ids, mask, offsets, is_target)
            ids, mask = joined(self.config, ids, mask.bool(), offsets)
        if self.config.missing_context == "eos" and self.config.known_offsets:
            if ids is None:
                ids, mask = input_ids[:, :1], torch.zeros_like(input_ids[:, :1], dtype=torch.bool)
            ids, mask = with_end(self.config, ids, mask)
        if ids is not None:
            states = self.encode_context(ids, mask)
        return ContextEncoderOutput(**plain, context_states=states, context_mask=mask)


class MultiEncoderModel(ContextModel):
    """Two encoders and a decoder over shared token embeddings."""

    config_class = MultiEncoderConfig
    encoder_class = MultiEncoder


class MultiEncoderForConditionalGeneration(ContextForConditionalGeneration, GenerationMixin):
    """Multi-encoder translation: the context has an encoder of its own (Jean et al. 2017); see `MultiEncoderConfig`.

    As in the baseline of Maka et al. (2024), section 5.2, the context sentences are joined by separators to one
    sequence; the decoder reads [context; source] as one memory, or has context attention.
    """

    config_class = MultiEncoderConfig
    model_class = MultiEncoderModel
    translator_class = JoinedContextTranslator


MultiEncoderModel.register_for_auto_class("AutoModel")
MultiEncoderForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["MultiEncoderForConditionalGeneration", "MultiEncoderModel"]
