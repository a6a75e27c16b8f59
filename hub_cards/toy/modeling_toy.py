"""Toy: a source token also reads the mean of the sentence before its own."""

import torch
from torch import nn
from transformers import GenerationMixin

from .configuration_toy import ToyConfig
from .layers import EncoderLayer
from .modeling_docmt import DocMTForConditionalGeneration, DocMTModel, Encoder
from .segment_translator import SegmentTranslator
from .segments import sentence_index


class ToyEncoderLayer(EncoderLayer):
    """h_i + W mean(h_j of the sentence before), after self-attention."""

    def __init__(self, config: ToyConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        self.previous_proj = nn.Linear(config.d_model, config.d_model, bias=False)

    def start_neutral(self) -> None:
        """With zeros the layer is that of the plain Transformer."""
        nn.init.zeros_(self.previous_proj.weight)

    def self_attention_block(self, hidden_states, *args, previous_weights: torch.Tensor, **layer_inputs):
        """States (B, S, D) -> (B, S, D); `previous_weights` (B, S, S)."""
        hidden_states = super().self_attention_block(hidden_states, *args, **layer_inputs)
        previous = previous_weights.to(hidden_states.dtype) @ hidden_states  # (B, S, D)
        return hidden_states + self.previous_proj(previous)


class ToyEncoder(Encoder):
    """An encoder that finds the sentences by their separators."""

    config_class = ToyConfig
    layer_class = ToyEncoderLayer
    finds_sentences = True

    def layer_inputs(self, input_ids, positions, attention_mask=None, **kwargs):
        """Weights (B, S, S) with which token i averages the tokens j of the sentence before."""
        index = sentence_index(input_ids, self.config.sep_token_id)  # (B, S)
        is_previous = (index[:, None, :] == index[:, :, None] - 1).float()  # (B, S, S)
        if attention_mask is not None:
            is_previous = is_previous * attention_mask[:, None, :]
        return {"previous_weights": is_previous / is_previous.sum(dim=2, keepdim=True).clamp(min=1)}


class ToyModel(DocMTModel):
    """Encoder and decoder."""

    config_class = ToyConfig
    encoder_class = ToyEncoder


class ToyForConditionalGeneration(DocMTForConditionalGeneration, GenerationMixin):
    """The model with its head; strategies are those of segments."""

    config_class = ToyConfig
    model_class = ToyModel
    translator_class = SegmentTranslator


ToyModel.register_for_auto_class("AutoModel")
ToyForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["ToyForConditionalGeneration", "ToyModel"]
