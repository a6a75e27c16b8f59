"""G-Transformer: attention within each sentence, in the top layers joined with attention to the whole by a gate."""

from dataclasses import dataclass

import torch
from torch import nn
from transformers import GenerationMixin
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import BaseModelOutput

from .configuration_gtransformer import GTransformerConfig
from .layers import Attention, DecoderLayer, EncoderLayer, cached_length
from .modeling_docmt import encoder_field
from .segments import sentence_index
from .sentence_stack import (
    SentenceAttention,
    SentenceDecoder,
    SentenceEncoder,
    SentenceGeneration,
    SentenceModel,
    SentenceStack,
)


class GroupAttention(SentenceAttention):
    """Group attention H_L, and in the top layers also global attention H_G (Bao et al. 2021, section 4).

    Group attention is multi-head attention in which a query sees the keys with its own group tag: the mask
    M(G_Q, G_K) is 0 if both are the same, otherwise a large negative number. Global attention has its own weights and
    sees all keys; a gate of both joins them, H = H_L * g + H_G * (1 - g), g = sigmoid([H_L; H_G] W + b).

    H_L has the names of the backbone's attention, so that a sentence-level model loads by name. The cache of
    self-attention has the heads of both side by side.
    """

    def __init__(
        self, config: GTransformerConfig, num_heads: int, layer_idx: int, is_combined: bool, is_causal: bool = False
    ):
        super().__init__(config, num_heads, layer_idx, is_causal)
        self.global_attn = self.gate = None
        if is_combined:
            self.global_attn = Attention(config, num_heads, layer_idx, is_causal, source_name="global")
            self.gate = nn.Linear(2 * config.d_model, config.d_model)

    def start_neutral(self) -> None:
        """Global attention as a copy of group attention, as in the released code; on one sentence both are the same."""
        if self.global_attn is not None:
            for name, parameter in self.global_attn.named_parameters():
                parameter.copy_(self.get_parameter(name))

    def forward(
        self,
        hidden_states: torch.Tensor,
        key_value_states: torch.Tensor | None = None,
        cache=None,
        attention_mask: torch.Tensor | None = None,
        output_attentions: bool = False,
        **layer_inputs,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """As in `Attention`; the mask is for global attention, as are the weights if the layer has it."""
        shape, settings = hidden_states.shape, (attention_mask, output_attentions)
        if key_value_states is None:
            own, whole = self.read_self(hidden_states, cache, *settings, layer_inputs)
        else:
            own, whole = self.read_source(hidden_states, key_value_states, cache, *settings, layer_inputs)
        read, weights = own
        output = self.out_proj(read.reshape(shape))  # H_L, from (B, T, H, Dh)
        if whole is not None:
            read, weights = whole
            whole = self.global_attn.out_proj(read.reshape(shape))  # H_G
            gate = torch.sigmoid(self.gate(torch.cat([output, whole], dim=-1)))  # g
            output = output * gate + whole * (1 - gate)
        return output, self.by_row(weights, shape[0])

    def read_self(self, hidden_states, cache, attention_mask, output_attentions, layer_inputs) -> tuple:
        """Output of the heads of H_L and H_G (None = without it) in self-attention, with weights."""
        new = self.self_projections(hidden_states)  # (B, H, T, Dh) each
        if self.global_attn is None:
            query, key, value = new
        else:
            both = zip(new, self.global_attn.self_projections(hidden_states))
            query, key, value = (torch.cat(pair, dim=1) for pair in both)  # (B, 2H, T, Dh) each
        if cache is not None:
            share_prefix(cache.self_attention_cache.layers[self.layer_idx :], key.shape[1])
            key, value = cache.self_attention_cache.update(key, value, self.layer_idx)
        parts = zip(*(states.split(new[0].shape[1], dim=1) for states in (query, key, value)))
        settings = {"output_attentions": output_attentions}
        own = self.attend_sentence(*next(parts), attention_mask, layer_inputs, **settings)
        if self.global_attn is None:
            return own, None
        return own, self.global_attn.attend(*next(parts), attention_mask, **settings)

    def read_source(
        self, hidden_states, key_value_states, cache, attention_mask, output_attentions, layer_inputs
    ) -> tuple:
        """Group and global attention to the source."""
        inputs, group_mask = (hidden_states, key_value_states, cache), layer_inputs.get("source_group_mask")
        own = self.heads_output(*inputs, attention_mask if group_mask is None else group_mask, output_attentions)
        if self.global_attn is None:
            return own, None
        return own, self.global_attn.heads_output(*inputs, attention_mask, output_attentions)


def share_prefix(layers: list, heads: int) -> None:
    """Give the prefix of an adapter, which has the heads of one attention, to both of the first of these layers."""
    if layers and layers[0].is_initialized and 2 * layers[0].keys.shape[1] == heads:
        layers[0].keys, layers[0].values = (states.repeat(1, 2, 1, 1) for states in (layers[0].keys, layers[0].values))


class GTransformerEncoderLayer(EncoderLayer):
    def __init__(self, config: GTransformerConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        is_combined = layer_idx >= config.encoder_layers - config.global_layers_of("encoder")
        self.self_attn = GroupAttention(config, config.encoder_attention_heads, layer_idx, is_combined)


class GTransformerDecoderLayer(DecoderLayer):
    def __init__(self, config: GTransformerConfig, layer_idx: int):
        super().__init__(config, layer_idx)
        heads = config.decoder_attention_heads
        of_self, of_cross = (
            layer_idx >= config.decoder_layers - config.global_layers_of(part) for part in ("decoder", "cross")
        )
        self.self_attn = GroupAttention(config, heads, layer_idx, of_self, is_causal=True)
        self.encoder_attn = GroupAttention(config, heads, layer_idx, of_cross)


class GroupStack(SentenceStack):
    """The embedding; positions restart in every group if the configuration says so."""

    def embed(self, input_ids, positions, group_positions: torch.Tensor | None = None, **layer_inputs):
        return super().embed(input_ids, positions if group_positions is None else group_positions)

    def group_positions(
        self, index: torch.Tensor, new: torch.Tensor, tokens: torch.Tensor | None = None
    ) -> dict[str, torch.Tensor]:
        """`group_positions` of the `new` columns (T,), (B, T): how many earlier tokens are of the same sentence.

        `index` (B, keys) is the sentence of all tokens so far, `tokens` their mask, of no more columns, 1 = token.
        """
        if tokens is None:
            tokens = torch.ones_like(index[:1])
        places = nn.functional.pad(tokens, (0, index.shape[1] - tokens.shape[1])).long().cumsum(dim=1) - 1
        begins = nn.functional.pad(index[:, 1:] != index[:, :-1], (1, 0), value=True)
        starts = places.clamp(min=0).masked_fill(~begins, 0).cummax(dim=1)[0]
        return {"group_positions": (places - starts).clamp(min=0).index_select(1, new)}


@dataclass
class GTransformerEncoderOutput(BaseModelOutput):
    """Encoder states with the group tag of every token (B, S), G_K of attention to the source, from 1; 0 = no token."""

    source_groups: torch.LongTensor | None = None


class GTransformerEncoder(GroupStack, SentenceEncoder):
    config_class = GTransformerConfig
    layer_class = GTransformerEncoderLayer

    def layer_inputs(self, input_ids, positions, attention_mask=None, **kwargs):
        """The inputs of self-attention, and `group_positions` (B, S) where positions restart."""
        inputs = super().layer_inputs(input_ids, positions, attention_mask, **kwargs)
        if not self.config.restarts_positions:
            return inputs
        index = sentence_index(input_ids, self.config.sep_token_id)
        new = torch.arange(input_ids.shape[1], device=input_ids.device)
        return inputs | self.group_positions(index, new, attention_mask)

    def build_output(self, outputs, layer_inputs, input_ids, attention_mask=None, **kwargs):
        groups = sentence_index(input_ids, self.config.sep_token_id) + 1
        if attention_mask is not None:
            groups = groups * attention_mask
        plain = super().build_output(outputs, layer_inputs, input_ids)
        return GTransformerEncoderOutput(**plain, source_groups=groups)


class GTransformerDecoder(GroupStack, SentenceDecoder):
    config_class = GTransformerConfig
    layer_class = GTransformerDecoderLayer

    def layer_inputs(
        self,
        input_ids,
        positions,
        attention_mask=None,
        encoder_hidden_states=None,
        cache=None,
        sentence_index: torch.Tensor | None = None,  # (B, keys)
        source_groups: torch.Tensor | None = None,  # (sources, S)
        **kwargs,
    ):
        """The inputs of self-attention, and `source_group_mask`: which source tokens a target token sees in its group.

        A token after more separators than the source has sees the whole source. No mask
        where the source has one group.
        """
        inputs = super().layer_inputs(input_ids, positions, attention_mask, cache, sentence_index, **kwargs)
        new = torch.arange(input_ids.shape[1], device=input_ids.device) + cached_length(cache)
        if self.config.restarts_positions:
            inputs |= self.group_positions(sentence_index, new, attention_mask)
        if not torch.compiler.is_compiling() and not bool((source_groups > 1).any()):
            return inputs
        groups = sentence_index.index_select(1, new) + 1
        groups = groups.view(source_groups.shape[0], -1, 1)  # G_Q, (sources, rows of one * T, 1)
        seen = groups == source_groups[:, None]  # (sources, rows of one * T, S)
        seen = seen | ~seen.any(dim=-1, keepdim=True) & (source_groups > 0)[:, None]
        if self.config._attn_implementation == "sdpa":
            return inputs | {"source_group_mask": seen[:, None]}
        mask = create_bidirectional_mask(
            config=self.config,
            inputs_embeds=self.empty_states(*seen.shape[:2], input_ids.device),
            attention_mask=None,
            encoder_hidden_states=encoder_hidden_states,
            and_mask_function=lambda row, head, query, key: seen[row, query, key],
        )
        return inputs | {"source_group_mask": mask}


class GTransformerModel(SentenceModel):
    """Encoder and decoder with group tags on both sides."""

    config_class = GTransformerConfig
    encoder_class = GTransformerEncoder
    decoder_class = GTransformerDecoder

    def target_sentences(self, decoder_input_ids: torch.Tensor) -> torch.Tensor:
        """The sentence of every target token (B, T), from 0; a separator is of the one that begins after it."""
        return (decoder_input_ids == self.config.sep_token_id).cumsum(dim=1)

    def decoder_inputs(self, decoder_input_ids, decoder_attention_mask, encoder_outputs, cache=None, **inputs):
        """As in `SentenceModel`, with the group tags of the source."""
        groups = groups_of(encoder_outputs)
        inputs = super().decoder_inputs(decoder_input_ids, decoder_attention_mask, encoder_outputs, cache, **inputs)
        return inputs | {"source_groups": groups}


def groups_of(encoder_outputs) -> torch.Tensor:
    """The group tags of the source, (B, S); ValueError for outputs of another encoder."""
    return encoder_field(encoder_outputs, "source_groups")


class GTransformerForConditionalGeneration(SentenceGeneration, GenerationMixin):
    """G-Transformer (Bao et al. 2021): target sentences are written from the source sentence with their number.

    Group tags are the numbers of sentences. In the source a separator belongs to the sentence it ends. In the decoder
    it begins the next one, of which the first word is written from it, as `<s>` does in the paper, where each sentence
    is `<s> ... </s>`. Departures: special tokens around the segment belong to its first or last sentence (in the
    released code language codes have no group and see all); a target sentence after the last source sentence sees all
    of it (in the released code nothing, and states are nan).
    """

    config_class = GTransformerConfig
    model_class = GTransformerModel


GTransformerModel.register_for_auto_class("AutoModel")
GTransformerForConditionalGeneration.register_for_auto_class("AutoModelForSeq2SeqLM")

__all__ = ["GTransformerForConditionalGeneration", "GTransformerModel"]
