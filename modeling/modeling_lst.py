"""Long-short term attention: self-attention over the whole segment and over the own sentence, joined by one layer."""

from collections.abc import Callable

import torch
from torch import nn
from transformers import GenerationMixin
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask

from .acceleration import Linear
from .cache import CACHE_NAME, cached_length, is_static
from .configuration_lst import LstConfig
from .layers import Attention, DecoderLayer, EncoderLayer
from .modeling_docmt import Decoder, DocMTForConditionalGeneration, DocMTModel, Encoder, Stack
from .segments import is_whole_target, sentence_index
from .sentence_attention import gathered_sentences, latest_sentence, sentence_attention
from .strategies import SegmentTranslator

EVERY_SENTENCE = -2  # in place of a sentence's index: belongs to all of them


def same_sentence(index: torch.Tensor) -> Callable:
    """The own-sentence mask s(i) = s(j) of Herold and Ney (2023), section 3.2, as a mask function of transformers.

    `index` (B, S) is the `sentence_index` of all keys; queries are the last of them, or all. True = is seen.
    """

    def seen(row, head, query, key) -> torch.Tensor:
        return (index[row, query] == index[row, key]) | (index[row, key] == EVERY_SENTENCE)

    return seen


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
        sentences, see `LstStack`.
        """
        new = query, key, value = self.self_projections(hidden_states)
        if cache is not None:
            key, value = cache.self_attention_cache.update(key, value, self.layer_idx)
        whole, weights = self.attend(query, key, value, attention_mask, output_attentions=output_attentions)
        dropout = self.dropout if self.training else 0.0
        if "group_sizes" in layer_inputs:
            own = sentence_attention(*new, layer_inputs, self.is_causal, dropout)
        elif "first_key" in layer_inputs:
            keys = (states[:, :, layer_inputs["first_key"] : layer_inputs["end_key"]] for states in (key, value))
            own, _ = self.attend(query, *keys, layer_inputs["sentence_mask"])
        elif "sentence_mask" in layer_inputs:
            own, _ = self.attend(query, key, value, layer_inputs["sentence_mask"])
        elif dropout:
            own, _ = self.attend(query, key, value, attention_mask)
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


class LstStack(Stack):
    """What encoder and decoder share: which of three ways the own sentence is attended to, all with the same result.

    Tokens that are read without a cache are gathered by sentence (`gathered_sentences`), unless every row is one
    sentence; that is what no layer inputs mean. One new token with a cache takes the keys of its sentence
    (`latest_sentence`). Under compilation and export, whose shapes do not depend on the ids, with other
    implementations than sdpa, for several new tokens with a cache, and with a static one, there is a mask over all keys
    (`sentence_mask`).
    """

    @property
    def is_masked(self) -> bool:
        """Whether the own sentence is told by masks alone."""
        return self.config._attn_implementation != "sdpa" or torch.compiler.is_compiling()


class LstEncoder(LstStack, Encoder):
    config_class = LstConfig
    layer_class = LstEncoderLayer
    finds_sentences = True

    def layer_inputs(self, input_ids, positions, attention_mask=None, **kwargs):
        """Which tokens are of one sentence, see `LstStack`."""
        index = sentence_index(input_ids, self.config.sep_token_id)  # (B, S)
        if not self.is_masked:
            return gathered_sentences(index, attention_mask)
        mask = create_bidirectional_mask(
            config=self.config,
            inputs_embeds=self.empty_states(*input_ids.shape, input_ids.device),
            attention_mask=attention_mask,
            and_mask_function=same_sentence(index),
        )
        return {"sentence_mask": mask}


class LstDecoder(LstStack, Decoder):
    config_class = LstConfig
    layer_class = LstDecoderLayer

    def layer_inputs(self, input_ids, positions, attention_mask=None, cache=None, sentence_index=None, **kwargs):
        """The same from the `sentence_index` (B, keys) of all keys; every token sees itself."""
        past_length = cached_length(cache)
        is_masked = self.is_masked or is_static(cache)
        is_masked = is_masked or past_length and bool((sentence_index[:, 0] == EVERY_SENTENCE).any())
        if not is_masked and not past_length:
            return gathered_sentences(sentence_index, self.padding_to_mask(attention_mask, past_length))
        if not is_masked and input_ids.shape[1] == 1:
            return latest_sentence(sentence_index, attention_mask)
        mask = create_causal_mask(
            config=self.config,
            inputs_embeds=self.empty_states(*input_ids.shape, input_ids.device),
            attention_mask=self.padding_to_mask(attention_mask, past_length),
            **{CACHE_NAME: cache.self_attention_cache if cache is not None else None},
            and_mask_function=same_sentence(sentence_index),
        )
        return {"sentence_mask": mask}


class LstModel(DocMTModel):
    """Encoder and decoder with both attentions; the decoder gets the sentence that every token belongs to."""

    config_class = LstConfig
    encoder_class = LstEncoder
    decoder_class = LstDecoder
    decoder_input_names = ("decoder_sentence_index",)

    def decoder_inputs(
        self, decoder_input_ids, decoder_attention_mask, encoder_outputs, cache=None, decoder_sentence_index=None
    ):
        """`decoder_sentence_index` (B, cached + T), of a static cache all it has room for."""
        index, past_length = decoder_sentence_index, cached_length(cache)
        if index is None:
            index = sentence_index(decoder_input_ids, self.config.sep_token_id)
        keys = cache.get_max_length() if is_static(cache) else None
        if keys is None and past_length and index.shape == decoder_input_ids.shape:
            if is_whole_target(decoder_input_ids, self.config.decoder_start_token_id):
                index = nn.functional.pad(index, (past_length, 0), value=EVERY_SENTENCE)
        expected = (decoder_input_ids.shape[0], keys or past_length + decoder_input_ids.shape[1])
        if tuple(index.shape) != expected:
            raise ValueError(
                f"decoder_sentence_index must tell the sentences of all {expected[1]} tokens, {past_length} of them "
                f"cached, as {expected}; got {tuple(index.shape)}: give sentence_index of all ids so far, as "
                "prepare_inputs_for_generation does."
            )
        return {"sentence_index": index}


class LstForConditionalGeneration(DocMTForConditionalGeneration, GenerationMixin):
    """Long-short term attention (Zhang et al. 2020, as in Herold and Ney 2023, section 3.2).

    Encoder and decoder self-attention looks at the whole segment and, a second time, at the own sentence only; see
    `LstAttention`. Attention to the source is unchanged. A separator belongs to the sentence it ends, in the decoder,
    too, where it is what the first token of the next sentence is written from. On segments of one sentence both
    variants are the same, and with `sentence_proj` zero the model is the plain backbone.
    """

    config_class = LstConfig
    model_class = LstModel
    translator_class = SegmentTranslator
    _supports_flash_attn = False  # it takes no masks but those of padding

    def decoder_inputs_for_generation(self, input_ids, model_inputs):
        """The sentence index of all tokens so far, and -1 for those that a static cache has room for."""
        index, cache = sentence_index(input_ids, self.config.sep_token_id), model_inputs.get("cache")
        if is_static(cache):
            index = nn.functional.pad(index, (0, cache.get_max_length() - index.shape[1]), value=-1)
        elif cache is not None:
            prefix = cached_length(cache) + model_inputs["decoder_input_ids"].shape[1] - index.shape[1]
            index = nn.functional.pad(index, (prefix, 0), value=EVERY_SENTENCE)
        return {"decoder_sentence_index": index}


LstModel.register_for_auto_class("AutoModel")
LstForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["LstForConditionalGeneration", "LstModel"]
