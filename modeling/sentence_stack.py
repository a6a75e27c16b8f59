"""Encoder, decoder and model with self-attention within each sentence: which tokens are of one sentence."""

from collections.abc import Callable

import torch
from torch import nn
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask

from .layers import CACHE_NAME, Attention, cached_length, is_static
from .limited_attention import FEW_KEYS, limit_inputs, limited_attention, limits_of
from .modeling_docmt import Decoder, DocMTForConditionalGeneration, DocMTModel, Encoder, Stack
from .segment_translator import SegmentTranslator
from .segments import is_whole_target, sentence_index


def sentence_limits(index: torch.Tensor, is_causal: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The first and last column that every token sees of its sentence; `index` (B, T), the sentence of all tokens."""
    columns = torch.arange(index.shape[1], device=index.device).expand_as(index)
    begins = index[:, 1:] != index[:, :-1]
    low = columns.where(nn.functional.pad(begins, (1, 0), value=True), 0).cummax(dim=1).values
    if is_causal:
        return low, columns
    ends = columns.where(nn.functional.pad(begins, (0, 1), value=True), index.shape[1])
    return low, ends.flip(1).cummin(dim=1).values.flip(1)


EVERY_SENTENCE = -2  # instead of a sentence's index: belongs to all of them


def same_sentence(index: torch.Tensor) -> Callable:
    """The same-sentence mask s(i) = s(j) as a mask function of transformers.

    `index` (B, S) is the sentence of all keys; queries are the last of them, or all. True = is seen.
    """

    def seen(row, head, query, key) -> torch.Tensor:
        return (index[row, query] == index[row, key]) | (index[row, key] == EVERY_SENTENCE)

    return seen


class SentenceAttention(Attention):
    """Attention that can be restricted to the same sentence, by the layer inputs of a `SentenceStack`."""

    def attend_sentence(
        self, query, key, value, attention_mask, layer_inputs: dict, output_attentions: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Queries (B, H, T, Dh), keys and values (B, H, S, Dh) -> (B, T, H, Dh), and weights (B, H, T, S) or None.

        `attention_mask` is over the whole segment, for rows of one sentence.
        """
        if limits := limits_of(layer_inputs, "sentence"):
            dropout = self.dropout if self.training else 0.0
            return limited_attention(query, key, value, limits, dropout=dropout)[0].transpose(1, 2), None
        mask = layer_inputs.get("sentence_mask", attention_mask)
        return self.attend(query, key, value, mask, output_attentions=output_attentions)


class SentenceStack(Stack):
    """Base of encoder and decoder: attention to the same sentence only.

    No layer inputs mean that every row is one sentence. Otherwise there is a mask over all keys (`sentence_mask`), or
    the limits of each sentence (`limited_attention`) in many tokens that are read with sdpa and without a cache.
    """

    def sentence_inputs(self, index: torch.Tensor, new: int, tokens: torch.Tensor | None, cache=None) -> dict:
        """The layer inputs of `new` tokens, from the sentence of every key (B, keys), and a mask of them or None."""
        length, is_decoder = cached_length(cache), self.side == "decoder"
        if not torch.compiler.is_compiling():
            if bool((index == index[:, :1]).all()):
                return {}
            is_prompt = not is_static(cache) and not length and index.shape[1] > FEW_KEYS
            if is_prompt and self.config._attn_implementation == "sdpa":
                tokens = None if tokens is None else tokens.bool()
                return limit_inputs("sentence", *sentence_limits(index, is_decoder), index.shape[1], tokens=tokens)
        make_mask, cached = create_bidirectional_mask, {}
        if is_decoder:
            make_mask = create_causal_mask
            cached = {CACHE_NAME: cache.self_attention_cache if cache is not None else None}
        mask = make_mask(
            config=self.config,
            inputs_embeds=self.empty_states(len(index), new, index.device),
            attention_mask=tokens,
            and_mask_function=same_sentence(index),
            **cached,
        )
        return {"sentence_mask": mask}


class SentenceEncoder(SentenceStack, Encoder):
    """Source ids to states."""

    finds_sentences = True

    def layer_inputs(self, input_ids, positions, attention_mask=None, **kwargs):
        """Limits of attention, see `SentenceStack`."""
        index = sentence_index(input_ids, self.config.sep_token_id)
        return self.sentence_inputs(index, input_ids.shape[1], attention_mask)


class SentenceDecoder(SentenceStack, Decoder):
    """Target ids and source states to states."""

    def layer_inputs(self, input_ids, positions, attention_mask=None, cache=None, sentence_index=None, **kwargs):
        """Limits of attention, by the sentence of all keys, `sentence_index` (B, keys); every token sees itself."""
        tokens = self.padding_to_mask(attention_mask, cached_length(cache))
        return self.sentence_inputs(sentence_index, input_ids.shape[1], tokens, cache)


class SentenceModel(DocMTModel):
    """Encoder and decoder; the decoder gets the sentence that every token belongs to."""

    decoder_input_names = ("decoder_sentence_index",)

    def target_sentences(self, decoder_input_ids: torch.Tensor) -> torch.Tensor:
        """The sentence of every target token, (B, T) -> (B, T)."""
        return sentence_index(decoder_input_ids, self.config.sep_token_id)

    def decoder_inputs(
        self, decoder_input_ids, decoder_attention_mask, encoder_outputs, cache=None, decoder_sentence_index=None
    ):
        """`decoder_sentence_index` (B, cached + T), of a static cache all it has room for."""
        index, past_length = decoder_sentence_index, cached_length(cache)
        if index is None:
            index = self.target_sentences(decoder_input_ids)
        keys = cache.get_max_length() if is_static(cache) else None
        if keys is None and past_length and index.shape == decoder_input_ids.shape:
            if is_whole_target(decoder_input_ids, self.config.decoder_start_token_id):
                index = nn.functional.pad(index, (past_length, 0), value=EVERY_SENTENCE)
        expected = (decoder_input_ids.shape[0], keys or past_length + decoder_input_ids.shape[1])
        if tuple(index.shape) != expected:
            raise ValueError(
                f"decoder_sentence_index must tell the sentences of all {expected[1]} tokens, {past_length} of them "
                f"cached, as {expected}; got {tuple(index.shape)}: give those of all ids so far, as "
                "prepare_inputs_for_generation does."
            )
        return {"sentence_index": index}


class SentenceGeneration(DocMTForConditionalGeneration):
    """Translation of segments by a `SentenceModel`."""

    translator_class = SegmentTranslator
    _supports_flash_attn = False  # it takes no masks but those of padding

    def decoder_inputs_for_generation(self, input_ids, model_inputs):
        """The sentence index of all tokens so far, and -1 for those that a static cache has room for."""
        index, cache = self.model.target_sentences(input_ids), model_inputs.get("cache")
        if is_static(cache):
            index = nn.functional.pad(index, (0, cache.get_max_length() - index.shape[1]), value=-1)
        elif cache is not None:
            prefix = cached_length(cache) + model_inputs["decoder_input_ids"].shape[1] - index.shape[1]
            index = nn.functional.pad(index, (prefix, 0), value=EVERY_SENTENCE)
        return {"decoder_sentence_index": index}
