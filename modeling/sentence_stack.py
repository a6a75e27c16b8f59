"""Encoder, decoder and model whose self-attention also looks at the own sentence: which tokens are of one sentence."""

from collections.abc import Callable

import torch
from torch import nn
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask

from .layers import CACHE_NAME, Attention, cached_length, is_static
from .modeling_docmt import Decoder, DocMTForConditionalGeneration, DocMTModel, Encoder, Stack
from .segments import is_whole_target, sentence_index
from .sentence_attention import gathered_sentences, latest_sentence, sentence_attention
from .strategies import SegmentTranslator

EVERY_SENTENCE = -2  # in place of a sentence's index: belongs to all of them


def same_sentence(index: torch.Tensor) -> Callable:
    """The own-sentence mask s(i) = s(j) as a mask function of transformers.

    `index` (B, S) is the sentence of all keys; queries are the last of them, or all. True = is seen.
    """

    def seen(row, head, query, key) -> torch.Tensor:
        return (index[row, query] == index[row, key]) | (index[row, key] == EVERY_SENTENCE)

    return seen


class SentenceAttention(Attention):
    """Attention that can be restricted to the own sentence, by the layer inputs of a `SentenceStack`."""

    def attend_sentence(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        new: list[torch.Tensor],
        attention_mask: torch.Tensor | None,
        layer_inputs: dict,
        output_attentions: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Queries (B, H, T, Dh) -> (B, T, H, Dh), and weights (B, H, T, S) or None; `new` is Q, K, V of new tokens.

        `attention_mask` is over the whole segment, for rows of one sentence.
        """
        if "group_sizes" in layer_inputs:
            dropout = self.dropout if self.training else 0.0
            return sentence_attention(*new, layer_inputs, self.is_causal, dropout), None
        if "first_key" in layer_inputs:
            key, value = (states[:, :, layer_inputs["first_key"] : layer_inputs["end_key"]] for states in (key, value))
        mask = layer_inputs.get("sentence_mask", attention_mask)
        return self.attend(query, key, value, mask, output_attentions=output_attentions)


class SentenceStack(Stack):
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


class SentenceEncoder(SentenceStack, Encoder):
    """Source ids to states."""

    finds_sentences = True

    def layer_inputs(self, input_ids, positions, attention_mask=None, **kwargs):
        """Which tokens are of one sentence, see `SentenceStack`."""
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


class SentenceDecoder(SentenceStack, Decoder):
    """Target ids and source states to states."""

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
