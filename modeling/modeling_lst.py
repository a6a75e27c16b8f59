"""Long-short term attention: self-attention over the whole segment and over the own sentence, joined by one layer."""

import torch
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from .backbone import (
    Attention,
    Decoder,
    DecoderLayer,
    DocMTForConditionalGeneration,
    DocMTModel,
    Encoder,
    EncoderLayer,
    eager_attention,
)
from .configuration_lst import LstConfig
from .cpu_inference import Linear
from .segments import is_right_padded, same_sentence, sentence_index


class LstAttention(Attention):
    """Self-attention computed twice from the same queries, keys and values, with and without the sentence mask.

    Herold and Ney (2023), section 3.2, after Zhang et al. (2020): A(Q, K, V) with M_ij = 0 where s(i) = s(j), else
    -inf, and the same with no mask but the causal one; the two context vectors are concatenated and go through one
    linear layer. As there, Q, K, V are given to both variants, so all that is added to the Transformer is the second
    half of that layer. Its first half, with the bias, is `out_proj`, the second one `sentence_proj`: as two matrices
    they are the same layer, W[c_whole; c_own] = W_whole c_whole + W_own c_own, and a checkpoint without the mechanism
    loads by name.
    """

    def __init__(self, config: LstConfig, num_heads: int, layer_idx: int | None = None, is_causal: bool = False):
        super().__init__(config, num_heads, layer_idx, is_causal)
        self.sentence_proj = Linear(config.d_model, config.d_model, bias=False)

    def forward(self, hidden_states, past_key_values=None, attention_mask=None, **kwargs):
        """`hidden_states` (B, T, D) -> (B, T, D), weights over the whole segment.

        `attention_mask` is a pair: over the whole segment (None = all that causality lets through), within sentences.
        """
        query, key, value = self.self_projections(hidden_states)
        if past_key_values is not None:
            key, value = past_key_values.self_attention_cache.update(key, value, self.layer_idx)
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention)
        settings = {"dropout": self.dropout if self.training else 0.0, "scaling": self.scaling, **kwargs}
        whole_mask, own_mask = attention_mask
        whole, weights = attend(self, query, key, value, whole_mask, **settings)  # (B, T, H, Dh)
        own, _ = attend(self, query, key, value, own_mask, **settings)
        shape = hidden_states.shape
        return self.out_proj(whole.reshape(shape)) + self.sentence_proj(own.reshape(shape)), weights


class LstEncoderLayer(EncoderLayer):
    """Encoder layer with both attentions."""

    def __init__(self, config: LstConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        self.self_attn = LstAttention(config, config.encoder_attention_heads, layer_idx)

    def forward(self, hidden_states, attention_mask=None, own_mask=None, **kwargs):
        return super().forward(hidden_states, (attention_mask, own_mask), **kwargs)


class LstDecoderLayer(DecoderLayer):
    """Decoder layer with both self-attentions; attention to the source is that of the backbone."""

    def __init__(self, config: LstConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        self.self_attn = LstAttention(config, config.decoder_attention_heads, layer_idx, is_causal=True)

    def forward(self, hidden_states, attention_mask=None, *args, own_mask=None, **kwargs):
        return super().forward(hidden_states, (attention_mask, own_mask), *args, **kwargs)


class LstEncoder(Encoder):
    layer_class = LstEncoderLayer

    def forward(self, input_ids=None, attention_mask=None, **kwargs):
        index = sentence_index(input_ids, self.config.sep_token_id)  # (B, S)
        own_mask = create_bidirectional_mask(
            config=self.config,
            inputs_embeds=embeddings_like(self, input_ids),
            attention_mask=attention_mask,
            and_mask_function=same_sentence(index),
        )
        return super().forward(input_ids=input_ids, attention_mask=attention_mask, own_mask=own_mask, **kwargs)


class LstDecoder(Decoder):
    layer_class = LstDecoderLayer

    def forward(self, input_ids=None, attention_mask=None, past_key_values=None, embed_inputs=None, **kwargs):
        """As the backbone's, `embed_inputs` with the `sentence_index` (B, cached + T) of all keys."""
        past_length = past_key_values.get_seq_length() if past_key_values is not None else 0
        if attention_mask is not None and not past_length and is_right_padded(attention_mask):
            attention_mask = None  # causality hides it, and every token sees itself
        own_mask = create_causal_mask(
            config=self.config,
            inputs_embeds=embeddings_like(self, input_ids),
            attention_mask=attention_mask,
            past_key_values=past_key_values.self_attention_cache if past_key_values is not None else None,
            and_mask_function=same_sentence(embed_inputs["sentence_index"]),
        )
        return super().forward(
            input_ids=input_ids,
            attention_mask=attention_mask,
            past_key_values=past_key_values,
            own_mask=own_mask,
            **kwargs,
        )


def embeddings_like(stack: Encoder | Decoder, input_ids: torch.Tensor) -> torch.Tensor:
    """(B, T, 0), of the embeddings' type and on their device, which is all that masks take from embeddings."""
    return stack.embed_tokens.weight.new_empty(*input_ids.shape, 0)


class LstModel(DocMTModel):
    """Encoder and decoder with both attentions; the decoder is told which sentence every token belongs to."""

    encoder_class = LstEncoder
    decoder_class = LstDecoder
    decoder_place_names = ("decoder_sentence_index",)

    def decoder_embed_inputs(self, decoder_input_ids, encoder_outputs, past_key_values, decoder_sentence_index=None):
        index = decoder_sentence_index
        if index is None:
            index = sentence_index(decoder_input_ids, self.config.sep_token_id)
        past_length = past_key_values.get_seq_length() if past_key_values is not None else 0
        expected = (decoder_input_ids.shape[0], past_length + decoder_input_ids.shape[1])
        if tuple(index.shape) != expected:
            raise ValueError(
                f"decoder_sentence_index must tell the sentences of all {expected[1]} tokens, {past_length} of them "
                f"cached, as {expected}; got {tuple(index.shape)}: give sentence_index of all ids so far, as "
                "prepare_inputs_for_generation does."
            )
        return {"sentence_index": index}


class LstForConditionalGeneration(DocMTForConditionalGeneration):
    """Long-short term attention (Zhang et al. 2020, as in Herold and Ney 2023, section 3.2).

    Encoder and decoder self-attention looks at the whole segment and, a second time, at the own sentence only; see
    `LstAttention`. Attention to the source is unchanged. A separator belongs to the sentence it ends, in the decoder,
    too, where it is what the first token of the next sentence is written from. On segments of one sentence both
    variants are the same, and with `sentence_proj` zero the model is the plain backbone.
    """

    config_class = LstConfig
    model_class = LstModel
    _supports_flash_attn = False  # it takes no masks but those of padding
    _supports_flex_attn = False

    def prepare_inputs_for_generation(self, input_ids, next_sequence_length=None, **kwargs):
        inputs = super().prepare_inputs_for_generation(input_ids, next_sequence_length, **kwargs)
        inputs["decoder_sentence_index"] = sentence_index(input_ids, self.config.sep_token_id)
        return inputs


LstForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["LstForConditionalGeneration", "LstModel"]
