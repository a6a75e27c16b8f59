"""Long-short term attention: self-attention over the whole segment and within each sentence, joined by one layer."""

import torch
from torch import nn
from transformers import GenerationMixin

from .configuration_lst import LstConfig
from .layers import DecoderLayer, EncoderLayer
from .sentence_stack import SentenceAttention, SentenceDecoder, SentenceEncoder, SentenceGeneration, SentenceModel


class LstAttention(SentenceAttention):
    """Self-attention computed twice from the same queries, keys and values, with and without the sentence mask.

    Herold and Ney (2023), section 3.2, after Zhang et al. (2020): A(Q, K, V) with M_ij = 0 where s(i) = s(j), otherwise
    -inf, and the same with no mask but the causal one; the two context vectors are concatenated and go through one
    linear layer. As there, Q, K, V are given to both variants, so all that is added to the Transformer is the second
    half of that layer. Its first half, with the bias, is `out_proj`, the second one `sentence_proj`: as two matrices
    they are the same layer, W[c_whole; c_own] = W_whole c_whole + W_own c_own, and a checkpoint without the mechanism
    loads by name.
    """

    def __init__(self, config: LstConfig, num_heads: int, layer_idx: int | None = None, is_causal: bool = False):
        super().__init__(config, num_heads, layer_idx, is_causal)
        self.sentence_proj = nn.Linear(config.d_model, config.d_model, bias=False)

    def start_neutral(self) -> None:
        nn.init.zeros_(self.sentence_proj.weight)

    def forward(
        self,
        hidden_states: torch.Tensor,
        cache=None,
        attention_mask: torch.Tensor | None = None,
        output_attentions: bool = False,
        **layer_inputs,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """`hidden_states` (B, T, D) -> (B, T, D), weights over the whole segment.

        `attention_mask` is over the whole segment (None = all that causality lets through); `layer_inputs` tell the
        sentences, see `SentenceStack`.
        """
        query, key, value = self.self_projections(hidden_states)
        if cache is not None:
            key, value = cache.self_attention_cache.update(key, value, self.layer_idx)
        whole, weights = self.attend(query, key, value, attention_mask, output_attentions=output_attentions)
        if layer_inputs or self.training and self.dropout:
            own, _ = self.attend_sentence(query, key, value, attention_mask, layer_inputs)
        else:
            own = whole
        shape = hidden_states.shape
        return self.out_proj(whole.reshape(shape)) + self.sentence_proj(own.reshape(shape)), weights


class LstEncoderLayer(EncoderLayer):
    """Encoder layer with both attentions."""

    def __init__(self, config: LstConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        self.self_attn = LstAttention(config, config.encoder_attention_heads, layer_idx)


class LstDecoderLayer(DecoderLayer):
    """Decoder layer with both self-attentions; attention to the source is that of the backbone."""

    def __init__(self, config: LstConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        self.self_attn = LstAttention(config, config.decoder_attention_heads, layer_idx, is_causal=True)


class LstEncoder(SentenceEncoder):
    config_class = LstConfig
    layer_class = LstEncoderLayer


class LstDecoder(SentenceDecoder):
    config_class = LstConfig
    layer_class = LstDecoderLayer


class LstModel(SentenceModel):
    """Encoder and decoder with both attentions."""

    config_class = LstConfig
    encoder_class = LstEncoder
    decoder_class = LstDecoder


class LstForConditionalGeneration(SentenceGeneration, GenerationMixin):
    """Long-short term attention (Zhang et al. 2020, as in Herold and Ney 2023, section 3.2).

    Encoder and decoder self-attention looks at the whole segment and, a second time, at the same sentence only; see
    `LstAttention`. Attention to the source is unchanged. A separator belongs to the sentence it ends, in the decoder,
    too, where it is what the first token of the next sentence is written from. On segments of one sentence both
    variants are the same, and with `sentence_proj` zero the model is the plain backbone.
    """

    config_class = LstConfig
    model_class = LstModel


LstModel.register_for_auto_class("AutoModel")
LstForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["LstForConditionalGeneration", "LstModel"]
