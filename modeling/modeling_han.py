"""Hierarchical attention: final-layer states attend to the words of each previous sentence, then to the sentences."""

from dataclasses import dataclass

import torch
from torch import nn
from transformers import GenerationMixin
from transformers.activations import ACT2FN
from transformers.modeling_outputs import BaseModelOutput

from .configuration_han import HanConfig
from .context_attention import ContextForConditionalGeneration, fill_with_zeros, move_affine
from .context_inputs import (
    CONTEXT_INPUTS,
    by_offset,
    check_context,
    given_context,
    read_each,
    tokens_first,
    with_key,
)
from .context_strategies import ContextTranslator
from .layers import Attention, DecoderLayer, EncoderLayer, dropout, source_states, without_cudnn
from .modeling_docmt import Decoder, DocMTModel, Encoder


# Not `...Attention`: transformers would find that in this file, and refuse to switch attention
class HierarchicalContext(nn.Module):
    """LayerNorm(lambda h + (1 - lambda) d), lambda = sigmoid(W [h; d] + b) (Miculicich et al. 2018, section 2).

    s_j = MultiHead(f_w(h), words of sentence j), d = FFN(MultiHead(f_s(h), s_1 ... s_k)). As in the released code f_w
    and f_s are norms, s_j is normalised, the network has a norm and a residual, and a query gives no gradient to h.
    h is normalised, too: with the norm after it is what the layer gives, and `layer_norm` follows the sum; with the
    norm before `layer_norm` makes h, and the last norm of the stack follows the sum. Departure: without context the
    states stay unchanged (in the released code all words of some sentence count alike).
    """

    def __init__(self, config: HanConfig, side: str, layer_idx: int):
        super().__init__()
        heads, ffn_dim = (getattr(config, f"{side}_{size}") for size in ("attention_heads", "ffn_dim"))
        self.normalize_before, self.dropout = config.normalize_before, config.dropout
        self.attention_dropout, self.activation_fn = config.attention_dropout, ACT2FN[config.activation_function]
        self.word_query_norm, self.sentence_query_norm = nn.LayerNorm(config.d_model), nn.LayerNorm(config.d_model)
        self.word_attn = Attention(config, heads, layer_idx, source_name="context")
        self.word_layer_norm = nn.LayerNorm(config.d_model)
        self.sentence_attn = Attention(config, heads, layer_idx)
        self.fc1, self.fc2 = nn.Linear(config.d_model, ffn_dim), nn.Linear(ffn_dim, config.d_model)
        self.final_layer_norm = nn.LayerNorm(config.d_model)
        self.gate = nn.Linear(2 * config.d_model, config.d_model)
        self.layer_norm = nn.LayerNorm(config.d_model)

    def forward(
        self,
        hidden_states: torch.Tensor,  # (B, T, D)
        context_states: torch.Tensor | None = None,  # (B or fewer, C, L, D); None = the cache has them
        context_mask: torch.Tensor | None = None,  # (the same, C, L) bool, True = a word; None = no context
        cache=None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Output of the layer, and h, (B, T, D) each."""
        states = self.layer_norm(hidden_states) if self.normalize_before else hidden_states  # h
        mixed = hidden_states
        if context_mask is not None:
            read = self.read(states.detach(), context_states, context_mask, cache)  # d
            gate = torch.sigmoid(self.gate(torch.cat([states, read], dim=-1)))
            of_one = states.shape[0] // context_mask.shape[0]  # rows of one source
            present = context_mask.flatten(1).any(dim=1).repeat_interleave(of_one)  # (B,)
            mixed = torch.where(present[:, None, None], gate * states + (1 - gate) * read, hidden_states)
        return (mixed if self.normalize_before else self.layer_norm(mixed)), states

    def read(self, states: torch.Tensor, context_states, context_mask: torch.Tensor, cache=None) -> torch.Tensor:
        """d of h (B, T, D), with the context of `forward`: (B, T, D)."""
        summaries = self.summaries(self.word_query_norm(states), context_states, context_mask, cache)  # (B*T, C, D)
        query = self.sentence_query_norm(states).view(-1, 1, states.shape[-1])  # (B*T, 1, D)
        attention, present = self.sentence_attn, context_mask.any(dim=2)  # (S, C)
        of_one = query.shape[0] // present.shape[0]  # queries of one source
        seen = with_key(present).repeat_interleave(of_one, dim=0)[:, None, None]  # (B*T, 1, 1, C)
        projections = zip((attention.q_proj, attention.k_proj, attention.v_proj), (query, summaries, summaries))
        query, key, value = (attention.heads(layer(inputs)) for layer, inputs in projections)  # (B*T, H, 1 or C, Dh)
        document = attention.out_proj(self.attend(query, key, value, seen).reshape(states.shape))
        inner = self.activation_fn(self.fc1(self.final_layer_norm(document)))
        inner = self.fc2(dropout(inner, self.dropout, self.training))
        return document + dropout(inner, self.dropout, self.training)

    def summaries(self, query: torch.Tensor, context_states, context_mask: torch.Tensor, cache=None) -> torch.Tensor:
        """s_1 ... s_C for f_w(h) (B, T, D): (B*T, C, D); the rows of one source share its context."""
        attention, (sources, count, length) = self.word_attn, context_mask.shape
        context_states = None if context_states is None else context_states.flatten(1, 2)  # (S, C*L, D)
        key, value = (
            states.unflatten(2, (count, length)).flatten(0, 1)  # (S*H, C, L, Dh)
            for states in attention.source_projections(context_states, cache, query.shape[0])
        )
        heads = attention.heads(attention.q_proj(query).view(sources, -1, query.shape[-1]))  # (S, H, N, Dh), N = B*T/S
        seen = with_key(context_mask).repeat_interleave(heads.shape[1], dim=0)[:, :, None]  # (S*H, C, 1, L)
        read = self.attend(heads.flatten(0, 1)[:, None].expand(-1, count, -1, -1), key, value, seen)  # (S*H, C, N, Dh)
        read = read.unflatten(0, heads.shape[:2]).permute(0, 3, 2, 1, 4)  # (S, N, C, H, Dh)
        return self.word_layer_norm(attention.out_proj(read.flatten(3).flatten(0, 1)))

    def attend(self, query, key, value, mask) -> torch.Tensor:
        """softmax(QK^T / sqrt(d)) V, of batches in two dimensions; mask True = is seen."""
        p = self.attention_dropout if self.training else 0.0
        with without_cudnn(query):
            return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=p)


class HierarchicalLayer:
    """Adds hierarchical attention after the blocks of the last layer, where the configuration has it on this side."""

    def __init__(self, config: HanConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        is_last = layer_idx == getattr(config, f"{self.side}_layers") - 1
        has_context = is_last and config.hierarchical_attention in (self.side, "joint")
        self.context = HierarchicalContext(config, self.side, layer_idx) if has_context else None

    def start_neutral(self) -> None:
        """d = 0 and lambda = 1/2; LayerNorm(h / 2) = LayerNorm(h)."""
        if self.context is None:
            return
        fill_with_zeros(self.context.sentence_attn.out_proj, self.context.fc2, self.context.gate)
        if not self.normalize_before:
            move_affine(self.final_layer_norm, self.context.layer_norm)

    def forward(self, hidden_states, *args, context_states=None, context_mask=None, **layer_inputs):
        """As in the base class; with hierarchical attention also h, which other sentences read."""
        hidden_states = super().forward(hidden_states, *args, **layer_inputs)
        if self.context is None:
            return hidden_states
        return self.context(hidden_states, context_states, context_mask, layer_inputs.get("cache"))


class HanEncoderLayer(HierarchicalLayer, EncoderLayer):
    """Self-attention, feed-forward network; in the last layer hierarchical attention."""


class HanDecoderLayer(HierarchicalLayer, DecoderLayer):
    """Self-attention, attention to the source, feed-forward network; in the last layer hierarchical attention."""


@dataclass
class HanEncoderOutput(BaseModelOutput):
    """States of the current sentence (B, S, D), and what the decoder reads of sentences before, if anything.

    `context_states` (B, C, L, D) and `context_mask` (B, C, L) bool are their sources, `context_target_ids` (B, C, T)
    their translations as the decoder's inputs, `context_target_words` (B, C, T) bool what of these is attended to.
    """

    context_states: torch.FloatTensor | None = None
    context_mask: torch.BoolTensor | None = None
    context_target_ids: torch.LongTensor | None = None
    context_target_words: torch.BoolTensor | None = None


CONTEXT_FIELDS = tuple(HanEncoderOutput.__annotations__)


class HanEncoder(Encoder):
    """Reads the current sentence, and each context sentence as if it were alone, without a gradient."""

    config_class = HanConfig
    layer_class = HanEncoderLayer

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, **kwargs) -> HanEncoderOutput:
        """As in the backbone, with context inputs; without them the model reads no context."""
        context = self.read_context(self.ids_of(input_ids, inputs_embeds), *given_context(kwargs))
        return super().forward(input_ids, attention_mask, inputs_embeds, **context, **kwargs)

    def layer_inputs(self, input_ids, positions, attention_mask=None, own_states=None, own_words=None, **kwargs):
        return {} if own_words is None else {"context_states": own_states, "context_mask": own_words}

    def build_output(self, outputs, layer_inputs, input_ids, attention_mask=None, **kwargs) -> HanEncoderOutput:
        context = {name: kwargs.get(name) for name in CONTEXT_FIELDS}
        return HanEncoderOutput(**super().build_output(outputs, layer_inputs, input_ids), **context)

    @torch.no_grad()
    def read_context(self, input_ids, ids, mask, offsets, is_target) -> dict[str, torch.Tensor]:
        """The encoder's inputs (`own_`) from context inputs (B, C, L), and the fields of its output for the decoder."""
        config, context = self.config, {}
        if ids is None or not config.known_offsets:
            return {}
        check_context(config, input_ids, ids, mask, offsets, is_target)
        is_target = torch.zeros_like(offsets, dtype=torch.bool) if is_target is None else is_target.bool()
        source, target = (
            left_aligned(*by_offset(config, input_ids, ids, mask.bool() & side[..., None], offsets, None))
            for side in (~is_target, is_target)
        )  # ids and mask (B, columns, L) each
        states, alone = self.read_sentences(*source)
        if config.hierarchical_attention != "decoder":
            context = {"own_states": states, "own_words": words(config, *source)}
        if config.hierarchical_attention != "encoder":
            past = config.past_context
            ids, mask, present = target[0][:, :past], target[1][:, :past], source[1][:, :past].any(dim=2, keepdim=True)
            ids = torch.cat([torch.full_like(ids[..., :1], config.decoder_start_token_id), ids[..., :-1]], dim=-1)
            mask = torch.cat([mask[..., :1], mask[..., :-1]], dim=-1) & present
            fields = (alone[:, :past], source[1][:, :past], ids, words(config, ids, mask))
            context |= dict(zip(CONTEXT_FIELDS, fields))
        return context

    def read_sentences(self, ids: torch.Tensor, mask: torch.Tensor) -> list[torch.Tensor]:
        """Ids and mask (B, C, L) of sentences -> h of each, and its last states, (B, C, L, D)."""

        def read(ids, seen):  # (P, L)
            states = self.embed(ids, self.positions(ids))
            outputs = self.run_layers(states, self.attention_mask(states, seen), layer_inputs={})
            alone = outputs.last_hidden_state  # (P, L, D)
            return outputs.layer_outputs.get(len(self.layers) - 1, (alone,))[0], alone

        return read_each(read, mask, (ids, with_key(mask)), () if self.training else (ids,))


class HanDecoder(Decoder):
    """Reads what it writes, and translations before, each as if it was written without context."""

    config_class = HanConfig
    layer_class = HanDecoderLayer

    def layer_inputs(self, input_ids, positions, cache=None, context_target_words=None, **kwargs):
        """The states of translations before, None where the cache has what is made of them, and which are words."""
        if context_target_words is None:
            return {}
        place = self.layers[-1].context.word_attn.place
        is_kept = cache is not None and source_states(cache, *place) is not None
        states = None if is_kept else self.read_translations(context_target_words, **kwargs)
        return {"context_states": states, "context_mask": context_target_words}

    @torch.no_grad()
    def read_translations(self, words, context_target_ids, context_states, context_mask, **kwargs) -> torch.Tensor:
        """h of translations (S, C, T) of sources (S, C, L, D): (S, C, T, D)."""

        def read(ids, source, mask):
            states = self.embed(ids, self.positions(ids))  # (P, T, D), of sources (P, L, D)
            mask = self.source_mask(source, mask, ids.shape)
            outputs = self.run_layers(states, self.attention_mask(states), source, mask, layer_inputs={})
            return [outputs.layer_outputs[len(self.layers) - 1][0]]

        return read_each(read, words, (context_target_ids, context_states, with_key(context_mask)))[0]


def left_aligned(ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask (B, C, L) with the padding after the tokens."""
    order = tokens_first(mask.flatten(0, 1)).view_as(mask)
    return ids.gather(2, order), mask.gather(2, order)


def words(config: HanConfig, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The attended tokens of ids and mask (B, C, L): as in the released code no unknown ones and no ends."""
    names = ("unk_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
    values = [getattr(config, name) for name in names]
    for token in {token for value in values for token in (value if isinstance(value, list) else [value])} - {None}:
        mask = mask & (ids != token)
    return mask


class HanModel(DocMTModel):
    """Encoder and decoder, the last layer of either or both with hierarchical attention."""

    config_class = HanConfig
    encoder_class = HanEncoder
    decoder_class = HanDecoder
    encoder_input_names = CONTEXT_INPUTS

    def decoder_inputs(self, decoder_input_ids, decoder_attention_mask, encoder_outputs, cache=None):
        """Raises `ValueError` for encoder outputs without context, or with that of other sentences."""
        if self.config.hierarchical_attention == "encoder":
            return {}
        context = {name: getattr(encoder_outputs, name, None) for name in CONTEXT_FIELDS}
        rows = encoder_outputs.last_hidden_state.shape[0]
        are_others = any(part is not None and part.shape[0] != rows for part in context.values())
        if are_others or not hasattr(encoder_outputs, "context_target_words"):
            raise ValueError(
                "encoder_outputs must come from this model's encoder: context_states and what belongs to them are "
                "missing, or are of other sentences."
            )
        return context


class HanForConditionalGeneration(ContextForConditionalGeneration, GenerationMixin):
    """Hierarchical attention networks (Miculicich et al. 2018); see `HanConfig` and `HierarchicalContext`.

    Each context sentence is read as if it were alone; in the released code, where all sentences of a document
    are one batch, the decoder states of `joint` come from encoder states with context. A translation is context where
    its source is, too. Its states are those of forced decoding, in training of references, at translation of what was
    written. The second of the two training steps starts with a sentence-level model, `init_from` in a recipe.
    """

    config_class = HanConfig
    model_class = HanModel
    translator_class = ContextTranslator


HanModel.register_for_auto_class("AutoModel")
HanForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["HanForConditionalGeneration", "HanModel"]
