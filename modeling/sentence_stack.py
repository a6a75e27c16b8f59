"""Encoder, decoder and model with self-attention within each sentence: which tokens are of one sentence."""

from collections.abc import Callable

import torch
from torch import nn
from torch.autograd import Function
from torch.utils.checkpoint import checkpoint
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask

from .layers import CACHE_NAME, Attention, cached_length, is_static, without_cudnn
from .modeling_docmt import Decoder, DocMTForConditionalGeneration, DocMTModel, Encoder, Stack
from .segment_translator import SegmentTranslator
from .segments import is_whole_target, sentence_index

NAMES = ("slot_tokens", "token_slots", "empty_slots", "hidden_tokens", "group_sizes")
FEW_TOKENS = 8  # by which the lengths in a group may differ, where a quarter of the longest one is less


def gathered_sentences(index: torch.Tensor, tokens: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
    """Positions of the tokens of every sentence after gathering, for `sentence_attention`.

    `index` (B, T), the sentence of all tokens, from 0 to T; `tokens` (B, T), 1 = token, None = all. Returns
    `slot_tokens` (R,), the token in every slot, counted over the batch; `token_slots` (B * T,), the slot of every one;
    `empty_slots` (E,), the slots that are padding; `hidden_tokens` (H,), padding; `group_sizes` (G, 2), on the
    CPU, the number of rows of each group and their length. An empty dict where no row has a second sentence.
    """
    batch, length = index.shape
    device = index.device
    most = length + 1  # sentences of a row
    runs = (index + most * torch.arange(batch, device=device)[:, None]).flatten()  # (B * T,), a number per sentence
    hidden = torch.empty(0, dtype=torch.long, device=device)
    shown = torch.arange(batch * length, device=device)
    if tokens is not None:
        flat = tokens.flatten().bool()
        shown, hidden = flat.nonzero()[:, 0], (~flat).nonzero()[:, 0]
    numbers, sentence, lengths = runs[shown].unique_consecutive(return_inverse=True, return_counts=True)
    if not (numbers[1:] // most == numbers[:-1] // most).any():
        return {}
    order = lengths.argsort(descending=True, stable=True)
    sizes = group_sizes(lengths[order].tolist())
    rows, row_lengths = torch.tensor(sizes, device=device).unbind(1)
    row_ends = row_lengths.repeat_interleave(rows).cumsum(0)  # of every sentence in this order, its row's last slot + 1
    first_slot = torch.empty_like(row_ends).scatter(0, order, row_ends - row_lengths.repeat_interleave(rows))
    first_token = lengths.cumsum(0) - lengths
    slots = first_slot[sentence] + torch.arange(len(shown), device=device) - first_token[sentence]
    slot_tokens = runs.new_full((int(row_ends[-1]),), -1).scatter(0, slots, shown)
    token_slots = torch.zeros_like(runs).scatter(0, shown, slots)
    empty = (slot_tokens < 0).nonzero()[:, 0]
    return dict(zip(NAMES, (slot_tokens.clamp(min=0), token_slots, empty, hidden, torch.tensor(sizes)), strict=True))


def group_sizes(lengths: list[int]) -> list[tuple[int, int]]:
    """Groups of sentences of about the same length, as (number, longest), from their lengths in descending order."""
    groups: list[tuple[int, int]] = []
    for length in lengths:
        count, longest = groups[-1] if groups else (0, 0)
        if count and length >= longest - max(FEW_TOKENS, longest // 4):
            groups[-1] = (count + 1, longest)
        else:
            groups.append((1, length))
    return groups


def sentence_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    sentences: dict[str, torch.Tensor],
    is_causal: bool = False,
    dropout: float = 0.0,
) -> torch.Tensor:
    """softmax(QK^T / sqrt(d)) V within every sentence: (B, H, T, Dh) -> (B, T, H, Dh), zeros for padding.

    The backward pass keeps the arguments only; the rest is computed again.
    """
    layout = tuple(sentences[name] for name in NAMES)
    if torch.is_grad_enabled() and query.requires_grad:
        settings = {"use_reentrant": False, "preserve_rng_state": dropout > 0}
        return checkpoint(attend_gathered, query, key, value, *layout, is_causal, dropout, **settings)
    return attend_gathered(query, key, value, *layout, is_causal, dropout)


def attend_gathered(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    slot_tokens: torch.Tensor,
    token_slots: torch.Tensor,
    empty_slots: torch.Tensor,
    hidden_tokens: torch.Tensor,
    group_sizes: torch.Tensor,
    is_causal: bool,
    dropout: float,
) -> torch.Tensor:
    """`sentence_attention`, with what it computes on the way kept for the backward pass."""
    batch, heads, length, dim = query.shape
    gathered = [
        Rearranged.apply(
            states.transpose(1, 2).reshape(-1, heads * dim), slot_tokens, token_slots, empty_slots, hidden_tokens
        )  # (R, H * Dh)
        for states in (query, key, value)
    ]
    filled = None
    if not is_causal and len(empty_slots):  # the empty slots of a row are after its tokens
        filled = torch.ones_like(slot_tokens, dtype=torch.bool).index_fill(0, empty_slots, False)
    outputs, start = [], 0
    for rows, row_length in group_sizes.tolist():
        end = start + rows * row_length
        q, k, v = (states[start:end].view(rows, row_length, heads, dim).transpose(1, 2) for states in gathered)
        mask = None if filled is None else filled[start:end].view(rows, 1, 1, row_length)
        with without_cudnn(q):
            output = nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=is_causal
            )
        outputs.append(output.transpose(1, 2).reshape(-1, heads * dim))
        start = end
    joined = outputs[0] if len(outputs) == 1 else torch.cat(outputs)  # (R, H * Dh)
    states = Rearranged.apply(joined, token_slots, slot_tokens, hidden_tokens, empty_slots)
    return states.view(batch, length, heads, dim)


class Rearranged(Function):
    """Rows of a matrix in another order, to places that may be empty; the gradient takes them the way back.

    `source` (N,) is the row that each new one is taken from, `place` (M,) where each old one went; both may be anything
    for the new rows `empty` and the old rows `unused`.
    """

    @staticmethod
    def forward(ctx, states, source, place, empty, unused):
        """(M, D) -> (N, D), zeros in `empty`."""
        ctx.save_for_backward(source, place, empty, unused)
        return states.index_select(0, source).index_fill_(0, empty, 0.0)

    @staticmethod
    def backward(ctx, gradient):
        source, place, empty, unused = ctx.saved_tensors
        gradient = Rearranged.apply(gradient, place, source, unused, empty)
        return gradient, None, None, None, None


def latest_sentence(index: torch.Tensor, tokens: torch.Tensor | None = None) -> dict:
    """The keys that the last token of every row sees in its sentence, among those from the first one that is seen.

    `index` (B, T), the `sentence_index` of all tokens; `tokens` (B, T), 1 = token, None = all. Returns `first_key`, the
    column of that one, `end_key`, T, and `sentence_mask` (B, 1, 1, T - first), None = all. An empty dict where every
    token of every row is seen.
    """
    seen = index == index[:, -1:]  # (B, T)
    if tokens is not None:
        seen = seen & tokens.bool()
    first = int(seen.any(dim=0).int().argmax())
    mask = seen[:, first:]
    if bool(mask.all()):
        mask = None
    if first == 0 and (mask is None if tokens is None else torch.equal(seen, tokens.bool())):
        return {}
    mask = mask if mask is None else mask[:, None, None]
    return {"first_key": first, "end_key": index.shape[1], "sentence_mask": mask}


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
    """Base of encoder and decoder: three ways to attend to the same sentence only, with the same result.

    Tokens that are read without a cache are gathered by sentence (`gathered_sentences`), unless every row is one
    sentence; that is what no layer inputs mean. One new token with a cache takes the keys of its sentence
    (`latest_sentence`). Under compilation and export, whose shapes do not depend on the ids, with other
    implementations than sdpa, for several new tokens with a cache, and with a static one, there is a mask over all keys
    (`sentence_mask`).
    """

    @property
    def is_masked(self) -> bool:
        """Whether masks alone keep attention within sentences."""
        return self.config._attn_implementation != "sdpa" or torch.compiler.is_compiling()


class SentenceEncoder(SentenceStack, Encoder):
    """Source ids to states."""

    finds_sentences = True

    def layer_inputs(self, input_ids, positions, attention_mask=None, **kwargs):
        """Mask of tokens of the same sentence, see `SentenceStack`."""
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
        """Mask of tokens of the same sentence, by `sentence_index` (B, keys) of all keys; every token sees itself."""
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
