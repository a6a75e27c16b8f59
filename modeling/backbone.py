"""The encoder-decoder Transformer that every architecture stands on.

Parameter names are those of the Bart family. There are no architecture switches in here; an architecture changes the
backbone at five seams: the encoder class, the encoder layer class, the decoder layer class (class attributes of its
model), the methods `embed` and `mask` of encoder and decoder, and `then`, what follows self-attention in a layer.
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import GenerationMixin, PreTrainedModel
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.utils.generic import can_return_tuple, merge_with_config_defaults
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from .configuration_docmt import DocMTConfig
from .cpu_inference import Linear, joint_linear
from .decoding import DecodingCache, SharedSources
from .generation_docmt import DocumentTranslation
from .loss import weighted_cross_entropy
from .segments import is_right_padded, sinusoid, token_positions


def eager_attention(module, query, key, value, attention_mask, scaling, dropout=0.0, **kwargs):
    """Attention by its formula, softmax(QK^T / sqrt(d))V: (B, H, T, Dh) -> (B, T, H, Dh) and weights (B, H, T, S)."""
    weights = torch.matmul(query, key.transpose(2, 3)) * scaling
    if attention_mask is not None:
        weights = weights + attention_mask
    weights = nn.functional.softmax(weights, dim=-1)
    kept = nn.functional.dropout(weights, p=dropout, training=module.training)
    return torch.matmul(kept, value).transpose(1, 2).contiguous(), weights


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2), self or cross, with a cache while decoding.

    In cross-attention the decoder batch B may be a multiple of the source batch: the rows of one source (its beams,
    or its candidate translations) stand next to each other and share its keys and values.
    """

    def __init__(self, config: DocMTConfig, num_heads: int, layer_idx: int | None = None, is_causal: bool = False):
        super().__init__()
        self.config = config
        self.dropout = config.attention_dropout
        self.head_dim = config.d_model // num_heads
        self.scaling = self.head_dim**-0.5
        self.layer_idx = layer_idx
        self.is_causal = is_causal
        self.k_proj = Linear(config.d_model, config.d_model)
        self.v_proj = Linear(config.d_model, config.d_model)
        self.q_proj = Linear(config.d_model, config.d_model)
        self.out_proj = Linear(config.d_model, config.d_model)

    def forward(self, hidden_states, key_value_states=None, past_key_values=None, attention_mask=None, **kwargs):
        """`hidden_states` (B, T, D), in cross-attention `key_value_states` (<= B, S, D) -> (B, T, D), weights."""
        if key_value_states is None:
            query, key, value = self.self_projections(hidden_states)
            if past_key_values is not None:
                key, value = past_key_values.self_attention_cache.update(key, value, self.layer_idx)
        else:
            sources = key_value_states.shape[0]
            query = self.heads(self.q_proj(hidden_states).view(sources, -1, hidden_states.shape[-1]))
            key, value = self.source_projections(key_value_states, past_key_values)
        implementation = self.config._attn_implementation
        if key_value_states is not None and "flash" in implementation and attention_mask is not None:
            implementation = "sdpa"  # flash would take the mask of the keys for one of the queries, too
            attention_mask = attention_mask[:, None, None, :].bool()  # (B, 1, 1, S)
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(implementation, eager_attention)
        dropout = self.dropout if self.training else 0.0
        output, weights = attend(
            self, query, key, value, attention_mask, dropout=dropout, scaling=self.scaling, **kwargs
        )
        return self.out_proj(output.reshape(hidden_states.shape)), weights

    def heads(self, states: torch.Tensor) -> torch.Tensor:
        return states.view(*states.shape[:2], -1, self.head_dim).transpose(1, 2)  # (B, H, T, Dh)

    def self_projections(self, hidden_states: torch.Tensor):
        projected = joint_linear((self.q_proj, self.k_proj, self.v_proj), hidden_states)  # (B, T, D) each
        return [self.heads(states) for states in projected]

    def source_projections(self, key_value_states: torch.Tensor, past_key_values: DecodingCache | None):
        if past_key_values is not None and past_key_values.is_updated.get(self.layer_idx):
            layer = past_key_values.cross_attention_cache.layers[self.layer_idx]
            return layer.keys, layer.values
        key = self.heads(self.k_proj(key_value_states))
        value = self.heads(self.v_proj(key_value_states))
        if past_key_values is not None:
            key, value = past_key_values.cross_attention_cache.update(key, value, self.layer_idx)
            past_key_values.is_updated[self.layer_idx] = True
        return key, value


class Layer(GradientCheckpointingLayer):
    """What encoder and decoder layers share: feed-forward network, residuals, and norm before or after."""

    def __init__(self, config: DocMTConfig, ffn_dim: int, layer_idx: int):
        super().__init__()
        self.layer_idx = layer_idx
        self.normalize_before = config.normalize_before
        self.dropout, self.activation_dropout = config.dropout, config.activation_dropout
        self.activation_fn = ACT2FN[config.activation_function]
        self.fc1 = Linear(config.d_model, ffn_dim)
        self.fc2 = Linear(ffn_dim, config.d_model)
        self.final_layer_norm = nn.LayerNorm(config.d_model)

    def sublayer(self, function, norm: nn.LayerNorm, hidden_states: torch.Tensor) -> torch.Tensor:
        """x + f(norm(x)) with norm before, norm(x + f(x)) with norm after."""
        residual = hidden_states
        if self.normalize_before:
            hidden_states = norm(hidden_states)
        hidden_states = function(hidden_states)
        if self.training:
            hidden_states = nn.functional.dropout(hidden_states, p=self.dropout)
        hidden_states = residual + hidden_states
        return hidden_states if self.normalize_before else norm(hidden_states)

    def feed_forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        hidden_states = self.activation_fn(self.fc1(hidden_states))
        if self.training:
            hidden_states = nn.functional.dropout(hidden_states, p=self.activation_dropout)
        return self.fc2(hidden_states)


class EncoderLayer(Layer):
    """Self-attention and feed-forward network."""

    def __init__(self, config: DocMTConfig, layer_idx: int):
        super().__init__(config, config.encoder_ffn_dim, layer_idx)
        self.self_attn = Attention(config, config.encoder_attention_heads, layer_idx)
        self.self_attn_layer_norm = nn.LayerNorm(config.d_model)

    def forward(self, hidden_states, attention_mask=None, then=None, **kwargs) -> torch.Tensor:
        """`hidden_states` (B, S, D) -> (B, S, D). `then(layer, hidden_states, **kwargs)` follows self-attention."""

        def attend(states):
            return self.self_attn(states, attention_mask=attention_mask, **kwargs)[0]

        hidden_states = self.sublayer(attend, self.self_attn_layer_norm, hidden_states)
        if then is not None:
            hidden_states = then(self, hidden_states, **kwargs)
        return self.sublayer(self.feed_forward, self.final_layer_norm, hidden_states)


class DecoderLayer(Layer):
    """Causal self-attention, attention to the source, feed-forward network."""

    def __init__(self, config: DocMTConfig, layer_idx: int):
        super().__init__(config, config.decoder_ffn_dim, layer_idx)
        self.self_attn = Attention(config, config.decoder_attention_heads, layer_idx, is_causal=True)
        self.self_attn_layer_norm = nn.LayerNorm(config.d_model)
        self.encoder_attn = Attention(config, config.decoder_attention_heads, layer_idx)
        self.encoder_attn_layer_norm = nn.LayerNorm(config.d_model)

    def forward(
        self,
        hidden_states,
        attention_mask=None,
        encoder_hidden_states=None,
        encoder_attention_mask=None,
        past_key_values=None,
        then=None,
        **kwargs,
    ) -> torch.Tensor:
        """`hidden_states` (B, T, D), `encoder_hidden_states` (B or fewer, S, D) -> (B, T, D).

        `then` as above, with `read_source`, attention to the source as a function of states, which it calls itself.
        """

        def attend(states):
            return self.self_attn(states, past_key_values=past_key_values, attention_mask=attention_mask, **kwargs)[0]

        def attend_source(states):
            return self.encoder_attn(
                states, encoder_hidden_states, past_key_values, attention_mask=encoder_attention_mask, **kwargs
            )[0]

        def read_source(states):
            return self.sublayer(attend_source, self.encoder_attn_layer_norm, states)

        hidden_states = self.sublayer(attend, self.self_attn_layer_norm, hidden_states)
        if then is None:
            hidden_states = read_source(hidden_states)
        else:
            hidden_states = then(self, hidden_states, read_source, past_key_values=past_key_values, **kwargs)
        return self.sublayer(self.feed_forward, self.final_layer_norm, hidden_states)


class DocMTPreTrainedModel(PreTrainedModel):
    """Loading, saving and initialisation shared by all models of this family."""

    config_class = DocMTConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    _supports_flash_attn = True
    _supports_sdpa = True
    _supports_flex_attn = True

    def _set_gradient_checkpointing(self, enable=True, gradient_checkpointing_func=checkpoint, **kwargs):
        """Raises `ValueError` for reentrant checkpointing, in which the context and memory of layers lose gradients."""
        if enable and getattr(gradient_checkpointing_func, "keywords", {}).get("use_reentrant"):
            raise ValueError(
                "gradient checkpointing: use_reentrant=True follows the first input of a layer only, not the context "
                "or memory that it reads; use use_reentrant=False, the default."
            )
        super()._set_gradient_checkpointing(enable, gradient_checkpointing_func, **kwargs)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        std = self.config.init_std
        if isinstance(module, nn.Linear):
            init.normal_(module.weight, mean=0.0, std=std)
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight, mean=0.0, std=std)
            if module.padding_idx is not None:
                init.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)
        elif isinstance(module, DocMTForConditionalGeneration):
            init.zeros_(module.final_logits_bias)


class Stack(DocMTPreTrainedModel):
    """What encoder and decoder share: embeddings of tokens and positions, and the norms around the layers."""

    def __init__(self, config: DocMTConfig):
        super().__init__(config)
        self.embed_scale = config.d_model**0.5 if config.scale_embedding else 1.0
        self.embed_tokens = nn.Embedding(config.vocab_size, config.d_model, config.pad_token_id)
        if config.position_type == "learned":
            self.embed_positions = nn.Embedding(config.max_position_embeddings + config.position_offset, config.d_model)
        if config.layernorm_embedding:
            self.layernorm_embedding = nn.LayerNorm(config.d_model)
        if config.normalize_before:
            self.layer_norm = nn.LayerNorm(config.d_model)
        self.gradient_checkpointing = False

    def embed_inputs(self, input_ids: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
        """Scaled token embeddings plus what encodes their place: ids (B, T), `added` (B or 1, T, D) -> (B, T, D)."""
        tokens = self.embed_tokens(input_ids) * self.embed_scale
        hidden_states = tokens + added.to(tokens.dtype)
        if self.config.layernorm_embedding:
            hidden_states = self.layernorm_embedding(hidden_states)
        return nn.functional.dropout(hidden_states, p=self.config.dropout, training=self.training)

    def positions(self, input_ids, attention_mask=None, past_length: int = 0) -> torch.Tensor:
        """Positions of ids (B, T), (B or 1, T); ValueError where the table of learned ones has no row for them."""
        positions = token_positions(input_ids.shape, input_ids.device, attention_mask, past_length)
        limit = self.config.max_position_embeddings
        if self.config.position_type == "learned" and past_length + input_ids.shape[1] > limit:
            length = int(positions.max()) + 1  # without padding on the left
            if length > limit:
                raise ValueError(
                    f"sequence of {length} tokens, but the model has learned positions for {limit}: give shorter "
                    "segments or a lower max_new_tokens."
                )
        return positions

    def position_encoding(self, positions: torch.Tensor) -> torch.Tensor:
        """Positions (B or 1, T) from 0 -> their encodings, (B or 1, T, D)."""
        positions = positions + self.config.position_offset
        if self.config.position_type == "learned":
            return self.embed_positions(positions)
        return sinusoid(positions, self.config.d_model, self.config.position_type)

    def finish(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.layer_norm(hidden_states) if self.config.normalize_before else hidden_states


class Encoder(Stack):
    """Source ids to states."""

    layer_class = EncoderLayer
    _can_record_outputs = {
        "hidden_states": EncoderLayer,
        "attentions": OutputRecorder(Attention, index=1, layer_name="self_attn"),
    }

    def __init__(self, config: DocMTConfig):
        super().__init__(config)
        self.layers = nn.ModuleList([self.layer_class(config, i) for i in range(config.encoder_layers)])
        self.post_init()

    @merge_with_config_defaults
    @capture_outputs
    def forward(self, input_ids=None, attention_mask=None, **kwargs) -> BaseModelOutput:
        """`input_ids` (B, S), `attention_mask` (B, S), 1 = token -> `last_hidden_state` (B, S, D)."""
        padded_left = attention_mask is not None and not is_right_padded(attention_mask)
        positions = self.positions(input_ids, attention_mask if padded_left else None)
        hidden_states, layer_inputs = self.embed(input_ids, positions)
        attention_mask = self.mask(hidden_states, attention_mask)
        for layer in self.layers:
            hidden_states = layer(hidden_states, attention_mask, **layer_inputs, **kwargs)
        return BaseModelOutput(last_hidden_state=self.finish(hidden_states))

    def embed(self, input_ids: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, dict]:
        """Ids (B, S) and positions (B or 1, S) -> states (B, S, D), and what is handed to every layer."""
        return self.embed_inputs(input_ids, self.position_encoding(positions)), {}

    def mask(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor | None):
        return create_bidirectional_mask(config=self.config, inputs_embeds=hidden_states, attention_mask=attention_mask)


class Decoder(Stack):
    """Target ids and source states to states."""

    layer_class = DecoderLayer
    _can_record_outputs = {
        "hidden_states": DecoderLayer,
        "attentions": OutputRecorder(Attention, index=1, layer_name="self_attn"),
        "cross_attentions": OutputRecorder(Attention, index=1, layer_name="encoder_attn"),
    }

    def __init__(self, config: DocMTConfig):
        super().__init__(config)
        self.layers = nn.ModuleList([self.layer_class(config, i) for i in range(config.decoder_layers)])
        self.post_init()

    @merge_with_config_defaults
    @capture_outputs
    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        encoder_hidden_states=None,
        encoder_attention_mask=None,
        past_key_values=None,
        use_cache=None,
        embed_inputs=None,
        **kwargs,
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """`input_ids` (B, T): with a cache the new tokens; `attention_mask` (B, cached + T), 1 = token.

        `encoder_hidden_states` (B or fewer, S, D) and `encoder_attention_mask` (the same, S). `embed_inputs` is what
        the architecture's `embed` needs besides the ids.
        """
        if use_cache and past_key_values is None:
            past_key_values = self.new_cache()
        past_length = past_key_values.get_seq_length() if past_key_values is not None else 0
        if attention_mask is not None and not past_length and is_right_padded(attention_mask):
            attention_mask = None  # causality hides padding on the right from every token before it
        positions = self.positions(input_ids, attention_mask, past_length)
        hidden_states, layer_inputs = self.embed(input_ids, positions, **(embed_inputs or {}))
        causal_mask, source_mask = self.mask(
            hidden_states, attention_mask, encoder_hidden_states, encoder_attention_mask, past_key_values
        )
        for layer in self.layers:
            hidden_states = layer(
                hidden_states,
                causal_mask,
                encoder_hidden_states,
                encoder_attention_mask=source_mask,
                past_key_values=past_key_values,
                **layer_inputs,
                **kwargs,
            )
        return BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=self.finish(hidden_states), past_key_values=past_key_values
        )

    def new_cache(self) -> DecodingCache:
        """An empty cache for `past_key_values`."""
        return DecodingCache()

    def embed(self, input_ids: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, dict]:
        """Ids (B, T) and positions (B or 1, T) -> states (B, T, D), and what is handed to every layer."""
        return self.embed_inputs(input_ids, self.position_encoding(positions)), {}

    def mask(self, hidden_states, attention_mask, encoder_hidden_states, encoder_attention_mask, past_key_values):
        """Masks of self- and cross-attention; None where every key is seen."""
        batch, length, _ = hidden_states.shape
        if length == 1 and attention_mask is None:
            causal = None  # one new token sees all that came before it
        else:
            causal = create_causal_mask(
                config=self.config,
                inputs_embeds=hidden_states,
                attention_mask=attention_mask,
                past_key_values=past_key_values.self_attention_cache if past_key_values is not None else None,
            )
        if encoder_attention_mask is None:
            return causal, None
        sources = encoder_hidden_states.shape[0]
        queries = hidden_states.view(sources, batch // sources * length, -1)
        return causal, create_bidirectional_mask(
            config=self.config,
            inputs_embeds=queries,
            attention_mask=encoder_attention_mask,
            encoder_hidden_states=encoder_hidden_states,
        )


class DocMTModel(DocMTPreTrainedModel):
    """Encoder and decoder over shared token embeddings."""

    encoder_class = Encoder
    decoder_class = Decoder
    _tied_weights_keys = {
        "encoder.embed_tokens.weight": "shared.weight",
        "decoder.embed_tokens.weight": "shared.weight",
    }

    def __init__(self, config: DocMTConfig):
        super().__init__(config)
        if config.share_encoder_decoder_embeddings:
            self.shared = nn.Embedding(config.vocab_size, config.d_model, config.pad_token_id)
        else:
            self._tied_weights_keys = None
        self.encoder = self.encoder_class(config)
        self.decoder = self.decoder_class(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        return self.encoder.embed_tokens

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        self.encoder.embed_tokens = value
        if self.config.share_encoder_decoder_embeddings:
            self.shared = self.decoder.embed_tokens = value

    @can_return_tuple
    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        encoder_outputs=None,
        past_key_values=None,
        use_cache=None,
        **kwargs,
    ) -> Seq2SeqModelOutput:
        """Shapes as in `DocMTForConditionalGeneration.forward`."""
        encoder_place, decoder_place = (
            {name: kwargs[name] for name in kwargs if name in names}
            for names in (self.encoder_input_names, self.decoder_place_names)
        )
        kwargs = {name: kwargs[name] for name in kwargs if name not in encoder_place | decoder_place}
        if encoder_outputs is None:
            encoder_outputs = self.encoder(
                input_ids=input_ids, attention_mask=attention_mask, **encoder_place, **kwargs
            )
        elif not isinstance(encoder_outputs, BaseModelOutput):
            encoder_outputs = BaseModelOutput(*encoder_outputs)
        place = self.decoder_embed_inputs(decoder_input_ids, encoder_outputs, past_key_values, **decoder_place)
        decoder_outputs = self.decoder(
            input_ids=decoder_input_ids,
            attention_mask=decoder_attention_mask,
            encoder_hidden_states=encoder_outputs.last_hidden_state,
            encoder_attention_mask=attention_mask,
            past_key_values=past_key_values,
            use_cache=use_cache,
            embed_inputs=place,
            **kwargs,
        )
        return self.joined(encoder_outputs, decoder_outputs)

    def joined(self, encoder_outputs, decoder_outputs) -> Seq2SeqModelOutput:
        """What comes out of encoder and decoder as one output."""
        return Seq2SeqModelOutput(
            last_hidden_state=decoder_outputs.last_hidden_state,
            past_key_values=decoder_outputs.past_key_values,
            decoder_hidden_states=decoder_outputs.hidden_states,
            decoder_attentions=decoder_outputs.attentions,
            cross_attentions=decoder_outputs.cross_attentions,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.hidden_states,
            encoder_attentions=encoder_outputs.attentions,
        )

    encoder_input_names: tuple[str, ...] = ()  # forward arguments that the encoder takes
    decoder_place_names: tuple[str, ...] = ()  # forward arguments that only `decoder_embed_inputs` takes

    def decoder_embed_inputs(self, decoder_input_ids, encoder_outputs, past_key_values) -> dict:
        """What the decoder's `embed` takes besides ids and positions."""
        return {}


class DocMTForConditionalGeneration(DocMTPreTrainedModel, DocumentTranslation, SharedSources, GenerationMixin):
    """The backbone with a language modelling head; base class of every architecture."""

    model_class = DocMTModel
    output_class = Seq2SeqLMOutput
    _tied_weights_keys = {"lm_head.weight": "model.decoder.embed_tokens.weight"}
    _keys_to_ignore_on_load_missing = ["final_logits_bias"]

    def __init__(self, config: DocMTConfig):
        super().__init__(config)
        self.model = self.model_class(config)
        if config.share_encoder_decoder_embeddings:
            names = ("lm_head.weight", "model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight")
            self._tied_weights_keys = dict.fromkeys(names, "model.shared.weight")
        self.register_buffer("final_logits_bias", torch.zeros(1, config.vocab_size))
        self.lm_head = Linear(config.d_model, config.vocab_size, bias=False)
        self.post_init()

    def get_encoder(self, modality=None) -> Encoder:
        return self.model.encoder

    def get_decoder(self) -> Decoder:
        return self.model.decoder

    def get_input_embeddings(self) -> nn.Embedding:
        return self.model.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        self.model.set_input_embeddings(value)

    def set_output_embeddings(self, value: nn.Linear) -> None:
        """Take over the weights; the layer stays one that can add a bias."""
        self.lm_head = Linear(value.in_features, value.out_features, bias=False, device="meta")
        self.lm_head.weight = value.weight

    def resize_token_embeddings(self, new_num_tokens=None, pad_to_multiple_of=None, mean_resizing=True) -> nn.Embedding:
        """As in transformers, for the tables of both sides; the logits' bias grows with zeros."""
        embeddings = super().resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        decoder, size = self.model.decoder, embeddings.num_embeddings
        if decoder.embed_tokens.num_embeddings != size:
            decoder.embed_tokens = self._get_resized_embeddings(decoder.embed_tokens, size, mean_resizing=mean_resizing)
            if self.config.tie_word_embeddings:
                self.lm_head.weight = decoder.embed_tokens.weight
        added = embeddings.num_embeddings - self.final_logits_bias.shape[1]
        self.final_logits_bias = nn.functional.pad(self.final_logits_bias, (0, added))  # added < 0 cuts
        return embeddings

    @can_return_tuple
    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        encoder_outputs=None,
        past_key_values=None,
        labels=None,
        label_weights=None,
        use_cache=None,
        num_items_in_batch=None,
        **kwargs,
    ) -> Seq2SeqLMOutput:
        """Logits (B, T, V), and the loss where labels are given.

        `input_ids`, `attention_mask` (B, S); `decoder_input_ids`, `decoder_attention_mask` (B, T), the latter with
        the cached tokens in front; `labels` (B, T), -100 = not scored; `label_weights` (B, T). Masks: 1 = token.
        `encoder_outputs` may hold fewer rows than the decoder's batch, see `Attention`. Without `decoder_input_ids`
        the labels are shifted to the right behind the decoder's start token.
        """
        if labels is not None:
            use_cache = False
            if decoder_input_ids is None:
                decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            decoder_attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            past_key_values=past_key_values,
            use_cache=use_cache,
            **kwargs,
        )
        logits = self.lm_head(outputs.last_hidden_state, self.final_logits_bias[0])
        loss = None
        if labels is not None:
            smoothing = self.config.label_smoothing if self.training else 0.0
            loss = weighted_cross_entropy(logits, labels, label_weights, smoothing, num_items_in_batch)
        states = {name: value for name, value in outputs.items() if name != "last_hidden_state"}
        return self.output_class(loss=loss, logits=logits, **states)

    def logits_at(self, places: torch.Tensor, **inputs) -> torch.Tensor:
        """Logits (N, V) of N target places alone, marked in (B, T) bool; `inputs` are those of `forward`, no labels."""
        hidden_states = self.model(**inputs).last_hidden_state  # (B, T, D)
        return self.lm_head(hidden_states[places], self.final_logits_bias[0])

    def prepare_decoder_input_ids_from_labels(self, labels: torch.Tensor) -> torch.Tensor:
        """Labels (B, T) shifted to the right: the decoder's start token in front, the last label dropped."""
        start = labels.new_full((labels.shape[0], 1), self.config.decoder_start_token_id)
        return torch.cat([start, labels[:, :-1].masked_fill(labels[:, :-1] == -100, self.config.pad_token_id)], dim=1)
